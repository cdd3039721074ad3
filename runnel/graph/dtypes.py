"""Element types: TensorFlow's names and numbers over NumPy (and ``ml_dtypes``) storage types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

_REF_OFFSET = 100


class DType:
    """An element type. ``float32_ref`` and the like denote references to mutable state.

    Example:
        >>> as_dtype("float") is float32
        True
        >>> float32.as_numpy_dtype
        <class 'numpy.float32'>
    """

    __slots__ = (
        "name",
        "as_datatype_enum",
        "np_dtype",
        "is_floating",
        "is_complex",
        "is_integer",
        "is_quantized",
        "_ref",
        "_base",
        "_limits",
    )

    def __init__(self, name: str, number: int, storage: Any, kind: str) -> None:
        self.name = name
        self.as_datatype_enum = number
        self.np_dtype: np.dtype = np.dtype(storage)
        self.is_floating = kind == "float"
        self.is_complex = kind == "complex"
        self.is_integer = kind == "int"
        self.is_quantized = kind == "quantized"
        self._base: DType = self
        self._ref: DType | None = None
        self._limits: tuple[Any, Any] | None = None

    @property
    def base_dtype(self) -> DType:
        """This type without the reference."""
        return self._base

    @property
    def is_ref_dtype(self) -> bool:
        return self._base is not self

    # TensorFlow 1.15 keeps this private name public in practice.
    _is_ref_dtype = is_ref_dtype

    @property
    def as_ref(self) -> DType:
        assert self._ref is not None
        return self._ref

    _as_ref = as_ref

    @property
    def real_dtype(self) -> DType:
        """The type of one component of a complex number; itself for the others."""
        return {"complex64": float32, "complex128": float64}.get(self._base.name, self)

    @property
    def as_numpy_dtype(self) -> Any:
        return self.np_dtype.type

    @property
    def is_bool(self) -> bool:
        return self._base is bool_

    @property
    def is_unsigned(self) -> bool:
        return self.is_integer and self.np_dtype.kind == "u"

    @property
    def is_numpy_compatible(self) -> bool:
        return self._base not in (resource, variant)

    @property
    def size(self) -> int:
        """Bytes of one element (1 for types whose elements are objects)."""
        return 1 if self.np_dtype == object else self.np_dtype.itemsize

    @property
    def limits(self) -> tuple[Any, Any]:
        """The smallest and the largest representable value."""
        if self._limits is None:
            self._limits = (self.min, self.max)
        return self._limits

    @property
    def min(self) -> Any:
        """The smallest representable value."""
        return self._bound("min")

    @property
    def max(self) -> Any:
        """The largest representable value."""
        return self._bound("max")

    def _bound(self, which: str) -> Any:
        if self.is_bool:
            return which == "max"
        if self.is_integer:
            return getattr(np.iinfo(self.np_dtype), which)
        if self.is_floating:
            return getattr(ml_dtypes.finfo(self.np_dtype), which)
        raise TypeError(f"Cannot find the {which}imum value of {self.name}.")

    def is_compatible_with(self, other: Any) -> bool:
        """True when a value of ``other`` can stand where this type is expected."""
        other = as_dtype(other)
        return self is other or self is other.base_dtype

    def __eq__(self, other: Any) -> bool:
        if self is other:
            return True
        if other is None or isinstance(other, DType):
            return False
        try:
            return self is as_dtype(other)
        except TypeError:
            return False

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return self.as_datatype_enum

    def __int__(self) -> int:
        return self.as_datatype_enum

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: '{self.name}'>"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return as_dtype, (self.name,)

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: Any) -> DType:
        return self


_TYPES: list[DType] = []


def _declare(name: str, number: int, storage: Any, kind: str) -> DType:
    dtype = DType(name, number, storage, kind)
    ref = DType(name + "_ref", number + _REF_OFFSET, storage, kind)
    ref._base, ref._ref, dtype._ref = dtype, ref, ref
    _TYPES.extend((dtype, ref))
    return dtype


float32 = _declare("float32", 1, np.float32, "float")
float64 = _declare("float64", 2, np.float64, "float")
int32 = _declare("int32", 3, np.int32, "int")
uint8 = _declare("uint8", 4, np.uint8, "int")
int16 = _declare("int16", 5, np.int16, "int")
int8 = _declare("int8", 6, np.int8, "int")
string = _declare("string", 7, object, "string")
complex64 = _declare("complex64", 8, np.complex64, "complex")
int64 = _declare("int64", 9, np.int64, "int")
bool_ = _declare("bool", 10, np.bool_, "bool")
qint8 = _declare("qint8", 11, np.int8, "quantized")
quint8 = _declare("quint8", 12, np.uint8, "quantized")
qint32 = _declare("qint32", 13, np.int32, "quantized")
bfloat16 = _declare("bfloat16", 14, ml_dtypes.bfloat16, "float")
qint16 = _declare("qint16", 15, np.int16, "quantized")
quint16 = _declare("quint16", 16, np.uint16, "quantized")
uint16 = _declare("uint16", 17, np.uint16, "int")
complex128 = _declare("complex128", 18, np.complex128, "complex")
float16 = _declare("float16", 19, np.float16, "float")
resource = _declare("resource", 20, object, "handle")
variant = _declare("variant", 21, object, "handle")
uint32 = _declare("uint32", 22, np.uint32, "int")
uint64 = _declare("uint64", 23, np.uint64, "int")

half = float16
double = float64

_BY_ENUM = {t.as_datatype_enum: t for t in _TYPES}
_LOOKUP: dict[Any, DType] = {t.name: t for t in _TYPES}
_LOOKUP |= {
    "half": float16,
    "float": float32,
    "double": float64,
    "half_ref": float16.as_ref,
    "float_ref": float32.as_ref,
    "double_ref": float64.as_ref,
    float: float32,
    int: int32,
    bool: bool_,
    str: string,
    bytes: string,
    complex: complex128,
}
# NumPy storage -> the plain (not quantized) type that it means.
_LOOKUP |= {
    key: t
    for t in _TYPES
    if not t.is_ref_dtype and not t.is_quantized and t.np_dtype != object
    for key in (t.np_dtype, t.np_dtype.type)
}

NUMERIC = (
    *(float32, float64, int32, uint8, int16, int8, complex64, int64, bfloat16),
    *(uint16, complex128, float16, uint32, uint64),
)
REAL = tuple(t for t in NUMERIC if not t.is_complex)
FLOATING = (float16, bfloat16, float32, float64)


def as_dtype(value: Any) -> DType:
    """The :class:`DType` that ``value`` (a DType, name, number, Python or NumPy type) denotes."""
    if type(value) is DType:
        return value
    try:
        found = _LOOKUP.get(value)
    except TypeError:
        found = None
    if found is not None:
        return found
    if isinstance(value, int) and value in _BY_ENUM:
        return _BY_ENUM[value]
    if value is not None:
        try:
            storage = np.dtype(value)
        except TypeError:
            storage = None
        if storage is not None:
            if storage.kind in "OSU":
                return string
            found = _LOOKUP.get(storage)
            if found is not None:
                return found
    raise TypeError(
        f"Cannot convert {value!r} to an element type. Give a type such as tf.float32, "
        "a name such as 'float32', or a NumPy type."
    )
