"""``tf.data`` gives the elements that TensorFlow's gives, in the same order, of the same shapes."""

from __future__ import annotations

import collections
import contextlib
import gzip
import sqlite3

import numpy as np
import pytest

import runnel
from tests.conformance.same_fetches import assert_same_values

reference = pytest.importorskip("tensorflow").compat.v1

LIMIT = 30
Pair = collections.namedtuple("Pair", "a b")


def elements(tf, build, one_shot=True):
    """The first elements, and how they end."""
    with tf.Graph().as_default(), tf.Session() as sess:
        dataset = build(tf)
        if one_shot:
            iterator = tf.data.make_one_shot_iterator(dataset)
        else:
            iterator = tf.data.make_initializable_iterator(dataset)
            sess.run(iterator.initializer)
        element = iterator.get_next()
        found, end = [], None
        while len(found) < LIMIT and end is None:
            try:
                found.append(sess.run(element))
            except tf.errors.OutOfRangeError:
                end = "end"
        return found, end, described(tf, tf.data.get_output_shapes(dataset)), types(tf, dataset)


def described(tf, shapes):
    if isinstance(shapes, dict):
        return {key: described(tf, shapes[key]) for key in shapes}
    if isinstance(shapes, tf.TensorShape):
        return None if shapes.ndims is None else shapes.as_list()
    return [described(tf, shape) for shape in shapes]


def types(tf, dataset):
    return str(tf.data.get_output_types(dataset)).replace("tf.", "")


def D(tf):  # noqa: N802
    return tf.data.Dataset


def slices(tf):
    return D(tf).from_tensor_slices({"x": [[1, 2], [3, 4], [5, 6]], "y": ["a", "b", "c"]})


def ragged(tf):
    return D(tf).range(1, 6).map(lambda n: tf.fill([tf.cast(n, tf.int32)], n))


def sparse(tf):
    return tf.SparseTensor([[0, 0], [1, 2], [2, 1]], [1.0, 2.0, 3.0], [3, 4])


def generator():
    yield 1, [1.5]
    yield 2, [2.5, 3.5]


