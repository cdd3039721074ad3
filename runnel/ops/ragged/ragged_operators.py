"""Python's operators on ragged tensors, and ``tf``'s functions that take them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.array_shape import size as dense_size
from runnel.ops.ragged.ragged_math import elementwise, map_flat_values, ragged_reductions
from runnel.ops.ragged.ragged_rows import (
    boolean_mask,
    ragged_concat,
    ragged_gather,
    ragged_stack,
)
from runnel.ops.ragged.ragged_tensor import RaggedTensor
from runnel.ops.sparse import operators as sparse_operators

# Names of ``tf`` whose functions take one tensor and give one of the same shape.
UNARY = (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "conj", "cos", "cosh"),
    *("digamma", "erf", "erfc", "exp", "expm1", "floor", "identity", "imag", "is_finite"),
    *("is_inf", "is_nan", "lgamma", "log", "log1p", "log_sigmoid", "logical_not", "negative"),
    *("ones_like", "real", "reciprocal", "rint", "round", "rsqrt", "sigmoid", "sign", "sin"),
    *("sinh", "sqrt", "square", "tan", "tanh", "zeros_like", "cast", "saturate_cast"),
    *("as_string", "string_strip", "string_to_hash_bucket", "string_to_hash_bucket_fast"),
    *("string_to_hash_bucket_strong", "string_to_number", "decode_base64", "encode_base64"),
    *("regex_replace", "clip_by_value", "check_numerics", "to_float", "to_double", "to_int32"),
    *("to_int64", "stop_gradient"),
)
# Names of functions that take two.
BINARY = (
    *("add", "subtract", "multiply", "divide", "div", "div_no_nan", "floordiv", "floormod"),
    *("maximum", "minimum", "mod", "pow", "realdiv", "truediv", "truncatediv", "truncatemod"),
    *("equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "atan2"),
    *("logical_and", "logical_or", "logical_xor", "squared_difference", "complex"),
)


# What most arguments are: of these types nothing is ragged or sparse, nor holds what is.
_DENSE = frozenset({Tensor, DType, bool, int, float, str, type(None)})


def _is_ragged(value: Any) -> bool:
    return isinstance(value, RaggedTensor) or (
        isinstance(value, list | tuple) and any(isinstance(item, RaggedTensor) for item in value)
    )


def aware(
    function: Callable[..., Any],
    ragged: Callable[..., Any],
    sparse: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """``function``, which calls ``ragged`` instead if one of its arguments is a ragged tensor.

    Where its first argument is a sparse tensor, it calls ``sparse``.
    """

    @wraps(function)
    def either(*args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()) if kwargs else args:
            if type(value) not in _DENSE:
                break
        else:
            return function(*args, **kwargs)
        if sparse is not None:
            first = args[0] if args else next(iter(kwargs.values()), None)
            if isinstance(first, SparseTensor):
                return sparse(first, *args[1:], **(kwargs if args else dict([*kwargs.items()][1:])))
        if any(map(_is_ragged, args)) or any(map(_is_ragged, kwargs.values())):
            return ragged(*args, **kwargs)
        return function(*args, **kwargs)

    return either


def _unary(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: map_flat_values(function, *args, **kwargs)


def _binary(function: Callable[..., Any]) -> Callable[..., Any]:
    def of_two(x: Any, y: Any, name: str | None = None) -> Any:
        return elementwise(function, x, y)

    return of_two


def _reduction(reduce: Callable[..., Any]) -> Callable[..., Any]:
    def of_ragged(
        input_tensor: Any,
        axis: Any = None,
        keepdims: Any = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: Any = None,
    ) -> Any:
        return reduce(
            input_tensor,
            reduction_indices if axis is None else axis,
            bool(keepdims or keep_dims),
            name,
        )

    return of_ragged


def _expanded(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Any:  # noqa: A002
    place = int(axis if axis is not None else dim)
    rank = input.shape.rank
    place = place if place >= 0 or rank is None else place + rank + 1
    return input[(slice(None),) * place + (None,)]


def _sized(input: Any, out_type: Any = None, name: str | None = None) -> Tensor:  # noqa: A002
    return dense_size(input.flat_values, name=name)


def _ranked(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    return convert_to_tensor(input.shape.rank, name=name)


def _gathered(
    params: Any, indices: Any, validate_indices: Any = None, name: Any = None, axis: Any = None
) -> Any:
    if axis not in (None, 0):
        raise ValueError("Only rows (axis 0) of ragged tensors can be gathered")
    return ragged_gather(params, indices, name)


OTHERS: dict[str, Callable[..., Any]] = {
    "boolean_mask": boolean_mask,
    "concat": ragged_concat,
    "expand_dims": _expanded,
    "gather": _gathered,
    "rank": _ranked,
    "size": _sized,
    "stack": ragged_stack,
    **{name: _reduction(reduce) for name, reduce in ragged_reductions.items()},
}


def _sparse(name: str, function: Callable[..., Any]) -> Callable[..., Any] | None:
    if name in sparse_operators.UNARY:
        return sparse_operators.of_values(function)
    return sparse_operators.OTHERS.get(name)


_made: dict[Callable[..., Any], Callable[..., Any]] = {}


def make_aware(*namespaces: dict[str, Any]) -> None:
    """Has the functions of namespaces take ragged and sparse tensors where these mean something.

    A function that several namespaces have stays the same in all.
    """
    forms = dict.fromkeys(UNARY, _unary) | dict.fromkeys(BINARY, _binary)
    for namespace in namespaces:
        for name in {*forms, *OTHERS, *sparse_operators.UNARY, *sparse_operators.OTHERS}:
            function = namespace.get(name)
            if function is not None:
                if function not in _made:
                    ragged = forms[name](function) if name in forms else OTHERS.get(name, function)
                    _made[function] = aware(function, ragged, _sparse(name, function))
                namespace[name] = _made[function]


def _add_operators() -> None:
    def forward(method: str) -> Any:
        return lambda self, other: elementwise(getattr(Tensor, method), self, other)

    names = ("add", "sub", "mul", "truediv", "div", "floordiv", "mod", "pow", "and", "or", "xor")
    for name in (*names, *(f"r{name}" for name in names), "lt", "le", "gt", "ge"):
        method = f"__{name}__"
        if hasattr(Tensor, method):
            setattr(RaggedTensor, method, forward(method))
    for name in ("neg", "abs", "invert"):
        method = getattr(Tensor, f"__{name}__")
        setattr(
            RaggedTensor,
            f"__{name}__",
            lambda self, method=method: map_flat_values(method, self),
        )


_add_operators()
