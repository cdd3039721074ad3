"""Checks a user's feeds against the tensors that they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from numbers import Number
from typing import Any

import numpy as np

from runnel.graph.conversion import make_array
from runnel.graph.dtypes import DType
from runnel.graph.graph import Graph
from runnel.graph.operation import Tensor
from runnel.graph.shapes import compatible_dims, format_dims
from runnel.runtime.session.fetches import conversion_of

_may_be = lru_cache(1024)(compatible_dims)  # the same few shapes are fed again and again


def expand_feeds(graph: Graph, feed_dict: Mapping[Any, Any]) -> dict[Tensor, Any]:
    """``feed_dict`` with tensors for keys: names, variables, structures and composite types."""
    if not isinstance(feed_dict, Mapping):
        raise TypeError(
            "feed_dict must be a dictionary from tensors to their values, but is a "
            f"{type(feed_dict).__name__}: {feed_dict!r}"
        )
    expanded: dict[Tensor, Any] = {}
    for key, value in feed_dict.items():
        for part, part_value in _matched(key, value):
            conversion = conversion_of(part)
            pairs = [(part, part_value)]
            if conversion is not None and conversion[2] is not None:
                pairs = conversion[2](part, part_value)
            for tensor, array in pairs:
                tensor = _feedable(graph, tensor)
                if tensor in expanded:
                    raise ValueError(f"Tensor {tensor.name} is fed twice in feed_dict.")
                expanded[tensor] = array
    return expanded


def fed_tensors(graph: Graph, key: Any) -> list[Tensor]:
    """The tensors that a key of a ``feed_dict`` feeds, where its value is not known."""
    conversion = conversion_of(key)
    if isinstance(key, tuple) and conversion is None:
        return [tensor for part in key for tensor in fed_tensors(graph, part)]
    if conversion is not None and conversion[3] is not None:
        return [_feedable(graph, tensor) for tensor in conversion[3](key)]
    return [_feedable(graph, key)]


def _matched(key: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    """Each part of ``key``, which may be a nested tuple, with its part of ``value``."""
    if not isinstance(key, tuple) or conversion_of(key) is not None:
        yield key, value
        return
    if isinstance(value, Mapping) or not isinstance(value, Sequence) or len(value) != len(key):
        got = f"{len(value)} in a" if isinstance(value, Sequence) else "a"
        raise ValueError(
            f"A feed_dict key of {len(key)} parts needs as many values in the same structure, but "
            f"got {got} {type(value).__name__} for {key!r}"
        )
    for part, part_value in zip(key, value, strict=True):
        yield from _matched(part, part_value)


def _feedable(graph: Graph, key: Any) -> Tensor:
    try:
        tensor = graph.as_graph_element(key, allow_operation=False)
    except Exception as error:
        message = error.args[0] if error.args else error
        raise TypeError(f"Cannot interpret feed_dict key {key!r} as a Tensor: {message}") from None
    if not graph.is_feedable(tensor):
        raise ValueError(
            f"Tensor {tensor.name} may not be fed: Graph.prevent_feeding was called for it. Feed a "
            f"tensor that it is computed from.{_site(tensor)}"
        )
    return tensor


def check_feed(tensor: Tensor, value: Any) -> np.ndarray:
    """``value`` as a read-only array for ``tensor``; an error says what does not fit."""
    dtype = tensor.dtype._base
    wanted = dtype.np_dtype
    # Subclasses (np.matrix) give the operators another meaning; they are converted.
    if type(value) is np.ndarray and (value.dtype is wanted or value.dtype == wanted):
        array = value
        if wanted.kind == "O" and not _holds_bytes(value):
            array = make_array(value.tolist(), dtype)
    else:
        array = _convert(tensor, value)
    dims = tensor.dims
    if dims is not None and array.shape != dims and not _may_be(array.shape, dims):
        raise ValueError(
            f"Cannot feed value of shape {format_dims(array.shape)} for Tensor {tensor.name!r}, "
            f"which has shape {format_dims(dims)}{_site(tensor)}"
        )
    # Kernels must not change the caller's array, and a result that shares it must be copied
    # before the caller gets it back: a view that is not writable says both.
    view = array.view()
    view.setflags(write=False)
    return view


def _holds_bytes(array: np.ndarray) -> bool:
    """Whether all elements are what strings are kept as."""
    return set(map(type, array.reshape(-1).tolist())) <= {bytes}


def _convert(tensor: Tensor, value: Any) -> np.ndarray:
    if isinstance(value, Tensor):
        raise TypeError(
            f"The value of a feed cannot be a tensor ({value.name} for {tensor.name}); "
            "give Python numbers, strings, lists or NumPy arrays. "
            "session.run gives a tensor's value."
        )
    dtype = tensor.dtype.base_dtype
    try:
        if dtype.np_dtype == object:
            return make_array(value, dtype)
        if isinstance(value, int) and not isinstance(value, bool) and dtype.is_integer:
            low, high = dtype.limits
            if not low <= value <= high:
                raise TypeError(f"{value} is outside the range of {dtype.name}")
        array = np.asarray(value)
        if array.dtype.kind == "O" and _holds_numbers(array):
            return _to_integers(array, dtype) if dtype.is_integer else array.astype(dtype.np_dtype)
        if array.dtype.kind in "OSU" or (array.dtype.kind == "c" and not dtype.is_complex):
            kind = {"S": "bytes", "U": "strings", "O": "Python objects"}.get(array.dtype.kind)
            raise TypeError(f"its values are {kind or array.dtype.name}")
        if dtype.is_integer and array.dtype != dtype.np_dtype:
            return _to_integers(array, dtype)
        return array.astype(dtype.np_dtype, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"Cannot feed {type(value).__name__} for Tensor {tensor.name!r}, which takes "
            f"{dtype.name} of shape {format_dims(tensor.dims)}: {error}{_site(tensor)}"
        ) from None


def _site(tensor: Tensor) -> str:
    """Where the user's program created ``tensor``, on a line of its own."""
    return f"\n  {tensor.name} was created at {tensor.op.creation_site()[-1]}"


def _holds_numbers(array: np.ndarray) -> bool:
    return all(isinstance(value, Number | np.bool_) for value in array.flat)


def _to_integers(array: np.ndarray, dtype: DType) -> np.ndarray:
    """``array`` in an integer type; an error unless every value has its equal there."""
    with np.errstate(all="ignore"):
        converted = array.astype(dtype.np_dtype)
    lost = np.asarray(converted != array)
    if lost.any():
        raise TypeError(
            f"values such as {array[lost].flat[0]} have no equal in {dtype.name}; round or cast "
            "them first, or use a placeholder of another type"
        )
    return converted
