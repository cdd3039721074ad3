"""A chief that comes back keeps what its parameter servers have, and only then."""

from __future__ import annotations

import pytest

import runnel as tf
from runnel.train import live_model
from tests.conftest import leaves_no_thread
from tests.distributed.clusters import servers

_no_leaked_threads = pytest.fixture(autouse=True, scope="module", name="_no_leaked_threads")(
    leaves_no_thread
)


@pytest.fixture(scope="module")
def cluster():
    with servers(ps=1, worker=1) as found:
        yield found


@pytest.fixture
def life(cluster, tmp_path, monkeypatch):
    """One life of the chief after another: each has the file that its launcher names."""
    monkeypatch.setenv("RUNNEL_PROGRESS", str(tmp_path / "worker-0.progress"))

    def begin(**options):
        monkeypatch.setattr(live_model, "_FILE", live_model._MarkFile())
        return Chief(cluster, **{"folder": str(tmp_path / "model"), **options})

    yield begin
    for server in cluster.values():
        tf.Session.reset(server.target)


class Chief:
    """A chief's program: a step, saved as it begins."""

    def __init__(self, cluster, folder, more=lambda: None, path=None, config=None, **scaffold):
        self.graph = tf.Graph()
        with self.graph.as_default(), tf.device("/job:ps/task:0"):
            self.step = tf.train.get_or_create_global_step()
            self.train = self.step.assign_add(1)
            more()
            self.scaffold = tf.train.Scaffold(
                **{name: make(self.step) for name, make in scaffold.items()}
            )
            self.creator = tf.train.ChiefSessionCreator(
                self.scaffold,
                cluster["worker0"].target,
                config,
                checkpoint_dir=None if path else folder,
                checkpoint_filename_with_path=path,
            )
        self.folder = folder

    def session(self):
        with self.graph.as_default():
            return self.creator.create_session()

    def save(self, session):
        self.scaffold.saver.save(session, f"{self.folder}/model", self.step)


def train(chief, steps, save_after=0):
    """Steps of which the first are saved, and then the life ends without more ado."""
    with chief.session() as session:
        for number in range(steps):
            if number == save_after:
                chief.save(session)
            session.run(chief.train)


def found_by(chief):
    """What its session begins with, and whether that was there."""
    with chief.session() as session:
        return int(session.run(chief.step)), live_model.kept_live(session)


def test_the_next_life_goes_on_with_what_is_there(life):
    train(life(), 5, save_after=2)
    assert found_by(life()) == (5, True)
    assert found_by(life()) == (5, True)


def test_it_does_so_before_anything_was_saved(life):
    with (chief := life()).session() as session:
        session.run([chief.train])
    assert found_by(life()) == (1, True)


def test_within_a_process_the_next_session_does(life, monkeypatch):
    monkeypatch.delenv("RUNNEL_PROGRESS")
    chief = life()
    train(chief, 5, save_after=2)
    assert found_by(chief) == (5, True)
    # As in TensorFlow, another program begins with the checkpoint.
    assert found_by(life()) == (2, False)


def test_what_was_lost_is_restored(life, cluster):
    train(life(), 5, save_after=2)
    tf.Session.reset(cluster["ps0"].target)
    assert found_by(life()) == (2, False)


def test_a_life_that_died_while_it_restored_has_left_nothing(life, monkeypatch):
    train(life(), 5, save_after=2)

    def dies(*_, **__):
        raise KeyboardInterrupt

    killed = life()
    with monkeypatch.context() as patched:
        # It finds that a variable is missing, and is killed when it is there again.
        patched.setattr(live_model.LiveModel, "_mark_of", lambda *_: "of another")
        patched.setattr(tf.train.Saver, "restore", dies)
        with pytest.raises(KeyboardInterrupt):
            killed.session()
    assert found_by(life()) == (2, False)


def test_a_newer_checkpoint_is_restored(life):
    train(life(), 5, save_after=4)
    with (chief := life()).session() as session:
        session.run(chief.graph.get_operation_by_name("global_step/Assign"))
    assert found_by(life()) == (4, False)


def test_a_checkpoint_that_is_named_is_restored(life):
    train(life(), 5, save_after=2)
    folder = (chief := life()).folder
    assert found_by(life(path=f"{folder}/model-2")) == (2, False)
    assert chief.folder == folder


def test_a_session_with_a_state_of_its_own_restores(life):
    train(life(), 5, save_after=2)
    isolated = tf.ConfigProto(isolate_session_state=True)
    assert found_by(life(config=isolated)) == (2, False)


def test_a_checkpoint_that_does_not_say_its_step_is_restored(life):
    def renamed(step):
        return tf.train.Saver({"how_far": step})

    train(life(saver=renamed), 5, save_after=2)
    assert found_by(life(saver=renamed)) == (2, False)


@pytest.mark.parametrize("kind", ["MonitoredSession", "Supervisor"])
def test_what_has_failed_is_restored(life, kind):
    """A model with a loss that is no number is there, too, and would be saved."""
    chief = life()
    with chief.graph.as_default(), pytest.raises(tf.train.NanLossDuringTrainingError):
        if kind == "MonitoredSession":
            session = tf.train.MonitoredSession(chief.creator)
        else:
            finalized = chief.scaffold.finalize()
            supervisor = tf.train.Supervisor(
                logdir=chief.folder, saver=finalized.saver, save_model_secs=0, summary_op=None
            )
            session = supervisor.managed_session(chief.creator._master)
        with session as sess:
            raw = getattr(sess, "raw_session", lambda: sess)()
            raw.run(chief.train)
            raw.run(chief.train)
            chief.save(raw)
            raw.run(chief.train)
            raise tf.train.NanLossDuringTrainingError
    assert found_by(life()) == (2, False)
    assert found_by(chief) == (2, False)


def _one_more_variable():
    tf.get_variable("w", [], initializer=tf.zeros_initializer())


def _table():
    tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1)


def test_in_another_folder_all_begins_anew(life, tmp_path):
    train(life(), 5, save_after=2)
    assert found_by(life(folder=str(tmp_path / "other"))) == (0, False)


def test_another_model_is_restored(life):
    train(life(more=_one_more_variable), 5, save_after=2)
    assert found_by(life()) == (2, False)


def _as_double():
    tf.get_variable("v", [], tf.float64, initializer=tf.zeros_initializer())


def _as_single():
    tf.get_variable("v", [], tf.float32, initializer=tf.zeros_initializer())


def test_variables_of_another_type_are_not_kept(life):
    train(life(more=_as_double), 5, save_after=2)
    with pytest.raises(tf.errors.InvalidArgumentError):  # as ever: the checkpoint has others
        life(more=_as_single).session()


def test_what_has_more_than_variables_is_restored(life):
    train(life(more=_table), 5, save_after=2)
    assert found_by(life(more=_table)) == (2, False)
