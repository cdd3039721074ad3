"""Iterators in checkpoints: one that is restored gives exactly the elements that were left."""

from __future__ import annotations

import contextlib
import os
import sqlite3

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import runnel as tf
from runnel.graph.errors import DataLossError
from runnel.pipelines.state_bytes import decoded, encoded

Dataset = tf.data.Dataset
experimental = tf.data.experimental


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files with the numbers from 0 to 11, in every format."""
    folder = tmp_path_factory.mktemp("files")
    found = {}
    for kind, options in (("", None), ("GZIP", "GZIP"), ("ZLIB", "ZLIB")):
        paths = [str(folder / f"records{kind}{i}") for i in range(2)]
        for part, path in enumerate(paths):
            with tf.python_io.TFRecordWriter(path, tf.io.TFRecordOptions(options)) as writer:
                for number in range(6):
                    writer.write(b"%d" % (6 * part + number))
        found[kind] = paths
    found["lines"] = str(folder / "lines")
    with open(found["lines"], "w") as file:
        file.write("".join(f"{number}\r\n" for number in range(12)))
    found["pieces"] = str(folder / "pieces")
    with open(found["pieces"], "w") as file:
        file.write("head" + "".join(f"{number:03d}" for number in range(12)) + "feet")
    found["columns"] = str(folder / "columns")
    with open(found["columns"], "w") as file:
        file.write("".join(f"{number},{number + 1}\n" for number in range(12)))
    found["database"] = str(folder / "database")
    with contextlib.closing(sqlite3.connect(found["database"])) as database:
        database.execute("CREATE TABLE numbers (n INTEGER)")
        database.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in range(12)])
        database.commit()
    return found


def numbers_in(dataset):
    return dataset.map(lambda text: tf.string_to_number(text, tf.int64))


def sources(files):
    return {
        "range": lambda: Dataset.range(12),
        "slices": lambda: Dataset.from_tensor_slices(np.arange(12)),
        "strings": lambda: numbers_in(Dataset.from_tensor_slices([b"%d" % n for n in range(12)])),
        "one": lambda: Dataset.from_tensors(np.int64(3)).repeat(5),
        "records": lambda: numbers_in(tf.data.TFRecordDataset(files[""])),
        "zipped records": lambda: numbers_in(tf.data.TFRecordDataset(files["GZIP"], "GZIP")),
        "deflated records": lambda: numbers_in(tf.data.TFRecordDataset(files["ZLIB"], "ZLIB")),
        "lines": lambda: numbers_in(tf.data.TextLineDataset(files["lines"])),
        "pieces": lambda: numbers_in(
            tf.data.FixedLengthRecordDataset(files["pieces"], 3, header_bytes=4, footer_bytes=4)
        ),
        "records in turn": lambda: numbers_in(
            tf.data.TFRecordDataset(files[""], num_parallel_reads=2)
        ),
        "columns": lambda: experimental.CsvDataset(files["columns"], [tf.int64, tf.int64]).map(
            lambda a, b: a * b
        ),
        "database": lambda: experimental.SqlDataset(
            "sqlite", files["database"], "SELECT n FROM numbers ORDER BY n", (tf.int64,)
        ).map(lambda n: n * 2),
    }


def below(n):
    return Dataset.range(n % 4).map(lambda k: 10 * n + k)


def sparse(n):
    return tf.SparseTensor([[n % 3]], [n], [3])


def ragged(n):
    return tf.RaggedTensor.from_row_lengths(tf.range(n), [n // 3, n - n // 3])


def ragged_sum(r):
    return tf.reduce_sum(r.flat_values) + 100 * r.nrows()


TRANSFORMATIONS = {
    "shuffle": lambda d: d.shuffle(5),
    "shuffle with a seed": lambda d: d.shuffle(4, seed=7).repeat(2),
    "shuffle once": lambda d: d.shuffle(4, reshuffle_each_iteration=False).repeat(2),
    "shuffle of slices": lambda d: Dataset.from_tensor_slices(np.arange(9)).shuffle(4).repeat(2),
    "repeat": lambda d: d.repeat(2),
    "take": lambda d: d.take(9),
    "skip": lambda d: d.skip(2),
    "shard": lambda d: d.shard(2, 1),
    "concatenate": lambda d: d.concatenate(d),
    "zip": lambda d: Dataset.zip((d, Dataset.range(100, 108))).map(lambda a, b: a * b),
    "batch": lambda d: d.batch(3).map(tf.reduce_sum),
    "padded batch": lambda d: (
        d.map(lambda n: tf.fill([n % 3], n)).padded_batch(2, [None]).map(tf.reduce_sum)
    ),
    "unbatch": lambda d: d.batch(4).apply(experimental.unbatch()),
    "window": lambda d: d.window(3, shift=2).flat_map(lambda w: w.batch(3)).map(tf.reduce_sum),
    "shuffled windows": lambda d: d.window(2).shuffle(3, seed=1).flat_map(lambda w: w),
    "map": lambda d: d.map(lambda n: n * 3 + 1),
    "parallel map": lambda d: d.map(lambda n: n * 3 + 1, num_parallel_calls=3),
    "filter": lambda d: d.filter(lambda n: n % 3 > 0),
    "flat map": lambda d: d.flat_map(below),
    "flat map of a shuffle": lambda d: d.flat_map(
        lambda n: Dataset.range(n % 5).shuffle(3, seed=2)
    ),
    "flat map of an outer dataset": lambda d: (
        lambda outer: d.flat_map(lambda n: outer.take(n % 3))
    )(Dataset.range(5).shuffle(5)),
    "interleave": lambda d: d.interleave(below, 3, 2),
    "parallel interleave": lambda d: d.interleave(below, 3, 2, num_parallel_calls=2),
    "older interleave": lambda d: d.apply(experimental.parallel_interleave(below, 3)),
    "cache": lambda d: d.cache().repeat(2),
    "prefetch": lambda d: d.prefetch(3),
    "enumerate": lambda d: d.enumerate().map(lambda i, n: 100 * i + n),
    "scan": lambda d: d.apply(experimental.scan(np.int64(0), lambda s, n: (s + n, s + n))),
    "take while": lambda d: d.apply(experimental.take_while(lambda n: n < 9)),
    "groups": lambda d: d.apply(
        experimental.group_by_window(lambda n: n % 2, lambda k, w: w.batch(3), 3)
    ).map(tf.reduce_sum),
    "choice": lambda d: experimental.choose_from_datasets(
        [d, Dataset.range(100, 103)], Dataset.range(20).map(lambda n: n % 2)
    ),
    "samples": lambda d: experimental.sample_from_datasets([d, Dataset.range(100, 109)], seed=2),
    "totals by key": lambda d: d.apply(
        experimental.group_by_reducer(
            lambda n: n % 5,
            experimental.Reducer(lambda key: key, lambda total, n: total + n, lambda total: total),
        )
    ),
    "unique": lambda d: d.map(lambda n: n % 7).apply(experimental.unique()),
    "sparse rows": lambda d: (
        d.map(lambda n: tf.fill([n % 3 + 1], n))
        .apply(experimental.dense_to_sparse_batch(2, [3]))
        .map(lambda s: tf.sparse_reduce_sum(s))
    ),
    "padded strings": lambda d: (
        d.map(lambda n: tf.fill([n % 3], tf.as_string(n)))
        .padded_batch(2, [4], "7")
        .map(lambda s: tf.reduce_sum(tf.string_to_number(s, tf.int64)))
    ),
    "random numbers": lambda d: Dataset.zip((d, experimental.RandomDataset(3))).map(
        lambda n, word: n + word
    ),
    "ignored errors": lambda d: d.map(
        lambda n: tf.cast(tf.check_numerics(6 / (n - 3), "no"), tf.int64), num_parallel_calls=2
    ).apply(experimental.ignore_errors()),
    "sparse": lambda d: d.map(sparse).shuffle(3).map(lambda s: tf.sparse_reduce_sum(s)),
    "sparse batches": lambda d: (
        d.map(sparse).batch(2).prefetch(1).map(lambda s: tf.sparse_reduce_sum(s))
    ),
    "ragged": lambda d: d.map(ragged).shuffle(3).prefetch(2).map(ragged_sum),
    "ragged batches": lambda d: d.map(ragged).cache().batch(2).prefetch(1).map(ragged_sum),
    "ragged rows": lambda d: (
        d.map(ragged).apply(experimental.unbatch()).shuffle(4).batch(3).map(ragged_sum)
    ),
    "batched strings": lambda d: numbers_in(
        d.map(tf.as_string).batch(2).prefetch(2).apply(experimental.unbatch())
    ),
}


def described(build):
    """An iterator over what ``build`` makes in a new graph, its element, and its saver."""
    iterator = tf.data.make_initializable_iterator(build())
    saver = tf.train.Saver([experimental.make_saveable_from_iterator(iterator)])
    return iterator, iterator.get_next(), saver


def left(sess, element, most=100):
    found = []
    with contextlib.suppress(tf.errors.OutOfRangeError):
        while len(found) < most:
            found.append(np.asarray(sess.run(element)).tolist())
    return found


def saved_and_restored(build, stop, path):
    """What an iterator gives after ``stop`` elements, and what it gives when restored there."""
    with tf.Graph().as_default():
        iterator, element, saver = described(build)
        with tf.Session() as sess:
            sess.run(iterator.initializer)
            left(sess, element, stop)
            saver.save(sess, path, write_meta_graph=False)
            rest = left(sess, element)
    with tf.Graph().as_default():
        _, element, saver = described(build)
        with tf.Session() as sess:
            saver.restore(sess, path)
            return rest, left(sess, element)


@pytest.mark.parametrize("name", sorted(TRANSFORMATIONS))
def test_every_transformation_goes_on_where_it_stood(name, files, tmp_path):
    for stop in (0, 2):
        rest, restored = saved_and_restored(
            lambda: TRANSFORMATIONS[name](Dataset.range(12)), stop, str(tmp_path / "at")
        )
        assert restored == rest
        assert rest


@pytest.mark.parametrize("name", sorted(sources({})))
def test_every_source_goes_on_where_it_stood(name, files, tmp_path):
    for stop in (0, 3, 50):
        rest, restored = saved_and_restored(sources(files)[name], stop, str(tmp_path / "at"))
        assert restored == rest
        assert (not rest) == (stop == 50)


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    source=st.sampled_from(sorted(sources({}))),
    chosen=st.lists(st.sampled_from(sorted(TRANSFORMATIONS)), min_size=2, max_size=4),
    stop=st.integers(0, 25),
)
def test_any_pipeline_goes_on_where_it_stood(files, tmp_path, source, chosen, stop):
    def build():
        dataset = sources(files)[source]()
        for name in chosen:
            dataset = TRANSFORMATIONS[name](dataset.map(lambda n: tf.reshape(n, [-1])[0]))
        return dataset

    rest, restored = saved_and_restored(build, stop, str(tmp_path / "at"))
    assert restored == rest


def test_saving_changes_nothing(tmp_path):
    def build():
        return Dataset.range(20).shuffle(5, seed=3).map(lambda n: n, 2).prefetch(2)

    found = []
    for saves in (False, True):
        with tf.Graph().as_default():
            iterator, element, saver = described(build)
            with tf.Session() as sess:
                sess.run(iterator.initializer)
                elements = []
                for _ in range(20):
                    elements.append(sess.run(element))
                    if saves:
                        saver.save(sess, str(tmp_path / "at"), write_meta_graph=False)
                found.append(elements)
    assert found[0] == found[1]


def test_variables_and_iterators_are_in_one_checkpoint(tmp_path):
    iterator = tf.data.make_one_shot_iterator(Dataset.range(10))
    total = tf.Variable(0, dtype=tf.int64)
    step = tf.assign_add(total, iterator.get_next())
    tf.add_to_collection(
        tf.GraphKeys.SAVEABLE_OBJECTS, experimental.make_saveable_from_iterator(iterator)
    )
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(total.initializer)
        for _ in range(4):
            sess.run(step)
        path = saver.save(sess, str(tmp_path / "both"))
    with tf.Session() as sess:
        saver.restore(sess, path)
        assert sess.run(step) == 0 + 1 + 2 + 3 + 4


def test_a_dataset_that_is_fed_must_have_begun(tmp_path):
    limit = tf.placeholder(tf.int64, [])
    iterator, element, saver = described(lambda: Dataset.range(limit))
    with tf.Session() as sess:
        sess.run(iterator.initializer, {limit: 9})
        left(sess, element, 4)
        saver.save(sess, str(tmp_path / "at"))
    with tf.Session() as sess:
        with pytest.raises(tf.errors.FailedPreconditionError, match="initializer"):
            saver.restore(sess, str(tmp_path / "at"))
        sess.run(iterator.initializer, {limit: 6})
        saver.restore(sess, str(tmp_path / "at"))
        assert left(sess, element) == [4, 5]


def test_an_iterator_that_has_not_begun_is_not_saved(tmp_path):
    _, _, saver = described(lambda: Dataset.range(3))
    with tf.Session() as sess, pytest.raises(tf.errors.FailedPreconditionError):
        saver.save(sess, str(tmp_path / "at"))


def test_a_generator_is_refused(tmp_path):
    iterator, _, saver = described(
        lambda: Dataset.from_generator(lambda: iter(range(3)), tf.int64, [])
    )
    with tf.Session() as sess:
        sess.run(iterator.initializer)
        with pytest.raises(tf.errors.UnimplementedError, match="from_generator"):
            saver.save(sess, str(tmp_path / "at"))


@pytest.mark.parametrize(
    "function",
    [
        lambda n: tf.random_uniform([]),
        lambda n: tf.py_func(lambda k: k, [n], tf.int64),
        lambda n: n + tf.Variable(np.int64(1)),
    ],
)
def test_state_that_is_not_saved_with_it_is_refused_unless_told_to_ignore_it(function, tmp_path):
    with tf.variable_scope("own"):
        iterator = tf.data.make_initializable_iterator(Dataset.range(4).map(function))
    refusing = tf.train.Saver([experimental.make_saveable_from_iterator(iterator)])
    ignoring = tf.train.Saver([experimental.make_saveable_from_iterator(iterator, "ignore")])
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer()])
        sess.run(iterator.initializer)
        with pytest.raises(tf.errors.FailedPreconditionError, match="external_state_policy"):
            refusing.save(sess, str(tmp_path / "at"))
        ignoring.save(sess, str(tmp_path / "at"))


def test_another_dataset_is_refused(tmp_path):
    path = str(tmp_path / "at")
    for build in (lambda: Dataset.range(5).batch(2), lambda: Dataset.range(5).repeat(2)):
        with tf.Graph().as_default():
            iterator, element, saver = described(build)
            with tf.Session() as sess:
                if not os.path.exists(f"{path}.index"):
                    sess.run(iterator.initializer)
                    saver.save(sess, path)
                else:
                    with pytest.raises(tf.errors.InvalidArgumentError, match="Batch, Numbers"):
                        saver.restore(sess, path)


def test_a_damaged_state_is_an_error():
    good = encoded([1, None, [True, "x", b"y", np.arange(3), np.float32(2)], [-(2**70)]])
    assert decoded(good)[3] == [-(2**70)]
    random = np.random.default_rng(0)
    for _ in range(2000):
        bad = bytearray(good)
        for _ in range(random.integers(1, 4)):
            bad[random.integers(len(bad))] = random.integers(256)
        with contextlib.suppress(DataLossError):
            decoded(bytes(bad[: random.integers(len(bad) + 1)]))


def test_an_estimator_goes_on_with_the_element_that_follows(tmp_path):
    seen = []

    def input_fn():
        return Dataset.range(20).map(lambda n: ({"x": n}, n)).batch(1)

    def model_fn(features, labels, mode):
        weight = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_sum((weight - tf.cast(labels, tf.float32)) ** 2)
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
        hook = _Watch(labels, seen)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train, training_hooks=[hook])

    for _ in range(3):
        estimator = tf.estimator.Estimator(model_fn, str(tmp_path / "model"))
        hook = experimental.CheckpointInputPipelineHook(estimator)
        estimator.train(input_fn, hooks=[hook], steps=4)
    tf.summary.FileWriterCache.clear()
    assert seen == list(range(12))


class _Watch(tf.train.SessionRunHook):
    def __init__(self, tensor, seen):
        self._tensor, self._seen = tensor, seen

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._tensor)

    def after_run(self, run_context, run_values):
        self._seen += run_values.results.tolist()
