"""What compiling a segment is expected to cost, learned from the compilations of the process."""

from __future__ import annotations

import os

_SECONDS = 0.03
_SECONDS_PER_NODE = 0.006
"""What XLA takes on a laptop's core: what is expected before anything has been compiled."""
_NODES = 200
"""The nodes that this first guess counts for."""


def cost_of_a_second_beside(cores: int) -> float:
    """What a second of compiling beside the steps costs them, in seconds.

    XLA compiles on several threads: where there are few cores, at the steps' expense.
    """
    return min(1.0, 2 / cores)


def usable_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class CompileCost:
    """The seconds that XLA takes, as a line over the number of nodes.

    >>> cost = CompileCost()
    >>> guess = cost.seconds(100)
    >>> cost.learn(10_000, 500.0)
    >>> guess < 1.0 < cost.seconds(100)
    True
    """

    def __init__(self) -> None:
        # One attribute, so that threads see sums that belong together.
        self._seen = _NODES, _NODES * _SECONDS_PER_NODE

    def seconds(self, nodes: int) -> float:
        """What compiling so many nodes is expected to take."""
        seen, seconds = self._seen
        return _SECONDS + nodes * seconds / seen

    def learn(self, nodes: int, seconds: float) -> None:
        """Takes note of a compilation."""
        seen, before = self._seen
        self._seen = seen + nodes, before + max(seconds - _SECONDS, 0.0)


compile_cost = CompileCost()
"""That of this process."""
