"""A job that takes its input from queues, stopped and started again, misses nothing of it."""

from __future__ import annotations

import contextlib
from collections import Counter

import numpy as np
import pytest

import runnel as tf
from runnel.distributed.remote import RemoteBackend
from runnel.runtime.session import session as sessions
from runnel.train import queue_checkpoints
from tests.both_tiers import COMPILED, INTERPRETED
from tests.distributed.clusters import servers

FILES, RECORDS, EPOCHS, BATCH = 3, 8, 2, 6
STEPS = FILES * RECORDS * EPOCHS // BATCH


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    paths = [str(folder / f"{i}.tfrecord") for i in range(FILES)]
    for part, path in enumerate(paths):
        with tf.python_io.TFRecordWriter(path) as writer:
            for number in range(RECORDS):
                writer.write(b"%d" % (RECORDS * part + number))
    return paths


@pytest.fixture(autouse=True)
def _closed_writers():
    yield
    tf.summary.FileWriterCache.clear()


# What a job is ----------------------------------------------------------------------------------


def records(files):
    """The numbers in the files, which come in random order, epoch by epoch."""
    names = tf.train.string_input_producer(files, num_epochs=EPOCHS, capacity=2)
    return tf.string_to_number(tf.TFRecordReader().read(names)[1])


def shuffled(files):
    """Each draw is made from 8 examples: only so is it settled what a queue gives."""
    number = records(files) + tf.random_uniform([])
    return tf.train.shuffle_batch([number], BATCH, capacity=8, min_after_dequeue=7)


def in_turn(files):
    """The first queue is filled in rows, the last is often full."""
    rows = tf.train.batch([records(files)], 4, capacity=5)
    return tf.train.batch([rows], BATCH, capacity=BATCH, enqueue_many=True)


def padded(files):
    number = records(files)
    row = tf.fill([1 + tf.to_int32(number) % 3], number)
    return tf.reduce_sum(tf.train.batch([row], BATCH, capacity=7, dynamic_pad=True), axis=1)


def by_priority(files):
    """Both queues can only be full or wait, so that what comes next is settled."""
    first = tf.train.batch([records(files)], 1, capacity=1)
    queue = tf.PriorityQueue(1, [tf.float32], [[]])
    put = queue.enqueue([tf.to_int64(first[0]) % 2, first[0]])
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [put]))
    return queue.dequeue_many(BATCH)[1]


def chosen(files):
    """About half of the examples, as single strings; two queues for each step."""
    texts = tf.FIFOQueue(3, tf.string)
    put = texts.enqueue(tf.as_string(records(files)))
    tf.train.add_queue_runner(tf.train.QueueRunner(texts, [put]))
    number = tf.string_to_number(tf.reshape(texts.dequeue(), []))
    keep = tf.random_uniform([]) < 0.5
    some = tf.train.maybe_batch([number], keep, 5, capacity=3)
    rows = tf.train.input_producer(tf.reshape(tf.range(12.0), [6, 2]), capacity=4)
    return tf.concat([some, rows.dequeue()], 0)


def looked_up(files):
    """A record for each step, read by the step itself."""
    names = tf.train.string_input_producer(files, num_epochs=EPOCHS, capacity=2)
    _, numbers = tf.TFRecordReader().read_up_to(names, 3)
    return tf.string_to_number(numbers)


class Job:
    """A graph that trains on ``batch``."""

    def __init__(self, batch) -> None:
        weight = tf.get_variable("weight", initializer=0.5)
        noise = tf.random_normal([])
        self.loss = tf.reduce_mean(tf.square(batch * weight + noise - 1.0))
        self.step = tf.train.get_or_create_global_step()
        optimizer = tf.train.MomentumOptimizer(1e-4, 0.9)
        self.train = optimizer.minimize(self.loss, self.step)

    def losses(self, sess, most: int = 1000) -> list[float]:
        found: list[float] = []
        with contextlib.suppress(tf.errors.OutOfRangeError):
            while len(found) < most:
                found.append(float(sess.run([self.loss, self.train])[0]))
        return found


@contextlib.contextmanager
def running(begin):
    """A session whose runners run, after ``begin(sess)``."""
    with tf.Session() as sess:
        begin(sess)
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        try:
            yield sess
        finally:
            coord.request_stop()
            coord.join(threads)


