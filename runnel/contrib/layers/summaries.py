"""Summaries of tensors, of layers' outputs and of variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.dtypes import float32
from runnel.graph.graph import get_default_graph
from runnel.ops.casting import cast
from runnel.ops.comparison import equal, less
from runnel.ops.reduce_functions import reduce_mean
from runnel.summary import histogram, scalar


def summarize_tensor(tensor: Any, tag: str | None = None) -> Any:
    """A scalar, or a histogram of more than one number."""
    name = tag or tensor.op.name
    return scalar(name, tensor) if tensor.shape.rank == 0 else histogram(name, tensor)


def summarize_activation(op: Any) -> Any:
    """How an activation is distributed, and how much of it is zero (or saturated)."""
    if op.op.type in ("Relu", "Softplus", "Relu6"):
        name = f"{op.op.name}/zeros"
        scalar(name, reduce_mean(cast(equal(op, 0), float32)))
    if op.op.type == "Relu6":
        scalar(f"{op.op.name}/sixes", reduce_mean(cast(equal(op, 6), float32)))
    if op.op.type in ("Tanh", "Sigmoid"):
        scalar(f"{op.op.name}/less_than_zero", reduce_mean(cast(less(op, 0.0), float32)))
    return histogram(f"{op.op.name}/activation", op)


def summarize_tensors(
    tensors: Iterable[Any], summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """A summary of each."""
    return [summarizer(tensor) for tensor in tensors]


def summarize_collection(
    collection: str,
    name_filter: str | None = None,
    summarizer: Callable[[Any], Any] = summarize_tensor,
) -> list[Any]:
    """A summary of each member of a collection whose name matches."""
    return summarize_tensors(
        get_default_graph().get_collection(collection, name_filter), summarizer
    )


def summarize_variables(
    name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """A summary of each variable."""
    return summarize_collection(GraphKeys.GLOBAL_VARIABLES, name_filter, summarizer)


def summarize_activations(
    name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_activation
) -> list[Any]:
    """A summary of each member of the collection of activations."""
    return summarize_collection(GraphKeys.ACTIVATIONS, name_filter, summarizer)
