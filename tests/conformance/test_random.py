"""Random programs against TensorFlow, live: same seeds, same operations, same numbers."""

import ml_dtypes
import numpy as np
import pytest

import runnel as rn
from tests.both_tiers import COMPILED, INTERPRETED, session

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as tf  # noqa: E402

EXECUTIONS = 3

# Programs over a module `m`, TensorFlow or runnel, which return tensors.
EXACT = {
    "uniform": lambda m: m.random_uniform([3, 50], seed=11),
    "uniform of no elements": lambda m: m.random_uniform([3, 0], seed=11),
    "uniform scalar": lambda m: m.random_uniform([], seed=11),
    "uniform float16": lambda m: m.random_uniform([100], dtype=m.float16, seed=11),
    "uniform bfloat16": lambda m: m.random_uniform([100], dtype=m.bfloat16, seed=11),
    "uniform float64": lambda m: m.random_uniform([100], dtype=m.float64, seed=11),
    "uniform to a power of two": lambda m: m.random_uniform([100], maxval=4, seed=11),
    "integers": lambda m: m.random_uniform([7, 7], -5, 1000, m.int32, seed=11),
    "long integers": lambda m: m.random_uniform([49], 1 << 40, 1 << 50, m.int64, seed=11),
    "shape from tensors": lambda m: m.random_uniform([m.constant(2), 3], seed=11),
    "shape of a tensor": lambda m: m.random_uniform(
        m.shape(m.placeholder_with_default(np.zeros((4, 2)), [None, 2])), seed=11
    ),
    "shuffle": lambda m: m.random_shuffle(m.constant(np.arange(60).reshape(30, 2)), seed=11),
    "shuffle of a row": lambda m: m.random_shuffle(m.constant([[1, 2, 3]]), seed=11),
    "shuffle of strings": lambda m: m.random_shuffle(m.constant(["a", "b", "c"]), seed=11),
    "crop": lambda m: m.random_crop(
        m.constant(np.arange(300).reshape(10, 10, 3)), [4, 5, 3], seed=11
    ),
    "crop of a batch": lambda m: m.random_crop(
        m.placeholder_with_default(np.zeros((3, 5)), [None, 5]), m.constant([2, 5]), seed=11
    ),
    "multinomial": lambda m: m.multinomial(m.constant([[1.0, 2.0], [0.0, -1.0]]), 33, seed=11),
    "categorical": lambda m: m.random.categorical(
        m.constant([[1.0, 2.0, 0.5]]), 20, dtype=m.int32, seed=11
    ),
    "poisson": lambda m: m.random_poisson([0.0, 0.7, 9.0, 40.0], [25], seed=11),
    "poisson of integers": lambda m: m.random_poisson([3.0, 300.0], [25], dtype=m.int32, seed=11),
    "stateless uniform": lambda m: m.random.stateless_uniform([9], [3, -4]),
    "stateless integers": lambda m: m.random.stateless_uniform([9], [3, 4], 0, 99, m.int32),
    "stateless long seed": lambda m: m.random.stateless_uniform(
        [9], np.array([1 << 40, -(1 << 50)])
    ),
    "stateless categorical": lambda m: m.random.stateless_categorical(
        m.constant([[1.0, 2.0, 0.5]]), 20, [5, 6]
    ),
}
# To the rounding of a logarithm, a sine or a scaling.
CLOSE = {
    "uniform between": lambda m: m.random_uniform([99], -2.5, 0.3, seed=11),
    "uniform between tensors": lambda m: m.random_uniform(
        [3, 2], m.constant([0.0, 5.0]), m.constant([1.0, 7.0]), seed=11
    ),
    "normal": lambda m: m.random_normal([99], seed=11),
    "normal scaled": lambda m: m.random_normal([3, 33], 4.0, 0.01, seed=11),
    "normal float64": lambda m: m.random_normal([99], dtype=m.float64, seed=11),
    "normal float16": lambda m: m.random_normal([99], dtype=m.float16, seed=11),
    "truncated normal": lambda m: m.truncated_normal([99], stddev=0.1, seed=11),
    "gamma": lambda m: m.random_gamma([25], [0.0, 0.2, 1.0, 8.0], 3.0, seed=11),
    "stateless normal": lambda m: m.random.stateless_normal([9], [3, 4], 1.0, 2.0),
    "stateless truncated normal": lambda m: m.random.stateless_truncated_normal([9], [3, 4]),
}


def executions(module, build, level=None, graph_seed=None):
    """The operations of a program, and its values in its first executions in a session."""
    with module.Graph().as_default() as graph:
        if graph_seed is not None:
            module.set_random_seed(graph_seed)
        fetches = build(module)
        with module.Session() if module is tf else session(level, graph) as sess:
            return graph.get_operations(), [sess.run(fetches) for _ in range(EXECUTIONS)]


def described(operations):
    """Names, types and seeds of operations."""
    return [
        (op.name, op.type, *(op.get_attr(s) for s in ("seed", "seed2") if s in attributes(op)))
        for op in operations
    ]


def attributes(op):
    return op.attrs if hasattr(op, "attrs") else op.node_def.attr