@contextlib.contextmanager
def stopping(server):
    try:
        yield server
    finally:
        server.stop()


def initialised(sess):
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])


def restoring(saver, path):
    return lambda sess: saver.restore(sess, path)


# The same losses --------------------------------------------------------------------------------


def require_same_losses(tmp_path, job, every, begun) -> None:
    """``job`` is saved every so many steps; each time another session goes on as it did."""
    saver = tf.train.Saver(max_to_keep=None)
    paths: list[str] = []
    whole: list[float] = []
    with begun(initialised) as sess:
        more = True
        while more:
            paths.append(saver.save(sess, str(tmp_path / "m"), len(whole), write_meta_graph=False))
            more = job.losses(sess, every)
            whole += more
    assert len(set(whole)) == len(whole) >= STEPS // 2
    for path in paths:
        with begun(restoring(saver, path)) as sess:
            assert job.losses(sess) == whole[int(path.rpartition("-")[2]) :], path


@pytest.mark.parametrize(
    ("make", "every"),
    [(shuffled, 1), (in_turn, 3), (padded, 3), (by_priority, 3), (chosen, 2), (looked_up, 5)],
)
def test_a_job_saved_after_any_step_goes_on_with_the_same_losses(tmp_path, files, make, every):
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        job = Job(make(files))
        tf.train.checkpoint_input_queues()
        require_same_losses(tmp_path, job, every, running)


def test_saving_does_not_change_what_comes(tmp_path, files):
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        job = Job(shuffled(files))
        with running(initialised) as sess:
            alone = job.losses(sess)
        tf.train.checkpoint_input_queues()
        saver = tf.train.Saver()
        with running(initialised) as sess:
            found = []
            while more := job.losses(sess, 1):
                found += more
                saver.save(sess, str(tmp_path / "m"), write_meta_graph=False)
        assert found == alone and len(alone) == STEPS


def monitored(
    make, folder, steps: int, level: int, background: bool, master: str = ""
) -> list[float]:
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        job = Job(make())
        tf.train.checkpoint_input_queues()
        config = tf.ConfigProto()
        config.graph_options.optimizer_options.global_jit_level = level
        scaffold = tf.train.Scaffold()
        saving = tf.train.CheckpointSaverHook(
            str(folder), save_steps=2, scaffold=scaffold, save_in_background=background
        )
        losses: list[float] = []
        with tf.train.MonitoredTrainingSession(
            master,
            checkpoint_dir=str(folder),
            scaffold=scaffold,
            hooks=[saving],
            save_checkpoint_secs=None,
            save_summaries_steps=None,
            log_step_count_steps=None,
            config=config,
        ) as sess:
            while len(losses) < steps and not sess.should_stop():
                losses.append(float(sess.run([job.loss, job.train])[0]))
        return losses


@pytest.mark.parametrize(("level", "background"), [(INTERPRETED, False), (COMPILED, True)])
def test_a_monitored_job_goes_on_with_the_same_losses(tmp_path, files, level, background):
    parts = [
        monitored(lambda: shuffled(files), tmp_path / name, steps, level, background)
        for name, steps in (("whole", 100), ("parts", 3), ("parts", 100))
    ]
    assert parts[1] + parts[2] == parts[0] and len(parts[0]) == STEPS


@pytest.mark.parametrize("kind", ["lines", "pieces", "whole files", "names"])
def test_every_reader_goes_on_where_it_stood(tmp_path, kind):
    paths = [str(tmp_path / f"{i}000") for i in range(1, 4)]
    for path in paths:
        with open(path, "w") as file:
            file.write("".join(f"{number:03d}\n" for number in range(4)))
    with tf.Graph().as_default():
        reader = {
            "lines": lambda: tf.TextLineReader(skip_header_lines=1),
            "pieces": lambda: tf.FixedLengthRecordReader(4),
            "whole files": tf.WholeFileReader,
            "names": tf.IdentityReader,
        }[kind]()
        names = tf.train.string_input_producer(paths, num_epochs=3, shuffle=False)
        key, value = reader.read(names)
        taken = tf.train.batch([key, value], 1, capacity=2)
        count = reader.num_records_produced()
        tf.train.checkpoint_input_queues()
        saver = tf.train.Saver()

        def rest(sess) -> list[list[bytes]]:
            found = []
            with contextlib.suppress(tf.errors.OutOfRangeError):
                while True:
                    found.append([part[0] for part in sess.run(taken)])
            return found

        with running(initialised) as sess:
            sess.run([taken])
            sess.run([taken])
            path = saver.save(sess, str(tmp_path / "m"))
            expected = rest(sess), sess.run(count)
        with running(restoring(saver, path)) as sess:
            assert (rest(sess), sess.run(count)) == expected and expected[0]


