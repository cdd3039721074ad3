"""Attributes as ``AttrValue`` protocol buffers, and back.

In an operation an attribute is a plain Python value: int, float, bool, str (bytes if it is not
text), DType, TensorShape, an array for a tensor, a ``NameAttrList`` proto for a function, or a list
of one of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.shapes import TensorShape, as_dims
from runnel.graph.signature import Attribute, normalize
from runnel.graph.tensor_proto import decode_array, encode_array

_MAX_DIMENSION = 2**63 - 1
_MAX_FILLED_BYTES = 2**26

# The field of AttrValue (and of its ListValue) that holds an attribute of each kind.
FIELD_OF_KIND = {
    "string": "s",
    "int": "i",
    "float": "f",
    "bool": "b",
    "type": "type",
    "shape": "shape",
    "tensor": "tensor",
    "func": "func",
}
KIND_OF_FIELD = {field: kind for kind, field in FIELD_OF_KIND.items()}


# Python to protocol buffer --------------------------------------------------------------------


def encode_attribute(
    proto: Any, value: Any, kind: str, is_list: bool, element_type: DType | None = None
) -> None:
    """Writes ``value`` into the ``AttrValue`` ``proto``.

    ``element_type`` is that of a tensor when its array does not tell (quantized types are
    stored as plain integers).
    """
    if is_list:
        values = proto.list
        values.SetInParent()  # an empty list is present
        if kind in ("shape", "tensor", "func"):
            for item in value:
                _copy_message(getattr(values, kind).add(), item, kind, element_type)
        else:
            getattr(values, FIELD_OF_KIND[kind]).extend([_scalar(item, kind) for item in value])
    elif kind in ("shape", "tensor", "func"):
        _copy_message(getattr(proto, kind), value, kind, element_type)
    else:
        setattr(proto, FIELD_OF_KIND[kind], _scalar(value, kind))


def _scalar(value: Any, kind: str) -> Any:
    if kind == "type":
        return as_dtype(value).as_datatype_enum
    if kind == "string" and isinstance(value, str):
        return value.encode()
    return value


def _copy_message(target: Any, value: Any, kind: str, element_type: DType | None) -> None:
    if kind == "shape":
        dims = as_dims(value)
        if dims is None:
            target.unknown_rank = True
        else:
            target.SetInParent()
            for d in dims:
                target.dim.add(size=-1 if d is None else d)
    elif kind == "tensor":
        if isinstance(value, np.ndarray):
            value = encode_array(value, element_type or as_dtype(value.dtype))
        target.CopyFrom(value)
    elif isinstance(value, str):
        target.name = value
    else:
        target.CopyFrom(value)


def kind_of_value(value: Any) -> tuple[str, bool]:
    """The (kind, is_list) of an attribute that no signature describes, by its Python type."""
    if isinstance(value, list | tuple):
        kinds = {kind_of_value(item)[0] for item in value}
        if len(kinds) > 1:
            raise TypeError(f"An attribute's list holds several kinds of values: {value!r}")
        return (kinds.pop() if kinds else "int"), True
    for types, kind in _KIND_OF_TYPE:
        if isinstance(value, types):
            return kind, False
    descriptor = getattr(value, "DESCRIPTOR", None)
    if descriptor is not None and descriptor.name in _KIND_OF_MESSAGE:
        return _KIND_OF_MESSAGE[descriptor.name], False
    raise TypeError(f"{value!r} cannot be an attribute's value")


_KIND_OF_TYPE: tuple[tuple[Any, str], ...] = (
    (bool, "bool"),
    (int | np.integer, "int"),
    (float | np.floating, "float"),
    (str | bytes, "string"),
    (DType, "type"),
    (TensorShape, "shape"),
    (np.ndarray, "tensor"),
)
_KIND_OF_MESSAGE = {"TensorProto": "tensor", "TensorShapeProto": "shape", "NameAttrList": "func"}


# Protocol buffer to Python --------------------------------------------------------------------


def decode_attribute(proto: Any, attribute: Attribute, op_type: str) -> Any:
    """The value of an ``AttrValue`` for ``attribute``, checked; a mistake is a ValueError."""
    field = proto.WhichOneof("value")
    wanted = "list" if attribute.is_list else FIELD_OF_KIND[attribute.kind]
    what = f"a list of {attribute.kind}s" if attribute.is_list else f"of kind {attribute.kind}"
    if field != wanted:
        given = {None: "no value", "list": "a list"}.get(field) or (
            f"a value of kind {KIND_OF_FIELD.get(field, field)}"
        )
        raise ValueError(f"attribute {attribute.name!r} must be {what}, but holds {given}")
    try:
        if attribute.is_list:
            value: Any = _decode_list(proto.list, attribute.kind)
        else:
            value = _DECODE[attribute.kind](getattr(proto, field))
        if attribute.allowed is not None or attribute.minimum is not None:
            value = normalize(value, attribute, op_type)
    except (TypeError, ValueError) as error:
        text = str(error).removeprefix(f"{op_type}: ")
        if not text.startswith("attribute "):
            text = f"attribute {attribute.name!r}: {text}"
        raise ValueError(text) from None
    return value


def _decode_list(values: Any, kind: str) -> list[Any]:
    field = FIELD_OF_KIND[kind]
    for descriptor, _ in values.ListFields():
        if descriptor.name != field:
            raise ValueError(
                f"a list of {kind}s holds values of kind {KIND_OF_FIELD[descriptor.name]}"
            )
    decode = _DECODE[kind]
    return [decode(item) for item in getattr(values, field)]


def decode_unknown(proto: Any) -> Any:
    """The value of an ``AttrValue`` that no signature describes."""
    field = proto.WhichOneof("value")
    if field in KIND_OF_FIELD:
        return _DECODE[KIND_OF_FIELD[field]](getattr(proto, field))
    if field == "list":
        present = [descriptor.name for descriptor, _ in proto.list.ListFields()]
        if len(present) > 1:
            raise ValueError(f"a list holds values of several kinds: {', '.join(present)}")
        return _decode_list(proto.list, KIND_OF_FIELD[present[0]]) if present else []
    raise ValueError("holds no value" if field is None else f"holds a {field}")


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _type(number: int) -> DType:
    try:
        dtype = as_dtype(number)
    except TypeError:
        raise ValueError(f"{number} is not the number of an element type known here") from None
    if dtype.is_ref_dtype:
        raise ValueError(f"{dtype.name} is a reference, not an element type")
    return dtype


def decode_shape(proto: Any) -> TensorShape:
    """A ``TensorShapeProto`` as a TensorShape; a malformed one is a ValueError."""
    sizes = [d.size for d in proto.dim]
    if proto.unknown_rank:
        if sizes:
            raise ValueError(f"a shape of unknown rank has dimensions {sizes}")
        return TensorShape(None)
    if any(size < -1 for size in sizes):
        raise ValueError(f"the shape {sizes} has a negative dimension")
    shape = TensorShape(tuple(None if size == -1 else size for size in sizes))
    if (shape.num_elements() or 0) > _MAX_DIMENSION:
        raise ValueError(f"the shape {shape} has more elements than can be counted")
    return shape


def _tensor(proto: Any) -> np.ndarray:
    array = decode_array(proto)[0]
    if array.nbytes <= _MAX_FILLED_BYTES:
        # Kernels are fastest on contiguous memory; a huge array of one value stays a view.
        array = np.ascontiguousarray(array).reshape(array.shape)
    array.flags.writeable = False
    return array


def _function(proto: Any) -> Any:
    copy = type(proto)()
    copy.CopyFrom(proto)
    return copy


_DECODE: dict[str, Callable[[Any], Any]] = {
    "string": _text,
    "int": int,
    "float": float,
    "bool": bool,
    "type": _type,
    "shape": decode_shape,
    "tensor": _tensor,
    "func": _function,
}
