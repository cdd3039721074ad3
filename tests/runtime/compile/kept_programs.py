"""Programs whose executables are kept: run as a process of its own, it tells what it computed.

``python -m tests.runtime.compile.kept_programs NAME`` prints JSON: the values, as hexadecimal text
so that nothing is rounded, how many executables were compiled and loaded, and how many segments
were traced.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import runnel as tf

Found = list[Any]
_CONFIG = tf.ConfigProto(device_count={"CPU": 2})
_CONFIG.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1


def _drawn(*shape: int) -> np.ndarray:
    return np.random.RandomState(sum(shape)).randn(*shape).astype(np.float32) * 0.1


def _trained(loss: tf.Tensor, feed: dict[tf.Tensor, np.ndarray]) -> Found:
    """The losses of some steps with Adam, and the variables after them."""
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    with tf.Session(config=_CONFIG) as sess:
        sess.run(tf.global_variables_initializer())
        losses = [sess.run([loss, train], feed)[0] for _ in range(3)]
        return [*losses, *sess.run(tf.trainable_variables())]


def classifier() -> Found:
    """Products, a check of its data (the labels), random numbers (dropout)."""
    x, hidden = tf.placeholder(tf.float32, [None, 12]), tf.Variable(_drawn(12, 8))
    labels = tf.placeholder(tf.int32, [None])
    logits = tf.nn.dropout(tf.nn.relu(x @ hidden), 0.5, seed=3) @ tf.Variable(_drawn(8, 5))
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return _trained(tf.reduce_mean(loss), {x: _drawn(6, 12), labels: np.arange(6) % 5})


def convolutional() -> Found:
    """Foreign functions, where oneDNN is installed."""
    x = tf.placeholder(tf.float32, [None, 12, 12, 3])
    y = tf.nn.conv2d(x, tf.Variable(_drawn(3, 3, 3, 8)), [1, 1, 1, 1], "SAME")
    y = tf.nn.max_pool(tf.nn.relu(y), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    return _trained(tf.reduce_mean(tf.square(y)), {x: _drawn(16, 12, 12, 3)})


def recurrent() -> Found:
    """A loop and its gradient, with buffers that are lent from step to step."""
    x = tf.placeholder(tf.float32, [None, 40, 16])
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(32), x, dtype=tf.float32)
    return _trained(tf.reduce_mean(tf.square(outputs)), {x: _drawn(64, 40, 16)})


def library_calls() -> Found:
    """What XLA calls libraries for: products of every type, factors, sorting, random numbers."""
    x = tf.placeholder(tf.float32, [6, 6])
    symmetric = x @ tf.transpose(x) + tf.eye(6)
    half = tf.cast(tf.cast(x, tf.bfloat16) @ tf.cast(x, tf.bfloat16), tf.float32)
    whole = tf.cast(x * 100.0, tf.int32)
    fetches = [
        *(tf.cholesky(symmetric), tf.matrix_inverse(symmetric), tf.matrix_determinant(symmetric)),
        *(*tf.qr(x), *tf.nn.top_k(x, 3), tf.argsort(x), half, whole @ whole),
        *(tf.cast(x, tf.float64) @ tf.cast(x, tf.float64), tf.erf(x), tf.lgamma(x + 2.0)),
        *(tf.random_normal([5], seed=1), tf.random_shuffle(tf.range(9), seed=2)),
    ]
    with tf.Session(config=_CONFIG) as sess:
        return sess.run(fetches, {x: _drawn(6, 6)})


def two_devices() -> Found:
    """A segment on each of two devices."""
    x = tf.placeholder(tf.float32, [4, 4])
    with tf.device("/cpu:0"):
        y = tf.tanh(x @ x)
    with tf.device("/cpu:1"):
        z = tf.tanh(y @ y)
    with tf.Session(config=_CONFIG) as sess:
        return [sess.run(z, {x: _drawn(4, 4)})]


def stretches() -> Found:
    """A loop that runs dynamically around what only the host can do."""
    w = tf.Variable(_drawn(8, 8))

    def body(i: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        y = tf.tanh(tf.tanh(x @ w) @ w)
        told = tf.py_func(lambda value: value + 1, [y], tf.float32)
        told.set_shape([8, 8])
        return i + 1, tf.sin(tf.tanh(told @ w) @ w)

    result = tf.while_loop(lambda i, x: i < 3, body, [0, tf.ones([8, 8])])[1]
    with tf.Session(config=_CONFIG) as sess:
        sess.run(w.initializer)
        return [sess.run(result)]


def asking() -> Found:
    """Loops without a known end, which ask whether to go on; and are told to stop."""
    found: Found = []
    limit = tf.placeholder(tf.float64, [])
    total = tf.Variable(0.0, dtype=tf.float64)
    with tf.Session(config=_CONFIG) as sess:
        sess.run(total.initializer)
        counted = tf.while_loop(lambda x: x < limit, lambda x: x + 1.0, [tf.zeros([], tf.float64)])
        # What touches a variable asks by a foreign function, what does not by a callback.
        for fetched in (counted, total.assign_add(counted)):
            found.append(sess.run(fetched, {limit: 3e6}))
            try:
                sess.run(fetched, {limit: np.inf}, tf.RunOptions(timeout_in_ms=300))
            except tf.errors.DeadlineExceededError:
                found.append(sess.run(total))
    return found


def branching() -> Found:
    """Branches that check, draw random numbers and change variables; and what is known before."""
    x, taken = tf.placeholder(tf.float32, [4]), tf.placeholder(tf.bool, [])
    v, shape = tf.Variable(_drawn(4)), tf.shape(x)

    def changed() -> tf.Tensor:
        with tf.control_dependencies([tf.assert_less(tf.reduce_max(x), 3.0)]):
            return v.assign_add(x * tf.random_uniform([4], seed=5))

    result = tf.cond(taken, changed, lambda: v * 2.0)
    found: Found = []
    with tf.Session(config=_CONFIG) as sess:
        sess.run(v.initializer)
        for value, is_taken in ((1.0, True), (9.0, False), (2.0, True), (9.0, True)):
            try:
                fed = {x: np.full([4], value, np.float32), taken: is_taken}
                found += sess.run([result, shape], fed)
            except tf.errors.InvalidArgumentError as error:
                found.append(np.array([error.op.type.encode()]))
            found.append(sess.run(v))
    return found


def repeated() -> Found:
    """Equal layers, whose variables are packed."""
    x = tf.placeholder(tf.float32, [3, 8])
    y = x
    for _ in range(30):
        y = tf.tanh(y @ tf.Variable(_drawn(8, 8)) + tf.Variable(tf.zeros([8])))
    return _trained(tf.reduce_mean(tf.square(y - 1.0)), {x: _drawn(3, 8)})


PROGRAMS: dict[str, Callable[[], Found]] = {
    program.__name__: program
    for program in (
        classifier,
        convolutional,
        recurrent,
        library_calls,
        two_devices,
        stretches,
        asking,
        branching,
        repeated,
    )
}


def main() -> None:
    """Runs the program that the command line names."""
    from runnel.runtime.compile import executable_cache
    from runnel.runtime.compile.segment_program import SegmentProgram

    traced, function = [], SegmentProgram.function

    def counted(program: SegmentProgram) -> Any:
        traced.append(program)
        return function(program)

    SegmentProgram.function = counted  # type: ignore[method-assign]
    tf.set_random_seed(7)
    found = PROGRAMS[sys.argv[1]]()
    values = [np.asarray(value).tobytes().hex() for value in found]
    print(json.dumps({"values": values, "traced": len(traced), **executable_cache.counts}))


if __name__ == "__main__":
    main()
