"""Single operations, one a step, over variables: what their interpreted kernels cost.

Each family has its operations by name: functions of the frontend and of `Inputs`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload

Build = Callable[[Any, "Inputs"], Any]
ROWS, COLUMNS, IDS = 128, 256, 512
CHECKED = 8
RANDOM = "random numbers"
"""The family whose results are not compared."""


class Inputs:
    """Arrays, the same in every process; each use of one in a graph is a variable of its own."""

    def __init__(self, tf: Any):
        self._tf = tf
        self._random = np.random.RandomState(0)
        shape = (ROWS, COLUMNS)
        self.normal = self._random.randn(*shape).astype(np.float32)
        self.other = self._random.randn(*shape).astype(np.float32)
        self.positive = np.abs(self.normal) + np.float32(0.1)
        self.unit = (self._random.rand(*shape) * 0.9 + 0.05).astype(np.float32)
        self.whole = self._random.randint(-50, 50, shape).astype(np.int32)
        self.natural = self._random.randint(1, 50, shape).astype(np.int32)
        self.ids = self._random.randint(0, ROWS, IDS).astype(np.int32)
        self.image = self._random.rand(4, 32, 32, 16).astype(np.float32)

    def __call__(self, value: Any) -> Any:
        """A variable's value; strings are fed, as there they come from input."""
        array = np.asarray(value)
        if array.dtype == object:
            return self._tf.placeholder_with_default(array, array.shape)
        return self._tf.Variable(array, use_resource=True).read_value()

    def some(self, *shape: int) -> Any:
        """A variable of numbers between 0 and 1."""
        return self(self._random.rand(*shape).astype(np.float32))

    @property
    def x(self) -> Any:
        """The usual input: 128 x 256 numbers of both signs."""
        return self(self.normal)

    @property
    def images(self) -> Any:
        """4 images of 32 x 32 with 16 channels."""
        return self(self.image)

    @cached_property
    def places(self) -> np.ndarray:
        """The coordinates of what `sparse` has."""
        return np.argwhere(self.normal > 1).astype(np.int64)

    @property
    def sparse(self) -> Any:
        """A sixth of the usual input."""
        values, shape = self.normal[self.normal > 1], np.array([ROWS, COLUMNS], np.int64)
        return self._tf.SparseTensor(self(self.places), self(values), self(shape))

    def words(self, pattern: bytes = b"word%d") -> Any:
        """500 strings."""
        return self(np.array([pattern % i for i in range(500)], object))


def _named(names: str, value: Callable[[Inputs], Any]) -> dict[str, Build]:
    """Functions of one argument, by their names in `tf`, `tf.nn` or `tf.math`."""

    def build(name: str) -> Build:
        def call(tf: Any, given: Inputs) -> Any:
            home = next(m for m in (tf, tf.nn, tf.math) if hasattr(m, name))
            return getattr(home, name)(value(given))

        return call

    return {name: build(name) for name in names.split()}


def _binary(names: str, a: Callable[[Inputs], Any], b: Callable[[Inputs], Any]) -> dict[str, Build]:
    return {name: lambda tf, g, name=name: getattr(tf, name)(a(g), b(g)) for name in names.split()}


def _gradient(build: Callable[[Any, Inputs, Any], Any], images: bool = False) -> Build:
    def call(tf: Any, given: Inputs) -> Any:
        x = given.images if images else given.x
        return tf.gradients(build(tf, given, x), x)[0]

    return call


def _powers(*exponents: float) -> dict[str, Build]:
    return {
        f"pow {e:g}": lambda tf, g, e=e: tf.pow(g.x if e == int(e) else g(g.positive), e)
        for e in exponents
    }


def _over_axes(*names: str) -> dict[str, Build]:
    return {
        f"{name} {axis}": lambda tf, g, name=name, axis=axis: getattr(tf, name)(g.x, axis)
        for name in names
        for axis in (None, 0, 1)
    }


def _segments(*names: str) -> dict[str, Build]:
    def unsorted(name: str) -> Build:
        return lambda tf, g: getattr(tf.math, name)(g.some(IDS, 64), g(g.ids), ROWS)

    def ascending(name: str) -> Build:
        return lambda tf, g: getattr(tf.math, name)(g.some(IDS, 64), g(np.sort(g.ids)))

    return {f"unsorted_{n}": unsorted(f"unsorted_{n}") for n in names} | {
        n: ascending(n) for n in names
    }