# Several threads --------------------------------------------------------------------------------


def joined(files):
    names = tf.train.string_input_producer(files, num_epochs=EPOCHS, capacity=2)
    numbers = [[tf.TFRecordReader().read(names)[1]] for _ in range(3)]
    some = tf.train.batch_join(numbers, 1, capacity=2)
    return tf.train.shuffle_batch(
        [some], 4, 9, 3, num_threads=3, enqueue_many=True, allow_smaller_final_batch=True
    )


def in_buckets(files):
    """One of the buckets fills slowly: whoever waits for a batch of it has got a part."""
    names = tf.train.string_input_producer(files, num_epochs=EPOCHS, capacity=2)
    _, number = tf.TFRecordReader().read(names)
    which = tf.to_int32(tf.equal(tf.to_int32(tf.string_to_number(number)) % 5, 0))
    _, [batch] = tf.contrib.training.bucket(
        [number],
        which,
        4,
        2,
        num_threads=2,
        capacity=2,
        bucket_capacities=[4, 4],
        allow_smaller_final_batch=True,
    )
    return batch


@pytest.mark.parametrize("make", [joined, in_buckets])
def test_with_many_threads_no_example_is_lost_and_none_comes_twice(tmp_path, files, make):
    with tf.Graph().as_default():
        batch = make(files)
        tf.train.checkpoint_input_queues()
        saver = tf.train.Saver(max_to_keep=None)
        seen: Counter[bytes] = Counter()
        path, parts = None, 0
        while True:
            begin = initialised if path is None else restoring(saver, path)
            with running(begin) as sess:
                parts += 1
                try:
                    for _ in range(parts % 4):
                        seen.update(sess.run(batch).tolist())
                except tf.errors.OutOfRangeError:
                    break
                path = saver.save(sess, str(tmp_path / "m"), parts, write_meta_graph=False)
        assert seen == {b"%d" % n: EPOCHS for n in range(FILES * RECORDS)} and parts > 5


@pytest.mark.parametrize("make", [shuffled, in_turn])
def test_a_session_can_be_put_back_while_its_runners_run(tmp_path, files, make):
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        job = Job(make(files))
        tf.train.checkpoint_input_queues()
        saver = tf.train.Saver()
        with running(initialised) as sess:
            job.losses(sess, 2)
            path = saver.save(sess, str(tmp_path / "m"))
            for _ in range(3):
                expected = job.losses(sess, 3)
                saver.restore(sess, path)
                assert job.losses(sess, 3) == expected
                saver.restore(sess, path)


# Graphs in files --------------------------------------------------------------------------------


def test_an_imported_graph_saves_and_restores_its_input(tmp_path, files):
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        job = Job(shuffled(files))
        tf.train.checkpoint_input_queues()
        saver = tf.train.Saver()
        with running(initialised) as sess:
            job.losses(sess, 3)
            path = saver.save(sess, str(tmp_path / "m"))
            whole = job.losses(sess)
        fetched = [job.loss.name, job.train.name]
    found: list[float] = []
    for _ in range(2):
        with tf.Graph().as_default():
            saver = tf.train.import_meta_graph(f"{path}.meta")
            with running(restoring(saver, path)) as sess:
                found += [float(sess.run(fetched)[0]) for _ in range(2)]
                path = saver.save(sess, str(tmp_path / "n"))
    assert found == whole[:4]


# Mistakes ---------------------------------------------------------------------------------------


def test_a_checkpoint_without_the_input_is_told(tmp_path, files):
    with tf.Graph().as_default():
        batch = shuffled(files)
        w = tf.Variable(1.0)
        with tf.Session() as sess:
            sess.run(w.initializer)
            path = tf.train.Saver().save(sess, str(tmp_path / "m"))
        tf.train.checkpoint_input_queues()
        with tf.Session() as sess, pytest.raises(tf.errors.NotFoundError) as caught:
            tf.train.Saver().restore(sess, path)
        assert "input_producer:0_STATE: string is not in the checkpoint" in str(caught.value)
        assert "saved without tf.train.checkpoint_input_queues()" in str(caught.value)
        assert batch.graph is tf.get_default_graph()


