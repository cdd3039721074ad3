"""``tf.data.experimental.Optional``: a value that may be missing."""

from __future__ import annotations

from typing import Any

from runnel.data.element_structure import (
    VariantSpec,
    as_elements,
    component_attrs,
    flatten,
    from_components,
    structure_from,
    structure_of,
    to_components,
)
from runnel.data.iterators import Iterator
from runnel.graph.operation import Tensor
from runnel.ops.data.iterator_ops import next_as_optional_op
from runnel.ops.data.optional_ops import from_value_op, get_value_op, has_value_op, none_op


class Optional:
    """A value that may be missing.

    Example:
        >>> following = tf.data.experimental.get_next_as_optional(iterator)
        >>> tf.cond(following.has_value(), lambda: following.get_value(), lambda: tf.zeros([]))
    """

    def __init__(self, variant: Tensor, structure: Any) -> None:
        self._variant_tensor, self._structure = variant, structure

    @property
    def _place(self) -> OptionalSpec:
        """What stands for it where it is an element of a dataset."""
        return OptionalSpec(self._structure)

    @staticmethod
    def from_value(value: Any) -> Optional:
        """One that has ``value``."""
        elements = as_elements(value)
        structure = structure_of(elements)
        return Optional(from_value_op(to_components(structure, elements)), structure)

    @staticmethod
    def none_from_structure(value_structure: Any) -> Optional:
        """One that has no value; ``value_structure`` is that of :func:`get_structure`, or types."""
        made = value_structure if is_structure(value_structure) else structure_from(value_structure)
        return Optional(none_op(), made)

    @property
    def value_structure(self) -> Any:
        """The structure of the value."""
        return self._structure

    def has_value(self, name: str | None = None) -> Tensor:
        """Whether it has a value."""
        return has_value_op(self._variant_tensor, name=name)

    def get_value(self, name: str | None = None) -> Any:
        """The value; an ``InvalidArgumentError`` in a step where it has none."""
        tensors = get_value_op(self._variant_tensor, **component_attrs(self._structure), name=name)
        return from_components(self._structure, list(tensors))


class OptionalSpec(VariantSpec):
    """A value that may be missing, and has a structure if it is there.

    Example:
        >>> tf.OptionalSpec(tf.TensorSpec([], tf.int64))
    """

    __slots__ = ()

    def __init__(self, value_structure: Any) -> None:
        super().__init__(value_structure)

    def __repr__(self) -> str:
        return f"OptionalSpec({self.structure!r})"

    @staticmethod
    def from_value(value: Optional) -> OptionalSpec:
        """That of ``value``."""
        return value._place

    @property
    def type(self) -> Any:
        return self

    @property
    def shape(self) -> Any:
        return self

    @property
    def kind(self) -> Any:
        return self

    @property
    def value_type(self) -> Any:
        return Optional

    def made(self, variant: Tensor) -> Optional:
        return Optional(variant, self.structure)


def is_structure(value: Any) -> bool:
    """Whether ``value`` is the structure of elements."""
    return all(hasattr(leaf, "component") for leaf in flatten(value))


def get_next_as_optional(iterator: Iterator) -> Optional:
    """The next element, or, at the end, an ``Optional`` without a value."""
    structure = iterator._structure
    return Optional(
        next_as_optional_op(iterator._iterator_resource, **component_attrs(structure)), structure
    )
