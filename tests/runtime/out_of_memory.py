"""Running out of an accelerator's memory: what the error says, what the session is worth then.

``python -m tests.runtime.out_of_memory`` does it on the accelerator that JAX finds, with a small
share of its memory, so that filling it is quick. ``test_accelerator_memory.py`` runs that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

SHARE = "0.03"


def main() -> None:
    """Tries every way to run out; prints what each was told."""
    os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = SHARE
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "true"
    import jax

    device = jax.devices()[0]
    if device.platform == "cpu":
        sys.exit("this needs an accelerator; JAX has found none")
    kind = "TPU" if device.platform == "tpu" else "GPU"
    attempts = Attempts(kind, int(device.memory_stats()["bytes_limit"]))
    for attempt in (
        attempts.never_fits,
        attempts.fails_behind_a_host_operation,
        attempts.fits_no_longer,
    ):
        print(f"{attempt.__name__}: {attempt()}")
    print("the session stayed usable each time")


@dataclass(frozen=True)
class Attempts:
    """Ways to run out of the memory of a device; each gives what the error said."""

    kind: str
    limit: int
    """How much memory there is, in bytes."""

    def never_fits(self) -> str:
        """A step that needs more than there is: nothing of it may have happened."""
        import runnel as tf

        with tf.Graph().as_default(), tf.device(f"/{self.kind}:0"):
            x = tf.placeholder(tf.float32, [])
            v = tf.Variable([1.0, 2.0], name="v")
            update = v.assign_add(tf.fill([2], tf.reduce_max(_large(tf, x, self.limit * 3 // 2))))
            with tf.Session() as sess:
                sess.run(v.initializer)
                message = self._refused(tf, lambda: sess.run(update, {x: 1.0}))
                np.testing.assert_array_equal(sess.run(v), [1.0, 2.0])
                np.testing.assert_array_equal(sess.run(v.assign_add([1.0, 1.0])), [2.0, 3.0])
        return message

    def fails_behind_a_host_operation(self) -> str:
        """In the middle of a step: a first part has run when a second does not fit."""
        import runnel as tf

        with tf.Graph().as_default(), tf.device(f"/{self.kind}:0"):
            x = tf.placeholder(tf.float32, [])
            v = tf.Variable(1.0, name="v")
            first = v.assign_add(x)
            with tf.device("/cpu:0"):
                between = tf.py_func(lambda value: value, [first], tf.float32)
            between.set_shape([])
            last = tf.reduce_max(_large(tf, between, self.limit * 3 // 2))
            with tf.Session() as sess:
                sess.run(v.initializer)
                message = self._refused(tf, lambda: sess.run(last, {x: 1.0}))
                assert sess.run(v) == 2.0, "what the first part stored stays"
                assert sess.run(first, {x: 1.0}) == 3.0
        return message

    def fits_no_longer(self) -> str:
        """A step that has run before, when another session has taken the memory meanwhile."""
        import runnel as tf

        with tf.Graph().as_default(), tf.device(f"/{self.kind}:0"):
            x = tf.placeholder(tf.float32, [])
            v = tf.Variable(1.0, name="v")
            update = v.assign_add(tf.reduce_max(_large(tf, x, self.limit * 2 // 5)))
            taken = tf.Variable(tf.zeros([self.limit * 3 // 4 // 4]), name="taken")
            with tf.Session() as sess:
                sess.run(v.initializer)
                assert sess.run(update, {x: 1.0}) == 2.0
                with tf.Session() as other:
                    other.run(taken.initializer)
                    message = self._refused(tf, lambda: sess.run(update, {x: 1.0}))
                    if "lost their values" in message:
                        assert "'v'" in message, message
                    else:
                        assert sess.run(v) == 2.0
                    assert sess.run(tf.constant(2.0) * x, {x: 3.0}) == 6.0
                sess.run(v.initializer)
                assert sess.run(update, {x: 1.0}) == 2.0
        return message

    def _refused(self, tf: Any, step: Callable[[], Any]) -> str:
        try:
            step()
        except tf.errors.ResourceExhaustedError as error:
            assert error.op is not None
            for part in (f"{error.op.name!r}", self.kind, "smaller batch", "tf.explain_placement"):
                assert part in error.message, (part, error.message)
            return str(error.message)
        raise AssertionError("the step ran, although there cannot be room for it")


def _large(tf: Any, x: Any, size: int) -> Any:
    """A value of ``size`` bytes that must be made: a scatter to places that the data say."""
    places = tf.cast(tf.stack([x, x + 1.0, x + 2.0]), tf.int32)
    return tf.scatter_nd(places[:, tf.newaxis], tf.stack([x, x, x]), [size // 4])


if __name__ == "__main__":
    main()
