"""What neural networks are made of, convolutions apart."""

from __future__ import annotations

import numpy as np

from tests.programs.program import integers, op, values

X = values(4, 5)
LARGE = values(4, 5, low=-60, high=60, seed=1)
LABELS = np.array([0, 3, 4, 1], np.int32)
SOFT = np.exp(values(4, 5, seed=2))
SOFT = (SOFT / SOFT.sum(1, keepdims=True)).astype(np.float32)
TARGETS = integers(4, 5, high=2, seed=3).astype(np.float32)
IMAGE = values(2, 4, 4, 3, seed=4)
CHANNEL = values(3, low=0.5, high=1.5, seed=5)
SHIFT = values(3, seed=6)
WEIGHTS = values(5, 3, seed=7)

PROGRAMS = {
    "relu": op(lambda tf, x: [tf.nn.relu(x), tf.nn.relu6(x * 5), tf.nn.leaky_relu(x)], X),
    "elu_selu": op(lambda tf, x: [tf.nn.elu(x), tf.nn.selu(x)], X),
    "softplus_softsign": op(lambda tf, x: [tf.nn.softplus(x), tf.nn.softsign(x)], LARGE),
    "swish": op(lambda tf, x: tf.nn.swish(x), X),
    "crelu_log_sigmoid": op(lambda tf, x: [tf.nn.crelu(x), tf.log_sigmoid(x)], X),
    "softmax": op(lambda tf, x: [tf.nn.softmax(x), tf.nn.softmax(x, axis=0)], X),
    "softmax_large": op(lambda tf, x: [tf.nn.softmax(x), tf.nn.log_softmax(x)], LARGE),
    "log_of_softmax": op(lambda tf, x: tf.log(tf.nn.softmax(x)), X),
    "softmax_cross_entropy": op(
        lambda tf, x, y: tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x), X, SOFT
    ),
    "softmax_cross_entropy_v1": op(
        lambda tf, x, y: tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=x), LARGE, SOFT
    ),
    "sparse_softmax_cross_entropy": op(
        lambda tf, x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
        LARGE,
        LABELS,
    ),
    "sigmoid_cross_entropy": op(
        lambda tf, x, y: tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=x),
        LARGE,
        TARGETS,
    ),
    "weighted_cross_entropy": op(
        lambda tf, x, y: tf.nn.weighted_cross_entropy_with_logits(
            labels=y, logits=x, pos_weight=2.0
        ),
        X,
        TARGETS,
    ),
    "log_poisson_loss": op(
        lambda tf, x, y: tf.nn.log_poisson_loss(y, x, compute_full_loss=True), X, SOFT * 4
    ),
    "bias_add": op(lambda tf, x, b: tf.nn.bias_add(x, b), IMAGE, SHIFT),
    "bias_add_channels_first": op(
        lambda tf, x, b: tf.nn.bias_add(x, b, data_format="NCHW"),
        IMAGE.transpose(0, 3, 1, 2),
        SHIFT,
    ),
    "xw_plus_b": op(
        lambda tf, x, w, b: [tf.nn.xw_plus_b(x, w, b), tf.nn.relu_layer(x, w, b)],
        X,
        WEIGHTS,
        SHIFT,
    ),
    "l2": op(lambda tf, x: [tf.nn.l2_loss(x), tf.nn.l2_normalize(x, 1)], X),
    "batch_normalization": op(
        lambda tf, x, scale, shift: tf.nn.batch_normalization(
            x, *tf.nn.moments(x, [0, 1, 2]), shift, scale, 1e-3
        ),
        IMAGE,
        CHANNEL,
        SHIFT,
        rtol=1e-4,
        atol=1e-5,
    ),
    "fused_batch_norm": op(
        lambda tf, x, scale, shift: tf.nn.fused_batch_norm(x, scale, shift)[:3],
        IMAGE,
        CHANNEL,
        SHIFT,
        rtol=1e-4,
        atol=2e-5,
    ),
    "fused_batch_norm_inference": op(
        lambda tf, x, scale, shift: tf.nn.fused_batch_norm(
            x, scale, shift, mean=shift, variance=scale, is_training=False
        )[0],
        IMAGE,
        CHANNEL,
        SHIFT,
        rtol=1e-4,
        atol=1e-5,
    ),
    "local_response_normalization": op(
        lambda tf, x: tf.nn.local_response_normalization(x, 1, bias=1.0, alpha=0.5, beta=0.75),
        IMAGE,
        rtol=1e-4,
        atol=1e-5,
    ),
    "zero_fraction": op(lambda tf, x: tf.nn.zero_fraction(tf.nn.relu(x)), X, gradient=False),
    "dropout": op(lambda tf, x: tf.nn.dropout(x, keep_prob=0.6, seed=5), X),
}
