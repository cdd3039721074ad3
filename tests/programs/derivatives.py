"""Gradients of composed expressions, of gradients, and of what stops them."""

from __future__ import annotations

from typing import Any

from tests.programs.program import op, values

X = values(3, 4)
W = values(4, 2, seed=1)
POINT = values(3, low=0.2, high=1.5, seed=2)


def _second(tf: Any, x: Any) -> list[Any]:
    y = tf.reduce_sum(tf.sin(x) * tf.exp(x))
    first = tf.gradients(y, x)[0]
    second = tf.gradients(first, x)[0]
    return [y, first, second, tf.gradients(second, x)[0]]


def _hessian(tf: Any, x: Any) -> list[Any]:
    return tf.hessians(tf.reduce_sum(x * x * x) + x[0] * x[1] * x[2], x)


def _stopped(tf: Any, x: Any, w: Any) -> list[Any]:
    hidden = tf.matmul(x, w)
    y = tf.reduce_sum(tf.stop_gradient(hidden) * hidden)
    return [*tf.gradients(y, [x, w]), *tf.gradients(hidden * hidden, w, stop_gradients=[x])]


def _weighted(tf: Any, x: Any) -> list[Any]:
    ys = [x * x, tf.exp(x)]
    return tf.gradients(ys, x, grad_ys=[tf.ones_like(x) * 3.0, x])


def _shared(tf: Any, x: Any, w: Any) -> list[Any]:
    """A value that is used many times gathers its gradient from all of them."""
    h = tf.tanh(tf.matmul(x, w))
    total = tf.add_n([h * h, h, tf.sigmoid(h), tf.concat([h[:1], h[1:]], 0)])
    return tf.gradients(tf.reduce_mean(total), [x, w])


def _gradient_penalty(tf: Any, x: Any, w: Any) -> list[Any]:
    score = tf.reduce_sum(tf.nn.softplus(tf.matmul(x, w)))
    slope = tf.gradients(score, x)[0]
    return tf.gradients(tf.reduce_sum(tf.square(tf.norm(slope, axis=1) - 1.0)), w)


PROGRAMS = {
    "up_to_third": op(_second, X, gradient=False),
    "hessian": op(_hessian, POINT, gradient=False),
    "stop_gradient": op(_stopped, X, W, gradient=False),
    "grad_ys": op(_weighted, X, gradient=False),
    "many_uses": op(_shared, X, W, gradient=False),
    "gradient_penalty": op(_gradient_penalty, X, W, gradient=False),
    "of_softmax_twice": op(lambda tf, x: tf.gradients(tf.nn.log_softmax(x)[:, 0], x)[0], X),
    "of_division_twice": op(lambda tf, x: tf.gradients(1.0 / x, x)[0], POINT),
    "of_pow_twice": op(lambda tf, x: tf.gradients(x**2.5, x)[0], POINT),
    "of_mean_twice": op(lambda tf, x: tf.gradients(tf.reduce_mean(x * x, 1), x)[0], X),
    "of_gather_twice": op(
        lambda tf, x: tf.convert_to_tensor(tf.gradients(tf.gather(x, [0, 2, 0]) ** 3, x)[0]), X
    ),
}
