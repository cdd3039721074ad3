"""Shapes that come from values and that no machine can hold: an error with the op, no abort.

XLA ends the process when the bytes of an array do not fit 64 bits, so a wrong number in a shape
must be found before. A failure of these tests may show as a crash of the test process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, session

HUGE = 2**40
Fed = Callable[..., Any]


def _in_a_branch(fed: Fed) -> Any:
    dims, taken = fed([HUGE, HUGE]), fed(True, tf.bool)
    return tf.cond(taken, lambda: tf.reduce_sum(tf.fill(dims, 1.0)), lambda: 0.0)


def _in_a_loop(fed: Fed) -> Any:
    dims, count = fed([HUGE, HUGE]), fed(3, tf.int32)

    def body(i: Any, total: Any) -> Any:
        return i + 1, total + tf.reduce_sum(tf.broadcast_to(tf.cast(i, tf.float32), dims))

    return tf.while_loop(lambda i, _: i < count, body, [0, 0.0])[1]


CASES: dict[str, Callable[[Fed], Any]] = {
    "fill": lambda fed: tf.fill(fed([HUGE, HUGE]), 1.0),
    "fill to known dimensions": lambda fed: tf.fill(np.array([HUGE, HUGE]), fed(1.0, tf.float32)),
    "fill, bytes do not fit 64 bits": lambda fed: tf.fill(fed([2**31, 2**31]), 1.0),
    "fill, an empty dimension": lambda fed: tf.fill(fed([HUGE, HUGE, 0]), 1.0),
    "fill, one dimension": lambda fed: tf.fill(fed([2**63 - 1]), 1.0),
    "fill with strings": lambda fed: tf.fill(fed([HUGE, HUGE]), "a"),
    "fill, summed": lambda fed: tf.reduce_sum(tf.fill(fed([HUGE, HUGE]), 1.0)),
    "fill in a branch": _in_a_branch,
    "broadcast_to in a loop": _in_a_loop,
    "zeros": lambda fed: tf.zeros(fed([HUGE, HUGE])),
    "ones": lambda fed: tf.ones(fed([HUGE, HUGE])),
    "a variable's initial value": lambda fed: (
        tf.Variable(tf.zeros(fed([HUGE, HUGE])), validate_shape=False).initializer
    ),
    "broadcast_to": lambda fed: tf.broadcast_to(fed(1.0, tf.float32), fed([HUGE, HUGE])),
    "broadcast_to, summed": lambda fed: tf.reduce_sum(
        tf.broadcast_to(fed(1.0, tf.float32), fed([HUGE, 2**5]))
    ),
    "meshgrid": lambda fed: tf.meshgrid(*[fed(np.zeros(2**22), tf.float32)] * 3),
    "tile": lambda fed: tf.tile(fed([1.0, 2.0], tf.float32), fed([2**63 - 1])),
    "tile, two dimensions": lambda fed: tf.tile(fed([[1.0, 2.0]], tf.float32), fed([HUGE, HUGE])),
    "pad": lambda fed: tf.pad(fed([1.0, 2.0], tf.float32), fed([[2**62, 2**62]])),
    "pad, two dimensions": lambda fed: tf.pad(
        fed([[1.0, 2.0]], tf.float32), fed([[HUGE, HUGE], [HUGE, HUGE]])
    ),
    "range": lambda fed: tf.range(fed(2**60)),
    "range over all integers": lambda fed: tf.range(fed(-(2**63)), fed(2**63 - 1), fed(1)),
    "range of floats": lambda fed: tf.range(
        fed(0.0, tf.float32), fed(1e30, tf.float32), fed(1e-30, tf.float32)
    ),
    "linspace": lambda fed: tf.linspace(fed(0.0, tf.float32), 1.0, fed(2**60)),
    "sequence_mask": lambda fed: tf.sequence_mask(fed([1, 2]), fed(2**60)),
    "sequence_mask, longest": lambda fed: tf.sequence_mask(fed([1, 2**60])),
    "eye": lambda fed: tf.eye(3, batch_shape=fed([2**31 - 1, 2**31 - 1], tf.int32)),
    "random_normal": lambda fed: tf.random_normal(fed([HUGE, HUGE])),
    "random_uniform": lambda fed: tf.random_uniform(fed([HUGE, HUGE])),
    "random_uniform of integers": lambda fed: tf.random_uniform(fed([HUGE, HUGE]), 0, 10, tf.int32),
    "truncated_normal": lambda fed: tf.truncated_normal(fed([HUGE, HUGE])),
    "random_gamma": lambda fed: tf.random_gamma(fed([2**30] * 3, tf.int32), 1.0),
    "random_poisson": lambda fed: tf.random_poisson(1.0, fed([2**30] * 3, tf.int32)),
    "stateless_normal": lambda fed: tf.random.stateless_normal(fed([HUGE, HUGE]), [1, 2]),
    "multinomial": lambda fed: tf.multinomial(
        fed(np.ones((2**20, 2)), tf.float32), fed(2**31 - 1, tf.int32)
    ),
    "reshape": lambda fed: tf.reshape(fed([1.0, 2.0], tf.float32), fed([HUGE, HUGE])),
    "reshape, a product that wraps to 0": lambda fed: tf.reshape(
        fed([], tf.float32), fed([2**32, 2**32])
    ),
    "reshape, empty": lambda fed: tf.reshape(fed([], tf.float32), fed([2**62, 4, -1])),
    "scatter_nd": lambda fed: tf.scatter_nd(fed([[0, 0]]), [1.0], fed([HUGE, HUGE])),
    "unsorted_segment_sum": lambda fed: tf.unsorted_segment_sum(
        fed(np.ones((1, 2**10)), tf.float32), fed([0]), fed(2**60)
    ),
    "segment_sum": lambda fed: tf.segment_sum(fed([1.0, 2.0], tf.float32), fed([0, 2**60])),
    "space_to_batch_nd": lambda fed: tf.space_to_batch_nd(
        fed(np.zeros((1, 2, 2, 1)), tf.float32), [2, 2], fed([[2 * HUGE, 2 * HUGE]] * 2)
    ),
    "conv2d_transpose": lambda fed: tf.nn.conv2d_transpose(
        fed(np.zeros((1, 2, 2, 1)), tf.float32),
        np.zeros((1, 1, 1, 1), np.float32),
        fed([1, 2**30, 2**30, 1], tf.int32),
        [1, 2**29, 2**29, 1],
    ),
}


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
@pytest.mark.parametrize("case", CASES)
def test_a_shape_that_no_machine_can_hold_is_an_error_of_the_op(case, level):
    feeds: dict[Any, Any] = {}

    def fed(value: Any, dtype: Any = tf.int64) -> Any:
        placeholder = tf.placeholder(dtype, np.shape(value))
        feeds[placeholder] = value
        return placeholder

    fetched = CASES[case](fed)
    with session(level) as sess:
        with pytest.raises(
            (tf.errors.InvalidArgumentError, tf.errors.ResourceExhaustedError)
        ) as caught:
            sess.run(fetched, feeds)
        assert caught.value.op is not None
        assert repr(caught.value.op.name) in str(caught.value)
        assert __file__ in str(caught.value)
        assert sess.run(tf.fill([2], 1.0)).tolist() == [1.0, 1.0]


def test_an_array_inside_a_kernel_that_no_machine_can_hold_is_an_error():
    op_def = tf.register_op("HugeInside", inputs="x: float", outputs="y: float")

    @op_def.kernel
    def _(xp, x):
        if xp is np:
            return x
        return xp.broadcast_to(x, (HUGE, HUGE)).sum()

    x = tf.placeholder(tf.float32, [])
    y = op_def(x)
    too_large = pytest.raises(tf.errors.InvalidArgumentError, match="any machine can address")
    with session(COMPILED) as sess, too_large:
        sess.run(y, {x: 1.0})


def test_running_out_of_memory_while_a_fetch_is_copied_is_an_error_of_the_step(monkeypatch):
    from runnel.runtime.schedule.plan import StepPlan

    def fails(*_: Any) -> Any:
        raise MemoryError("Unable to allocate 1 TiB")

    x = tf.constant(1.0)
    with session(INTERPRETED) as sess:
        with monkeypatch.context() as patch:
            patch.setattr(StepPlan, "run", fails)
            with pytest.raises(tf.errors.ResourceExhaustedError, match="1 TiB"):
                sess.run(x)
        assert sess.run(x) == 1.0