def assert_close(got, expected):
    assert got.dtype == expected.dtype
    eps = float(ml_dtypes.finfo(expected.dtype).eps)
    # Relative to the terms, not to a sum of them that may be near zero.
    scale = float(np.abs(expected.astype(np.float64)).max())
    np.testing.assert_allclose(
        got.astype(np.float64), expected.astype(np.float64), rtol=8 * eps, atol=8 * eps * scale
    )


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED], ids=["interpreted", "compiled"])
@pytest.mark.parametrize("name", EXACT)
def test_the_same_bits(name, level):
    _, expected = executions(tf, EXACT[name])
    _, got = executions(rn, EXACT[name], level)
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED], ids=["interpreted", "compiled"])
@pytest.mark.parametrize("name", CLOSE)
def test_the_same_numbers(name, level):
    _, expected = executions(tf, CLOSE[name])
    _, got = executions(rn, CLOSE[name], level)
    for ours, theirs in zip(got, expected, strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize(
    "name", [name for name in EXACT | CLOSE if not name.startswith("stateless")]
)
def test_the_same_operations(name):
    build = (EXACT | CLOSE)[name]
    graphs = []
    for module in (tf, rn):
        with module.Graph().as_default() as graph:
            module.set_random_seed(5)
            build(module)
            # How an assertion names its texts is not the matter here.
            ops = [op for op in graph.get_operations() if "/Assert/" not in op.name]
            graphs.append(described(ops))
    assert graphs[1] == graphs[0]


@pytest.mark.parametrize("name", EXACT | CLOSE)
def test_the_same_static_shape(name):
    build = (EXACT | CLOSE)[name]
    with tf.Graph().as_default():
        expected = build(tf).shape.as_list()
    with rn.Graph().as_default():
        assert build(rn).shape.as_list() == expected


def several_ops(m):
    with m.name_scope("layer"):
        weights = m.random_normal([4, 3], seed=1)
    uniform = [m.random_uniform([5], seed=seed) for seed in (2, 0)]
    return weights, *uniform, m.truncated_normal([4], seed=3)


@pytest.mark.parametrize("graph_seed", [0, 1, -7, 2**31, 2**40 + 3])
def test_graph_seeds(graph_seed):
    theirs, expected = executions(tf, several_ops, graph_seed=graph_seed)
    ours, got = executions(rn, several_ops, INTERPRETED, graph_seed)
    assert described(ours) == described(theirs)
    for a, b in zip(got, expected, strict=True):
        for x, y in zip(a, b, strict=True):
            assert_close(x, y)


@pytest.mark.parametrize("graph_seed", [None, 0, 3, 2**31 - 1, -5])
@pytest.mark.parametrize("op_seed", [None, 0, 4, 2**31 - 1, 2**31, -5])
def test_get_seed(graph_seed, op_seed):
    if op_seed is None and graph_seed is not None:
        pytest.skip("TensorFlow 2 numbers random operations; 1.15's way was recorded")
    pairs = []
    for module in (tf, rn):
        with module.Graph().as_default():
            module.set_random_seed(graph_seed)
            module.constant(1.0)
            pairs.append(module.get_seed(op_seed))
    assert pairs[1] == pairs[0]


def dropout(m):
    """Dropout as it is written by hand, after a layer with random weights."""
    x = m.constant(np.linspace(-1, 1, 40).reshape(4, 10), m.float32)
    weights = m.truncated_normal([10, 6], stddev=0.1, seed=1)
    hidden = m.matmul(x, weights)
    keep = m.floor(0.5 + m.random_uniform(m.shape(hidden), seed=2))
    return keep, hidden / 0.5 * keep


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED], ids=["interpreted", "compiled"])
def test_a_dropout_program(level):
    theirs, expected = executions(tf, dropout, graph_seed=42)
    ours, got = executions(rn, dropout, level, 42)
    assert described(ours) == described(theirs)
    for (keep, value), (their_keep, their_value) in zip(got, expected, strict=True):
        np.testing.assert_array_equal(keep, their_keep)
        assert_close(value, their_value)


ERRORS = {
    "shape of rank 2": lambda m: m.random_uniform([[2, 3]]),
    "integers without maxval": lambda m: m.random_uniform([2], dtype=m.int32),
    "uniform of int8": lambda m: m.random_uniform([2], maxval=3, dtype=m.int8),
    "bounds of rank 1": lambda m: m.random_uniform([2], [0, 0], [5, 5], m.int32),
    "logits of rank 1": lambda m: m.multinomial([1.0, 2.0], 3),
    "samples of rank 1": lambda m: m.multinomial([[1.0, 2.0]], [3]),
    "classes as floats": lambda m: m.multinomial([[1.0]], 3, output_dtype=m.float32),
    "stateless seed of three": lambda m: m.random.stateless_uniform([2], [1, 2, 3]),
}


@pytest.mark.parametrize("name", ERRORS)
def test_mistakes_that_both_find_when_building(name):
    for module in (tf, rn):
        with module.Graph().as_default(), pytest.raises((ValueError, TypeError)):
            ERRORS[name](module)


FAILURES = {
    "empty range": lambda m: m.random_uniform([2], 5, 5, m.int32),
    "negative samples": lambda m: m.multinomial([[1.0, 2.0]], m.placeholder_with_default(-1, [])),
    "negative shape": lambda m: m.random_uniform(m.placeholder_with_default([-2], [1])),
    "crop that does not fit": lambda m: m.random_crop(
        m.placeholder_with_default(np.zeros((3, 5)), [None, 5]), [4, 5]
    ),
    "no classes": lambda m: m.multinomial(m.zeros([2, 0]), 3),
}


@pytest.mark.parametrize("name", FAILURES)
def test_mistakes_that_both_find_when_running(name):
    for module, level in ((tf, None), (rn, INTERPRETED), (rn, COMPILED)):
        with pytest.raises(module.errors.InvalidArgumentError):
            executions(module, FAILURES[name], level)
