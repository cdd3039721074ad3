"""Protocol buffers of TensorFlow that TensorBoard does not carry, declared as tables of fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

_OPTIONAL, _REPEATED = 1, 3
DOUBLE, FLOAT, INT64, INT32, FIXED32, BOOL = 1, 2, 3, 5, 7, 8
STRING, MESSAGE, BYTES, ENUM = 9, 11, 12, 14
"""The types of fields, as a ``FieldDescriptorProto`` numbers them."""

Field = tuple[str, int, int, str | None, int]


def one(name: str, number: int, kind: int, of: str | None = None) -> Field:
    """A field with one value; ``of`` names the type of a message or an enumeration."""
    return name, number, kind, of, _OPTIONAL


def many(name: str, number: int, kind: int, of: str | None = None) -> Field:
    """A field with a list of values."""
    return name, number, kind, of, _REPEATED


class MessageTypes:
    """The message types of one file.

    ``messages`` maps a message's name to its fields; a type that begins with a dot lies in one of
    ``uses``, the ``_pb2`` modules of TensorBoard by their names. ``present`` names fields that tell
    an absent value from a zero. ``choices`` maps a message to a oneof with all its fields.
    ``Outer.Inner`` is a map's entry, from ``key`` to ``value``.
    """

    def __init__(
        self,
        file: str,
        messages: Mapping[str, Sequence[Field]],
        uses: Sequence[str] = (),
        present: Sequence[tuple[str, str]] = (),
        choices: Mapping[str, str] | None = None,
    ) -> None:
        self._name = file
        self._package = f"runnel.{file}"
        self._messages = messages
        self._uses = uses
        self._present = present
        self._choices = choices or {}

    def __getitem__(self, name: str) -> Any:
        """The class of the message ``name``."""
        from google.protobuf import message_factory

        return message_factory.GetMessageClass(self._file.message_types_by_name[name])

    @cached_property
    def _file(self) -> Any:
        from importlib import import_module

        from google.protobuf import descriptor_pb2, descriptor_pool

        used = [import_module(f"tensorboard.compat.proto.{name}").DESCRIPTOR for name in self._uses]
        file = descriptor_pb2.FileDescriptorProto(
            name=f"runnel/{self._name}.proto",
            package=self._package,
            syntax="proto3",
            dependency=[found.name for found in used],
        )
        for title, fields in self._messages.items():
            outer, _, inner = title.partition(".")
            if inner:
                [around] = [m for m in file.message_type if m.name == outer]
                described = around.nested_type.add(name=inner)
                described.options.map_entry = True
            else:
                described = file.message_type.add(name=title)
            self._describe(described, title, fields)
        return descriptor_pool.Default().AddSerializedFile(file.SerializeToString())

    def _describe(self, described: Any, title: str, fields: Sequence[Field]) -> None:
        if title in self._choices:
            described.oneof_decl.add(name=self._choices[title])
        for name, number, kind, of, label in fields:
            field = described.field.add(name=name, number=number, type=kind, label=label)
            if of is not None:
                field.type_name = of if of.startswith(".") else f".{self._package}.{of}"
            if title in self._choices:
                field.oneof_index = 0
            if (title, name) in self._present:
                field.proto3_optional = True
                field.oneof_index = len(described.oneof_decl)
                described.oneof_decl.add(name=f"has_{name}")
