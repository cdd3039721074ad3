"""The words of the programs beyond the library's own, over the library that runs them.

``a`` is a matrix of three columns whose shape may not be known; what keeps its shape gives a matrix
of the same, but not always one whose shape is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

WEIGHTS = np.array([[0.3, -0.5, 0.2], [0.7, 0.1, -0.4], [-0.6, 0.4, 0.5]])


class Vocabulary:
    """The words, for a library that builds graphs."""

    def __init__(self, tf: Any) -> None:
        self.tf = tf

    def names(self) -> dict[str, Any]:
        """What a script finds under which name."""
        words = [name for name in dir(self) if not name.startswith("_") and name != "names"]
        return {word: getattr(self, word) for word in words} | {"np": np, "WEIGHTS": WEIGHTS}

    # The same shape -------------------------------------------------------------------------

    def like(self, value: Any, model: Any) -> Any:
        """``value``, whose shape is known to be that of ``model``."""
        value = self.tf.identity(value)
        value.set_shape(model.shape)
        return value

    def rotated(self, a: Any) -> Any:
        return self.tf.concat([a[1:], a[:1]], 0)

    def shifted(self, a: Any) -> Any:
        tf = self.tf
        return tf.pad(tf.slice(a, [0, 1], [tf.shape(a)[0], 2]), [[0, 0], [1, 0]])

    def cut(self, a: Any) -> Any:
        tf = self.tf
        return tf.pad(a[:, : tf.shape(a)[1] - 1], [[0, 0], [0, 1]])

    def reshaped(self, a: Any) -> Any:
        tf = self.tf
        return tf.reshape(tf.reshape(a, [-1]), tf.stack([tf.size(a) // 3, 3]))

    def counted(self, a: Any) -> Any:
        """Reshaped to a number of rows that is counted in the data."""
        tf = self.tf
        count = tf.shape(tf.where(tf.reshape(a, [-1]) < 1e6))[0]
        return tf.reshape(a, tf.stack([count // 3, 3]))

    def kept(self, a: Any) -> Any:
        """All rows, but that is not known before they are looked at."""
        tf = self.tf
        return tf.boolean_mask(a, tf.reshape(tf.reduce_all(a < 1e6, 1), [-1]))

    def regrouped(self, a: Any, mask: Any) -> Any:
        tf = self.tf
        return tf.concat(tf.dynamic_partition(a, tf.cast(mask, tf.int32), 2), 0)

    def stitched(self, a: Any, mask: Any) -> Any:
        tf = self.tf
        groups = tf.cast(mask, tf.int32)
        places = tf.dynamic_partition(tf.range(tf.size(groups)), groups, 2)
        parts = tf.dynamic_partition(a, groups, 2)
        return tf.dynamic_stitch(places, [tf.sin(parts[0]), parts[1]])

    def by_group(self, a: Any) -> Any:
        """The sum of the rows whose first number is about the same, for each row."""
        tf = self.tf
        rounded = tf.floor(tf.reshape(tf.gather(a, [0], axis=1), [-1]) * 1.5 + 0.37)
        values, group = tf.unique(tf.cast(rounded, tf.int32))
        return tf.gather(tf.unsorted_segment_sum(a, group, tf.size(values)), group)

    def on_host(self, a: Any) -> Any:
        return self.tf.py_func(np.cos, [a], self.tf.float64) * a

    def products(self, a: Any) -> Any:
        tf = self.tf
        return a * tf.reduce_prod(a, 1, keepdims=True)

    def sorted_rows(self, a: Any) -> Any:
        return self.tf.nn.top_k(a, 3).values

    def spread(self, a: Any) -> Any:
        tf = self.tf
        return tf.tile(tf.reduce_sum(a, 0, keepdims=True), [tf.shape(a)[0], 1])

    def times(self, pair: Any) -> Any:
        return pair[0] * self.tf.cos(pair[1])

    # Loops ----------------------------------------------------------------------------------

    def step(self, a: Any, i: Any) -> Any:
        """``a`` in the iteration ``i``."""
        return a + 0.1 * self.tf.cast(i, self.tf.float64)

    def written(self, count: Any, body: Callable[[Any, Any], Any], start: Any) -> Any:
        """A loop that writes every value to an array and reads rows of a table."""
        tf = self.tf
        table = tf.stack([start, -start])
        outputs = tf.TensorArray(tf.float64, size=count + 1).write(0, start)

        def one(i: Any, a: Any, out: Any) -> Any:
            value = body(tf.cast(i, tf.float64), a)
            value = self.like(value * tf.gather(table, i % 2), a)
            return i + 1, value, out.write(i + 1, value)

        _, last, outputs = tf.while_loop(lambda i, *_: i < count, one, [0, start, outputs])
        return tf.reduce_sum(outputs.stack(), 0) + last

    # Another number of rows -----------------------------------------------------------------

    def chosen(self, a: Any, mask: Any) -> Any:
        """The rows where ``mask`` is true, by their numbers."""
        tf = self.tf
        return tf.gather(a, tf.reshape(tf.where(mask), [-1]))

    def pairs(self, a: Any) -> Any:
        """The sums of two rows each."""
        tf = self.tf
        return tf.segment_sum(a, tf.range(tf.shape(a)[0]) // 2)

    def squares(self, a: Any) -> Any:
        """The products of its columns, whatever the number of its rows."""
        return self.tf.matmul(a, a, transpose_a=True)

    # State ----------------------------------------------------------------------------------

    def bump(self, variable: Any, value: Any, after: Any) -> Any:
        """Adds to ``variable`` once ``after`` is there; ``value`` with what it then is."""
        tf = self.tf
        amount = 0.1 * tf.reduce_sum(tf.tanh(value)) + 0.0 * tf.reduce_sum(after)
        update = variable.assign_add(tf.fill([3], amount))
        with tf.control_dependencies([update]):
            return value + variable.read_value()

    def take(self, queue: Any, after: Any) -> Any:
        """The next element of ``queue``, once ``after`` is there."""
        tf = self.tf
        with tf.control_dependencies([tf.identity(after)]):
            return queue.dequeue()

    # Places and derivatives -----------------------------------------------------------------

    def on(self, device: str, function: Callable[[], Any]) -> Any:
        with self.tf.device(device):
            return function()

    def with_slope(self, function: Callable[[Any], Any], x: Any) -> tuple[Any, Callable[[], Any]]:
        """``function(x)``, and what gives its gradient by ``x`` where it is called."""
        tf = self.tf
        x = tf.identity(x)
        value = function(x)

        def gradient() -> Any:
            zero = tf.UnconnectedGradients.ZERO
            (found,) = tf.gradients(value, x, unconnected_gradients=zero)
            return tf.convert_to_tensor(found)

        return value, gradient


class EagerVocabulary(Vocabulary):
    """The words for TensorFlow run eagerly, on one device."""

    def on(self, device: str, function: Callable[[], Any]) -> Any:
        return function()

    def with_slope(self, function: Callable[[Any], Any], x: Any) -> tuple[Any, Callable[[], Any]]:
        tf = self.tf
        x = tf.identity(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = function(x)
        zero = tf.UnconnectedGradients.ZERO
        gradient = tf.convert_to_tensor(tape.gradient(value, x, unconnected_gradients=zero))
        return value, lambda: gradient
