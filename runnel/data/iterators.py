"""Iterators: where the elements of datasets come out, as tensors."""

from __future__ import annotations

from typing import Any

from runnel.data.element_structure import (
    component_attrs,
    flatten,
    from_components,
    map_leaves,
    structure_from,
)
from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.ops.data.iterator_ops import (
    from_string_v2_op,
    iterator_v2_op,
    make_op,
    next_op,
    to_string_op,
)

GLOBAL_ITERATORS = "iterators"
"""The name of the collection of all iterators of a graph that have a state of their own."""


class Iterator:
    """Gives the elements of a dataset, the next one in each step that asks.

    Example:
        >>> iterator = dataset.make_initializable_iterator()
        >>> x, y = iterator.get_next()
        >>> sess.run(iterator.initializer)
    """

    def __init__(
        self,
        iterator_resource: Tensor,
        initializer: Operation | None,
        output_types: Any,
        output_shapes: Any = None,
        output_classes: Any = None,
    ) -> None:
        """An iterator whose operations are in the graph already, such as an imported one."""
        structure = structure_from(output_types, output_shapes, output_classes)
        self._begin(iterator_resource, initializer, structure)

    def _begin(self, resource: Tensor, initializer: Operation | None, structure: Any) -> None:
        self._iterator_resource = resource
        self._initializer = initializer
        self._structure = structure
        # Made now, and once: a hook asks for it when its graph is finalized.
        self._string_handle = to_string_op(resource)

    @classmethod
    def over(cls, resource: Tensor, initializer: Operation | None, structure: Any) -> Iterator:
        """An iterator of elements of ``structure``."""
        made = cls.__new__(cls)
        made._begin(resource, initializer, structure)
        return made

    @staticmethod
    def from_structure(
        output_types: Any,
        output_shapes: Any = None,
        shared_name: str | None = None,
        output_classes: Any = None,
    ) -> Iterator:
        """An iterator for any dataset of that structure; ``make_initializer`` says which.

        Example:
            >>> iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
            >>> begin_training = iterator.make_initializer(train)
            >>> begin_testing = iterator.make_initializer(test)
        """
        return Iterator.of_structure(
            structure_from(output_types, output_shapes, output_classes), shared_name
        )

    @staticmethod
    def of_structure(structure: Any, shared_name: str | None = None) -> Iterator:
        """An iterator for datasets of a structure, not begun."""
        resource = iterator_v2_op(
            container="", shared_name=shared_name or "", **component_attrs(structure)
        )
        get_default_graph().add_to_collection(GLOBAL_ITERATORS, resource)
        return Iterator.over(resource, None, structure)

    @staticmethod
    def from_string_handle(
        string_handle: Any,
        output_types: Any,
        output_shapes: Any = None,
        output_classes: Any = None,
    ) -> Iterator:
        """The iterator that a string, which may be fed, stands for.

        Example:
            >>> handle = tf.placeholder(tf.string, [])
            >>> either = tf.data.Iterator.from_string_handle(handle, train.output_types)
            >>> sess.run(either.get_next(), {handle: sess.run(iterator.string_handle())})
        """
        structure = structure_from(output_types, output_shapes, output_classes)
        text = convert_to_tensor(string_handle, dtypes.string)
        resource = from_string_v2_op(text, **component_attrs(structure))
        return Iterator.over(resource, None, structure)

    @property
    def initializer(self) -> Operation:
        """The operation that begins with the first element."""
        if self._initializer is None:
            raise ValueError("Iterator does not have an initializer.")
        return self._initializer

    def make_initializer(self, dataset: Any, name: str | None = None) -> Operation:
        """An operation that begins with the first element of ``dataset``."""
        ours, theirs = flatten(self._structure), flatten(dataset._structure)
        if len(ours) != len(theirs):
            raise TypeError(f"The dataset has {len(theirs)} components, the iterator {len(ours)}.")
        for a, b in zip(ours, theirs, strict=True):
            if a.type != b.type:
                raise TypeError(
                    f"Expected output types {self.output_types!r} but got dataset with output "
                    f"types {dataset.output_types!r}."
                )
            if not a.fits(b):
                raise TypeError(
                    f"Expected output shapes compatible with {self.output_shapes!r} but got "
                    f"dataset with output shapes {dataset.output_shapes!r}."
                )
        return make_op(dataset._variant_tensor, self._iterator_resource, name=name)

    def get_next(self, name: str | None = None) -> Any:
        """The next element; ``OutOfRangeError`` in the step that finds none."""
        tensors = next_op(self._iterator_resource, **component_attrs(self._structure), name=name)
        return from_components(self._structure, list(tensors))

    def string_handle(self, name: str | None = None) -> Tensor:
        """A string that stands for this iterator."""
        return (
            self._string_handle
            if name is None
            else to_string_op(self._iterator_resource, name=name)
        )

    @property
    def element_spec(self) -> Any:
        """The structure of its elements, with a ``tf.TypeSpec`` in each place."""
        return self._structure

    @property
    def output_types(self) -> Any:
        return map_leaves(lambda place: place.type, self._structure)

    @property
    def output_shapes(self) -> Any:
        return map_leaves(lambda place: place.shape, self._structure)

    @property
    def output_classes(self) -> Any:
        return map_leaves(lambda place: place.kind, self._structure)
