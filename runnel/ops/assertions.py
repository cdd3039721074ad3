"""``tf.assert_*``: checks of values, shapes and types, made at once where they can be.

What the graph already knows to be wrong is an error when the assertion is built; the rest
becomes an ``Assert`` operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.graph import dtypes, errors
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype, float32
from runnel.graph.graph import name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import get_op_def
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.checks import Assert
from runnel.ops.control import no_op
from runnel.ops.reduce_functions import reduce_all
from runnel.ops.tensor_summary import summarize as summary


def _require(
    condition: Tensor,
    data: Sequence[Any] | None,
    default: Sequence[Any],
    message: str | None,
    summarize: int | None,
) -> Operation:
    given = list(default) if data is None else list(data)
    parts = [message or "", *given]
    known = constant_value(condition)
    if known is not None:
        if not bool(np.all(known)):
            raise errors.InvalidArgumentError(None, None, _as_text(parts))
        return no_op()
    return Assert(condition, parts, summarize=summarize)


def _as_text(parts: Sequence[Any]) -> str:
    lines = []
    for part in parts:
        if isinstance(part, Tensor):
            value = constant_value(part)
            lines.append(part.name if value is None else summary(value, 10))
        elif part != "":
            lines.append(str(part))
    return "\n".join(lines)


def _described(label: str, x: Tensor) -> list[Any]:
    return [f"{label} ({x.name}) = ", x]


def _binary(scope_name: str, sign: str, op_type: str, x: Any, y: Any, **given: Any) -> Operation:
    with name_scope(given["name"], scope_name, [x, y]):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y", dtype_hint=x.dtype.base_dtype)
        text = f"Condition x {sign} y did not hold element-wise:"
        default = [text, *_described("x", x), *_described("y", y)]
        holds = reduce_all(get_op_def(op_type)(x, y))
        return _require(holds, given["data"], default, given["message"], given["summarize"])


_Binary = Callable[..., Operation]


def _binary_assertion(name: str, sign: str, op_type: str, words: str) -> _Binary:
    def function(
        x: Any,
        y: Any,
        data: Sequence[Any] | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        return _binary(
            scope, sign, op_type, x, y, data=data, summarize=summarize, message=message, name=name
        )

    scope = name
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"An operation that fails the step unless ``{words}`` for every element.\n\n"
        "    ``data`` replaces what the error shows, ``message`` precedes it.\n"
    )
    return function


assert_equal = _binary_assertion("assert_equal", "==", "Equal", "x == y")
assert_none_equal = _binary_assertion("assert_none_equal", "!=", "NotEqual", "x != y")
assert_less = _binary_assertion("assert_less", "<", "Less", "x < y")
assert_less_equal = _binary_assertion("assert_less_equal", "<=", "LessEqual", "x <= y")
assert_greater = _binary_assertion("assert_greater", ">", "Greater", "x > y")
assert_greater_equal = _binary_assertion("assert_greater_equal", ">=", "GreaterEqual", "x >= y")


def _sign_assertion(name: str, op_type: str, words: str, swap: bool) -> Callable[..., Operation]:
    def function(
        x: Any,
        data: Sequence[Any] | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        with name_scope(name, scope, [x]):
            x = convert_to_tensor(x, name="x")
            zero = convert_to_tensor(0, x.dtype.base_dtype)
            pair = (zero, x) if swap else (x, zero)
            holds = reduce_all(get_op_def(op_type)(*pair))
            default = [f"Condition {words} did not hold element-wise:", *_described("x", x)]
            return _require(holds, data, default, message, summarize)

    scope = name
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"An operation that fails the step unless ``{words}`` for every element."
    return function


assert_positive = _sign_assertion("assert_positive", "Less", "x > 0", True)
assert_negative = _sign_assertion("assert_negative", "Less", "x < 0", False)
assert_non_negative = _sign_assertion("assert_non_negative", "LessEqual", "x >= 0", True)
assert_non_positive = _sign_assertion("assert_non_positive", "LessEqual", "x <= 0", False)


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """An operation that fails the step unless ``|x - y| <= atol + rtol * |y|`` everywhere.

    Both tolerances are ten times the machine epsilon by default.
    """
    with name_scope(name, "assert_near", [x, y, rtol, atol]):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y", dtype=x.dtype.base_dtype)
        kind = x.dtype.base_dtype.real_dtype
        import ml_dtypes

        epsilon = float(ml_dtypes.finfo(kind.np_dtype).eps) if kind.is_floating else 0.0
        rtol = convert_to_tensor(10 * epsilon if rtol is None else rtol, kind, "rtol")
        atol = convert_to_tensor(10 * epsilon if atol is None else atol, kind, "atol")
        from runnel.ops.elementwise import abs as absolute

        difference = absolute(x - y)
        tolerance = atol + rtol * absolute(y)
        holds = reduce_all(get_op_def("Less")(difference, tolerance))
        default = [
            "x and y not equal to tolerance",
            *_described("x", x),
            *_described("y", y),
        ]
        return _require(holds, data, default, message, summarize)


# Ranks, shapes and types ----------------------------------------------------------------------


def _rank_assertion(
    x: Any,
    rank: Any,
    scope: str,
    words: str,
    test: Callable[[int, Any], bool],
    op_type: str,
    data: Sequence[Any] | None,
    summarize: int | None,
    message: str | None,
    name: str | None,
) -> Operation:
    with name_scope(name, scope, [x]):
        x = convert_to_tensor(x, name="x")
        wanted = convert_to_tensor(rank, dtypes.int32, name="rank")
        if wanted.dims not in (None, ()):
            raise ValueError(f"Rank must be a scalar, not of shape {wanted.shape}")
        known = constant_value(wanted)
        if known is not None and x.dims is not None:
            if not test(len(x.dims), int(known)):
                raise ValueError(
                    f"{message + ' ' if message else ''}Tensor {x.name} must have rank {words} "
                    f"{int(known)}. Received rank {len(x.dims)}, shape {x.shape}"
                )
            return no_op("static_checks_determined_all_ok")
        actual = get_op_def("Rank")(x)
        holds = get_op_def(op_type)(actual, wanted)
        default = [
            f"Tensor {x.name} must have rank {words}",
            wanted,
            "Received shape: ",
            get_op_def("Shape")(x),
        ]
        return _require(holds, data, default, message, summarize)


def assert_rank(
    x: Any,
    rank: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Fails when the graph is built, or else the step, unless ``x`` has ``rank`` dimensions."""
    return _rank_assertion(
        x,
        rank,
        "assert_rank",
        "equal to",
        lambda have, want: have == want,
        "Equal",
        data,
        summarize,
        message,
        name,
    )


