"""Pipelines of ``tf.data``, each a function of the module that describes it."""

from __future__ import annotations

import collections

import numpy as np

import runnel

Pair = collections.namedtuple("Pair", "a b")


def D(tf):  # noqa: N802
    return tf.data.Dataset


def examples():
    """Serialized examples with a number and strings."""
    made = []
    for n in range(5):
        one = runnel.train.Example()
        one.features.feature["n"].int64_list.value.append(n)
        one.features.feature["s"].bytes_list.value.extend([b"x"] * n)
        made.append(one.SerializeToString())
    return made


def slices(tf):
    return D(tf).from_tensor_slices({"x": [[1, 2], [3, 4], [5, 6]], "y": ["a", "b", "c"]})


def ragged(tf):
    return D(tf).range(1, 6).map(lambda n: tf.fill([tf.cast(n, tf.int32)], n))


def sparse(tf):
    return tf.SparseTensor([[0, 0], [1, 2], [2, 1]], [1.0, 2.0, 3.0], [3, 4])


def generator():
    yield 1, [1.5]
    yield 2, [2.5, 3.5]


def failing(tf):
    def check(n):
        with tf.control_dependencies([tf.Assert(tf.not_equal(n, 1), [n])]):
            return tf.identity(n)

    return D(tf).range(3).map(check)


