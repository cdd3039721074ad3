"""Flattens nested structures of fetches to graph elements, and rebuilds them from the values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from copy import copy
from typing import Any

from runnel.graph.graph import Graph
from runnel.graph.indexed_slices import IndexedSlices, IndexedSlicesValue
from runnel.graph.operation import Operation, Tensor
from runnel.graph.sparse_tensor import SparseTensor, SparseTensorValue, sparse_parts
from runnel.ops.ragged.ragged_tensor import RaggedTensor, ragged_parts, ragged_value

Rebuild = Callable[[Callable[[Any], Any]], Any]

# (type, fetch function, feed function, feed function for partial runs), newest first.
_conversions: list[tuple[type, Any, Any, Any]] = []


def register_session_run_conversion_functions(
    tensor_type: type,
    fetch_function: Any = None,
    feed_function: Any = None,
    feed_function_for_partial_run: Any = None,
) -> None:
    """Makes objects of ``tensor_type`` usable as fetches and feeds.

    ``fetch_function(obj)`` returns (a list of tensors, a function from their values to the
    result); ``feed_function(obj, value)`` returns pairs of (tensor, value), and
    ``feed_function_for_partial_run(obj)`` the tensors alone, for feeds whose values come later.
    """
    if any(tensor_type is known for known, *_ in _conversions):
        raise ValueError(f"{tensor_type} has already been registered.")
    _conversions.insert(
        0, (tensor_type, fetch_function, feed_function, feed_function_for_partial_run)
    )


def conversion_of(obj: Any) -> tuple[type, Any, Any, Any] | None:
    """The registered conversion for ``obj``, or None."""
    for entry in _conversions:
        if isinstance(obj, entry[0]):
            return entry
    return None


def expand_fetches(graph: Graph, fetches: Any) -> tuple[list[Any], Rebuild]:
    """The elements (tensors and operations) of ``fetches``, and how to rebuild the structure.

    ``rebuild(value_of)`` returns the structure with ``value_of(element)`` in each place.
    """
    elements: dict[Any, None] = {}
    rebuild = _expand(graph, fetches, elements)
    return list(elements), rebuild


def _expand(graph: Graph, fetch: Any, elements: dict[Any, None]) -> Rebuild:
    if fetch is None:
        raise TypeError("None is not a valid fetch: it has no value to return.")
    if isinstance(fetch, list):
        parts = [_expand(graph, item, elements) for item in fetch]
        return lambda value_of: [part(value_of) for part in parts]
    if isinstance(fetch, tuple):
        parts = [_expand(graph, item, elements) for item in fetch]
        if hasattr(fetch, "_fields"):
            kind: Any = type(fetch)
            return lambda value_of: kind(*[part(value_of) for part in parts])
        return lambda value_of: tuple([part(value_of) for part in parts])
    if isinstance(fetch, Mapping):
        keyed = {key: _expand(graph, item, elements) for key, item in fetch.items()}
        rebuilt = _rebuilt_mapping(fetch)
        return lambda value_of: rebuilt({k: part(value_of) for k, part in keyed.items()})
    if hasattr(type(fetch), "__attrs_attrs__"):  # of the package attrs
        names = [attribute.name for attribute in type(fetch).__attrs_attrs__]
        named = {name: _expand(graph, getattr(fetch, name), elements) for name in names}
        return lambda value_of: _with_attributes(
            fetch, {name: part(value_of) for name, part in named.items()}
        )
    conversion = conversion_of(fetch)
    if conversion is not None and conversion[1] is not None:
        tensors, contract = conversion[1](fetch)
        parts = [_expand(graph, item, elements) for item in tensors]
        return lambda value_of: contract([part(value_of) for part in parts])
    element = _element(graph, fetch)
    elements[element] = None
    return lambda value_of: value_of(element)


def _rebuilt_mapping(fetch: Mapping[Any, Any]) -> Callable[[dict[Any, Any]], Any]:
    """How to make a mapping like ``fetch`` (its type, its default factory) with other values."""
    kind: Any = type(fetch)
    if kind is dict:
        return lambda values: values
    if not isinstance(fetch, MutableMapping):
        return kind
    model = copy(fetch)

    def rebuilt(values: dict[Any, Any]) -> Any:
        made = copy(model)
        for key, value in values.items():  # the update of a Counter adds
            made[key] = value
        return made

    return rebuilt


def _with_attributes(model: Any, values: dict[str, Any]) -> Any:
    """A copy of ``model``, which may be frozen, with other values."""
    made = copy(model)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


def _element(graph: Graph, fetch: Any) -> Tensor | Operation:
    try:
        element = graph.as_graph_element(fetch)
    except TypeError as error:
        raise TypeError(
            f"Fetch argument {fetch!r} has invalid type {type(fetch).__name__}: it must be a "
            f"tensor, an operation, a variable, a name, or a list, tuple or dict of them. {error}"
        ) from None
    except (ValueError, KeyError) as error:
        message = error.args[0] if error.args else error
        raise ValueError(
            f"Fetch argument {fetch!r} cannot be interpreted as a Tensor. ({message})"
        ) from None
    if not graph.is_fetchable(element):
        from runnel.control_flow.context import how_to_bring_out

        op = element.op if isinstance(element, Tensor) else element
        reason = "" if op.control_flow_context is None else f" {how_to_bring_out(op)}"
        raise ValueError(f"Operation {element.name!r} has been marked as not fetchable.{reason}")
    return element


def _components(slices: IndexedSlices) -> list[Tensor]:
    parts = [slices.values, slices.indices, slices.dense_shape]
    return [part for part in parts if part is not None]


register_session_run_conversion_functions(
    IndexedSlices,
    lambda slices: (_components(slices), lambda values: IndexedSlicesValue(*values)),
    lambda slices, value: list(zip(_components(slices), value, strict=False)),
    _components,
)
register_session_run_conversion_functions(
    SparseTensor,
    lambda sparse: (sparse_parts(sparse), lambda values: SparseTensorValue(*values)),
    lambda sparse, value: list(zip(sparse_parts(sparse), value, strict=True)),
    sparse_parts,
)
register_session_run_conversion_functions(
    RaggedTensor,
    lambda ragged: (ragged_parts(ragged), ragged_value),
    lambda ragged, value: list(
        zip(ragged_parts(ragged), [value.flat_values, *value.nested_row_splits], strict=True)
    ),
    ragged_parts,
)
