"""A function that is called for many elements at once gives what single calls give, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.records.example_protos import Example
from runnel.runtime.session.subgraphs import Subgraph

Dataset = tf.data.Dataset
COUNT = 23
RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.normal(size=(COUNT, 6, 7, 3)).astype(np.float32)
NUMBERS = RANDOM.integers(-9, 9, COUNT).astype(np.int32)
TEXTS = np.array([b"%d,%.2f" % (i, i / 7) for i in range(COUNT)], object)


def example(place):
    made = Example()
    feature = made.features.feature
    feature["number"].int64_list.value.append(place * 1000)
    feature["floats"].float_list.value.extend([place, 2.5])
    feature["list"].int64_list.value.extend(range(place % 4))
    if place % 3:
        feature["text"].bytes_list.value.append(b"t" * place)
    return made.SerializeToString()


def parsed(n):
    features = {
        "number": tf.FixedLenFeature([], tf.int64),
        "floats": tf.FixedLenFeature([2], tf.float32),
        "text": tf.FixedLenFeature([], tf.string, default_value="none"),
        "list": tf.VarLenFeature(tf.int64),
        "missing": tf.VarLenFeature(tf.string),
    }
    contents = tf.constant([example(i) for i in range(9 + COUNT)])
    found = tf.parse_single_example(contents[n + 9], features)
    for key in ("list", "missing"):
        one = found.pop(key)
        found[f"{key} shape"] = one.dense_shape
        words = tf.as_string(one.values) if key == "list" else one.values
        found[f"{key} letters"] = tf.reduce_sum(tf.strings.length(words))
        found[f"{key} places"] = tf.reduce_sum(one.indices)
    return found


def looped(x, n, t):
    def body(i, y):
        return i + 1, y + tf.random_uniform([])

    return tf.while_loop(lambda i, y: i < n, body, [0, 0.0])


def branches(x, n, t):
    odd = tf.equal(n % 2, 1)
    first = tf.cond(odd, lambda: x + tf.random_uniform([7, 3]), lambda: tf.zeros_like(x))
    again = tf.cond(
        n > 0,
        lambda: tf.cond(odd, lambda: x * 2, lambda: tf.random_normal([6, 7, 3])),
        lambda: x - tf.cast(n, tf.float32),
    )
    return first, again, tf.cond(odd, lambda: 1, lambda: 2)


FUNCTIONS = {
    "arithmetic": lambda x, n, t: (x * 2 + 1, x / 3 - x, tf.exp(x), n // 3, -n, tf.abs(n) % 4),
    "other ranks": lambda x, n, t: (
        x * tf.cast(n, tf.float32),
        x[0] + tf.constant(IMAGES[1]),
        tf.maximum(x[:, 0, 0], tf.ones([2, 6])),
    ),
    "comparing": lambda x, n, t: (
        tf.where(x > 0, x, -x),
        tf.where(n > 0, x, x + 1),
        tf.equal(n, 3),
        tf.logical_and(n > 0, n < 5),
        tf.not_equal(t, "3,0.43"),
    ),
    "casts": lambda x, n, t: (tf.cast(x, tf.int32), tf.cast(n, tf.float64), tf.to_int64(n)),
    "shapes": lambda x, n, t: (
        tf.reshape(x, [7, -1]),
        tf.reshape(n, []),
        tf.expand_dims(x, -1),
        tf.expand_dims(n, 0),
        tf.squeeze(tf.expand_dims(x, 1)),
        tf.squeeze(x[:, :1], [1]),
        tf.transpose(x, [2, 0, 1]),
        tf.transpose(x),
        tf.shape(x),
        tf.size(x),
    ),
    "parts": lambda x, n, t: (
        x[1:, ::2, 0],
        x[..., tf.newaxis, -1],
        x[-1],
        tf.slice(x, [0, 1, 0], [-1, 3, 2]),
        tf.slice(x, [0, tf.abs(n) % 4, 0], [-1, 3, 2]),
        tf.unstack(x, axis=2)[1],
        tf.split(x, 3, axis=2)[0],
        x[tf.abs(n) % 6],
    ),
    "joining": lambda x, n, t: (
        tf.stack([x, x + 1], 1),
        tf.stack([n, 4]),
        tf.concat([x, tf.zeros([2, 7, 3])], 0),
        tf.concat([x, x], -1),
        tf.tile(x, [1, 2, 1]),
        tf.pad(x, [[1, 0], [0, 2], [0, 0]]),
        tf.pad(x, [[1, 0], [0, 2], [0, 0]], "REFLECT"),
        tf.reverse(x, [0, -1]),
    ),
    "reductions": lambda x, n, t: (
        tf.reduce_mean(x),
        tf.reduce_sum(x, [0, 1]),
        tf.reduce_sum(x, -1, keepdims=True),
        tf.reduce_max(x, 1),
        tf.reduce_all(x > 0, [0, 2]),
        tf.argmax(x, 1),
        tf.cumsum(x, 1),
        tf.nn.softmax(x),
        tf.nn.moments(x, [0, 1]),
        tf.reduce_sum(n),
    ),
    "tables": lambda x, n, t: (
        tf.gather(tf.constant(IMAGES[2]), tf.abs(n) % 6),
        tf.gather(x, [2, 0]),
        tf.one_hot(n, 5),
        tf.matmul(x[0], x[1], transpose_b=True),
        tf.nn.l2_normalize(x, -1),
    ),
    "random": lambda x, n, t: (
        tf.random_uniform([3, 5]),
        tf.random_uniform([], maxval=9, dtype=tf.int32),
        tf.random_uniform([2], 5, 2**40, dtype=tf.int64),
        tf.random_normal([5]),
        tf.random_uniform([7], dtype=tf.float64),
        tf.truncated_normal([4]),
        tf.random_shuffle(x),
        tf.random_uniform([tf.abs(n) % 3 + 1])[0],
        tf.random_uniform([1], maxval=tf.abs(n) + 1, dtype=tf.int32),
        tf.random_uniform([0]),
    ),
    "branches": branches,
    "a loop": looped,
    "images": lambda x, n, t: (
        tf.random_crop(x, [3, 4, 3]),
        tf.image.random_flip_left_right(x),
        tf.image.per_image_standardization(x),
        tf.image.resize_images(x, [4, 9]),
        tf.image.random_brightness(x, 0.3),
        tf.image.random_contrast(x, 0.2, 1.8),
        tf.image.resize_image_with_crop_or_pad(x, 4, 9),
        tf.image.central_crop(x, 0.5),
        tf.image.adjust_saturation(x, 0.3),
    ),
    "texts": lambda x, n, t: (
        tf.string_join([t, "x"]),
        tf.strings.length(t),
        tf.string_to_number(tf.strings.substr(t, 0, 1)),
        tf.string_to_hash_bucket_fast(t, 1000),
        tf.strings.regex_replace(t, ",", ";"),
        tf.as_string(n),
        tf.decode_csv(t, [[0], [0.0]]),
        tf.decode_raw(tf.strings.substr(tf.string_join([t, "....."]), 0, 6), tf.uint8),
        tf.string_split([t], ",").values,
    ),
    "examples": lambda x, n, t: parsed(n),
    "always the same": lambda x, n, t: (tf.constant([1.0, 2.0]), "text", n),
    "twice": lambda x, n, t: (x, x, tf.identity(x)),
    "a variable": lambda x, n, t: x * VARIABLE(),
    "with an assertion": lambda x, n, t: tf.identity(n) + with_assertion(n),
}


def with_assertion(n):
    with tf.control_dependencies([tf.Assert(n < 100, [n])]):
        return tf.identity(n)


def VARIABLE():  # noqa: N802
    return tf.get_variable("v", initializer=2.5)


def flat(element):
    if isinstance(element, dict):
        element = [element[key] for key in sorted(element)]
    if isinstance(element, list | tuple):
        return [value for part in element for value in flat(part)]
    return [element]


def taken(build, times, count):
    """The components of the elements of a dataset, in a session of its own."""
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        slices = Dataset.from_tensor_slices((IMAGES, NUMBERS, TEXTS))
        iterator = build(slices).make_initializable_iterator()
        element = flat(iterator.get_next())
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            found = []
            for _ in range(times):
                sess.run(iterator.initializer)
                found += [sess.run(element) for _ in range(count)]
    return found


@pytest.fixture
def together(monkeypatch):
    """How many calls were made at once, in the order of these."""
    counts = []
    original = Subgraph.rows

    def counted(self, columns, shared, count):
        found = original(self, columns, shared, count)
        counts.append(count)
        return found

    monkeypatch.setattr(Subgraph, "rows", counted)
    return counts


def assert_same(batches, singles):
    for component, column in enumerate(zip(*singles, strict=True)):
        found = [row for batch in batches for row in batch[component]]
        assert len(found) == len(column)
        for row, value in zip(found, column, strict=True):
            assert np.asarray(row).dtype == np.asarray(value).dtype, component
            np.testing.assert_array_equal(row, value, f"component {component}")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_calls_at_once_give_what_single_calls_give(name, together):
    function = FUNCTIONS[name]
    singles = taken(lambda slices: slices.map(function), 2, COUNT)
    assert not together
    batches = taken(lambda slices: slices.map(function).batch(8), 2, 3)
    assert together == [8, 8, 7, 8, 8, 7]
    assert_same(batches, singles)


@pytest.mark.parametrize("calls", [None, 3])
def test_elements_of_different_shapes_are_padded(calls, together):
    def build(slices):
        rows = slices.map(lambda x, n, t: x[: tf.abs(n) % 5, 0] + 1, num_parallel_calls=calls)
        return rows.padded_batch(8, [-1, 3])

    batches = taken(build, 1, 3)
    assert sum(together) == COUNT
    rows = [IMAGES[i][: abs(NUMBERS[i]) % 5, 0] + 1 for i in range(COUNT)]
    for place, (batch,) in enumerate(batches):
        wanted = rows[8 * place : 8 * place + 8]
        assert batch.shape == (len(wanted), max(map(len, wanted)), 3)
        for found, row in zip(batch, wanted, strict=True):
            np.testing.assert_array_equal(found[: len(row)], row)
            assert not found[len(row) :].any()


def test_a_filter_is_asked_for_several_elements_at_once(together):
    def build(slices):
        return slices.filter(lambda x, n, t: n > 0).map(lambda x, n, t: (n * 2, t)).batch(4)

    wanted = [(2 * n, t) for n, t in zip(NUMBERS, TEXTS, strict=True) if n > 0]
    batches = taken(build, 1, -(-len(wanted) // 4))
    assert together
    found = [pair for numbers, texts in batches for pair in zip(numbers, texts, strict=True)]
    assert found == wanted


def test_shuffled_elements_of_a_function_come_in_the_same_order(together):
    def build(slices, size=None):
        mapped = slices.map(lambda x, n, t: (x + 1, n, t)).shuffle(6, seed=7).repeat(2)
        return mapped if size is None else mapped.batch(size)

    singles = taken(build, 1, 2 * COUNT)
    assert not together
    batches = taken(lambda slices: build(slices, 5), 1, 10)
    assert together
    assert_same(batches, singles)


def test_large_blocks_are_shared_between_threads(monkeypatch):
    from runnel.pipelines import mapping

    monkeypatch.setattr(mapping, "_WORTH_A_THREAD", 0.0)
    singles = taken(lambda slices: slices.map(lambda x, n, t: (x + 1, t)), 1, COUNT)
    batches = taken(
        lambda slices: slices.map(lambda x, n, t: (x + 1, t), num_parallel_calls=3).batch(5), 1, 5
    )
    assert_same(batches, singles)


@pytest.mark.parametrize("calls", [None, 2])
def test_an_error_takes_the_place_of_its_element(calls):
    def checked(n):
        with tf.control_dependencies([tf.Assert(tf.not_equal(n % 10, 7), [n])]):
            return tf.identity(n) + tf.random_uniform([], maxval=1, dtype=tf.int64)

    with tf.Session() as sess:
        numbers = Dataset.range(30).map(checked, num_parallel_calls=calls)
        element = numbers.batch(4).make_one_shot_iterator().get_next()
        outcomes = []
        for _ in range(9):
            try:
                outcomes.append(sess.run(element).tolist())
            except tf.errors.InvalidArgumentError as error:
                assert "assertion failed: [" in str(error)
                outcomes.append(str(error).split("assertion failed: [")[1][:-1].split("]")[0])
            except tf.errors.OutOfRangeError:
                outcomes.append("end")
    assert outcomes == [
        [0, 1, 2, 3],
        "7",
        [8, 9, 10, 11],
        [12, 13, 14, 15],
        "17",
        [18, 19, 20, 21],
        [22, 23, 24, 25],
        "27",
        [28, 29],
    ]


def test_a_failed_block_draws_no_random_numbers(together):
    """Single calls follow, which draw what they would have drawn."""

    def drawn(n):
        with tf.control_dependencies([tf.Assert(tf.not_equal(n, 5), [n])]):
            return tf.identity(n)

    def numbers(batch):
        tf.set_random_seed(1)
        mapped = Dataset.range(12).map(lambda n: tf.random_uniform([2]) + tf.to_float(drawn(n)))
        mapped = mapped.apply(tf.data.experimental.ignore_errors())
        return mapped.batch(4) if batch else mapped

    with tf.Graph().as_default(), tf.Session() as sess:
        element = numbers(False).make_one_shot_iterator().get_next()
        singles = [[sess.run(element)] for _ in range(11)]
    with tf.Graph().as_default(), tf.Session() as sess:
        element = numbers(True).make_one_shot_iterator().get_next()
        batches = [[sess.run(element)] for _ in range(3)]
    assert_same(batches, singles)


def test_functions_with_effects_are_called_one_by_one(together):
    seen = []

    def note(n):
        seen.append(int(n))
        return n

    with tf.Session() as sess:
        numbers = Dataset.range(6).map(lambda n: tf.py_func(note, [n], tf.int64))
        element = numbers.batch(4).make_one_shot_iterator().get_next()
        assert sess.run(element).tolist() == [0, 1, 2, 3]
        assert seen == [0, 1, 2, 3] and not together
