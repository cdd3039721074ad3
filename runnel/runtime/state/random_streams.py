"""The positions of random ops: both seeds and the count of earlier draws give the bits."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from runnel.graph.operation import Operation
from runnel.ops.sampling.philox import PhiloxStream
from runnel.runtime.state.cell import Cell


class RandomStreams:
    """A cell for each random op, by name and seeds; its value is the op's :class:`PhiloxStream`.

    A step replaces the position when it has succeeded, so a failed step draws nothing.
    """

    def __init__(self) -> None:
        # Guards _cells: plans that share an op may be prepared at once, by several threads.
        self._lock = threading.Lock()
        self._cells: dict[tuple[str, int, int], Cell] = {}

    def cell(self, op: Operation) -> Cell:
        """The cell of ``op``, at the op's first position when it is new."""
        seeds = op.attrs.get("seed", 0), op.attrs.get("seed2", 0)
        with self._lock:
            cell = self._cells.get((op.name, *seeds))
            if cell is None:
                cell = self._cells[op.name, *seeds] = Cell()
                cell.value = _first_position(*seeds)
            return cell

    def restart(self) -> None:
        """Puts every stream where it was at first; one without seeds, anywhere."""
        with self._lock:
            for (_, *seeds), cell in self._cells.items():
                cell.value = _first_position(*seeds)

    def positions(self) -> dict[str, tuple[int, int]]:
        """Where each stream is: by the op's seeds and name, a key and a counter."""
        with self._lock:
            return {
                f"{seed} {seed2} {name}": (cell.value.key, cell.value.counter)
                for (name, seed, seed2), cell in self._cells.items()
            }

    def move_to(self, positions: dict[str, tuple[int, int]]) -> None:
        """Has streams go on from where :meth:`positions` said that they were."""
        for text, (key, counter) in positions.items():
            seed, seed2, name = text.split(" ", 2)
            with self._lock:
                cell = self._cells.setdefault((name, int(seed), int(seed2)), Cell())
                cell.value = PhiloxStream(key, counter)


def _first_position(seed: int, seed2: int) -> PhiloxStream:
    if seed == 0 and seed2 == 0:  # the user gave none: different numbers in each task
        seed, seed2 = (int.from_bytes(os.urandom(8), "little") for _ in range(2))
    return PhiloxStream.from_seeds(seed, seed2)


def skipped(words: Any, count: Any) -> Any:
    """The words of a stream ``count`` counters further, while it is traced."""
    import jax.numpy as jnp

    low = words[2].astype(np.uint64) | words[3].astype(np.uint64) << np.uint64(32)
    moved = low + jnp.asarray(count).astype(np.uint64)
    carry = (moved < low).astype(np.uint32)
    third = words[4] + carry
    fourth = words[5] + (third < carry).astype(np.uint32)
    halves = [moved.astype(np.uint32), (moved >> np.uint64(32)).astype(np.uint32)]
    return jnp.stack([words[0], words[1], *halves, third, fourth])
