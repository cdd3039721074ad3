"""Turns the values that a program passes (numbers, arrays, variables, lists) into tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import OpDef, get_op_def
from runnel.graph.shapes import Dimension, Dims, TensorShape, as_dims, format_dims, num_elements

ConversionFunction = Callable[..., Any]
_conversions: list[tuple[int, Any, ConversionFunction]] = []
_conversions_of: dict[type, list[ConversionFunction]] = {}
"""Those that apply to a type, in their order, as far as they have been looked up."""


def register_tensor_conversion_function(
    base_type: Any, conversion_func: ConversionFunction, priority: int = 100
) -> None:
    """Registers ``conversion_func(value, dtype, name, as_ref)`` for values of ``base_type``.

    It returns a tensor, or NotImplemented to let others try; lower priorities go first.
    """
    if not callable(conversion_func):
        raise TypeError("conversion_func must be callable.")
    _conversions.append((priority, base_type, conversion_func))
    _conversions.sort(key=lambda entry: entry[0])
    _conversions_of.clear()


def existing_tensor(value: Any) -> Tensor | None:
    """The tensor of the graph that stands for ``value`` already, or None if one must be made."""
    return value if type(value) is Tensor else getattr(value, "_existing_tensor", None)


def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    preferred_dtype: Any = None,
    dtype_hint: Any = None,
    as_ref: bool = False,
) -> Tensor:
    """``value`` as a tensor of the default graph.

    ``dtype`` is required of the result; ``dtype_hint`` (or ``preferred_dtype``) is tried first
    and given up when the value does not fit.

    Example:
        >>> convert_to_tensor([1, 2], dtype=tf.float32)
        <tf.Tensor 'Const:0' shape=(2,) dtype=float32>
    """
    if dtype is not None:
        dtype = as_dtype(dtype)
    if isinstance(value, Tensor):
        if dtype is not None and not dtype.is_compatible_with(value.dtype):
            raise ValueError(
                f"{value!r} has type {value.dtype.name}, but {dtype.name} is needed here. "
                "tf.cast converts it."
            )
        return value
    hint = dtype_hint if dtype_hint is not None else preferred_dtype
    if is_plain(value):
        return constant_of(value, dtype, hint, name)
    kind = type(value)
    conversions = _conversions_of.get(kind)
    if conversions is None:
        conversions = [convert for _, base, convert in _conversions if issubclass(kind, base)]
        _conversions_of[kind] = conversions
    for convert in conversions:
        if dtype is None and hint is not None:
            try:
                tensor = convert(value, dtype=as_dtype(hint).base_dtype, name=name, as_ref=as_ref)
            except (TypeError, ValueError):
                tensor = NotImplemented
            if tensor is not NotImplemented and tensor is not None:
                return tensor
        tensor = convert(value, dtype=dtype, name=name, as_ref=as_ref)
        if tensor is not NotImplemented:
            return tensor
    if isinstance(value, Operation):
        raise TypeError(f"{value!r} is an operation, not a value; use one of its outputs.")
    return constant_of(value, dtype, hint, name)


def constant_of(value: Any, dtype: DType | None, hint: Any, name: str | None) -> Tensor:
    """A constant of ``dtype``, else of the type hinted at if the value fits it."""
    if dtype is not None:
        return constant_tensor(value, dtype.base_dtype, None, name)
    if hint is not None:
        try:
            return constant_tensor(value, as_dtype(hint).base_dtype, None, name)
        except (TypeError, ValueError):
            pass
    return constant_tensor(value, None, None, name)


_NUMBERS = frozenset({int, float, bool})
_INTEGER = frozenset({int})


def is_plain(value: Any) -> bool:
    """True for a Python number, or a short flat list of them: what no conversion is about."""
    kind = type(value)
    if kind in _NUMBERS:
        return True
    if kind is not list and kind is not tuple:
        return False
    return len(value) <= 8 and _NUMBERS.issuperset(map(type, value))


def make_array(value: Any, dtype: DType | None, shape: Any = None) -> np.ndarray:
    """``value`` as an array of ``dtype``, by TensorFlow's rules for Python numbers.

    Python floats become float32 and Python integers int32 when no type is asked for; a float
    does not become an integer silently, nor a string a number.
    """
    if isinstance(value, TensorShape):
        value = _shape_values(value)
        dtype = dtype or dtypes.int32
    kind = type(value)
    if dtype is None:
        if kind is list and value and _INTEGER.issuperset(map(type, value)):
            try:
                return np.array(value, np.int32)
            except OverflowError:
                pass  # it takes 64 bits, as below
    elif not dtype.np_dtype.hasobject:
        if kind is list and dtype.is_integer and _INTEGER.issuperset(map(type, value)):
            try:
                return np.array(value, dtype.np_dtype)
            except OverflowError as error:
                raise ValueError(f"{_short(value)} is outside the range of {dtype.name}") from error
        if kind is float:
            if dtype.is_floating or dtype.is_complex:
                return np.array(value, dtype.np_dtype)
        elif (kind is int or kind is bool) and (dtype.np_dtype.kind not in "b" or kind is bool):
            if dtype.is_integer or dtype.is_quantized:
                _check_range(value, dtype)
            return np.array(value, dtype.np_dtype)
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind in "SUO" and (dtype is None or dtype is dtypes.string):
            array = _array_from_python(array)
    else:
        array = _array_from_python(value)
        if dtype is None:
            if array.dtype == np.float64:
                array = array.astype(np.float32)
            elif array.dtype == np.int64 and not _has_numpy(value):
                narrow = array.astype(np.int32)
                array = narrow if (narrow == array).all() else array
    if dtype is None:
        wanted = as_dtype(array.dtype)
        return array if array.dtype == wanted.np_dtype else array.astype(wanted.np_dtype)
    return _cast_array(array, dtype, value)


def _has_numpy(value: Any) -> bool:
    """True when the leaves of a nested list are NumPy values, whose width is meant."""
    while isinstance(value, list | tuple) and len(value):
        value = value[0]
    return isinstance(value, np.ndarray | np.generic)


def _check_range(value: Any, dtype: DType) -> None:
    low, high = dtype.limits if dtype.is_integer else (None, None)
    if low is not None and not low <= value <= high:
        raise ValueError(f"{value} is outside the range of {dtype.name} ({low} to {high})")


def _shape_values(shape: TensorShape) -> list[int]:
    if not shape.is_fully_defined():
        raise ValueError(
            f"Cannot convert the partly known shape {shape} to a tensor; "
            "tf.shape(x) gives the shape when the step runs."
        )
    return [d for d in shape.as_list() if d is not None]


def _array_from_python(value: Any) -> np.ndarray:
    if isinstance(value, str | bytes):
        out = np.empty((), object)
        out[()] = value.encode() if isinstance(value, str) else value
        return out
    if value is None:
        raise ValueError("None values not supported: a tensor cannot be made of None.")
    try:
        array = np.asarray(value)
        if array.dtype.kind in "SU":
            array = np.array(value, object)  # NumPy's own strings lose zero bytes at the end
    except ValueError:
        array = np.array(value, object)  # str and bytes that do not mix, or ragged rows
        if not _all_strings(array):
            raise ValueError(
                f"Cannot make a tensor of {_short(value)}: its rows have different lengths or "
                "types."
            ) from None
    if array.dtype == object and any([isinstance(v, Dimension) for v in array.flat]):
        array = np.array([_dimension_size(v) for v in array.flat]).reshape(array.shape)
    if array.dtype == object and _all_strings(array):
        return _bytes_array(array)
    if array.dtype == object:
        raise TypeError(
            f"Cannot make a tensor of {_short(value)}: it holds "
            f"{', '.join(sorted({type(v).__name__ for v in array.ravel()}))}."
        )
    return array


def _dimension_size(value: Any) -> Any:
    if not isinstance(value, Dimension):
        return value
    if value.value is None:
        raise ValueError(
            "Cannot convert an unknown Dimension to a tensor; tf.shape(x)[i] gives it when the "
            "step runs."
        )
    return value.value


def _all_strings(array: np.ndarray) -> bool:
    kinds = set(map(type, array.reshape(-1).tolist()))
    return all(issubclass(kind, str | bytes) for kind in kinds)


def _bytes_array(array: np.ndarray) -> np.ndarray:
    items = array.reshape(-1).tolist()
    out = np.empty(len(items), object)
    out[:] = [item.encode() if isinstance(item, str) else item for item in items]
    return out.reshape(array.shape)


def _cast_array(array: np.ndarray, dtype: DType, value: Any) -> np.ndarray:
    target = dtype.np_dtype
    if array.dtype == target:
        return array
    is_string = array.dtype == object
    if array.size and (is_string != (target == object) or not _fits(array, dtype)):
        plain = isinstance(value, int | float | complex)
        kind = type(value).__name__ if plain else "string" if is_string else array.dtype.name
        raise TypeError(
            f"Expected {dtype.name}, but {_short(value)} is of type {kind}. tf.cast gives a tensor "
            "another type."
        )
    result = array.astype(target)
    narrowed = dtype.is_integer and array.dtype.kind in "iu"
    if narrowed and not ((result == array) & ((result < 0) == (array < 0))).all():
        raise ValueError(f"{_short(value)} is outside the range of {dtype.name}")
    return result


_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}


def _fits(array: np.ndarray, dtype: DType) -> bool:
    """True when ``array`` may become ``dtype`` without changing its kind of number."""
    source = _RANK.get(array.dtype.kind, 2)
    target = 2 if dtype.is_floating else _RANK.get(dtype.np_dtype.kind, 2)
    if target == 0 or source == 0:
        return source == target
    return source <= target


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def constant_tensor(
    value: Any, dtype: DType | None = None, shape: Any = None, name: str | None = None
) -> Tensor:
    """A ``Const`` operation that holds ``value``."""
    if shape is not None:
        array = _fill_shape(make_array(value, dtype), as_dims(shape))
        attrs = _const_attrs(array, dtype)
    else:
        key = _key_of_small(value, dtype)
        kept = None if key is None else _small_constants.get(key)
        if kept is None:
            array = make_array(value, dtype)
            if array is value or array.base is not None:
                array = array.copy()  # the graph owns its constants
            attrs = _const_attrs(array, dtype)
            if key is not None:
                _keep_small(key, attrs)
        else:
            attrs = kept
    dims = attrs["value"].shape
    types = (attrs["dtype"],)
    op = get_default_graph().add_op(_const_op(), (), attrs, types, name or "Const", 3, dims)
    return op.outputs[0]


def _const_attrs(array: np.ndarray, dtype: DType | None) -> dict[str, Any]:
    """The attributes of a constant; ``array`` is from now on the graph's."""
    array.setflags(write=False)
    return {"value": array, "dtype": dtype or as_dtype(array.dtype)}


