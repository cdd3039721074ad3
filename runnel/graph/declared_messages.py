"""Declaring protocol buffers that TensorBoard does not carry.

A field is ``one`` or ``many`` of a kind; ``of`` names the type of messages and enumerations: one of
the same declaration, or another's with a dot before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

DOUBLE, FLOAT, INT64, INT32, FIXED32, STRING, MESSAGE, BYTES, ENUM = 1, 2, 3, 5, 7, 9, 11, 12, 14


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message."""

    name: str
    number: int
    kind: int
    of: str | None = None
    repeated: bool = False
    optional: bool = False
    """It can be absent, which is not the same as zero."""
    oneof: str | None = None
    """The group of fields of which one at most is there."""
    keyed: bool = False
    """It is a map from strings."""


def one(name: str, number: int, kind: int, of: str | None = None, **how: Any) -> Field:
    """A field with one value."""
    return Field(name, number, kind, of, **how)


def many(name: str, number: int, kind: int, of: str | None = None) -> Field:
    """A field with a list of values."""
    return Field(name, number, kind, of, repeated=True)


def keyed(name: str, number: int, kind: int, of: str | None = None) -> Field:
    """A field with a value for each of some strings."""
    return Field(name, number, kind, of, keyed=True)


def declare(
    package: str, messages: Mapping[str, Sequence[Field]], used: Sequence[Any] = ()
) -> dict[str, Any]:
    """The classes of ``messages``, by name; ``used`` are modules whose messages they hold."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name=f"{package.replace('.', '/')}.proto",
        package=package,
        syntax="proto3",
        dependency=[module.DESCRIPTOR.name for module in used],
    )
    for title, fields in messages.items():
        described = file.message_type.add(name=title)
        groups: dict[str, int] = {}
        for field in sorted(fields, key=lambda field: field.optional):  # theirs are the last groups
            _add(described, field, package, groups)
    added = descriptor_pool.Default().AddSerializedFile(file.SerializeToString())
    classes = added.message_types_by_name
    return {title: message_factory.GetMessageClass(classes[title]) for title in messages}


def _add(described: Any, field: Field, package: str, groups: dict[str, int]) -> None:
    label = 3 if field.repeated or field.keyed else 1
    made = described.field.add(name=field.name, number=field.number, type=field.kind, label=label)
    of = field.of
    if of is not None and not of.startswith("."):
        of = f".{package}.{of}"
    if field.keyed:
        entry = described.nested_type.add(name=f"{field.name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=STRING, label=1)
        value = entry.field.add(name="value", number=2, type=field.kind, label=1)
        if of is not None:
            value.type_name = of
        made.type = MESSAGE
        made.type_name = f".{package}.{described.name}.{entry.name}"
    elif of is not None:
        made.type_name = of
    group = f"has_{field.name}" if field.optional else field.oneof
    if group is not None:
        if group not in groups:
            groups[group] = len(groups)
            described.oneof_decl.add(name=group)
        made.oneof_index = groups[group]
        made.proto3_optional = field.optional
