"""The static shapes that loop variables keep from iteration to iteration."""

from __future__ import annotations

from typing import Any

from runnel.control_flow.structure import is_nested
from runnel.graph.operation import Tensor
from runnel.graph.shapes import Dims, as_dims, format_dims


def invariants_of(loop_vars: Any, flat: list[Tensor], given: Any) -> list[Dims]:
    """The static shape that each loop variable has in every iteration."""
    if given is None:
        return [tensor.dims for tensor in flat]
    shapes = _flatten_shapes(loop_vars, given)
    found: list[Dims] = []
    for tensor, shape in zip(flat, shapes, strict=True):
        dims = as_dims(shape)
        if not _is_less_specific(dims, tensor.dims):
            raise ValueError(
                f"The shape invariant specified for {tensor.name} is not compatible with the "
                f"initial shape of the loop variable: it enters the loop with shape "
                f"{format_dims(tensor.dims)}, but the specified shape invariant is "
                f"{format_dims(dims)}."
            )
        found.append(dims)
    return found


def _flatten_shapes(structure: Any, shapes: Any) -> list[Any]:
    """The shapes at the places of the leaves of ``structure``."""
    if not is_nested(structure):
        return [shapes]
    if isinstance(structure, dict):
        if not isinstance(shapes, dict) or set(shapes) != set(structure):
            raise ValueError("shape_invariants must have the same structure as loop_vars")
        pairs = [(structure[key], shapes[key]) for key in sorted(structure)]
    else:
        if not isinstance(shapes, list | tuple) or len(shapes) != len(structure):
            raise ValueError("shape_invariants must have the same structure as loop_vars")
        pairs = list(zip(structure, shapes, strict=True))
    return [shape for part, given in pairs for shape in _flatten_shapes(part, given)]


def _is_less_specific(general: Dims, special: Dims) -> bool:
    """True when every tensor of shape ``special`` is also of shape ``general``."""
    if general is None:
        return True
    if special is None or len(special) != len(general):
        return False
    return all(g is None or g == s for g, s in zip(general, special, strict=True))


def require_invariant(merged: Tensor, following: Tensor) -> None:
    """An error when a loop variable's next value does not fit its shape."""
    if not _is_less_specific(merged.dims, following.dims):
        source = merged.op.inputs[0].op.inputs[0]
        raise ValueError(
            f"The loop variable {source.name!r} enters the loop with shape "
            f"{format_dims(merged.dims)}, but has shape {format_dims(following.dims)} after one "
            "iteration. To let the shape vary, give a less specific one in the `shape_invariants` "
            "of tf.while_loop; to assert that it does not, use `set_shape` on the body's result."
        )