PIPELINES = {
    "tensors": lambda tf: D(tf).from_tensors((1, {"a": [1.0, 2.0]}, Pair("x", [True]))),
    "slices": slices,
    "numbers": lambda tf: D(tf).range(2, 10, 3),
    "downwards": lambda tf: D(tf).range(5, 0, -2),
    "zip": lambda tf: D(tf).zip((slices(tf), D(tf).range(2))),
    "concatenate": lambda tf: D(tf).range(3).concatenate(D(tf).range(2)),
    "concatenate of shapes": lambda tf: (
        D(tf).from_tensors([1, 2]).concatenate(D(tf).from_tensors([1, 2, 3]))
    ),
    "repeat": lambda tf: D(tf).range(3).repeat(3),
    "repeat for ever": lambda tf: D(tf).range(3).repeat(),
    "repeat nothing": lambda tf: D(tf).range(0).repeat(),
    "repeat never": lambda tf: D(tf).range(3).repeat(0),
    "take and skip": lambda tf: D(tf).range(10).skip(3).take(4),
    "skip all": lambda tf: D(tf).range(10).skip(-1),
    "shard": lambda tf: D(tf).range(10).shard(3, 1),
    "batch": lambda tf: slices(tf).batch(2),
    "batch without rest": lambda tf: slices(tf).batch(2, drop_remainder=True),
    "batch of a batch": lambda tf: D(tf).range(10).batch(2).batch(3),
    "padded": lambda tf: ragged(tf).padded_batch(2, [None]),
    "padded to a size": lambda tf: ragged(tf).padded_batch(
        2, [7], padding_values=tf.constant(-1, tf.int64), drop_remainder=True
    ),
    "padded strings": lambda tf: (
        D(tf)
        .zip((ragged(tf), ragged(tf).map(tf.as_string)))
        .padded_batch(3, ([None], [None]), (np.int64(9), "?"))
    ),
    "padded scalars": lambda tf: D(tf).range(3).prefetch(1).padded_batch(2, []),
    "unbatch": lambda tf: D(tf).range(7).batch(3).unbatch(),
    "window": lambda tf: D(tf).range(10).window(3, shift=2).flat_map(lambda w: w.batch(3)),
    "window of strides": lambda tf: (
        D(tf)
        .range(10)
        .window(3, shift=1, stride=3, drop_remainder=True)
        .flat_map(lambda w: w.batch(3))
    ),
    "window with gaps": lambda tf: D(tf).range(20).window(2, shift=5).flat_map(lambda w: w),
    "window of pairs": lambda tf: (
        D(tf)
        .zip((D(tf).range(5), D(tf).range(5, 10)))
        .window(2)
        .flat_map(lambda a, b: D(tf).zip((a, b)))
    ),
    "enumerate": lambda tf: slices(tf).enumerate(start=5),
    "map": lambda tf: slices(tf).map(lambda e: (e["x"] * 2, e["y"] + "!")),
    "map to a list": lambda tf: D(tf).range(4).map(lambda n: [n, n * n]),
    "map of pairs": lambda tf: (
        slices(tf)
        .map(lambda e: Pair(e["x"], e["y"]))
        .map(lambda p: {"both": tf.string_join([tf.as_string(p.a[0]), p.b])})
    ),
    "map with constants": lambda tf: D(tf).range(4).map(lambda n: tf.constant([1.5]) + 1),
    "parallel map": lambda tf: D(tf).range(25).map(lambda n: n * n, num_parallel_calls=3),
    "loop in a map": lambda tf: (
        D(tf)
        .range(5)
        .map(
            lambda n: tf.while_loop(
                lambda i, t: i < n, lambda i, t: (i + 1, t + i), [tf.zeros_like(n)] * 2
            )
        )
    ),
    "branch in a map": lambda tf: (
        D(tf).range(5).map(lambda n: tf.cond(n > 2, lambda: n * 10, lambda: -n))
    ),
    "filter": lambda tf: D(tf).range(20).filter(lambda n: tf.equal(n % 3, 1)),
    "filter of a dict": lambda tf: slices(tf).filter(lambda e: e["x"][0] > 1),
    "flat_map": lambda tf: D(tf).range(5).flat_map(lambda n: D(tf).range(n)),
    "flat_map of captured": lambda tf: (
        D(tf).range(3).flat_map(lambda n: D(tf).range(3).map(lambda m: n * 10 + m))
    ),
    "interleave": lambda tf: (
        D(tf)
        .range(5)
        .interleave(lambda n: D(tf).from_tensors(n).repeat(n + 1), cycle_length=2, block_length=2)
    ),
    "interleave widely": lambda tf: (
        D(tf).range(3).interleave(lambda n: D(tf).range(n, n + 4), cycle_length=7)
    ),
    "shuffle": lambda tf: D(tf).range(20).shuffle(5, seed=3),
    "shuffle all": lambda tf: D(tf).range(20).shuffle(100, seed=3).repeat(2).take(30),
    "shuffle alike": lambda tf: (
        D(tf).range(10).shuffle(4, seed=7, reshuffle_each_iteration=False).repeat(3)
    ),
    "cache": lambda tf: D(tf).range(4).cache().repeat(2),
    "prefetch": lambda tf: D(tf).range(12).map(lambda n: n + 1).prefetch(3),
    "prefetch in the middle": lambda tf: D(tf).range(12).prefetch(2).batch(5).prefetch(1),
    "copy to a device": lambda tf: (
        slices(tf).batch(2).apply(tf.data.experimental.copy_to_device("/cpu:0", "/cpu:0"))
    ),
    "prefetch to a device": lambda tf: slices(tf).apply(
        tf.data.experimental.prefetch_to_device("/cpu:0", buffer_size=2)
    ),
    "prefetch to a device, not last": lambda tf: (
        D(tf).range(5).apply(tf.data.experimental.prefetch_to_device("/cpu:0")).batch(2)
    ),
    "generator": lambda tf: D(tf).from_generator(
        generator, (tf.int32, tf.float32), (tf.TensorShape([]), tf.TensorShape([None]))
    ),
    "generator with arguments": lambda tf: D(tf).from_generator(
        lambda n, text: iter([n, len(text)]), tf.int64, args=(tf.constant(4), "abc")
    ),
    "apply": lambda tf: D(tf).range(6).apply(lambda d: d.batch(4)),
    "sparse": lambda tf: D(tf).from_tensors(sparse(tf)).repeat(2),
    "sparse slices": lambda tf: D(tf).from_tensor_slices((sparse(tf), [1, 2, 3])),
    "sparse batch": lambda tf: D(tf).from_tensor_slices(sparse(tf)).batch(2),
    "sparse map": lambda tf: (
        D(tf)
        .from_tensor_slices(sparse(tf))
        .map(lambda s: (tf.sparse.to_dense(s), tf.sparse.reorder(s)))
    ),
    "sparse taken apart": lambda tf: D(tf).from_tensors((sparse(tf), [1, 2, 3])).unbatch(),
    "map and batch": lambda tf: (
        D(tf).range(5).apply(tf.data.experimental.map_and_batch(lambda n: n + 1, 2))
    ),
    "take while": lambda tf: (
        D(tf).range(10).apply(tf.data.experimental.take_while(lambda n: n < 4))
    ),
    "scan": lambda tf: (
        D(tf).range(6).apply(tf.data.experimental.scan(np.int64(0), lambda t, n: (t + n, (t, n))))
    ),
    "group by window": lambda tf: (
        D(tf)
        .range(11)
        .apply(
            tf.data.experimental.group_by_window(
                lambda n: n % 3, lambda key, group: group.batch(4), window_size=2
            )
        )
    ),
    "group by window of other sizes": lambda tf: (
        D(tf)
        .range(11)
        .apply(
            tf.data.experimental.group_by_window(
                lambda n: n % 2,
                lambda key, group: group.map(lambda n: n * 10 + key),
                window_size_func=lambda key: key + 2,
            )
        )
    ),
    "buckets": lambda tf: (
        D(tf)
        .range(12)
        .map(lambda n: tf.fill([tf.cast(n % 5, tf.int32)], n))
        .apply(
            tf.data.experimental.bucket_by_sequence_length(
                lambda x: tf.shape(x)[0], [2, 4], [3, 2, 4]
            )
        )
    ),
    "ignored errors": lambda tf: failing(tf).apply(tf.data.experimental.ignore_errors()),
    "choose": lambda tf: tf.data.experimental.choose_from_datasets(
        [D(tf).range(3), D(tf).range(10, 20)],
        D(tf).from_tensor_slices(np.array([0, 1, 1, 0, 0, 0, 1])),
    ),
    "unique": lambda tf: D(tf).range(9).map(lambda n: n % 4).apply(tf.data.experimental.unique()),
    "unique strings": lambda tf: (
        D(tf).from_tensor_slices(["a", "b", "a", "c"]).apply(tf.data.experimental.unique())
    ),
    "dense to sparse": lambda tf: ragged(tf).apply(
        tf.data.experimental.dense_to_sparse_batch(2, [None])
    ),
    "dense to sparse of a shape": lambda tf: ragged(tf).apply(
        tf.data.experimental.dense_to_sparse_batch(3, [6])
    ),
    "reduced by key": lambda tf: (
        D(tf)
        .range(10)
        .apply(
            tf.data.experimental.group_by_reducer(
                lambda n: n % 3,
                tf.data.experimental.Reducer(
                    lambda key: (key * 100, np.int64(0)),
                    lambda state, n: (state[0] + n, state[1] + 1),
                    lambda total, count: {"mean": total / count, "count": count},
                ),
            )
        )
    ),
    "random numbers": lambda tf: tf.data.experimental.RandomDataset(7).take(5),
    "parallel interleave of threads": lambda tf: (
        D(tf)
        .range(6)
        .interleave(lambda n: D(tf).range(n).map(lambda k: 10 * n + k), 3, 2, num_parallel_calls=2)
    ),
    "older parallel interleave": lambda tf: (
        D(tf)
        .range(6)
        .apply(
            tf.data.experimental.parallel_interleave(
                lambda n: D(tf).range(n).map(lambda k: 10 * n + k), 2, 3
            )
        )
    ),
    "text as numbers": lambda tf: D(tf).range(5).map(tf.as_string).batch(2),
    "fixed distribution": lambda tf: (
        D(tf)
        .range(6)
        .apply(tf.data.experimental.rejection_resample(lambda n: n % 2, [0.5, 0.5], [0.5, 0.5]))
    ),
    "counter": lambda tf: tf.data.experimental.Counter(3, 2).take(4),
    "tensor arguments": lambda tf: (
        D(tf)
        .range(tf.constant(9, tf.int64))
        .batch(tf.constant(2, tf.int64))
        .take(tf.constant(2, tf.int64))
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_the_elements_are_the_same(name):
    ours, theirs = (elements(tf, PIPELINES[name]) for tf in (runnel, reference))
    assert_same_values(ours[0], theirs[0])
    assert ours[1] == theirs[1]
    assert ours[2] == theirs[2]
    assert ours[3] == theirs[3]


@pytest.mark.parametrize("name", ["map", "shuffle", "prefetch", "generator", "window"])
def test_an_initializable_iterator_gives_the_same(name):
    ours, theirs = (elements(tf, PIPELINES[name], False) for tf in (runnel, reference))
    assert_same_values(ours[0], theirs[0])
    assert ours[1] == theirs[1]


def test_files(tmp_path):
    text, packed = tmp_path / "a.txt", tmp_path / "b.txt.gz"
    text.write_bytes(b"one\ntwo\r\n\nlast")
    packed.write_bytes(gzip.compress(b"three\nfour\n"))
    pieces = tmp_path / "pieces"
    pieces.write_bytes(b"headaabbccfoot")
    records = [str(tmp_path / name) for name in ("r1", "r2")]
    for i, path in enumerate(records):
        with runnel.python_io.TFRecordWriter(path) as writer:
            for j in range(3):
                writer.write(f"{i}{j}".encode())

    def build(tf, which):
        data = tf.data
        return {
            "lines": lambda: data.TextLineDataset([str(text), str(text)]),
            "compressed": lambda: data.TextLineDataset(str(packed), "GZIP"),
            "of a dataset": lambda: data.TFRecordDataset(
                data.Dataset.list_files(f"{tmp_path}/r*", shuffle=False)
            ),
            "records": lambda: data.TFRecordDataset(records),
            "pieces": lambda: data.FixedLengthRecordDataset(str(pieces), 2, 4, 4),
            "names": lambda: data.Dataset.list_files(f"{tmp_path}/*", shuffle=True, seed=2),
        }[which]()

    for which in ("lines", "compressed", "of a dataset", "records", "pieces", "names"):
        found = [
            elements(tf, lambda tf, which=which: build(tf, which)) for tf in (runnel, reference)
        ]
        assert_same_values(*found)


def test_tables(tmp_path):
    people = tmp_path / "people.csv"
    people.write_text('name,age,score\n"a, ""b""",1,1.5\nc,,2.5\n"d\ne",3,\n')
    database = str(tmp_path / "numbers.db")
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE t (n INTEGER, x REAL, s TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [(1, 0.5, "a"), (2, 1.5, None)])
        connection.commit()

    def build(tf, which):
        more = tf.data.experimental
        return {
            "csv": lambda: more.CsvDataset([str(people)] * 2, [tf.string, [7], [0.5]], header=True),
            "columns": lambda: more.CsvDataset(
                str(people), [tf.string, [0.5]], header=True, select_cols=[0, 2]
            ),
            "named": lambda: more.make_csv_dataset(
                str(people), 2, label_name="age", num_epochs=1, shuffle=False
            ),
            "chosen": lambda: more.make_csv_dataset(
                str(people), 2, select_columns=["name", "score"], num_epochs=2, shuffle=False
            ),
            "sql": lambda: more.SqlDataset(
                "sqlite", database, "SELECT * FROM t ORDER BY n", (tf.int32, tf.float64, tf.string)
            ),
        }[which]()

    for which in ("csv", "columns", "named", "chosen", "sql"):
        found = [
            elements(tf, lambda tf, which=which: build(tf, which)) for tf in (runnel, reference)
        ]
        assert_same_values(found[0][0], found[1][0])


def test_how_many_elements():
    def counts(tf):
        more = tf.data.experimental
        ten = D(tf).range(10)
        datasets = [
            ten,
            ten.batch(3),
            ten.batch(3, drop_remainder=True),
            ten.take(4),
            ten.take(-1),
            ten.skip(3),
            ten.skip(30),
            ten.repeat(),
            ten.repeat(3),
            ten.repeat().take(7),
            ten.shard(3, 1),
            ten.concatenate(ten),
            ten.concatenate(ten.repeat()),
            D(tf).zip((ten, ten.repeat())),
            ten.map(lambda n: n),
            ten.shuffle(3).prefetch(1).cache(),
            ten.filter(lambda n: n > 3),
            ten.filter(lambda n: n > 3).repeat(),
            ten.flat_map(D(tf).range),
            D(tf).from_tensors(1),
            D(tf).from_tensor_slices([1, 2]),
            ten.padded_batch(4, []),
        ]
        with tf.Session() as sess:
            return sess.run([more.cardinality(dataset) for dataset in datasets])

    found = []
    for tf in (runnel, reference):
        with tf.Graph().as_default():
            found.append(counts(tf))
    assert found[0] == found[1]


def test_optionals():
    def steps(tf):
        more = tf.data.experimental
        iterator = tf.data.make_one_shot_iterator(D(tf).range(2).map(lambda n: (n, n * 2)))
        following = more.get_next_as_optional(iterator)
        given = more.Optional.from_value({"a": 1, "b": [2.0, 3.0]})
        with tf.Session() as sess:
            found = [sess.run([following.has_value(), following.get_value()]) for _ in range(2)]
            return [*found, sess.run(following.has_value()), sess.run(given.get_value())]

    found = []
    for tf in (runnel, reference):
        with tf.Graph().as_default():
            found.append(steps(tf))
    assert_same_values(*found)


def test_reduce():
    def build(tf):
        return [
            D(tf).range(5).reduce(np.int64(0), lambda total, n: total + n),
            slices(tf).reduce((0, ""), lambda s, e: (s[0] + e["x"][0], s[1] + e["y"])),
        ]

    found = []
    for tf in (runnel, reference):
        with tf.Graph().as_default(), tf.Session() as sess:
            found.append(sess.run(build(tf)))
    assert_same_values(*found)


def feeding(tf):
    """A dataset that is fed, and uses a variable and a tensor of the graph in its function."""
    with tf.Graph().as_default(), tf.Session() as sess:
        limit = tf.placeholder(tf.int64, [])
        scale = tf.get_variable(
            "scale", [], tf.int64, tf.constant_initializer(2), use_resource=True
        )
        offset = limit * 100
        dataset = D(tf).range(limit).map(lambda n: n * scale + offset)
        iterator = tf.data.make_initializable_iterator(dataset)
        element = iterator.get_next()
        sess.run(scale.initializer)
        found = []
        for size in (2, 3):
            sess.run(iterator.initializer, {limit: size})
            found.append([sess.run(element) for _ in range(size)])
            with pytest.raises(tf.errors.OutOfRangeError):
                sess.run(element)
        sess.run(tf.assign(scale, 50))
        sess.run(iterator.initializer, {limit: 2})
        return [*found, sess.run(element), sess.run(element)]


def test_placeholders_and_variables():
    assert_same_values(feeding(runnel), feeding(reference))


def switching(tf):
    with tf.Graph().as_default(), tf.Session() as sess:
        train, test = D(tf).range(3), D(tf).range(10, 12)
        either = tf.data.Iterator.from_structure(
            tf.data.get_output_types(train), tf.data.get_output_shapes(train)
        )
        begin = [either.make_initializer(train), either.make_initializer(test)]
        element = either.get_next()
        found = []
        for which in (0, 1, 0):
            sess.run(begin[which])
            found.append([sess.run(element), sess.run(element)])
        handle = tf.placeholder(tf.string, [])
        fed = tf.data.Iterator.from_string_handle(
            handle, tf.data.get_output_types(train), tf.data.get_output_shapes(train)
        ).get_next()
        iterators = [tf.data.make_one_shot_iterator(one) for one in (train, test)]
        handles = [sess.run(one.string_handle()) for one in iterators]
        found.append([sess.run(fed, {handle: handles[i]}) for i in (0, 1, 0, 1, 0)])
        return found


def test_one_iterator_for_several_datasets():
    assert_same_values(switching(runnel), switching(reference))


def test_a_device_that_is_not_there():
    for tf in (runnel, reference):
        with tf.Graph().as_default(), tf.Session() as sess:
            dataset = D(tf).range(3).apply(tf.data.experimental.prefetch_to_device("/gpu:77"))
            iterator = tf.data.make_initializable_iterator(dataset)
            with pytest.raises(tf.errors.InvalidArgumentError, match="GPU:77"):
                sess.run(iterator.initializer)


def outcomes(tf, build, count=4):
    """What each of several steps gives: an element or the kind of error."""
    with tf.Graph().as_default(), tf.Session() as sess:
        iterator = tf.data.make_one_shot_iterator(build(tf))
        element = iterator.get_next()
        found = []
        for _ in range(count):
            try:
                found.append(np.asarray(sess.run(element)).tolist())
            except tf.errors.OpError as error:
                found.append(type(error).__name__)
        return found


def failing(tf):
    def check(n):
        with tf.control_dependencies([tf.Assert(tf.not_equal(n, 1), [n])]):
            return tf.identity(n)

    return D(tf).range(3).map(check)


FAILURES = {
    "map": failing,
    "prefetched": lambda tf: failing(tf).prefetch(2),
    "shapes differ": lambda tf: ragged(tf).batch(2),
    "too long": lambda tf: ragged(tf).padded_batch(2, [1]),
    "empty batch": lambda tf: D(tf).range(3).batch(tf.constant(0, tf.int64)),
    "no file": lambda tf: tf.data.TextLineDataset("/there/is/none"),
    "generator raises": lambda tf: D(tf).from_generator(lambda: [1][5], tf.int32),
    "generator gives another type": lambda tf: D(tf).from_generator(lambda: ["x"], tf.int32),
    "generator gives another shape": lambda tf: D(tf).from_generator(
        lambda: [[1, 2]], tf.int32, tf.TensorShape([])
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_both_fail_alike(name):
    ours, theirs = (outcomes(tf, FAILURES[name]) for tf in (runnel, reference))
    assert ours == theirs


REFUSED = {
    "a placeholder in a one-shot iterator": lambda tf: tf.data.make_one_shot_iterator(
        D(tf).range(tf.placeholder(tf.int64, []))
    ),
    "sizes differ": lambda tf: D(tf).from_tensor_slices(([1, 2], [1, 2, 3])),
    "a scalar": lambda tf: D(tf).from_tensor_slices(3),
    "no bool": lambda tf: D(tf).range(3).filter(lambda n: n),
    "other types": lambda tf: D(tf).range(3).concatenate(slices(tf)),
    "a device of no name": lambda tf: (
        D(tf).range(3).apply(tf.data.experimental.prefetch_to_device("/nonsense:0"))
    ),
    "no initializer": lambda tf: tf.data.make_one_shot_iterator(D(tf).range(3)).initializer,
}


@pytest.mark.parametrize("name", REFUSED)
def test_both_refuse(name):
    for tf in (runnel, reference):
        refusal = pytest.raises((ValueError, TypeError, tf.errors.OpError))
        with tf.Graph().as_default(), refusal:
            REFUSED[name](tf)
