"""``tf.layers`` against TensorFlow: variables, names, values, gradients."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")
pytest.importorskip("tf_keras")

from tests.conformance.same_network import compare_network

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("shape", [(2, 3, 4), (None, 3, 4), (None, None, 4)])
def test_dense(shape):
    def build(tf, x):
        y = tf.layers.dense(x, 5, activation=tf.nn.relu)
        y = tf.layers.dense(y, 3, use_bias=False)
        return tf.layers.dense(tf.reshape(y, [-1, 3]), 2, activation="sigmoid", name="last")

    compare_network(build, X, shapes=[shape])


def test_names_and_sharing():
    def build(tf, x):
        layer = tf.layers.Dense(4, name="named")
        other = tf.layers.Dense(4)
        outputs = [layer(x), layer(x * 2.0)]
        with tf.variable_scope("outer"):
            outputs += [layer(x), other(x), tf.layers.dense(x, 4)]
        outputs.append(tf.layers.dense(x, 4, name="a"))
        outputs.append(tf.layers.dense(x, 4, name="a", reuse=True))
        with tf.variable_scope("outer", reuse=tf.AUTO_REUSE):
            outputs += [tf.layers.dense(x, 4, name="b"), tf.layers.dense(x, 4, name="b")]
        assert [layer.name, other.name] == ["named", "dense_1"]
        return outputs

    compare_network(build, X[0])


def test_regularization():
    def build(tf, x):
        tf.layers.dense(
            x,
            4,
            kernel_regularizer=lambda w: tf.reduce_sum(w * w),
            activity_regularizer=lambda y: tf.reduce_sum(y * y),
        )
        losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        assert len(losses) == 2
        return sorted(losses, key=lambda loss: loss.name)

    compare_network(build, X[0])


def test_a_layer_of_ones_own():
    def build(tf, x):
        class Gate(tf.layers.Layer):
            def build(self, input_shape):
                size = int(input_shape[-1])
                self.w = self.add_weight("w", [size])
                self.frozen = self.add_variable("frozen", [size], trainable=False)
                self.built = True

            def call(self, inputs):
                return inputs * tf.sigmoid(self.w) + self.frozen

        with tf.variable_scope("scope", use_resource=True):
            gate = Gate()
            return [gate(x), gate(gate(x)), Gate()(x)]

    compare_network(build, X)