def assert_rank_at_least(
    x: Any,
    rank: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Fails when the graph is built, or else the step, unless ``x`` has that many dimensions."""
    return _rank_assertion(
        x,
        rank,
        "assert_rank_at_least",
        "at least",
        lambda have, want: have >= want,
        "GreaterEqual",
        data,
        summarize,
        message,
        name,
    )


def assert_rank_in(
    x: Any,
    ranks: Sequence[Any],
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Fails when the graph is built, or else the step, unless ``x`` has one of ``ranks``."""
    with name_scope(name, "assert_rank_in", [x]):
        x = convert_to_tensor(x, name="x")
        wanted = [convert_to_tensor(rank, dtypes.int32, name="rank") for rank in ranks]
        known = [constant_value(rank) for rank in wanted]
        if x.dims is not None and all(k is not None for k in known):
            sizes = [int(k) for k in known if k is not None]
            if len(x.dims) not in sizes:
                raise ValueError(
                    f"{message + ' ' if message else ''}Tensor {x.name} must have rank in "
                    f"{sizes}. Received rank {len(x.dims)}, shape {x.shape}"
                )
            return no_op("static_checks_determined_all_ok")
        actual = get_op_def("Rank")(x)
        holds = get_op_def("Equal")(actual, wanted[0])
        for rank in wanted[1:]:
            holds = get_op_def("LogicalOr")(holds, get_op_def("Equal")(actual, rank))
        default = [
            f"Tensor {x.name} must have rank in",
            *wanted,
            "Received shape: ",
            get_op_def("Shape")(x),
        ]
        return _require(holds, data, default, message, summarize)


def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Tensor:
    """``tensor``, which must have a known rank of 0."""
    with name_scope(name, "assert_scalar", [tensor]):
        x = convert_to_tensor(tensor)
        if x.dims != ():
            prefix = f"{message} " if message else ""
            raise ValueError(f"{prefix}Expected a scalar, but {x.name} has shape {x.shape}")
        return x


def assert_type(
    tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None
) -> Operation:
    """A TypeError, when the graph is built, unless ``tensor`` is of ``tf_type``."""
    with name_scope(name, "assert_type", [tensor]):
        x = convert_to_tensor(tensor, name="tensor")
        wanted = as_dtype(tf_type)
        if x.dtype.base_dtype is not wanted.base_dtype:
            prefix = f"{message} " if message else ""
            raise TypeError(f"{prefix}{x.name} must be of type {wanted.name}, not {x.dtype.name}")
        return no_op("statically_determined_correct_type")


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Operation:
    """A TypeError, when the graph is built, unless ``x`` holds integers."""
    with name_scope(name, "assert_integer", [x]):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_integer:
            prefix = f"{message} " if message else ""
            raise TypeError(
                f'{prefix}Expected "x" to be integer type. Found: {x.name} of {x.dtype.name}'
            )
        return no_op("statically_determined_was_integer")


def assert_proper_iterable(values: Any) -> None:
    """Raises a TypeError where ``values`` is one tensor, array or string, and not several."""
    if isinstance(values, Tensor | SparseTensor | np.ndarray | str | bytes):
        raise TypeError(
            "Expected argument 'values' to be a \"proper\" iterable. Found: "
            + type(values).__name__
        )
    if not hasattr(values, "__iter__"):
        raise TypeError(
            f"Expected argument 'values' to be iterable. Found: {type(values).__name__}"
        )


def assert_same_float_dtype(tensors: Sequence[Any] | None = None, dtype: Any = None) -> DType:
    """The floating-point type that all ``tensors`` and ``dtype`` have; float32 if none is given.

    Raises a ValueError where types differ, or are not of floating-point numbers.
    """
    wanted = None if dtype is None else as_dtype(dtype).base_dtype
    first = None
    for tensor in tensors or ():
        if tensor is None:
            continue
        found = tensor.dtype.base_dtype
        if wanted is not None and found != wanted:
            against = f"{first.name} is {wanted.name}" if first is not None else wanted.name
            raise ValueError(f"Expected {against}, but {tensor.name} is {found.name}")
        wanted, first = found, tensor if first is None else first
    wanted = float32 if wanted is None else wanted
    if not wanted.is_floating:
        raise ValueError(f"Expected floating point type, got {wanted.name}.")
    return wanted


def is_numeric_tensor(tensor: Any) -> bool:
    """True for a tensor of numbers."""
    return isinstance(tensor, Tensor) and tensor.dtype.base_dtype in dtypes.NUMERIC


def _neighbours(x: Any, name: str | None, scope: str, op_type: str) -> Tensor:
    with name_scope(name, scope, [x]):
        flat = get_op_def("Reshape")(convert_to_tensor(x, name="x"), [-1])
        difference = flat[1:] - flat[:-1]
        zero = convert_to_tensor(0, difference.dtype.base_dtype)
        return reduce_all(get_op_def(op_type)(zero, difference))


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Whether no element of ``x``, read row by row, is smaller than the one before."""
    return _neighbours(x, name, "is_non_decreasing", "LessEqual")


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Whether every element of ``x``, read row by row, is larger than the one before."""
    return _neighbours(x, name, "is_strictly_increasing", "Less")
