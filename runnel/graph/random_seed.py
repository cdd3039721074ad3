"""Seeds of random operations: one for the graph, one for each operation.

Both together choose an operation's random stream. A graph seed alone makes a program repeatable: an
operation without its own seed takes the number of operations made before it, as in TensorFlow 1.15.
Where a function of runnel makes more or fewer operations than TensorFlow's, it corrects that number
(:func:`skip_op_ids`), so the same program draws the same numbers. The exception are operations made
after gradients, since runnel's gradients have other operations than TensorFlow's.
"""

from __future__ import annotations

from typing import Any

from runnel.graph.graph import get_default_graph

DEFAULT_GRAPH_SEED = 87654321
_MAX_INT32 = 2**31 - 1


def set_random_seed(seed: int | None) -> None:
    """Sets the seed of the default graph; operations made from now on use it.

    Example:
        >>> tf.set_random_seed(1)
        >>> tf.get_seed(7)
        (1, 7)
    """
    get_default_graph().seed = seed


def skip_op_ids(count: int) -> None:
    """Counts ``count`` operations that TensorFlow 1.15 makes here and we do not (or the reverse).

    Example:
        >>> tf.set_random_seed(1)
        >>> before = tf.get_seed(None)[1]
        >>> skip_op_ids(3)
        >>> tf.get_seed(None)[1] - before
        3
    """
    get_default_graph()._skipped_ids += count


def get_seed(op_seed: Any) -> tuple[int, Any] | tuple[None, None]:
    """The two seeds of a random operation made now whose own seed is ``op_seed``.

    A seed that is a tensor gives a second one that is. ``(None, None)`` when neither the graph nor
    the operation has one: the operation then draws different numbers in each session.
    """
    graph = get_default_graph()
    if graph.seed is None:
        if op_seed is None:
            return None, None
        seeds = DEFAULT_GRAPH_SEED, op_seed % _MAX_INT32
    else:
        if op_seed is None:
            op_seed = graph._last_id
        seeds = graph.seed % _MAX_INT32, op_seed % _MAX_INT32
    # An operation with seeds (0, 0) is one without seeds, so a user's zeros become these.
    return (0, _MAX_INT32) if seeds == (0, 0) else seeds
