"""One function of the library with its attributes bound: its types, its nodes, what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runnel.graph.scopes import VALID_OP_NAME

RESOURCE, VARIANT, BOOL, INT32 = 20, 21, 10, 3
"""Types as ``types.proto`` numbers them."""
HANDLES = frozenset({RESOURCE, VARIANT})

_MOST_TENSORS = 1 << 16


@dataclass(frozen=True, slots=True)
class Body:
    """A function whose attributes have values."""

    name: str
    argument_types: list[int]
    arguments: dict[str, int]
    """The names under which nodes take arguments, with their positions."""
    nodes: dict[str, Any]
    """``NodeDef`` messages by name."""
    result_types: list[int]
    results: list[str]
    """The tensors that it returns, as its nodes name them."""
    result_ranges: dict[str, int]
    """Where each output of the signature begins among the results."""
    controls: list[str]
    """Nodes that run whenever it is called."""


def bind(function: Any, given: Mapping[str, Any]) -> Body:
    """``function`` with the attributes ``given``; a ValueError says why it cannot be called so."""
    name = function.signature.name
    try:
        return _bind(function, given)
    except ValueError as error:
        raise ValueError(f"Function {name!r}: {error}") from None


def _bind(function: Any, given: Mapping[str, Any]) -> Body:
    signature = function.signature
    attrs = {a.name: a.default_value for a in signature.attr if a.HasField("default_value")}
    attrs.update({key: value for key, value in given.items()})
    arguments: dict[str, int] = {}
    argument_types: list[int] = []
    for argument in signature.input_arg:
        types = types_of(argument, attrs)
        first = len(argument_types)
        if argument.name in arguments:
            raise ValueError(f"two arguments are called {argument.name!r}")
        if types:
            arguments[argument.name] = first
        for i in range(len(types)):
            arguments[f"{argument.name}:{i}"] = first + i
        argument_types += types
    nodes: dict[str, Any] = {}
    for node in function.node_def:
        if not VALID_OP_NAME.fullmatch(node.name):
            raise ValueError(f"{node.name!r} is not a valid name for a node")
        if node.name in nodes or node.name in arguments:
            raise ValueError(f"two of its nodes and arguments have the name {node.name!r}")
        nodes[node.name] = _without_placeholders(node, attrs)
    results: list[str] = []
    result_types: list[int] = []
    ranges: dict[str, int] = {}
    for argument in signature.output_arg:
        types = types_of(argument, attrs)
        if argument.name not in function.ret:
            raise ValueError(f"it does not say what it returns as {argument.name!r}")
        ranges[argument.name] = len(results)
        text = function.ret[argument.name]
        if argument.number_attr or argument.type_list_attr:
            results += [f"{text}:{i}" for i in range(len(types))]
        else:
            results.append(text)
        result_types += types
    return Body(
        signature.name,
        argument_types,
        arguments,
        nodes,
        result_types,
        results,
        ranges,
        sorted(set(function.control_ret.values())),
    )


def types_of(argument: Any, attrs: Mapping[str, Any]) -> list[int]:
    """The types of the tensors that an argument of a signature (an ``ArgDef``) holds."""
    if argument.type_list_attr:
        return list(_value(attrs, argument.type_list_attr).list.type)
    one = _value(attrs, argument.type_attr).type if argument.type_attr else argument.type
    if not argument.number_attr:
        return [one]
    count = _value(attrs, argument.number_attr).i
    if not 0 <= count <= _MOST_TENSORS:
        raise ValueError(f"attribute {argument.number_attr!r} is {count}, which is no length")
    return [one] * count


def _value(attrs: Mapping[str, Any], name: str) -> Any:
    if name not in attrs:
        raise ValueError(f"the attribute {name!r} is missing")
    return attrs[name]


def _without_placeholders(node: Any, attrs: Mapping[str, Any]) -> Any:
    """``node`` with values for attributes that stand for those of the call."""
    if not any(_has_placeholder(value) for value in node.attr.values()):
        return node
    made = type(node).FromString(node.SerializeToString())
    for key in sorted(made.attr):
        _fill(made.attr[key], attrs)
    return made


def _has_placeholder(value: Any) -> bool:
    kind = value.WhichOneof("value")
    if kind == "func":
        return any(_has_placeholder(inner) for inner in value.func.attr.values())
    if kind == "list":
        return any(_has_placeholder(a) for f in value.list.func for a in f.attr.values())
    return kind == "placeholder"


def _fill(value: Any, attrs: Mapping[str, Any]) -> None:
    kind = value.WhichOneof("value")
    if kind == "placeholder":
        value.CopyFrom(_value(attrs, value.placeholder))
    for function in [value.func] if kind == "func" else value.list.func if kind == "list" else []:
        for key in sorted(function.attr):
            _fill(function.attr[key], attrs)
