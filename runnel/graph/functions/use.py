"""One use of functions by a node: where it lies, and what it becomes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from runnel.graph.imported_node import Endpoint


@dataclass(slots=True)
class Region:
    """Where nodes run only after ``controls``: those that take nothing but ``free`` tensors."""

    controls: list[str]
    free: set[Endpoint] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Use:
    """A node that uses functions: its inputs, and where it lies."""

    node: Any
    name: str
    inputs: list[Endpoint]
    controls: list[str]
    region: Region | None
    device: str
    is_fetchable: bool
    """It lies in the graph itself, so its name must stay."""
    is_awaited: bool
    """Others wait for it by a control edge."""

    def within(self, region: Region) -> Use:
        """The same, in ``region``."""
        return replace(self, region=region)

    def error(self, message: str) -> ValueError:
        return ValueError(f"Node {self.name!r} ({self.node.op}): {message}")


@dataclass(frozen=True, slots=True)
class Results:
    """What came of a call: its results, and what must run for all its effects."""

    endpoints: list[Endpoint]
    types: list[int]
    effects: list[str]


def check_types(use: Use, key: str, types: list[int]) -> None:
    """An error if the attribute ``key`` of ``use`` says other types than those of its function."""
    if key in use.node.attr and list(use.node.attr[key].list.type) != types:
        raise use.error(
            f"attribute {key!r} has {_type_names(use.node.attr[key].list.type)}, but the types of "
            f"the function are {_type_names(types)}"
        )


def _type_names(types: Iterable[int]) -> str:
    from tensorboard.compat.proto.types_pb2 import DataType

    values = DataType.DESCRIPTOR.values_by_number
    names = [values[t].name[3:].lower() if t in values else str(t) for t in types]
    return f"({', '.join(names)})"