SAME, ONES, TWOS = "SAME", [1, 1, 1, 1], [1, 2, 2, 1]
FAMILIES: dict[str, dict[str, Build]] = {
    "functions": _named(
        "abs negative exp sqrt square sin cos tan atan sinh cosh tanh sigmoid erf erfc expm1 floor "
        "ceil rint sign is_nan is_finite relu relu6 elu selu softplus softsign leaky_relu",
        lambda g: g.x,
    )
    | _named("log asin acos log1p", lambda g: g(g.unit))
    | _named("rsqrt lgamma digamma reciprocal", lambda g: g(g.positive)),
    "arithmetic": _binary(
        "add subtract multiply divide maximum minimum squared_difference atan2 less equal",
        lambda g: g.x,
        lambda g: g(g.other),
    )
    | {
        f"{name} row": lambda tf, g, name=name: getattr(tf, name)(g.x, g(g.positive[0]))
        for name in ("add", "multiply", "floormod", "floordiv", "maximum")
    }
    | {
        f"{name} int32": lambda tf, g, name=name: getattr(tf, name)(g(g.whole), g(g.natural))
        for name in ("add", "multiply", "floormod", "floordiv", "truncatediv")
    }
    | _powers(0.5, -0.5, 2, 3, 1.5, -1)
    | {
        "cast": lambda tf, g: tf.cast(g(g.whole), tf.float32),
        "clip_by_value": lambda tf, g: tf.clip_by_value(g.x, -0.5, 0.5),
        "clip_by_norm": lambda tf, g: tf.clip_by_norm(g.x, 1.0),
    },
    "reductions": _over_axes(
        *("reduce_sum", "reduce_mean", "reduce_max", "reduce_prod", "reduce_logsumexp")
    )
    | {
        "argmax": lambda tf, g: tf.argmax(g.x, 1),
        "argmax 0": lambda tf, g: tf.argmax(g.x, 0),
        "cumsum": lambda tf, g: tf.cumsum(g.x, 1, exclusive=True, reverse=True),
        "cumprod": lambda tf, g: tf.cumprod(g.x, 1),
        "reduce_any": lambda tf, g: tf.reduce_any(g(g.normal > 0), 0),
        "bincount": lambda tf, g: tf.bincount(g(g.ids)),
        "histogram": lambda tf, g: tf.histogram_fixed_width(g.x, [-2.0, 2.0]),
        "moments": lambda tf, g: tf.nn.moments(g.images, [0, 1, 2])[1],
        "confusion_matrix": lambda tf, g: tf.confusion_matrix(g(g.ids % 10), g(g.ids % 10), 10),
    },
    "moving": {
        "transpose": lambda tf, g: tf.transpose(g.x),
        "transpose of images": lambda tf, g: tf.transpose(g.images, [0, 3, 1, 2]),
        "concat": lambda tf, g: tf.concat([g.x, g(g.other)], 1),
        "stack": lambda tf, g: tf.stack([g.x, g(g.other)], 1),
        "split": lambda tf, g: tf.add_n(tf.split(g.x, 4, 1)),
        "tile": lambda tf, g: tf.tile(g.x, [2, 3]),
        "pad": lambda tf, g: tf.pad(g.x, [[1, 2], [3, 4]]),
        "pad by reflection": lambda tf, g: tf.pad(g.x, [[1, 2], [3, 4]], "REFLECT"),
        "reverse": lambda tf, g: tf.reverse(g.x, [1]),
        "reverse_sequence": lambda tf, g: tf.reverse_sequence(
            g.some(32, 50, 16), g(g.ids[:32] % 50), seq_axis=1, batch_axis=0
        ),
        "space_to_depth": lambda tf, g: tf.space_to_depth(g.images, 2),
        "depth_to_space": lambda tf, g: tf.depth_to_space(g.images, 2),
        "matrix_diag_part": lambda tf, g: tf.matrix_diag_part(g.some(32, 16, 16)),
        "matrix_set_diag": lambda tf, g: tf.matrix_set_diag(g.some(32, 16, 16), g.some(32, 16)),
        "matrix_band_part": lambda tf, g: tf.matrix_band_part(g.x, 2, 2),
    },
    "indices": _segments("segment_sum", "segment_mean", "segment_max")
    | {
        "gather": lambda tf, g: tf.gather(g.x, g(g.ids)),
        "gather of columns": lambda tf, g: tf.gather(g.x, g(g.ids), axis=1),
        "gather_nd": lambda tf, g: tf.gather_nd(g.x, g(np.stack([g.ids, g.ids], 1))),
        "scatter_nd": lambda tf, g: tf.scatter_nd(g(g.ids[:, None]), g.some(IDS, 64), [ROWS, 64]),
        "dynamic_partition": lambda tf, g: tf.concat(
            tf.dynamic_partition(g.x, g(g.ids[:ROWS] % 4), 4), 0
        ),
        "dynamic_stitch": lambda tf, g: tf.dynamic_stitch(
            [g(np.arange(start, ROWS, 2).astype(np.int32)) for start in (0, 1)],
            [g(g.normal[::2]), g(g.normal[1::2])],
        ),
        "one_hot": lambda tf, g: tf.one_hot(g(g.ids), 64),
        "where": lambda tf, g: tf.where(g(g.normal > 0)),
        "where of values": lambda tf, g: tf.where(g(g.normal > 0), g.x, g(g.other)),
        "boolean_mask": lambda tf, g: tf.boolean_mask(g.x, g(g.normal > 0)),
        "unique": lambda tf, g: tf.unique(g(g.ids))[1],
        "top_k": lambda tf, g: tf.nn.top_k(g.x, 5)[0],
        "top_k of all": lambda tf, g: tf.nn.top_k(g.x, COLUMNS)[1],
        "in_top_k": lambda tf, g: tf.nn.in_top_k(g.x, g(g.ids[:ROWS]), 3),
        "sort": lambda tf, g: tf.sort(g.x),
        "argsort": lambda tf, g: tf.argsort(g.x),
        "searchsorted": lambda tf, g: tf.searchsorted(g(np.sort(g.normal)[:8]), g(g.other[:8])),
        "sequence_mask": lambda tf, g: tf.sequence_mask(g(g.ids), ROWS),
        "embedding_lookup": lambda tf, g: tf.nn.embedding_lookup(g.x, g(g.ids)),
    },
    "sparse": {
        "matmul": lambda tf, g: tf.sparse_tensor_dense_matmul(g.sparse, g.some(COLUMNS, 32)),
        "to_dense": lambda tf, g: tf.sparse_tensor_to_dense(g.sparse),
        "softmax": lambda tf, g: tf.sparse_softmax(g.sparse).values,
        "reduce_sum": lambda tf, g: tf.sparse_reduce_sum(g.sparse, 1),
        "reorder": lambda tf, g: (
            tf.sparse_reorder(
                tf.SparseTensor(g(g.places[::-1]), g(g.unit[g.normal > 1]), g.sparse.dense_shape)
            ).values
        ),
        "segment_mean": lambda tf, g: tf.sparse_segment_mean(g.x, g(g.ids), g(np.sort(g.ids))),
        "embedding_lookup_sparse": lambda tf, g: tf.nn.embedding_lookup_sparse(
            g.x,
            tf.SparseTensor(
                g(np.stack([np.sort(g.ids), np.arange(IDS)], 1).astype(np.int64)),
                g(g.ids.astype(np.int64)),
                g(np.array([ROWS, IDS])),
            ),
            None,
            combiner="mean",
        ),
    },
    "matrices": {
        "matmul": lambda tf, g: tf.matmul(g.x, g(g.other), transpose_b=True),
        "matmul of a stack": lambda tf, g: tf.matmul(g.some(32, 16, 24), g.some(32, 24, 16)),
        "einsum": lambda tf, g: tf.einsum("bij,bkj->bik", g.some(8, 16, 32), g.some(8, 16, 32)),
        "tensordot": lambda tf, g: tf.tensordot(g.some(4, 16, 32), g.some(32, 24), 1),
        "matrix_inverse": lambda tf, g: tf.matrix_inverse(
            g(g.normal[:64, :64] + 8 * np.eye(64, dtype=np.float32))
        ),
        "cholesky": lambda tf, g: tf.cholesky(
            g(g.normal @ g.normal.T + np.eye(ROWS, dtype=np.float32))
        ),
        "determinant": lambda tf, g: tf.matrix_determinant(g(g.normal[:32, :32])),
        "fft": lambda tf, g: tf.abs(tf.fft(g(g.normal.astype(np.complex64)))),
        "rfft": lambda tf, g: tf.abs(tf.spectral.rfft(g.x)),
    },
    "networks": {
        "bias_add": lambda tf, g: tf.nn.bias_add(g.images, g.some(16)),
        "conv2d": lambda tf, g: tf.nn.conv2d(g.images, g.some(3, 3, 16, 16), ONES, SAME),
        "conv2d of points": lambda tf, g: tf.nn.conv2d(g.images, g.some(1, 1, 16, 16), ONES, SAME),
        "conv2d with strides": lambda tf, g: tf.nn.conv2d(
            g.images, g.some(3, 3, 16, 16), TWOS, SAME
        ),
        "conv1d": lambda tf, g: tf.nn.conv1d(g.some(8, 50, 32), g.some(3, 32, 32), 1, SAME),
        "conv3d": lambda tf, g: tf.nn.conv3d(
            g.some(2, 8, 16, 16, 4), g.some(3, 3, 3, 4, 8), [1] * 5, SAME
        ),
        "depthwise_conv2d": lambda tf, g: tf.nn.depthwise_conv2d(
            g.images, g.some(3, 3, 16, 1), ONES, SAME
        ),
        "max_pool": lambda tf, g: tf.nn.max_pool(g.images, TWOS, TWOS, SAME),
        "max_pool of 3": lambda tf, g: tf.nn.max_pool(g.images, [1, 3, 3, 1], TWOS, SAME),
        "avg_pool": lambda tf, g: tf.nn.avg_pool(g.images, TWOS, TWOS, SAME),
        "lrn": lambda tf, g: tf.nn.lrn(g.images),
        "fused_batch_norm": lambda tf, g: tf.nn.fused_batch_norm(g.images, g.some(16), g.some(16))[
            0
        ],
        "softmax": lambda tf, g: tf.nn.softmax(g.x),
        "log_softmax": lambda tf, g: tf.nn.log_softmax(g.x),
        "l2_normalize": lambda tf, g: tf.nn.l2_normalize(g.x, 1),
        "softmax_cross_entropy": lambda tf, g: tf.nn.softmax_cross_entropy_with_logits(
            labels=g(g.unit), logits=g.x
        ),
        "sparse_softmax_cross_entropy": lambda tf, g: (
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=g(g.ids[:ROWS]), logits=g.x)
        ),
        "sigmoid_cross_entropy": lambda tf, g: tf.nn.sigmoid_cross_entropy_with_logits(
            labels=g(g.unit), logits=g.x
        ),
    },
    "gradients": {
        name: _gradient(build)
        for name, build in {
            "relu": lambda tf, g, x: tf.nn.relu(x),
            "tanh": lambda tf, g, x: tf.tanh(x),
            "softmax": lambda tf, g, x: tf.square(tf.nn.softmax(x)),
            "reduce_max": lambda tf, g, x: tf.reduce_max(x, 1),
            "maximum": lambda tf, g, x: tf.maximum(x, 0.1),
            "abs": lambda tf, g, x: tf.abs(x),
            "gather": lambda tf, g, x: tf.gather(x, g(g.ids)) * 1.0,
            "top_k": lambda tf, g, x: tf.nn.top_k(x, 5)[0],
            "lgamma": lambda tf, g, x: tf.lgamma(x * x + 1),
            "reduce_prod": lambda tf, g, x: tf.reduce_prod(x, 1),
            "strided slice": lambda tf, g, x: x[::2, 1:],
            "where": lambda tf, g, x: tf.where(x > 0, x, x * 2),
        }.items()
    }
    | {
        name: _gradient(build, images=True)
        for name, build in {
            "conv2d": lambda tf, g, x: tf.nn.conv2d(x, g.some(3, 3, 16, 16), ONES, SAME),
            "depthwise_conv2d": lambda tf, g, x: tf.nn.depthwise_conv2d(
                x, g.some(3, 3, 16, 1), ONES, SAME
            ),
            "max_pool": lambda tf, g, x: tf.nn.max_pool(x, TWOS, TWOS, SAME),
            "max_pool of 3": lambda tf, g, x: tf.nn.max_pool(x, [1, 3, 3, 1], TWOS, SAME),
            "avg_pool": lambda tf, g, x: tf.nn.avg_pool(x, TWOS, TWOS, SAME),
            "fused_batch_norm": lambda tf, g, x: tf.square(
                tf.nn.fused_batch_norm(x, g.some(16), g.some(16))[0]
            ),
            "resize_bilinear": lambda tf, g, x: tf.image.resize_bilinear(x, [48, 48]),
            "lrn": lambda tf, g, x: tf.nn.lrn(x),
        }.items()
    },
    RANDOM: {
        "random_uniform": lambda tf, g: tf.random_uniform([ROWS, COLUMNS]),
        "random_normal": lambda tf, g: tf.random_normal([ROWS, COLUMNS]),
        "truncated_normal": lambda tf, g: tf.truncated_normal([ROWS, COLUMNS]),
        "random integers": lambda tf, g: tf.random_uniform([ROWS, COLUMNS], 0, 10, tf.int32),
        "dropout": lambda tf, g: tf.nn.dropout(g.x, rate=0.3),
        "random_shuffle": lambda tf, g: tf.random_shuffle(g.x),
        "multinomial": lambda tf, g: tf.multinomial(g.x, 3),
        "random_gamma": lambda tf, g: tf.random_gamma([2000], 2.0),
        "random_poisson": lambda tf, g: tf.random_poisson(3.0, [2000]),
    },
    "images": {
        "resize_bilinear": lambda tf, g: tf.image.resize_bilinear(g.images, [48, 48]),
        "resize_nearest_neighbor": lambda tf, g: tf.image.resize_nearest_neighbor(
            g.images, [64, 64]
        ),
        "resize_bicubic": lambda tf, g: tf.image.resize_bicubic(g.images, [48, 48]),
        "crop_and_resize": lambda tf, g: tf.image.crop_and_resize(
            g.images, g.some(8, 4), g(np.zeros(8, np.int32)), [14, 14]
        ),
        "extract_image_patches": lambda tf, g: tf.extract_image_patches(
            g.images, [1, 3, 3, 1], ONES, ONES, SAME
        ),
        "rgb_to_hsv": lambda tf, g: tf.image.rgb_to_hsv(g(g.image[..., :3])),
        "non_max_suppression": lambda tf, g: tf.image.non_max_suppression(
            g(np.concatenate([g.unit[:, :2], g.unit[:, :2] + np.float32(0.2)], 1)),
            g(g.unit[:, 5]),
            50,
        ),
    },
    "sequences": {
        "ctc_loss": lambda tf, g: tf.nn.ctc_loss(
            tf.SparseTensor(
                g(np.argwhere(np.ones((8, 5)))),
                g((np.arange(40) % 18).astype(np.int32)),
                g(np.array([8, 5])),
            ),
            g.some(40, 8, 20),
            g(np.full(8, 40, np.int32)),
        ),
        "ctc_greedy_decoder": lambda tf, g: (
            tf.nn.ctc_greedy_decoder(g.some(40, 8, 20), g(np.full(8, 40, np.int32)))[0][0].values
        ),
        "map_fn": lambda tf, g: tf.map_fn(lambda row: row * 2 + 1, g.x),
        "scan": lambda tf, g: tf.scan(lambda total, row: total * 0.9 + row, g.x),
        "edit_distance": lambda tf, g: tf.edit_distance(
            *(
                tf.SparseTensor(
                    g(np.argwhere(np.ones((16, 10)))),
                    g(np.tile(np.arange(start, start + 10), 16)),
                    g(np.array([16, 10])),
                )
                for start in (0, 1)
            )
        ),
    },
    "strings": {
        "string_to_hash_bucket_fast": lambda tf, g: tf.string_to_hash_bucket_fast(g.words(), 100),
        "string_join": lambda tf, g: tf.strings.length(tf.string_join([g.words(), g.words()])),
        "as_string": lambda tf, g: tf.strings.length(tf.as_string(g(g.whole[:4]))),
        "string_to_number": lambda tf, g: tf.string_to_number(g.words(b"%d")),
        "string_split": lambda tf, g: tf.strings.length(tf.string_split(g.words(b"a b %d")).values),
        "regex_replace": lambda tf, g: tf.strings.length(tf.regex_replace(g.words(), "o", "0")),
        "substr": lambda tf, g: tf.strings.length(tf.substr(g.words(), 1, 2)),
        "decode_raw": lambda tf, g: tf.decode_raw(g.words(b"%064d"), tf.uint8),
        "decode_csv": lambda tf, g: tf.decode_csv(g.words(b"%d,2.5,abc"), [[0], [0.0], [""]])[1],
    },
}


def operation(frontend: str, family: str, name: str) -> Workload:
    """One operation, interpreted, of which a step fetches the first element."""
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        result = tf.reshape(FAMILIES[family][name](tf, Inputs(tf)), [-1])
        config = tf.ConfigProto()
        config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.OFF
        session = tf.Session(config=config)
        session.run(tf.global_variables_initializer())
        step, checked = session.make_callable(result[:1]), session.make_callable(result[:CHECKED])
    values = [] if family == RANDOM else [float(value) for value in checked()]

    def run(iterations: int) -> None:
        for _ in range(iterations):
            step()

    return Workload(run, facts=lambda: {"values": values})