def not_joined(tf, dataset):
    """``dataset``, whose shuffles and repetitions are not joined, as TensorFlow 1.15 would."""
    options = tf.data.Options()
    options.experimental_optimization.shuffle_and_repeat_fusion = False
    return dataset.with_options(options)


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
    "padded single strings": lambda tf: (
        D(tf)
        .from_tensor_slices(["a", "b", "", "c"])
        .filter(lambda s: tf.not_equal(s, "b"))
        .padded_batch(2, [])
        .map(lambda s: (s, tf.strings.length(s)))
        .apply(tf.data.experimental.ignore_errors())
    ),
    "unique batches of strings": lambda tf: (
        D(tf)
        .from_tensor_slices(["a", "b", "a", "b", "b"])
        .prefetch(1)
        .padded_batch(1, [])
        .unbatch()
        .apply(tf.data.experimental.unique())
    ),
    "joined strings of sizes partly known": lambda tf: (
        D(tf).range(4).batch(2).batch(2).map(tf.as_string).map(lambda s: tf.string_join([s, "!"]))
    ),
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
    "shuffle all": lambda tf: not_joined(
        tf, D(tf).range(20).shuffle(100, seed=3).repeat(2).take(30)
    ),
    "shuffle alike": lambda tf: (
        D(tf).range(10).shuffle(4, seed=7, reshuffle_each_iteration=False).repeat(3)
    ),
    "shuffle of slices": lambda tf: slices(tf).repeat(3).shuffle(4, seed=5),
    "shuffled slices": lambda tf: not_joined(tf, slices(tf).shuffle(2, seed=5).repeat(4)),
    "batches of shuffled slices": lambda tf: not_joined(
        tf, slices(tf).shuffle(5, seed=5).repeat(3).batch(4)
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
    "buckets up to their boundary": lambda tf: (
        D(tf)
        .range(12)
        .map(lambda n: (n, tf.fill([tf.cast(n % 5, tf.int32), 2], n)))
        .apply(
            tf.data.experimental.bucket_by_sequence_length(
                lambda n, x: tf.shape(x)[0], [2, 5], [3, 2, 4], pad_to_bucket_boundary=True
            )
        )
    ),
    "buckets without padding": lambda tf: (
        D(tf)
        .range(12)
        .map(lambda n: tf.fill([tf.cast(n % 3, tf.int32)], n))
        .apply(
            tf.data.experimental.bucket_by_sequence_length(
                lambda x: tf.shape(x)[0], [1, 2], [3, 2, 4], no_padding=True
            )
        )
    ),
    "padded to a tensor": lambda tf: ragged(tf).padded_batch(2, tf.constant([6], tf.int64)),
    "scan whose state grows": lambda tf: (
        D(tf)
        .range(5)
        .apply(
            tf.data.experimental.scan(
                np.zeros([0], np.int64), lambda s, n: (tf.concat([s, [n]], 0), tf.size(s))
            )
        )
    ),
    "scan whose state varies": lambda tf: (
        D(tf)
        .range(5)
        .apply(
            tf.data.experimental.scan(
                (np.zeros([2, 1], np.int64), np.int64(1)),
                lambda s, n: ((tf.concat([s[0], s[0] + n], 1), s[1] * 2), s[0]),
            )
        )
    ),
    "reduced by key to what grows": lambda tf: (
        D(tf)
        .range(7)
        .apply(
            tf.data.experimental.group_by_reducer(
                lambda n: n % 2,
                tf.data.experimental.Reducer(
                    lambda key: np.zeros([0], np.int64),
                    lambda s, n: tf.concat([s, [n]], 0),
                    lambda s: s,
                ),
            )
        )
    ),
    "padded to a list with a tensor": lambda tf: (
        D(tf)
        .range(4)
        .map(lambda n: tf.fill([n, 2], n))
        .padded_batch(2, [tf.size([0] * 6, out_type=tf.int64), 2])
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
    "dense to sparse of scalars": lambda tf: (
        D(tf).range(5).apply(tf.data.experimental.dense_to_sparse_batch(2, []))
    ),
    "dense to sparse of single strings": lambda tf: (
        D(tf)
        .from_tensor_slices(["a", "", "b"])
        .apply(tf.data.experimental.dense_to_sparse_batch(2, []))
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
    "interleave as wide as there are cores": lambda tf: (
        D(tf).range(9).interleave(lambda n: D(tf).range(n, n + 4))
    ),
    "interleave by threads left to TensorFlow": lambda tf: (
        D(tf)
        .range(6)
        .interleave(
            lambda n: D(tf).range(n, n + 4),
            cycle_length=1,
            num_parallel_calls=tf.data.experimental.AUTOTUNE,
        )
    ),
    "all threads left to TensorFlow": lambda tf: (
        D(tf)
        .range(9)
        .interleave(
            lambda n: D(tf).range(n, n + 4), 3, num_parallel_calls=tf.data.experimental.AUTOTUNE
        )
        .map(lambda n: n + 1, num_parallel_calls=tf.data.experimental.AUTOTUNE)
        .prefetch(tf.data.experimental.AUTOTUNE)
    ),
    "samples": lambda tf: tf.data.experimental.sample_from_datasets(
        [D(tf).range(9), D(tf).range(10, 19), D(tf).range(20, 29)], seed=3
    ),
    "samples by weight": lambda tf: tf.data.experimental.sample_from_datasets(
        [D(tf).range(9), D(tf).range(10, 15)], weights=[0.3, 0.7], seed=4
    ),
    "samples by weights that change": lambda tf: tf.data.experimental.sample_from_datasets(
        [D(tf).range(9), D(tf).range(10, 15)],
        weights=D(tf).from_tensor_slices([[0.9, 0.1], [0.1, 0.9]]).repeat(),
        seed=4,
    ),
    "samples of one": lambda tf: tf.data.experimental.sample_from_datasets([D(tf).range(4)]),
    "resampled": lambda tf: (
        D(tf)
        .range(60)
        .apply(
            tf.data.experimental.rejection_resample(lambda n: n % 2, [0.2, 0.8], [0.5, 0.5], seed=5)
        )
    ),
    "resampled without a class": lambda tf: (
        D(tf)
        .range(60)
        .apply(
            tf.data.experimental.rejection_resample(lambda n: n % 2, [0.0, 1.0], [0.5, 0.5], seed=5)
        )
    ),
    "resampled by estimates": lambda tf: (
        D(tf)
        .range(60)
        .apply(tf.data.experimental.rejection_resample(lambda n: n % 2, [0.2, 0.8], seed=5))
    ),
    "rows of a sparse tensor": lambda tf: D(tf).from_sparse_tensor_slices(sparse(tf)),
    "parsed examples": lambda tf: (
        D(tf)
        .from_tensor_slices(examples())
        .batch(2)
        .apply(
            tf.data.experimental.parse_example_dataset(
                {"s": tf.VarLenFeature(tf.string), "n": tf.FixedLenFeature([], tf.int64)}
            )
        )
    ),
    "numbered": lambda tf: slices(tf).apply(tf.data.experimental.enumerate_dataset(5)),
    "map and batch by an older function": lambda tf: (
        D(tf)
        .range(5)
        .apply(
            tf.data.experimental.map_and_batch_with_legacy_function(
                lambda n: n + 1, 2, num_parallel_calls=2
            )
        )
    ),
    "older functions": lambda tf: (
        D(tf)
        .range(9)
        .map_with_legacy_function(lambda n: n * n)
        .filter_with_legacy_function(lambda n: n > 3)
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
