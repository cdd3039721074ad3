"""Einstein summation: any contraction, transposition and trace of named dimensions."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from runnel.graph.conversion import constant_tensor, convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def, register_op
from runnel.graph.shapes import Dims, broadcast_dims, format_dims
from runnel.ops.arithmetic import conjugate
from runnel.ops.blas_threads import with_threads_for
from runnel.ops.broadcast_gradient import stretched_axes
from runnel.ops.half_precision import narrow, widen

ELLIPSIS = "..."

einsum_op = register_op(
    "Einsum",
    inputs="inputs: N * T",
    outputs="output: T",
    attrs=["equation: string", "N: int >= 1", "T: type"],
)


def parse(equation: str, count: int) -> tuple[list[list[str]], list[str]]:
    """The labels of each operand and of the result; an implied result is spelt out.

    Each label is a letter, or ``...``.
    """
    text = "".join(equation.split())
    sides = text.split("->")
    if len(sides) > 2 or not text:
        raise ValueError(f"Cannot parse the equation {equation!r}: expected 'ij,jk->ik'")
    operands = [_labels(part, equation) for part in sides[0].split(",")]
    if len(operands) != count:
        raise ValueError(
            f"The equation {equation!r} is of {len(operands)} tensors, but {count} are given"
        )
    if len(sides) == 2:
        result = _labels(sides[1], equation)
    else:
        seen = [label for labels in operands for label in labels]
        once = sorted(s for s in set(seen) if s != ELLIPSIS and seen.count(s) == 1)
        result = ([ELLIPSIS] if ELLIPSIS in seen else []) + once
    known = {label for labels in operands for label in labels}
    for label in result:
        if label not in known:
            raise ValueError(f"{label!r} of the result of {equation!r} is in none of the operands")
    return operands, result


def _labels(part: str, equation: str) -> list[str]:
    before, dots, after = part.partition(ELLIPSIS)
    labels = [*before, *([ELLIPSIS] if dots else []), *after]
    for label in labels:
        if label != ELLIPSIS and not label.isalpha():
            raise ValueError(f"Unexpected {label!r} in the equation {equation!r}")
    return labels


def _by_label(labels: list[str], dims: tuple[Any, ...]) -> dict[str, Any]:
    """Each label's size; that of ``...`` is a tuple."""
    extra = len(dims) - len(labels) + 1 if ELLIPSIS in labels else 0
    if extra < 0 or (ELLIPSIS not in labels and len(labels) != len(dims)):
        raise ValueError(f"{''.join(labels)!r} does not fit the shape {format_dims(dims)}")
    sizes: dict[str, Any] = {}
    position = 0
    for label in labels:
        if label == ELLIPSIS:
            sizes[label] = dims[position : position + extra]
            position += extra
            continue
        size = dims[position]
        if sizes.get(label) is not None and size is not None and sizes[label] != size:
            raise ValueError(
                f"Label {label!r} has size {sizes[label]} in one place and {size} in another"
            )
        sizes[label] = size if sizes.get(label) is None else sizes[label]
        position += 1
    return sizes


@einsum_op.shape
def _(tensors, *, equation):
    operands, result = parse(equation, len(tensors))
    if any(t.dims is None for t in tensors):
        return None if ELLIPSIS in result else (None,) * len(result)
    merged: dict[str, Any] = {}
    for labels, tensor in zip(operands, tensors, strict=True):
        for label, size in _by_label(labels, tensor.dims).items():
            other = merged.get(label)
            if label == ELLIPSIS:
                merged[label] = size if other is None else broadcast_dims(other, size)
            elif other is None:
                merged[label] = size
            elif size is not None and size != other:
                raise ValueError(f"Label {label!r} has sizes {other} and {size}")
    dims: tuple[int | None, ...] = ()
    for label in result:
        dims += merged[label] if label == ELLIPSIS else (merged[label],)
    return dims


@einsum_op.kernel
def _(xp, values, *, equation):
    operands, result = parse(equation, len(values))
    sizes: dict[str, Any] = {}
    for labels, value in zip(operands, values, strict=True):
        sizes |= _by_label(labels, value.shape)
    unique = list(dict.fromkeys(result))
    plain = ",".join("".join(labels) for labels in operands) + "->" + "".join(unique)
    wide = [widen(v) for v in values]
    if xp is np:
        work = math.prod(math.prod(s) if isinstance(s, tuple) else s for s in sizes.values())
        contract = partial(np.einsum, plain, *wide, optimize=len(values) > 1)
        out = with_threads_for(work, contract)
    else:
        out = xp.einsum(plain, *wide)
    out = narrow(out, values[0].dtype)
    return out if unique == result else _on_diagonal(xp, out, unique, result)


def _on_diagonal(xp: Any, x: Any, labels: list[str], wanted: list[str]) -> Any:
    """``x`` in the result ``ii``: on the diagonal of the repeated label, zeros elsewhere."""
    if ELLIPSIS in wanted and wanted.index(ELLIPSIS) != 0:
        raise ValueError("A result with a repeated label takes '...' only in front")
    for position, label in enumerate(wanted):
        if label in wanted[:position]:
            # Counted from the end, where the ellipsis does not disturb.
            first = labels.index(label) - len(labels)
            behind = len(labels) - position
            size = x.shape[first]
            x = xp.expand_dims(x, -1 - behind) if behind else x[..., None]
            labels = [*labels[:position], label, *labels[position:]]
            first = labels.index(label) - len(labels)
            second = position - len(labels)
            mask_shape = [1] * -min(first, second)
            mask_shape[first] = mask_shape[second] = size
            mask = np.eye(size, dtype=np.bool_).reshape(mask_shape)
            x = xp.where(mask, x, xp.zeros((), x.dtype))
    return x


