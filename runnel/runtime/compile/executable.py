"""A compiled segment: how it is compiled, and all that a call of it must know."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from runnel.passes.program.program import Node


class CompileOptions(NamedTuple):
    """How a segment is compiled."""

    platform: str
    is_whole: bool = True
    """Whether it is a whole step."""
    is_alone: bool = True
    """Whether its step has no other segments: if it has, a call asks earlier whether to go on."""
    is_chained: bool = False
    """Whether it takes the outcome of the step before: where that has failed, it fails too."""
    tensor_float_32: bool = True
    """If not, an accelerator multiplies float32 with all its bits."""


@dataclass(slots=True)
class Executable:
    """A compiled segment for one signature."""

    donated: list[int]
    """Positions in ``code.loads`` of the variables that are updated in place, and not packed."""
    kept: list[int]
    call: Any = None
    """The jitted function itself: a built-in, so that an interrupt cannot come between the moment
    at which the donated buffers are gone and the moment at which the new ones are returned.
    (The first call is Python code of JAX.)"""
    in_place: list[bool] = field(default_factory=list)
    """For each of the packs, and of ``code.stores`` that are in none, whether it is updated in
    place."""
    constant_outputs: dict[int, np.ndarray] = field(default_factory=dict)
    """Outputs that do not depend on data, by position."""
    drawn: list[int | None] = field(default_factory=list)
    """For each of ``code.streams``, the counters by which a call advances it; None where that
    depends on data (a loop's iterations): those come after the outputs."""
    checked: list[Node] = field(default_factory=list)
    argument_inputs: list[int] = field(default_factory=list)
    """Positions of the segment's inputs that are passed (the others are specialised)."""
    constants: list[Any] = field(default_factory=list)
    """Large constants, kept on the device and passed in every call."""
    work: tuple[Any, ...] = ()
    """Shapes and types of the buffers that a call is lent and gives back."""
    seconds: float = 0.0
    """How long a call runs, as estimated."""
    asks: bool = False
    """True when a call asks whether to go on: the number of its run is its last argument."""
    asks_natively: bool = False
    """If it does not, a call that asks is Python code of JAX."""
    needed_bytes: int = 0
    """The memory that a call takes beyond its arguments."""
    lower: Any = None
    """Makes the program that XLA was given, to be shown."""
    compiled: Any = None
    """What XLA has made of it, to be shown."""
    packs: list[list[int]] = field(default_factory=list)
    """Positions in ``code.loads`` of variables whose values are the rows of one array."""
    flat_packs: list[tuple[list[int], tuple[tuple[int, ...], ...]]] = field(default_factory=list)
    """The same of variables whose values lie behind one another in one array, and their shapes."""
    saved: int = 0
    """The instructions that were not compiled, being repetitions of others."""
    is_chained: bool = False
    """True when the outcome of the step before is the last argument but for the run's number."""

    @property
    def all_packs(self) -> list[tuple[list[int], tuple[tuple[int, ...], ...] | None]]:
        """The packs in the order in which a call takes and gives them; flat ones have shapes."""
        return [*((positions, None) for positions in self.packs), *self.flat_packs]
