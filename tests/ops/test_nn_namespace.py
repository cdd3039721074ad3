"""``tf.nn`` is what TensorFlow 1's programs expect of it."""

from types import ModuleType

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both


@pytest.mark.parametrize("name", tf.nn.__all__)
def test_every_name_is_documented(name):
    found = getattr(tf.nn, name)
    assert callable(found) or isinstance(found, ModuleType)
    assert found.__doc__


def test_shared_with_other_namespaces():
    assert tf.nn.sigmoid is tf.sigmoid
    assert tf.nn.tanh is tf.tanh
    assert tf.nn.softmax is tf.math.softmax
    assert tf.nn.in_top_k is tf.math.in_top_k
    assert tf.log_sigmoid is tf.math.log_sigmoid


def test_a_small_network():
    """A layer of everything, differentiated, is finite in both tiers."""
    x = tf.placeholder(tf.float32, [None, 4, 4, 2])
    h, _, _ = tf.nn.fused_batch_norm(x, tf.ones([2]), tf.zeros([2]))
    h = tf.nn.crelu(tf.nn.lrn(h))
    h = tf.nn.relu_layer(tf.reshape(h, [-1, 64]), tf.ones([64, 8]) / 64, tf.zeros([8]))
    h = tf.nn.l2_normalize(tf.nn.dropout(tf.nn.elu(h), rate=0.5, seed=1), 1)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1, 2], logits=h)
    images = np.random.default_rng(0).normal(size=(3, 4, 4, 2))
    value, grad = run_both([loss, tf.gradients(loss, x)[0]], {x: images}, rtol=1e-4, atol=1e-5)
    assert value.shape == (3,)
    assert grad.shape == (3, 4, 4, 2)
    assert np.isfinite(grad).all()
