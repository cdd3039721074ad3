"""After a power cut at any instant the newest checkpoint that was reported as written is there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import runnel as tf
from runnel.checkpoint.reading import open_checkpoint
from runnel.checkpoint.streams_file import streams_file
from runnel.train.meta_graph import read_meta_graph_file
from tests.train.power_cuts import Left, PowerCuts

V1, V2 = 1, 2


def put(left: Left, folder: Path) -> str:
    """Has a folder be what a power cut left."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in left.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return str(folder)


class Watched:
    """Looks at everything that may be left at every moment, by ``step_in`` of the folder."""

    def __init__(self, disk: Path, after: Path, step_in) -> None:
        self.reported = -1
        self.looks = 0
        self._after, self._step_in = after, step_in
        self._seen: set[tuple[int, frozenset]] = set()
        self.cuts = PowerCuts(disk, self._look)

    def _look(self) -> None:
        for left in self.cuts.left():
            key = self.reported, frozenset(left.items())
            if key in self._seen:
                continue
            self._seen.add(key)
            self.looks += 1
            found = self._step_in(put(left, self._after))
            assert found >= self.reported, (sorted(left), self.cuts.events)


def variables():
    with tf.device("/cpu:0"):
        step = tf.Variable(0, name="step")
    with tf.device("/cpu:1"):
        rows = tf.Variable([0, 0, 0], name="rows")
    return tf.group(step.assign_add(1), rows.assign_add([1, 1, 1]))


def step_in(path: str) -> int:
    """The step of a checkpoint, of which everything is read."""
    reader = open_checkpoint(path)
    assert (reader.tensor("rows") == reader.tensor("step")).all()
    return int(reader.tensor("step"))


def train_and_save(tmp_path: Path, save, found_in, steps=2, forgets="") -> Watched:
    """Saves some steps, each by ``save(sess, path, number)``, watched at every moment."""
    disk = tmp_path / "disk"
    disk.mkdir(exist_ok=True)
    advance = variables()
    watched = Watched(disk, tmp_path / "after", found_in)
    watched.cuts.forgets = forgets
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
        sess.run(tf.global_variables_initializer())
        with watched.cuts:
            for number in range(steps):
                save(sess, disk / "new" / "folder" / "m", number)
                watched.reported = number
                watched.cuts.moment()
                sess.run(advance)
    return watched


def latest_step(folder: str) -> int:
    """The step of what a folder names as the latest; it has its graph and streams."""
    latest = tf.train.latest_checkpoint(f"{folder}/new/folder")
    if latest is None:
        return -1
    prefix = latest.partition("-?????-of-")[0]
    assert read_meta_graph_file(f"{prefix}.meta").graph_def.node
    assert Path(streams_file(prefix)).read_bytes()
    return step_in(latest)


def saving(version=V2, sharded=False, background=False):
    """What saves with a Saver that keeps one checkpoint, made where it is first called."""
    savers = []

    def save(sess, path, number):
        if not savers:
            savers.append(
                tf.train.Saver(
                    max_to_keep=1, write_version=version, sharded=sharded, save_relative_paths=True
                )
            )
        if background:
            savers[0].save_in_background(sess, path, number, random_streams=True).wait()
        else:
            savers[0].save(sess, path, number, random_streams=True)

    return save


@pytest.mark.parametrize(
    ("version", "sharded", "background"),
    [
        (V2, False, False),
        (V2, True, False),
        (V2, False, True),
        (V1, False, False),
        (V1, True, False),
    ],
)
def test_what_was_reported_as_written_is_the_latest_after_a_power_cut(
    tmp_path, version, sharded, background
):
    watched = train_and_save(tmp_path, saving(version, sharded, background), latest_step)
    assert watched.looks > 20


@pytest.mark.parametrize("sharded", [False, True])
def test_a_checkpoint_that_is_replaced_or_the_new_one_is_there_after_a_power_cut(tmp_path, sharded):
    savers = []

    def save(sess, path, number):
        if not savers:
            savers.append(tf.train.Saver(sharded=sharded))
        savers[0].save(sess, path, write_state=False)

    def step_of_the_prefix(folder):
        prefix = f"{folder}/new/folder/m"
        return step_in(prefix) if tf.train.checkpoint_exists(prefix) else -1

    def steps_once_there(folder):
        # Of a first checkpoint the index may be left alone: nobody was told that it is written.
        return step_of_the_prefix(folder) if watched_from[0] else -1

    watched_from = [False]

    def save_watched(sess, path, number):
        save(sess, path, number)
        watched_from[0] = True

    assert train_and_save(tmp_path, save_watched, steps_once_there).looks > 10


def test_other_files_that_were_reported_as_written_are_there_after_a_power_cut(tmp_path):
    x = tf.placeholder(tf.int32, [])

    def save(sess, path, number):
        folder = path.parent / str(number)
        tf.train.save_safetensors(sess, str(path.parent / f"{number}.safetensors"))
        tf.train.write_graph(sess.graph, str(folder), "graph.pb", as_text=False)
        tf.saved_model.simple_save(sess, str(folder / "model"), {"x": x}, {"y": x + 1})

    def complete(folder):
        number = -1
        while Path(f"{folder}/new/folder/{number + 1}/model/saved_model.pb").exists():
            number += 1
            there = f"{folder}/new/folder/{number}"
            assert step_in(f"{there}.safetensors") == number
            assert step_in(f"{there}/model/variables/variables") == number
            assert Path(f"{there}/graph.pb").read_bytes()
        return number

    (tmp_path / "disk" / "new" / "folder").mkdir(parents=True)
    assert train_and_save(tmp_path, save, complete, steps=1).looks > 10


@pytest.mark.parametrize("forgets", ["files", "folders"])
def test_the_model_of_the_disk_finds_what_is_not_synced(tmp_path, forgets):
    with pytest.raises((AssertionError, tf.errors.DataLossError)):
        train_and_save(tmp_path, saving(), latest_step, forgets=forgets)
