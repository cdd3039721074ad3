"""Convolutions, pooling, batch normalisation and the rest of ``tf.layers`` against TensorFlow."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")
pytest.importorskip("tf_keras")

from tests.conformance.same_network import compare_network

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

RNG = np.random.default_rng(0)
SEQUENCE = RNG.normal(size=(2, 9, 3)).astype(np.float32)
IMAGE = RNG.normal(size=(2, 8, 7, 3)).astype(np.float32)
VOLUME = RNG.normal(size=(2, 5, 6, 4, 2)).astype(np.float32)
INPUTS = {1: SEQUENCE, 2: IMAGE, 3: VOLUME}
WINDOWS = [
    {"strides": 1, "padding": "valid"},
    {"strides": 2, "padding": "same"},
    {"dilation_rate": 2, "padding": "same"},
]


@pytest.mark.parametrize("options", WINDOWS, ids=str)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions(rank, options):
    if rank == 3 and "dilation_rate" in options:
        pytest.skip("TensorFlow has no such kernel on a CPU")

    def build(tf, x):
        layer = getattr(tf.layers, f"conv{rank}d")
        y = layer(x, 4, 3, activation=tf.nn.relu, **options)
        return [y, layer(y, 2, 1, use_bias=False, name="last")]

    compare_network(build, INPUTS[rank])
    compare_network(build, INPUTS[rank], shapes=[(None, *INPUTS[rank].shape[1:])])


@pytest.mark.parametrize("options", WINDOWS, ids=str)
@pytest.mark.parametrize("rank", [1, 2])
def test_separable_convolutions(rank, options):
    def build(tf, x):
        layer = getattr(tf.layers, f"separable_conv{rank}d")
        return layer(x, 4, 3, depth_multiplier=2, activation="tanh", **options)

    compare_network(build, INPUTS[rank])


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize("rank", [2, 3])
def test_transposed_convolutions(rank, padding):
    def build(tf, x):
        layer = getattr(tf.layers, f"conv{rank}d_transpose")
        return [layer(x, 4, 3, strides=2, padding=padding), layer(x, 3, 2, name="other")]

    compare_network(build, INPUTS[rank])
    space = (None,) * rank
    compare_network(build, INPUTS[rank], shapes=[(None, *space, INPUTS[rank].shape[-1])])


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("window", [(3, 2), (1, 2), (2, 3)], ids=str)
def test_pooling(rank, padding, window):
    def build(tf, x):
        return [
            getattr(tf.layers, f"{kind}_pooling{rank}d")(x, *window, padding=padding)
            for kind in ("max", "average")
        ]

    compare_network(build, INPUTS[rank])


@pytest.mark.parametrize("training", [False, True, "fed"])
@pytest.mark.parametrize("inputs", ["image", "sequence", "row", "first", "both"])
def test_batch_normalization(inputs, training):
    arrays = {"image": IMAGE, "sequence": SEQUENCE, "row": SEQUENCE[:, 0], "first": SEQUENCE}
    x = arrays.get(inputs, IMAGE)
    axis = {"first": 1, "both": [1, 3]}.get(inputs, -1)

    def build(tf, x):
        flag = tf.placeholder_with_default(True, []) if training == "fed" else training
        y = tf.layers.batch_normalization(x, axis=axis, training=flag, momentum=0.9)
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        assert len(updates) == (0 if training is False else 2)
        plain = tf.layers.batch_normalization(
            x, axis=axis, center=False, scale=False, training=flag, name="plain"
        )
        with tf.control_dependencies(updates):
            moved = [v.read_value() for v in tf.global_variables() if "/moving" in v.name]
        return [tf.abs(y), tf.abs(plain), *moved]

    # Variances are loaded as any variable is; those of a running network are positive.
    compare_network(build, np.abs(x) + 0.1, gradients=False, rtol=1e-3)
    if training is True:
        compare_network(lambda tf, x: build(tf, x)[:2], x, rtol=2e-3, atol=1e-4)


def test_dropout_flatten_and_a_whole_network():
    def build(tf, x):
        y = tf.layers.conv2d(x, 4, 3, padding="same", activation=tf.nn.relu)
        y = tf.layers.max_pooling2d(y, 2, 2)
        y = tf.layers.flatten(y)
        y = tf.layers.dropout(y, 0.4)
        return tf.layers.dense(y, 3)

    compare_network(build, IMAGE)
    compare_network(build, IMAGE, shapes=[(None, 8, 7, 3)])


def test_dropout_in_training():
    import runnel as tf

    x = tf.ones([1000])
    flag = tf.placeholder_with_default(True, [])
    y = tf.layers.dropout(x, 0.25, training=flag, seed=1)
    with tf.Session() as sess:
        values = sess.run(y)
        assert set(np.round(np.unique(values), 4)) == {0.0, np.float32(1.3333)}
        assert 0.65 < (values > 0).mean() < 0.85
        assert sess.run(y, {flag: False}).tolist() == [1.0] * 1000
