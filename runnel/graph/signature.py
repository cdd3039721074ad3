"""The signature of an operation type, in the notation of TensorFlow's op definitions.

An argument is ``"a: T"``, ``"values: N * T"``, ``"ref: Ref(T)"`` or ``"x: float"``; an attribute is
``"T: {float, double} = DT_FLOAT"``, ``"axis: int >= 0 = 0"`` or ``"strides: list(int)"``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ctypes import c_float
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from runnel.graph import dtypes
from runnel.graph.dtypes import DType
from runnel.graph.shapes import TensorShape


class _Required:
    def __repr__(self) -> str:
        return "<required>"


REQUIRED: Final = _Required()

_TYPE_SETS = {
    "numbertype": dtypes.NUMERIC,
    "realnumbertype": dtypes.REAL,
    "floattype": dtypes.FLOATING,
    "quantizedtype": (dtypes.qint8, dtypes.quint8, dtypes.qint32, dtypes.qint16, dtypes.quint16),
}
_KINDS = {"type", "int", "float", "bool", "string", "shape", "tensor", "func"}


@dataclass(frozen=True, slots=True)
class Argument:
    """One input or output: a tensor, or a list of tensors."""

    name: str
    dtype: DType | None = None
    type_attr: str | None = None
    number_attr: str | None = None
    type_list_attr: str | None = None
    is_ref: bool = False

    @property
    def is_list(self) -> bool:
        return self.number_attr is not None or self.type_list_attr is not None

    def types(self, attrs: Mapping[str, Any]) -> list[DType]:
        """The element types of the tensors that this argument holds, given the attributes."""
        if self.type_list_attr is not None:
            return list(attrs[self.type_list_attr])
        dtype: Any = attrs[self.type_attr] if self.type_attr is not None else self.dtype
        if self.is_ref:
            dtype = dtype.as_ref
        return [dtype] * (attrs[self.number_attr] if self.number_attr is not None else 1)

    def count(self, attrs: Mapping[str, Any]) -> int:
        """The number of tensors that this argument holds, given the attributes."""
        if self.type_list_attr is not None:
            return len(attrs[self.type_list_attr])
        return attrs[self.number_attr] if self.number_attr is not None else 1


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: a value fixed when the operation is created."""

    name: str
    kind: str
    is_list: bool = False
    default: Any = REQUIRED
    allowed: tuple[Any, ...] | None = None
    minimum: int | None = None


def split_specs(specs: str | list[str] | tuple[str, ...]) -> list[str]:
    """``"a: T, b: T"`` or ``["a: T", "b: T"]`` as a list; commas inside braces do not split."""
    if not isinstance(specs, str):
        return list(specs)
    parts = re.split(r",(?![^{}\[\]()]*[}\])])", specs)
    return [part.strip() for part in parts if part.strip()]


def parse_arguments(
    specs: str | list[str] | tuple[str, ...], attributes: dict[str, Attribute]
) -> tuple[Argument, ...]:
    """The arguments that ``specs`` describe; their type names must be types or attributes."""
    return tuple(_parse_argument(spec, attributes) for spec in split_specs(specs))


def _parse_argument(spec: str, attributes: dict[str, Attribute]) -> Argument:
    name, _, type_name = (part.strip() for part in spec.partition(":"))
    number_attr = None
    if "*" in type_name:
        number_attr, type_name = (part.strip() for part in type_name.split("*"))
    is_ref = type_name.startswith("Ref(")
    if is_ref:
        type_name = type_name[4:-1].strip()
    attribute = attributes.get(type_name)
    if attribute is None:
        return Argument(
            name, dtype=dtypes.as_dtype(type_name), number_attr=number_attr, is_ref=is_ref
        )
    if attribute.is_list:
        return Argument(name, type_list_attr=type_name)
    return Argument(name, type_attr=type_name, number_attr=number_attr, is_ref=is_ref)


def parse_attributes(specs: str | list[str] | tuple[str, ...]) -> dict[str, Attribute]:
    """The attributes that ``specs`` describe, by name."""
    parsed = (_parse_attribute(spec) for spec in split_specs(specs))
    return {attribute.name: attribute for attribute in parsed}


