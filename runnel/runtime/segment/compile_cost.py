"""Predicts what compiling a segment costs, from the earlier compilations of the process."""

from __future__ import annotations

import sys

_IMPORT_SECONDS = 1.0
"""What importing JAX takes on a laptop's core. Steps wait meanwhile: it holds Python's lock."""
_SECONDS = 0.03
_SECONDS_PER_NODE = 0.006
"""What XLA takes on a laptop's core: what is expected before anything is known of this machine."""
_LOWERING_SECONDS = 7e-6
"""What lowering a node for the interpreter takes on that core."""
_NODES = 200
"""The nodes that this first guess counts for."""
_ENOUGH_NODES = 50
"""The nodes after which the pace of lowering is known."""


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
        self._is_guess = True
        self._pace = 1.0
        """How long things take here, over what they take on a laptop's core."""

    def seconds(self, nodes: int) -> float:
        """What compiling so many nodes is expected to take."""
        seen, seconds = self._seen
        return _SECONDS + nodes * seconds / seen

    def seconds_to_begin(self) -> float:
        """What comes before the first compilation of a process: JAX is imported."""
        return 0.0 if "jax" in sys.modules else _IMPORT_SECONDS * self._pace

    def guess(self, nodes: int, lowering: float) -> None:
        """Guesses by the seconds of the processor that ``lowering`` so many nodes has taken.

        A core that does this fast compiles fast, too. What has been compiled tells more.
        """
        if self._is_guess and nodes >= _ENOUGH_NODES:
            self._pace = lowering / nodes / _LOWERING_SECONDS
            self._seen = _NODES, _NODES * _SECONDS_PER_NODE * self._pace

    def learn(self, nodes: int, seconds: float) -> None:
        """Takes note of a compilation."""
        self._is_guess = False
        seen, before = self._seen
        self._seen = seen + nodes, before + max(seconds - _SECONDS, 0.0)


compile_cost = CompileCost()
"""That of this process."""
