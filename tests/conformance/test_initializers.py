"""Initializers: the same numbers from the same seeds as TensorFlow's, of the same operations."""

import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as tensorflow
from tensorflow.python.framework import random_seed

import runnel
from tests.conformance.same_program import compare_graphs, compare_values

SEED = 7
MADE = {
    "zeros": lambda tf: tf.zeros_initializer(),
    "ones": lambda tf: tf.ones_initializer(),
    "constant": lambda tf: tf.constant_initializer(2.5),
    "random_uniform": lambda tf: tf.random_uniform_initializer(-1.0, 3.0, seed=SEED),
    "random_normal": lambda tf: tf.random_normal_initializer(1.0, 3.0, seed=SEED),
    "truncated_normal": lambda tf: tf.truncated_normal_initializer(1.0, 3.0, seed=SEED),
    "uniform_unit_scaling": lambda tf: tf.uniform_unit_scaling_initializer(1.43, seed=SEED),
    "variance_scaling": lambda tf: tf.variance_scaling_initializer(seed=SEED),
    "variance_scaling_out": lambda tf: tf.variance_scaling_initializer(
        2.0, "fan_out", "untruncated_normal", seed=SEED
    ),
    "variance_scaling_avg": lambda tf: tf.variance_scaling_initializer(
        0.5, "fan_avg", "uniform", seed=SEED
    ),
    "glorot_uniform": lambda tf: tf.glorot_uniform_initializer(seed=SEED),
    "glorot_normal": lambda tf: tf.glorot_normal_initializer(seed=SEED),
    "lecun_normal": lambda tf: tf.initializers.lecun_normal(seed=SEED),
    "lecun_uniform": lambda tf: tf.initializers.lecun_uniform(seed=SEED),
    "he_normal": lambda tf: tf.initializers.he_normal(seed=SEED),
    "he_uniform": lambda tf: tf.initializers.he_uniform(seed=SEED),
}
MATRICES = {
    "orthogonal": lambda tf: tf.orthogonal_initializer(gain=1.5, seed=SEED),
    "identity": lambda tf: tf.initializers.identity(gain=1.5),
}
SHAPES = [[], [5], [4, 3], [3, 2, 4, 5]]


@pytest.mark.parametrize("name", MADE)
def test_same_graph(name):
    compare_graphs(lambda tf: tf.get_variable("v", [4, 3], initializer=MADE[name](tf)))


@pytest.mark.parametrize("name", MADE)
def test_same_values(name):
    def program(tf):
        initializer = MADE[name](tf)
        single = [initializer(shape) for shape in SHAPES]
        return [single + [initializer(shape, dtype=tf.float64) for shape in SHAPES]]

    compare_values(program, rtol=1e-5)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("shape", [[4, 4], [6, 3], [3, 6]])
def test_same_matrices(name, shape):
    compare_values(lambda tf: [MATRICES[name](tf)(shape)], rtol=1e-4, atol=1e-5)


def test_same_orthogonal_tensor():
    compare_values(lambda tf: [MATRICES["orthogonal"](tf)([2, 3, 4])], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [n for n in [*MADE, *MATRICES]])
def test_same_config(name):
    make = (MADE | MATRICES)[name]
    ours, theirs = make(runnel), make(tensorflow)
    assert ours.get_config() == theirs.get_config()
    again = type(ours).from_config(ours.get_config())
    assert again.get_config() == ours.get_config()


def parts(tf):
    def part(initializer):
        return tf.get_variable(
            f"v{len(tf.global_variables())}",
            [5, 4],
            initializer=initializer,
            partitioner=tf.fixed_size_partitioner(2),
        )

    return [
        [tf.convert_to_tensor(part(MADE[name](tf))) for name in ("he_normal", "glorot_uniform")],
        tf.convert_to_tensor(part(tf.uniform_unit_scaling_initializer(seed=SEED))),
    ]


def test_parts_have_the_scale_of_the_whole():
    compare_values(parts)


def test_seeds_of_operations():
    """With a seed for both, and for the operation only."""
    for graph_seed in (None, 5):
        for op_seed in (0, 3, 2**40, -1):
            pair = []
            for tf in (runnel, tensorflow):
                with tf.Graph().as_default():
                    tf.set_random_seed(graph_seed)
                    pair.append(tf.get_seed(op_seed))
            assert pair[0] == pair[1], (graph_seed, op_seed)
    for tf in (runnel, tensorflow):
        with tf.Graph().as_default():
            assert tf.get_seed(None) == (None, None)
            tf.set_random_seed(0)
            assert tf.get_seed(0) == (0, 2**31 - 1)


MISTAKES = [
    lambda tf: tf.constant_initializer(object()),
    lambda tf: tf.variance_scaling_initializer(scale=-1.0),
    lambda tf: tf.variance_scaling_initializer(mode="fan"),
    lambda tf: tf.variance_scaling_initializer(distribution="cauchy"),
    lambda tf: tf.random_normal_initializer(dtype=tf.int32),
    lambda tf: tf.orthogonal_initializer()([3]),
    lambda tf: tf.initializers.identity()([3]),
    lambda tf: tf.constant_initializer([1.0, 2.0], verify_shape=True)([3]),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes_raise_the_same_kind_of_error(number):
    with tensorflow.Graph().as_default(), pytest.raises((ValueError, TypeError)) as theirs:
        MISTAKES[number](tensorflow)
    with pytest.raises(theirs.type):
        MISTAKES[number](runnel)


def test_default_initializers_and_the_seed_of_the_graph(monkeypatch):
    get_seed = random_seed.get_seed

    def numbering_operations(op_seed):
        """As TensorFlow 1.15 does it; TensorFlow 2 numbers random operations alone."""
        graph = tensorflow.get_default_graph()
        return get_seed(len(graph.get_operations()) if op_seed is None else op_seed)

    monkeypatch.setattr(random_seed, "get_seed", numbering_operations)

    def program(tf):
        tf.set_random_seed(3)
        v = tf.get_variable("v", [30, 4])
        w = tf.get_variable("w", [3], dtype=tf.float64)
        n = tf.get_variable("n", [3], dtype=tf.int64)
        with tf.variable_scope("s", initializer=tf.random_normal_initializer()):
            u = tf.get_variable("u", [5])
        return [[v, w, n, u]]

    compare_values(program, rtol=1e-5)