def _parse_attribute(spec: str) -> Attribute:
    name, _, rest = (part.strip() for part in spec.partition(":"))
    default: Any = REQUIRED
    minimum = None
    bound = re.search(r">=\s*(-?\d+)", rest)
    if bound:
        minimum = int(bound.group(1))
        rest = rest[: bound.start()] + rest[bound.end() :]
    if "=" in rest:
        rest, _, default_text = (part.strip() for part in rest.partition("="))
    else:
        rest, default_text = rest.strip(), ""
    is_list = rest.startswith("list(")
    if is_list:
        rest = rest[5:-1].strip()
    allowed: tuple[Any, ...] | None = None
    if rest.startswith("{"):
        choices = [choice.strip() for choice in rest[1:-1].split(",")]
        if choices[0][0] in "'\"":
            kind, allowed = "string", tuple(choice[1:-1] for choice in choices)
        else:
            kind = "type"
            allowed = tuple(
                t for choice in choices for t in _TYPE_SETS.get(choice) or [dtypes.as_dtype(choice)]
            )
    elif rest in _TYPE_SETS:
        kind, allowed = "type", _TYPE_SETS[rest]
    else:
        kind = rest
    if kind not in _KINDS:
        raise ValueError(f"Attribute {spec!r} is of no known kind ({', '.join(sorted(_KINDS))})")
    if default_text:
        default = _parse_default(default_text, kind, is_list)
    return Attribute(name, kind, is_list, default, allowed, minimum)


def _parse_default(text: str, kind: str, is_list: bool) -> Any:
    if is_list:
        inner = text.strip("[]").strip()
        items = [item.strip() for item in inner.split(",")] if inner else []
        return [_parse_default(item, kind, False) for item in items]
    if kind == "type":
        return dtypes.as_dtype(text.removeprefix("DT_").lower())
    if kind == "int":
        return int(text)
    if kind == "float":
        return c_float(float(text)).value
    if kind == "bool":
        return text.lower() == "true"
    if kind == "string":
        return text.strip("'\"")
    if kind == "shape":
        inner = text.strip("[]").strip()
        return TensorShape(
            None if text in ("?", "unknown") else [int(d) for d in inner.split(",") if d]
        )
    if kind == "tensor":  # a vector: uint8[1, 2]
        name, _, elements = text.rstrip("]").partition("[")
        return np.array([int(e) for e in elements.split(",")], dtypes.as_dtype(name).np_dtype)
    raise ValueError(f"An attribute of kind {kind} cannot have a default ({text!r})")


# The form in which operations keep a value that nothing restricts: no need to look further.
# Not floats: they are rounded to single precision.
_KEPT = {"bool": bool, "int": int, "string": str, "shape": TensorShape}


def normalize(value: Any, attribute: Attribute, op_type: str) -> Any:
    """``value`` in the form in which operations keep it, checked against ``attribute``."""
    if type(value) is DType and value._base is value and attribute.kind == "type":
        if not attribute.is_list and (attribute.allowed is None or value in attribute.allowed):
            return value
    elif (
        type(value) is _KEPT.get(attribute.kind)
        and attribute.allowed is None
        and attribute.minimum is None
        and not attribute.is_list
    ):
        return value
    if attribute.is_list:
        if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
            raise TypeError(f"{op_type}: attribute {attribute.name!r} takes a list, not {value!r}")
        items = [_normalize_one(item, attribute, op_type) for item in value]
        if attribute.minimum is not None and len(items) < attribute.minimum:
            raise ValueError(
                f"{op_type}: attribute {attribute.name!r} takes a list of at least "
                f"{attribute.minimum} values, not {len(items)}"
            )
        return items
    value = _normalize_one(value, attribute, op_type)
    if attribute.minimum is not None and value < attribute.minimum:
        raise ValueError(
            f"{op_type}: attribute {attribute.name!r} must be at least {attribute.minimum}, "
            f"not {value}"
        )
    return value


def _normalize_one(value: Any, attribute: Attribute, op_type: str) -> Any:
    kind = attribute.kind
    try:
        if kind == "type":
            value = dtypes.as_dtype(value).base_dtype
        elif kind == "bool":
            if not isinstance(value, bool):
                if isinstance(value, str | bytes) or value not in (0, 1):
                    raise TypeError("not a bool")
                value = bool(value)
        elif kind == "int":
            value = value.__index__() if not isinstance(value, int) else int(value)
        elif kind == "float":
            # In single precision, as a GraphDef holds it: an imported graph computes the same.
            value = c_float(float(value)).value
        elif kind == "string":
            if isinstance(value, bytes):
                try:
                    value = value.decode()
                except UnicodeDecodeError:
                    return value
            elif not isinstance(value, str):
                raise TypeError("not a string")
        elif kind == "shape":
            value = value if isinstance(value, TensorShape) else TensorShape(value)
    except (TypeError, AttributeError, ValueError):
        raise TypeError(
            f"{op_type}: attribute {attribute.name!r} takes a value of kind {kind}, not {value!r}"
        ) from None
    if attribute.allowed is not None and value not in attribute.allowed:
        choices = ", ".join(getattr(a, "name", None) or repr(a) for a in attribute.allowed)
        shown = value.name if isinstance(value, DType) else repr(value)
        error = TypeError if kind == "type" else ValueError
        raise error(
            f"{op_type}: attribute {attribute.name!r} is {shown}, but must be one of: {choices}"
        )
    return value