@einsum_op.gradient
def _(op, grad):
    operands, result = parse(op.attrs["equation"], len(op.inputs))
    if len(operands) > 2:
        raise LookupError(f"The gradient of {op.name!r} (Einsum) takes at most two operands")
    if len(operands) == 1:
        return [_gradient(grad, result, op.inputs[0], operands[0], None, None)]
    x, y = op.inputs
    return [
        _gradient(grad, result, x, operands[0], y, operands[1]),
        _gradient(grad, result, y, operands[1], x, operands[0]),
    ]


def _gradient(
    grad: Tensor,
    result: list[str],
    x: Tensor,
    labels: list[str],
    other: Tensor | None,
    other_labels: list[str] | None,
) -> Tensor:
    """The gradient of ``x``: contract the result's with the other operand over the rest."""
    available = set(result) | set(other_labels or ())
    # Labels that were summed away within x alone come back by repetition.
    lost = [label for label in labels if label not in available]
    wanted = [label for label in labels if label in available]
    outer = ELLIPSIS in available and ELLIPSIS not in wanted
    target = [ELLIPSIS, *wanted] if outer else wanted
    if other is None or other_labels is None:
        equation = f"{''.join(result)}->{''.join(target)}"
        found = einsum_op([grad], equation=equation)
    else:
        equation = f"{''.join(result)},{''.join(other_labels)}->{''.join(target)}"
        found = einsum_op([grad, conjugate(other)], equation=equation)
    if ELLIPSIS in target:
        found = _unbroadcast_ellipsis(found, x, labels, target, other, other_labels)
    if not lost:
        return found
    if len(set(lost)) < len(lost):
        return _on_lost_diagonals(found, wanted, x, labels, lost)
    split = labels.index(ELLIPSIS) if ELLIPSIS in labels else len(labels)
    expand = get_op_def("ExpandDims")
    for axis in range(split):
        if labels[axis] in lost:
            found = expand(found, axis)
    for axis in range(-1, split - len(labels), -1):  # behind the ellipsis: from the end
        if labels[axis] in lost:
            found = expand(found, axis)
    return get_op_def("BroadcastTo")(found, get_op_def("Shape")(x))


def _on_lost_diagonals(
    found: Tensor, have: list[str], x: Tensor, labels: list[str], lost: list[str]
) -> Tensor:
    """``found`` repeated along the lost labels, which occur more than once: ``ii->``."""
    shape = get_op_def("Shape")(x)
    one = constant_tensor(1, x.dtype.base_dtype)
    for label in dict.fromkeys(lost):
        axis = labels.index(label)
        at = axis - len(labels) if ELLIPSIS in labels[:axis] else axis
        ones = get_op_def("Fill")(get_op_def("Pack")([shape[at]]), one)
        together = "".join([*have, label])
        found = einsum_op([found, ones], equation=f"{''.join(have)},{label}->{together}")
        have = [*have, label]
    return einsum_op([found], equation=f"{''.join(have)}->{''.join(labels)}")


def _unbroadcast_ellipsis(
    found: Tensor,
    x: Tensor,
    labels: list[str],
    target: list[str],
    other: Tensor | None,
    other_labels: list[str] | None,
) -> Tensor:
    def batch(tensor: Tensor | None, names: list[str] | None) -> Dims:
        if tensor is None or names is None or ELLIPSIS not in names:
            return ()
        return None if tensor.dims is None else _by_label(names, tensor.dims)[ELLIPSIS]

    axes = stretched_axes(batch(x, labels), batch(other, other_labels))
    if other is None or other_labels is None or ELLIPSIS not in other_labels:
        return found  # nothing to broadcast with
    if axes is None:
        raise LookupError(
            f"The gradient of an Einsum with '...' needs {x.name} and {other.name} of known shape"
        )
    at = target.index(ELLIPSIS)
    missing, stretched = ([at + axis for axis in group] for group in axes)
    total = get_op_def("Sum")
    if stretched:
        found = total(found, stretched, keep_dims=True)
    return total(found, missing) if missing else found


# Functions ------------------------------------------------------------------------------------


def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """Einstein summation of ``inputs``: labels that the result lacks are summed over.

    More than two tensors are contracted in pairs, from the left.

    Example:
        >>> tf.einsum("ij,jk->ik", a, b)     # matrix product
        >>> tf.einsum("bij,bjk->bik", a, b)  # of a batch
        >>> tf.einsum("ii->", a)             # trace
    """
    name = kwargs.pop("name", None)
    kwargs.pop("optimize", None)
    if kwargs:
        raise TypeError(f"Invalid keyword arguments for einsum: {', '.join(kwargs)}")
    values = list(inputs[0]) if len(inputs) == 1 and isinstance(inputs[0], list | tuple) else inputs
    with name_scope(name, "einsum", list(values)):
        tensors = [convert_to_tensor(value) for value in values]
        operands, result = parse(equation, len(tensors))
        while len(tensors) > 2:
            needed = {label for labels in (*operands[2:], result) for label in labels}
            both = list(dict.fromkeys([*operands[0], *operands[1]]))
            kept = [label for label in both if label in needed]
            if ELLIPSIS in kept:
                kept = [ELLIPSIS, *(label for label in kept if label != ELLIPSIS)]
            pair = f"{''.join(operands[0])},{''.join(operands[1])}->{''.join(kept)}"
            tensors = [einsum_op(tensors[:2], equation=pair), *tensors[2:]]
            operands = [kept, *operands[2:]]
        left = ",".join("".join(labels) for labels in operands)
        return einsum_op(tensors, equation=f"{left}->{''.join(result)}")