_small_constants: dict[Any, dict[str, Any]] = {}
"""The attributes of constants that were made of a number, or of a few integers.

Programs make the same ones again and again, and operations share attributes.
"""


def _key_of_small(value: Any, dtype: DType | None) -> Any:
    """The key of a constant in ``_small_constants``; None if it is not for them."""
    kind = type(value)
    number = 0 if dtype is None else dtype.as_datatype_enum
    if kind in _NUMBERS:
        return kind, value or repr(value), number  # 0.0 == -0.0
    if kind is list or kind is tuple:
        if len(value) <= 8 and _INTEGER.issuperset(map(type, value)):
            return list, tuple(value), number
    return None


def _keep_small(key: Any, attrs: dict[str, Any]) -> None:
    if len(_small_constants) >= 4096:
        _small_constants.clear()
    _small_constants[key] = attrs


@cache
def _const_op() -> OpDef:
    return get_op_def("Const")


def _fill_shape(array: np.ndarray, partial: Dims) -> np.ndarray:
    size = num_elements(partial)
    if partial is None or size is None:
        raise ValueError(f"A constant needs a fully known shape, not {format_dims(partial)}")
    dims = tuple([d for d in partial if d is not None])
    if size == 0:
        return np.empty(dims, array.dtype)  # of whatever value
    if array.size == size:
        return array.reshape(dims).copy()
    if array.size > size:
        raise ValueError(f"Too many elements ({array.size}) for a constant of shape {dims}")
    if array.size == 0:
        raise ValueError(f"No value is given for a constant of shape {dims}")
    flat = np.empty(size, array.dtype)
    flat.fill(array.reshape(-1)[-1])  # repeated, as TensorFlow does; np.full cuts zero bytes off
    if array.size > 1:
        flat[: array.size] = array.reshape(-1)
    return flat.reshape(dims)


def convert_n_to_tensor(
    values: Any, dtype: Any = None, name: str | None = None, preferred_dtype: Any = None
) -> list[Tensor]:
    """Each of ``values`` as a tensor."""
    return [
        convert_to_tensor(
            v, dtype, None if name is None else f"{name}_{i}", preferred_dtype=preferred_dtype
        )
        for i, v in enumerate(values)
    ]
