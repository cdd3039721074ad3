"""Seeds of random operations: one for the graph, one for each operation.

Both together choose an operation's random stream. A graph seed alone is enough to make a program
repeatable: the operations without a seed of their own take 0, 1, 2... in the order of construction.
"""

from __future__ import annotations

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


def get_seed(op_seed: int | None) -> tuple[int, int] | tuple[None, None]:
    """The two seeds of a random operation made now whose own seed is ``op_seed``.

    ``(None, None)`` when neither the graph nor the operation has one: the operation then
    draws different numbers in each session.
    """
    graph = get_default_graph()
    if graph.seed is None:
        if op_seed is None:
            return None, None
        seeds = DEFAULT_GRAPH_SEED, op_seed % _MAX_INT32
    else:
        if op_seed is None:
            with graph._lock:
                op_seed = graph._seeds_given
                graph._seeds_given += 1
        seeds = graph.seed % _MAX_INT32, op_seed % _MAX_INT32
    # An operation with seeds (0, 0) is one without seeds, so a user's zeros become these.
    return (0, _MAX_INT32) if seeds == (0, 0) else seeds
