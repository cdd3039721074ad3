"""How a checkpoint and the variables of a graph differ, in words."""

from __future__ import annotations

from collections.abc import Iterable

from runnel.checkpoint.reading import open_checkpoint
from runnel.graph import errors
from runnel.train.restored_tensors import RestoredTensor

_MOST_LINES = 40
_MOST_NAMES = 10


def difference_to(path: str, restored: Iterable[RestoredTensor]) -> str:
    """How the checkpoint ``path`` differs from what is ``restored``; empty if it does not."""
    try:
        reader = open_checkpoint(path)
        names = reader.names()
    except errors.OpError:
        return ""
    lines, wanted = [], set()
    for tensor in restored:
        if tensor.name in wanted:
            continue  # another part of it
        wanted.add(tensor.name)
        if not reader.has(tensor.name):
            text = f"{tensor.dtype.name} is not in the checkpoint{tensor.when_missing}"
            lines.append(f"  {tensor.name}: {text}")
            continue
        dtype, shape = reader.type_and_shape(tensor.name)
        if dtype is not tensor.dtype or (tensor.shape is not None and tensor.shape != list(shape)):
            text = "unknown shape" if tensor.shape is None else str(tensor.shape)
            lines.append(
                f"  {tensor.name}: {tensor.dtype.name} {text} in the graph, "
                f"{dtype.name} {list(shape)} in the checkpoint"
            )
    if not lines:
        return ""
    unused = [name for name in names if name not in wanted]
    shown = [
        f"The checkpoint {path!r} does not fit the graph ({len(lines)} of {len(wanted)} "
        "tensors differ):",
        *lines[:_MOST_LINES],
        *([f"  ... and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []),
    ]
    if unused:
        few = ", ".join(unused[:_MOST_NAMES])
        shown.append(
            f"Of the {len(names)} tensors in it, {len(unused)} are not wanted: {few}"
            + (", ..." if len(unused) > _MOST_NAMES else "")
        )
    shown.append("Restore what fits with Saver(var_list=...), a list or {name in it: variable}.")
    return "\n".join(shown)
