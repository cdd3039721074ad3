"""``tf.data`` gives the elements that TensorFlow's gives, in the same order, of the same shapes."""

from __future__ import annotations

import contextlib
import gzip
import sqlite3
import zlib

import numpy as np
import pytest

import runnel
from tests.conformance.data_pipelines import PIPELINES, D, failing, ragged, slices
from tests.conformance.same_fetches import assert_same_values

reference = pytest.importorskip("tensorflow").compat.v1

LIMIT = 30


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
            "compressed otherwise": lambda: data.TextLineDataset(f"{tmp_path}/z.txt", "ZLIB"),
            "compressed pieces": lambda: data.FixedLengthRecordDataset(
                f"{tmp_path}/z.txt", 3, 1, 2, compression_type="ZLIB"
            ),
            "of a dataset": lambda: data.TFRecordDataset(
                data.Dataset.list_files(f"{tmp_path}/r*", shuffle=False)
            ),
            "records": lambda: data.TFRecordDataset(records),
            "records in turn": lambda: data.TFRecordDataset(records, num_parallel_reads=2),
            "records of datasets in turn": lambda: data.TFRecordDataset(
                data.Dataset.list_files(f"{tmp_path}/r*", shuffle=False), num_parallel_reads=2
            ),
            "pieces": lambda: data.FixedLengthRecordDataset(str(pieces), 2, 4, 4),
            "names": lambda: data.Dataset.list_files(f"{tmp_path}/*", shuffle=True, seed=2),
        }[which]()

    (tmp_path / "z.txt").write_bytes(zlib.compress(b"five\nsix\nseven\n"))
    names = [
        "lines",
        "compressed",
        "compressed otherwise",
        "compressed pieces",
        "of a dataset",
        "records",
        "records in turn",
    ]
    for which in (*names, "records of datasets in turn", "pieces", "names"):
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
    "rows of different numbers": lambda tf: D(tf).from_tensors(([1, 2], [1, 2, 3])).unbatch(),
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


def effects_of_a_mapped_function(tf):
    """The elements of a function with effects that nothing of what it gives needs, and these."""
    seen = []

    def note(number):
        seen.append(int(number))
        return number

    with tf.Graph().as_default(), tf.Session() as sess:
        total = tf.get_variable("total", initializer=np.int64(0), use_resource=True)
        offset = tf.placeholder(tf.int64, [])

        def function(n):
            tf.py_func(note, [n], tf.int64)
            tf.py_func(note, [n + 100], tf.int64)
            total.assign_add(n)
            before = total.read_value()
            total.assign(before * 2)
            tf.cond(n > 1, lambda: tf.py_func(note, [n + 1_000], tf.int64), lambda: n)
            tf.Assert(n < 4, [n])
            with tf.control_dependencies([tf.py_func(note, [n + offset], tf.int64)]):
                return before, total.read_value()

        iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(9).map(function))
        element = iterator.get_next()
        sess.run(tf.global_variables_initializer())
        sess.run(iterator.initializer, {offset: 10_000})
        found = [sess.run(element) for _ in range(4)]
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(element)
        # TensorFlow may have begun with an element that nobody has asked for yet.
        return found, [number for number in seen if number % 100 < 4]


def test_a_mapped_function_has_all_its_effects_in_their_order():
    ours, theirs = map(effects_of_a_mapped_function, (runnel, reference))
    assert_same_values(ours[0], theirs[0])
    assert ours[1] == theirs[1]


@pytest.mark.parametrize("compression, reads", [(None, 1), ("GZIP", 1), (None, 2)])
def test_columns_are_found_in_all_files(tmp_path, compression, reads):
    texts = [
        "a,b,c,d,e\n1,1,1.5,,x\n2,3000000000,2,1,\n",
        "a,b,c,d,e\n3,4,1e300,2.5,z\n4,5,6,7,8\n",
    ]
    for number, text in enumerate(texts):
        content = text.encode()
        path = tmp_path / f"{number}.csv"
        path.write_bytes(gzip.compress(content) if compression else content)

    def build(tf):
        return tf.data.experimental.make_csv_dataset(
            f"{tmp_path}/*.csv",
            2,
            num_epochs=1,
            shuffle=False,
            compression_type=compression,
            num_parallel_reads=reads,
        )

    ours, theirs = (elements(tf, build)[0] for tf in (runnel, reference))
    assert_same_values(ours, theirs)
    for our, their in zip(ours, theirs, strict=True):
        assert [our[name].dtype for name in "abcde"] == [their[name].dtype for name in "abcde"]


def test_files_of_other_columns_are_refused(tmp_path):
    (tmp_path / "0.csv").write_text("a,b\n1,2\n")
    (tmp_path / "1.csv").write_text("a,c\n1,2\n")
    for tf in (runnel, reference):
        with tf.Graph().as_default(), pytest.raises(ValueError, match="different column names"):
            tf.data.experimental.make_csv_dataset(f"{tmp_path}/*.csv", 2)
