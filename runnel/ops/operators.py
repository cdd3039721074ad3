"""Python's operators on tensors: ``x + y``, ``-x``, ``x @ y`` and the rest.

An operand that is not a tensor becomes one of the other operand's type, named as TensorFlow
names it: ``x + 1.0`` makes the operation ``add`` and the constant ``add/y``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.apply import apply_op
from runnel.graph.conversion import convert_to_tensor, existing_tensor
from runnel.graph.creation_site import capture_site
from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, get_op_def
from runnel.ops.arithmetic import add_op, add_v1_op, mul_op, pow_op, sub_op
from runnel.ops.division import div, floor_div_op, floor_mod_op, real_div_op, truediv

Function = Callable[[Any, Any, str], Any]


def override_binary(operator: str, function: Function, op_def: OpDef | None = None) -> None:
    """Makes ``__operator__`` and ``__roperator__`` of tensors call ``function(x, y, name)``.

    With ``op_def``, two tensors (and a tensor and a number) take a short way to that op.
    """

    def forward(x: Tensor, y: Any) -> Any:
        if op_def is not None and existing_tensor(y) is not None:
            return apply_op(op_def, (x, y), {}, operator)
        return _with_operand(operator, function, x, y, "y")

    def reflected(y: Tensor, x: Any) -> Any:
        return _with_operand(operator, function, y, x, "x")

    forward.__name__, reflected.__name__ = f"__{operator}__", f"__r{operator}__"
    Tensor._override_operator(forward.__name__, forward)
    Tensor._override_operator(reflected.__name__, reflected)


def override_comparison(method: str, op_def: OpDef) -> None:
    """Makes ``method`` of tensors the op; an operand becomes a constant ``<Op>/y``."""
    function = _simple(op_def)
    name = op_def.name

    def compare(x: Tensor, y: Any) -> Any:
        if type(y) is Tensor:
            return apply_op(op_def, (x, y), {}, None)
        return _with_operand(name, function, x, y, "y")

    compare.__name__ = method
    Tensor._override_operator(method, compare)


def _with_operand(operator: str, function: Function, tensor: Tensor, other: Any, side: str) -> Any:
    if type(other) is not float and getattr(type(other), "is_composite", False):
        return NotImplemented  # its own operators take tensors
    graph = tensor.op.graph
    if graph is not get_default_graph():
        with graph.as_default():
            return _with_operand(operator, function, tensor, other, side)
    scopes = graph._thread.state
    scope = _fresh_scope(graph, operator)
    outer = scopes.name, scopes.site
    scopes.name = scope
    if outer[1] is None:
        scopes.site = capture_site(3)
    try:
        if type(other) is not Tensor:
            other = convert_to_tensor(other, tensor.dtype.base_dtype, side)
        if side == "y":
            return function(tensor, other, scope + "/")
        return function(other, tensor, scope + "/")
    except (TypeError, ValueError):
        # The other operand may know better what to do with a tensor.
        special = f"__r{operator}__" if side == "y" else f"__{operator}__"
        if hasattr(type(other), special) and not _plain(other):
            return NotImplemented
        raise
    finally:
        scopes.name, scopes.site = outer


def _plain(value: Any) -> bool:
    """True for numbers, strings, arrays and tensors: their own operators would not help."""
    if isinstance(value, int | float | complex | str | bytes | list | tuple | IndexedSlices):
        return True
    return type(value).__module__.partition(".")[0] in ("numpy", "ml_dtypes", "runnel")


def _fresh_scope(graph: Graph, name: str) -> str:
    with graph._lock:
        return graph.unique_name(name)


def _simple(op_def: OpDef) -> Function:
    return lambda x, y, name: apply_op(op_def, (x, y), {}, name)


def _add(x: Tensor, y: Tensor, name: str) -> Tensor:
    op_def = add_v1_op if x.dtype.base_dtype.name == "string" else add_op
    return apply_op(op_def, (x, y), {}, name)


def _add_tensors(x: Tensor, y: Any) -> Any:
    if existing_tensor(y) is not None and x.dtype.base_dtype.name != "string":
        return apply_op(add_op, (x, y), {}, "add")
    return _with_operand("add", _add, x, y, "y")


def _true_divide_tensors(x: Tensor, y: Any) -> Any:
    if type(y) is Tensor and x.dtype.is_floating:
        return apply_op(real_div_op, (x, y), {}, "truediv")
    return _with_operand("truediv", truediv, x, y, "y")


def _matmul(a: Tensor, b: Tensor, name: str) -> Tensor:
    from runnel.ops.matmul import matmul

    return matmul(a, b, name=name)


def _negative(x: Tensor) -> Tensor:
    return apply_op(get_op_def("Neg"), (x,), {}, None)


def _absolute(x: Tensor) -> Tensor:
    from runnel.ops.elementwise import abs as absolute

    return absolute(x)


override_binary("add", _add)
override_binary("sub", _simple(sub_op), sub_op)
override_binary("mul", _simple(mul_op), mul_op)
override_binary("div", div)
override_binary("truediv", truediv)
override_binary("floordiv", _simple(floor_div_op), floor_div_op)
override_binary("mod", _simple(floor_mod_op), floor_mod_op)
override_binary("pow", _simple(pow_op), pow_op)
override_binary("matmul", _matmul)
Tensor._override_operator("__add__", _add_tensors)
Tensor._override_operator("__truediv__", _true_divide_tensors)
Tensor._override_operator("__neg__", _negative)
Tensor._override_operator("__abs__", _absolute)
