"""How a checkpoint and the variables of a graph differ, in words."""

from __future__ import annotations

from collections.abc import Iterable

from runnel.checkpoint.reading import open_checkpoint
from runnel.checkpoint.saveable_object import SaveableObject, SaveSpec
from runnel.checkpoint.tensor_slice import parse_shape_and_slice
from runnel.graph import errors

_MOST_LINES = 40
_MOST_NAMES = 10


def difference_to(path: str, saveables: Iterable[SaveableObject], reshape: bool) -> str:
    """How the checkpoint ``path`` and ``saveables`` differ; empty if they do not.

    With ``reshape`` shapes may differ.
    """
    try:
        reader = open_checkpoint(path)
        names = reader.names()
    except errors.OpError:
        return ""
    lines, wanted = [], set()
    for saveable in saveables:
        for spec in saveable.specs:
            wanted.add(spec.name)
            if not reader.has(spec.name):
                text = f"{spec.dtype.name} is not in the checkpoint{saveable.when_missing}"
                lines.append(f"  {spec.name}: {text}")
                continue
            dtype, shape = reader.type_and_shape(spec.name)
            here = None if reshape else _shape_of(saveable, spec)
            if dtype is not spec.dtype or (here is not None and here != list(shape)):
                text = "unknown shape" if here is None else str(here)
                lines.append(
                    f"  {spec.name}: {spec.dtype.name} {text} in the graph, "
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


def _shape_of(saveable: SaveableObject, spec: SaveSpec) -> list[int | None] | None:
    """The shape that ``spec`` has in the checkpoint, if it fits."""
    sliced = parse_shape_and_slice(spec.slice_spec)
    if sliced is not None:
        return list(sliced[0])
    shape = saveable.shape
    return shape.as_list() if shape is not None and shape.is_fully_defined() else None
