"""Algebraic simplification: replaces operations that do nothing, or that a cheaper one can do.

It uses only identities that hold for every value, NaN and infinity included (so x * 0 stays).
"""

from __future__ import annotations

import numpy as np

from runnel.passes.program.program import Node, Program
from runnel.passes.rewrites.substitution import Rewriter, RuleSet
from runnel.passes.rewrites.vector_elements import element, elements, sliced

_rules = RuleSet()


def simplify(program: Program) -> Program:
    """The program with needless operations removed."""
    return _rules.apply(program)


@_rules.rule("Identity", "Snapshot", "StopGradient", "PreventGradient")
def _pass_through(rewriter: Rewriter, node: Node) -> int | None:
    """A node that passes its input on; one with control edges still orders a step."""
    return None if node.control else node.inputs[0]


def _neutral(rewriter: Rewriter, x: int, other: int, node: Node, number: float) -> bool:
    """True when ``other`` is ``number`` everywhere and does not change the shape of ``x``."""
    array = rewriter.constant(other)
    if array is None or array.dtype == object or not np.all(array == number):
        return False
    if number == 0 and rewriter.infos[x].dtype.is_floating and np.signbit(array).any():
        return False  # x - (-0.0) is 0.0 for x = -0.0
    return array.ndim == 0 or rewriter.same_shape(x, node.outputs[0])


@_rules.rule("Mul")
def _times_one(rewriter: Rewriter, node: Node) -> int | None:
    """x * 1 = x."""
    for x, other in (node.inputs, node.inputs[::-1]):
        if _neutral(rewriter, x, other, node, 1):
            return x
    return None


@_rules.rule("RealDiv", "Div", "FloorDiv")
def _over_one(rewriter: Rewriter, node: Node) -> int | None:
    """x / 1 = x."""
    x, other = node.inputs
    if node.op_def.name == "FloorDiv" and not rewriter.infos[x].dtype.is_integer:
        return None
    return x if _neutral(rewriter, x, other, node, 1) else None


@_rules.rule("Sub")
def _minus_zero(rewriter: Rewriter, node: Node) -> int | None:
    """x - 0 = x (x + 0 is not x for x = -0)."""
    x, other = node.inputs
    return x if _neutral(rewriter, x, other, node, 0) else None


@_rules.rule("AddV2", "Add")
def _plus_zero(rewriter: Rewriter, node: Node) -> int | None:
    """x + 0 = x for integers."""
    for x, other in (node.inputs, node.inputs[::-1]):
        if rewriter.infos[x].dtype.is_integer and _neutral(rewriter, x, other, node, 0):
            return x
    return None


@_rules.rule("Pow")
def _small_powers(rewriter: Rewriter, node: Node) -> int | None:
    """x ** 1 and x ** 2 without a general power."""
    x, exponent = node.inputs
    dims = rewriter.dims(x)
    if rewriter.is_scalar_constant(exponent, 1):
        return x
    if rewriter.is_scalar_constant(exponent, 2):
        return rewriter.emit("Square", x, dims=dims)
    return None


@_rules.rule("Neg")
def _double_negation(rewriter: Rewriter, node: Node) -> int | None:
    """-(-x) = x."""
    inner = rewriter.producer(node.inputs[0], "Neg")
    return inner.inputs[0] if inner is not None else None


@_rules.rule("Cast")
def _cast_to_same(rewriter: Rewriter, node: Node) -> int | None:
    """A cast to the type that the value has."""
    same = rewriter.infos[node.inputs[0]].dtype is rewriter.infos[node.outputs[0]].dtype
    return node.inputs[0] if same else None


@_rules.rule("Reshape")
def _reshape(rewriter: Rewriter, node: Node) -> int | None:
    """A reshape to the shape that the value has; of a reshape, only the last one."""
    x, shape = node.inputs
    if rewriter.same_shape(x, node.outputs[0]):
        return x
    if not node.control and _is_shape_of(rewriter, x, shape):
        return x
    inner = rewriter.producer(x, "Reshape")
    if inner is None:
        return None
    return rewriter.emit("Reshape", inner.inputs[0], shape, dims=rewriter.dims(node.outputs[0]))


def _is_shape_of(rewriter: Rewriter, x: int, shape: int) -> bool:
    """True when the vector ``shape`` is known to be the shape of ``x``."""
    dims, wanted = rewriter.dims(x), elements(rewriter, shape)
    if dims is None or wanted is None or len(dims) != len(wanted):
        return False
    for axis, (size, found) in enumerate(zip(dims, wanted, strict=True)):
        if isinstance(found, int):
            if found != size:
                return False
            continue
        source = rewriter.producer(found[0], "Shape")
        if source is None or source.inputs[0] != x or found[1] != axis:
            return False
    return True


@_rules.rule("Pack", "StridedSlice")
def _known_sizes(rewriter: Rewriter, node: Node) -> int | None:
    """A part of a shape that is known, or a shape put together of such parts."""
    (output,) = node.outputs
    dtype, dims = rewriter.infos[output].dtype, rewriter.dims(output)
    if node.control or not dtype.is_integer or dims is None or len(dims) > 1:
        return None
    if node.op_def.name == "StridedSlice":
        found = sliced(rewriter, node)
    else:  # a vector is packed of single numbers
        found = [element(rewriter, value) for value in node.inputs]
    numbers = [number for number in found or () if isinstance(number, int)]
    if found is None or len(numbers) != len(found) or not (dims or len(numbers) == 1):
        return None
    array = np.array(numbers if dims else numbers[0], dtype.np_dtype)
    array.flags.writeable = False
    return rewriter.emit("Const", dims=array.shape, value=array, dtype=dtype)


@_rules.rule("SparseReshape")
def _sparse_reshape(rewriter: Rewriter, node: Node) -> tuple[int, int] | None:
    """A reshape of a sparse tensor to the shape that it has, put together of its parts or not."""
    indices, shape, wanted = node.inputs
    if node.control:
        return None
    known = elements(rewriter, wanted)
    return (indices, shape) if known and known == elements(rewriter, shape) else None


@_rules.rule("Transpose")
def _transpose(rewriter: Rewriter, node: Node) -> int | None:
    """Transposing by the identity, or there and back."""
    x, permutation = node.inputs
    order = rewriter.constant(permutation)
    if order is None:
        return None
    if np.array_equal(order, np.arange(order.size)):
        return x
    inner = rewriter.producer(x, "Transpose")
    first = rewriter.constant(inner.inputs[1]) if inner is not None else None
    if inner is not None and first is not None and first.size == order.size:
        if np.array_equal(first[order], np.arange(order.size)):
            return inner.inputs[0]
    return None


@_rules.rule("AddN")
def _single_term(rewriter: Rewriter, node: Node) -> int | None:
    """The sum of one term."""
    return node.inputs[0] if len(node.inputs) == 1 else None
