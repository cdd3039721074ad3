"""What solvers ask of the times and the state that they are given."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import float64
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Tensor
from runnel.ops.checks import Assert
from runnel.ops.comparison import greater
from runnel.ops.reduce_functions import reduce_all


def as_times(given: Any, name: str) -> Tensor:
    """Times, in double precision unless they have a type."""
    times = convert_to_tensor(given, preferred_dtype=float64, name=name)
    if not times.dtype.is_floating:
        raise TypeError(f"`{name}` must have a floating point dtype")
    return times


def as_state(given: Any) -> Tensor:
    """The state to begin with."""
    state = convert_to_tensor(given, name="y0")
    if not (state.dtype.is_floating or state.dtype.is_complex):
        raise TypeError("`y0` must have a floating point or complex floating point dtype")
    return state


def increasing(t: Tensor) -> AbstractContextManager[Any]:
    """Within it, operations run only if the times increase."""
    check = Assert(reduce_all(greater(t[1:], t[:-1])), ["`t` must be monotonic increasing"])
    return get_default_graph().control_dependencies([check])
