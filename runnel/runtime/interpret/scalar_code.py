"""Writes operations on single numbers as Python expressions over NumPy's scalars, without kernels.

An operator between two NumPy scalars of one type gives that type, wraps around as arrays do (with
warnings off, as they are while a step runs), and takes a tenth of the time of a ufunc.
"""

from __future__ import annotations

from collections.abc import Sequence

from runnel.graph import dtypes
from runnel.passes.program.program import Node, ValueInfo

_NUMBERS = frozenset(
    {
        dtypes.float32,
        dtypes.float64,
        dtypes.int8,
        dtypes.int16,
        dtypes.int32,
        dtypes.int64,
        dtypes.uint8,
        dtypes.uint16,
        dtypes.uint32,
        dtypes.uint64,
    }
)
_BINARY = {
    "AddV2": "+",
    "Add": "+",
    "Sub": "-",
    "Mul": "*",
    "Less": "<",
    "LessEqual": "<=",
    "Greater": ">",
    "GreaterEqual": ">=",
    "Equal": "==",
    "NotEqual": "!=",
}
_LOGIC = {"LogicalAnd": "&", "LogicalOr": "|"}


def is_number(info: ValueInfo) -> bool:
    """True for a value that NumPy has a scalar for, and of which there is one."""
    return info.dims == () and (info.dtype in _NUMBERS or info.dtype is dtypes.bool_)


def expression(node: Node, names: Sequence[str], infos: Sequence[ValueInfo]) -> str | None:
    """Python for what ``node`` computes of the inputs named, if all are single numbers."""
    kind = node.op_def.name
    if not all(info.dims == () for info in infos):
        return None
    if kind in _BINARY and infos[0].dtype in _NUMBERS:
        return f"{names[0]} {_BINARY[kind]} {names[1]}"
    if kind in _LOGIC:
        return f"{names[0]} {_LOGIC[kind]} {names[1]}"
    if kind == "LogicalNot":
        return f"~{names[0]}"
    if kind in ("Neg", "Square") and infos[0].dtype in _NUMBERS:
        return f"-{names[0]}" if kind == "Neg" else f"{names[0]} * {names[0]}"
    return None
