"""Follows integers through what takes vectors apart and packs them: where does each come from?"""

from __future__ import annotations

from runnel.passes.program.program import Node
from runnel.passes.rewrites.substitution import Rewriter

Element = int | tuple[int, int]
"""An integer that is known, or a value and a place in it (0 for a scalar)."""

_MOST_ELEMENTS = 16
_OF_ONE = ("Prod", "Sum", "Max", "Min")
"""Reductions that give the only element of a vector of one."""


def elements(rewriter: Rewriter, value: int) -> list[Element] | None:
    """What the vector ``value`` consists of; None if its length is not known.

    ``[shape[0], shape[1]]`` consists of the same as ``shape`` does, if that has two elements.
    """
    array = rewriter.constant(value)
    if array is not None:
        if array.ndim != 1 or array.size > _MOST_ELEMENTS or array.dtype.kind not in "iu":
            return None
        return [int(number) for number in array]
    dims = rewriter.dims(value)
    if dims is None or len(dims) != 1 or dims[0] is None or dims[0] > _MOST_ELEMENTS:
        return None
    own: list[Element] = [(value, place) for place in range(dims[0])]
    node = rewriter.producer(value, "Shape", "Pack", "StridedSlice", "Identity")
    if node is None or node.control:
        return own
    if node.op_def.name == "Shape":
        sizes = rewriter.dims(node.inputs[0]) or ()
        known = [(value, place) if size is None else size for place, size in enumerate(sizes)]
        return known if len(known) == len(own) else own
    if node.op_def.name == "Pack":
        return [element(rewriter, part) for part in node.inputs]
    if node.op_def.name == "Identity":
        return elements(rewriter, node.inputs[0])
    taken = sliced(rewriter, node)
    return own if taken is None or len(taken) != len(own) else taken


def element(rewriter: Rewriter, value: int) -> Element:
    """Where the scalar ``value`` comes from."""
    own: Element = (value, 0)
    array = rewriter.constant(value)
    if array is not None and array.ndim == 0 and array.dtype.kind in "iu":
        return int(array)
    node = rewriter.producer(value, "Gather", "GatherV2", "StridedSlice", *_OF_ONE)
    if node is None or node.control or rewriter.dims(value) != ():
        return own
    if node.op_def.name == "StridedSlice":
        taken = sliced(rewriter, node)
        return own if taken is None or len(taken) != 1 else taken[0]
    whole = elements(rewriter, node.inputs[0])
    if whole is None:
        return own
    if node.op_def.name in _OF_ONE:
        return whole[0] if len(whole) == 1 else own
    index = rewriter.constant(node.inputs[1])
    if index is None or not 0 <= index < len(whole):
        return own
    return whole[int(index)]


def sliced(rewriter: Rewriter, node: Node) -> list[Element] | None:
    """What the slice ``node`` takes of a vector; one element where it takes a single number."""
    if node.attrs["ellipsis_mask"] or node.attrs["new_axis_mask"]:
        return None
    whole = elements(rewriter, node.inputs[0])
    bounds = [rewriter.constant(bound) for bound in node.inputs[1:]]
    if whole is None or any(bound is None or bound.size != 1 for bound in bounds):
        return None
    begin, end, stride = (int(bound.item()) for bound in bounds if bound is not None)
    if node.attrs["shrink_axis_mask"]:
        return [whole[begin]] if -len(whole) <= begin < len(whole) else None
    if stride == 0:
        return None
    first = None if node.attrs["begin_mask"] else begin
    return whole[first : None if node.attrs["end_mask"] else end : stride]