@pytest.mark.parametrize(
    ("capacity", "minimum", "dtype", "shape", "message"),
    [
        (9, 3, tf.float32, [], "saved with capacity 8, but has capacity 9"),
        (8, 2, tf.float32, [], "min_after_dequeue 3, but has min_after_dequeue 2"),
        (8, 3, tf.int32, [], r"component types \[float32\], but has component types \[int32\]"),
        (8, 3, tf.float32, [2], "component shapes"),
    ],
)
def test_a_queue_that_became_another_is_told(tmp_path, capacity, minimum, dtype, shape, message):
    path = None
    for how in ((8, 3, tf.float32, []), (capacity, minimum, dtype, shape)):
        with tf.Graph().as_default():
            example = tf.zeros(how[3], how[2])
            tf.train.shuffle_batch([example], 2, how[0], how[1], name="examples")
            tf.train.checkpoint_input_queues()
            saver = tf.train.Saver()
            if path is None:
                with running(initialised) as sess:
                    path = saver.save(sess, str(tmp_path / "m"))
            else:
                expected = pytest.raises(tf.errors.InvalidArgumentError, match=message)
                with tf.Session() as sess, expected:
                    saver.restore(sess, path)


def test_a_file_that_became_shorter_is_told(tmp_path):
    source = tmp_path / "lines"
    source.write_text("a\nb\nc\nd\ne\n")
    with tf.Graph().as_default():
        names = tf.train.string_input_producer([str(source)])
        line = tf.train.batch([tf.TextLineReader().read(names)[1]], 1, capacity=1)
        tf.train.checkpoint_input_queues()
        saver = tf.train.Saver()
        with running(initialised) as sess:
            assert sess.run(line) == [b"a"]
            path = saver.save(sess, str(tmp_path / "m"))
        source.write_text("a\n")
        with tf.Session() as sess, pytest.raises(tf.errors.DataLossError, match="another file"):
            saver.restore(sess, path)


def test_an_input_that_was_stopped_cannot_be_saved(tmp_path, files):
    with tf.Graph().as_default():
        batch = shuffled(files)
        tf.train.checkpoint_input_queues()
        saver = tf.train.Saver()
        with tf.Session() as sess:
            initialised(sess)
            coord = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess, coord)
            sess.run(batch)
            coord.request_stop()
            coord.join(threads)
            with pytest.raises(tf.errors.FailedPreconditionError, match="Save before coord"):
                saver.save(sess, str(tmp_path / "m"))


def test_a_runner_that_was_added_later_is_told(tmp_path, files):
    with tf.Graph().as_default():
        number = records(files)
        tf.train.batch([number], 2)
        tf.train.checkpoint_input_queues()
        tf.train.batch([number], 2, name="later")
        with tf.Session() as sess, pytest.raises(tf.errors.FailedPreconditionError, match="later"):
            tf.train.Saver().save(sess, str(tmp_path / "m"))


def test_a_step_that_does_not_end_is_told_and_goes_on_when_it_can(tmp_path, monkeypatch):
    monkeypatch.setattr(queue_checkpoints, "_LONGEST_STEP", 0.1)
    with tf.Graph().as_default():
        fed = tf.FIFOQueue(2, tf.float32, [[]], name="fed")
        given = tf.placeholder(tf.float32, [])
        put, size, close = fed.enqueue(given), fed.size(), fed.close()
        batch = tf.train.batch([fed.dequeue() + fed.dequeue()], 1, name="sums")
        tf.train.checkpoint_input_queues()
        saver = tf.train.Saver()
        with running(initialised) as sess:
            sess.run(put, {given: 1.0})
            while sess.run(size):
                pass  # until the first of two has been taken
            with pytest.raises(tf.errors.DeadlineExceededError, match="fills 'sums"):
                saver.save(sess, str(tmp_path / "m"))
            sess.run(put, {given: 2.0})
            assert sess.run(batch) == [3.0]
            sess.run(close)


