"""Datasets that are shuffled and repeated: TensorFlow 1.15 records their elements.

``tools/record_shuffle_orders.py`` runs this under TensorFlow 1.15 on Python 3.7,
``tests/data/test_shuffle_orders.py`` under runnel.
"""

from typing import Any

MOST = 30
"""How many elements are taken of each."""


def _numbers(tf: Any, count: int = 7) -> Any:
    return tf.data.Dataset.range(count)


def _optimized(tf: Any, dataset: Any, **values: Any) -> Any:
    options = tf.data.Options()
    for name, value in values.items():
        setattr(options.experimental_optimization, name, value)
    return dataset.with_options(options)


def _shuffled(tf: Any, size: int = 7, **options: Any) -> Any:
    return _numbers(tf).shuffle(size, seed=1, **options)


def _named(tf: Any, size: int) -> Any:
    return tf.data.experimental.shuffle_and_repeat(size, 3, seed=1)


CASES = {
    "repeated": lambda tf: _shuffled(tf).repeat(3),
    "for ever": lambda tf: _shuffled(tf).repeat(),
    "a small buffer": lambda tf: _shuffled(tf, 3).repeat(3),
    "a large buffer": lambda tf: _shuffled(tf, 20).repeat(3),
    "by one name": lambda tf: _numbers(tf).apply(_named(tf, 7)),
    "by one name, a small buffer": lambda tf: _numbers(tf).apply(_named(tf, 3)),
    "not joined": lambda tf: _optimized(
        tf, _shuffled(tf).repeat(3), shuffle_and_repeat_fusion=False
    ),
    "not optimized": lambda tf: _optimized(
        tf, _shuffled(tf).repeat(3), apply_default_optimizations=False
    ),
    "the same order": lambda tf: _shuffled(tf, reshuffle_each_iteration=False).repeat(3),
    "once": lambda tf: _shuffled(tf).repeat(1),
    "only shuffled": lambda tf: _shuffled(tf),
    "repeated first": lambda tf: _numbers(tf).repeat(3).shuffle(7, seed=1),
    "a map between": lambda tf: _shuffled(tf).map(lambda n: n + 1).repeat(3),
    "skip nothing between": lambda tf: _shuffled(tf).skip(0).repeat(3),
    "take all between": lambda tf: _shuffled(tf).take(-1).repeat(3),
    "prefetch nothing between": lambda tf: _shuffled(tf).prefetch(0).repeat(3),
    "once between": lambda tf: _shuffled(tf).repeat(1).repeat(3),
    "take some between": lambda tf: _shuffled(tf).take(5).repeat(3),
    "repeated twice": lambda tf: _shuffled(tf).repeat(2).repeat(2),
    "repeated later again": lambda tf: _shuffled(tf).repeat(2).map(lambda n: n).repeat(2),
    "shuffled twice": lambda tf: _shuffled(tf).shuffle(3, seed=2).repeat(3),
    "a shuffle before": lambda tf: _shuffled(tf).shuffle(3, seed=2).map(lambda n: n).repeat(3),
    "a shuffle before a function": lambda tf: (
        _shuffled(tf)
        .flat_map(lambda n: tf.data.Dataset.from_tensors(n).repeat(2))
        .shuffle(3, seed=2)
        .map(lambda n: n)
        .repeat()
    ),
    "in a function": lambda tf: _numbers(tf, 2).flat_map(
        lambda n: _shuffled(tf).repeat(2).map(lambda m: 10 * n + m)
    ),
    "interleaved": lambda tf: (
        _numbers(tf, 3)
        .shuffle(3, seed=4)
        .repeat(2)
        .interleave(lambda n: _numbers(tf).map(lambda m: 10 * n + m), cycle_length=2)
    ),
    "batched": lambda tf: _shuffled(tf).repeat(3).batch(3, drop_remainder=True),
    "concatenated": lambda tf: _shuffled(tf).repeat(2).concatenate(_shuffled(tf).repeat(2)),
    "cached": lambda tf: _numbers(tf).cache().shuffle(7, seed=1).repeat(3),
    "a tensor as seed": lambda tf: (
        _numbers(tf)
        .shuffle(tf.constant(7, tf.int64), seed=tf.constant(3, tf.int64))
        .repeat(tf.constant(2, tf.int64))
    ),
}

BEGINNINGS = ("one shot", "initializable", "reinitializable")


def elements(tf: Any, case: str, beginning: str, graph_seed: Any = None) -> Any:
    """The first elements of a dataset, by an iterator that begins in one of the ways."""
    with tf.Graph().as_default():
        if graph_seed is not None:
            tf.set_random_seed(graph_seed)
        dataset = CASES[case](tf)
        begin = tf.no_op()
        if beginning == "one shot":
            iterator = tf.data.make_one_shot_iterator(dataset)
        elif beginning == "initializable":
            iterator = tf.data.make_initializable_iterator(dataset)
            begin = iterator.initializer
        else:
            iterator = tf.data.Iterator.from_structure(dataset.output_types, dataset.output_shapes)
            begin = iterator.make_initializer(dataset)
        element = iterator.get_next()
        with tf.Session() as sess:
            sess.run(begin)
            found: Any = []
            try:
                while len(found) < MOST:
                    found.append(sess.run(element).tolist())
            except tf.errors.OutOfRangeError:
                pass
        return found