def test_what_cannot_be_saved_is_told_when_the_graph_is_built():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="build the input first"):
        tf.train.checkpoint_input_queues()
    with tf.Graph().as_default():
        iterator = tf.data.Dataset.range(3).make_one_shot_iterator()
        tf.train.batch([iterator.get_next()], 1)
        with pytest.raises(ValueError, match="make_saveable_from_iterator"):
            tf.train.checkpoint_input_queues()
        position = tf.data.experimental.make_saveable_from_iterator(iterator)
        tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, position)
        tf.train.checkpoint_input_queues()
    with tf.Graph().as_default():
        tf.estimator.inputs.numpy_input_fn(np.arange(4), shuffle=False)()
        with pytest.raises(ValueError, match="how far that is is not saved"):
            tf.train.checkpoint_input_queues()
    with tf.Graph().as_default():
        area = tf.contrib.staging.StagingArea([tf.float32], [[]])
        tf.train.batch([area.get()], 1)
        with pytest.raises(ValueError, match="not saved: only queues and readers are"):
            tf.train.checkpoint_input_queues()


@pytest.mark.parametrize("place", range(2))
def test_what_is_no_state_of_a_queue_is_told(place):
    from runnel.pipelines.state_bytes import encoded

    queue = tf.FIFOQueue(3, [tf.int32], [[]])
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(1)]))
    [saveable] = tf.train.checkpoint_input_queues()
    given = tf.placeholder(tf.string, [None])
    restore = saveable.restore([given], None)
    with running(lambda sess: None) as sess:
        good = sess.run(saveable.specs[0].tensor)
        for bad in (b"", b"x", encoded(None), encoded([1]), encoded([["a"], 1, 2, 3])):
            damaged = good.copy()
            damaged[place] = bad
            if (place, bad) != (1, encoded(None)):  # a request to close, had it come to the end
                with pytest.raises(tf.errors.OpError):
                    sess.run(restore, {given: damaged})
        with pytest.raises(tf.errors.DataLossError):
            sess.run(restore, {given: np.array([], object)})
        sess.run(restore, {given: good})


# On a cluster -----------------------------------------------------------------------------------


@contextlib.contextmanager
def running_on_tasks(begin):
    """As :func:`running`, in the session of a worker whose variables are on another task."""
    with servers(ps=1, worker=1) as cluster, tf.Session(cluster["worker0"].target) as sess:
        begin(sess)
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        try:
            yield sess
        finally:
            coord.request_stop()
            coord.join(threads)


@pytest.mark.parametrize(
    ("make", "every"), [(shuffled, 1), (in_turn, 3), (padded, 3), (by_priority, 3), (chosen, 2)]
)
def test_a_workers_own_input_goes_on_with_the_same_losses(tmp_path, files, make, every):
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        setter = tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:0")
        with tf.device(setter):
            job = Job(make(files))
        tf.train.checkpoint_input_queues()
        assert job.train.device != job.loss.device
        require_same_losses(tmp_path, job, every, running_on_tasks)


def test_a_monitored_job_on_a_cluster_goes_on_with_the_same_losses(tmp_path, files):
    parts = []
    for name, steps in (("whole", 100), ("parts", 3), ("parts", 100)):
        with stopping(tf.train.Server.create_local_server()) as server:
            folder = tmp_path / name
            job = monitored(lambda: shuffled(files), folder, steps, COMPILED, True, server.target)
            parts.append(job)
    assert parts[1] + parts[2] == parts[0] and len(parts[0]) == STEPS


@pytest.mark.parametrize("is_remote", [False, True])
def test_queues_of_another_process_are_refused_by_name(tmp_path, files, monkeypatch, is_remote):
    """Others may take from them or fill them: nobody here could have those rest."""
    with tf.Graph().as_default() as graph, servers(ps=1, worker=1) as cluster:
        with tf.device("/job:worker" if is_remote else "/job:ps"):
            shuffled(files)
        tf.train.checkpoint_input_queues()
        target = cluster["worker0"].target
        backend = RemoteBackend(target.removeprefix("grpc://"), graph, None)
        if is_remote:
            monkeypatch.setattr(sessions, "open_backend", lambda *_: backend)
        else:
            backend.close()
        with tf.Session(target) as sess:
            initialised(sess)
            with pytest.raises(tf.errors.UnimplementedError, match="in another process") as raised:
                tf.train.Saver().save(sess, str(tmp_path / "m"))
            assert raised.value.op.type.endswith("QueueV2")
