"""Names of ``ops``, ``context`` and ``common_shapes`` that are not public."""

from __future__ import annotations

import itertools
from abc import ABC
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.conversion import convert_to_tensor as internal_convert_to_tensor
from runnel.graph.gradient_registry import gradient_function
from runnel.graph.graph import get_default_graph
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.graph.sparse_tensor import SparseTensor
from runnel.train.collection_def import get_from_proto_function as get_from_proto_function
from runnel.train.collection_def import get_to_proto_function as get_to_proto_function
from runnel.train.collection_def import register_proto_function as register_proto_function
from runnel.variables.proto_names import add_scope, strip_scope
from runnel.variables.variable import Variable

__all__ = [
    "EagerTensor",
    "convert_to_tensor",
    "eager_mode",
    "executing_eagerly_outside_functions",
    "get_from_proto_function",
    "get_gradient_function",
    "get_to_proto_function",
    "graph_mode",
    "in_eager_mode",
    "in_graph_mode",
    "internal_convert_to_tensor",
    "is_dense_tensor_like",
    "name_from_scope_name",
    "prepend_name_scope",
    "register_proto_function",
    "set_shapes_for_outputs",
    "strip_name_scope",
    "uid",
]


class _TensorLike(ABC):  # noqa: B024 (it only names what others are)
    """Tensors of every kind."""


for _kind in (Tensor, SparseTensor, IndexedSlices):
    _TensorLike.register(_kind)


class EagerTensor:
    """A tensor with a value: there is none, since nothing runs while it is described."""

    def __init__(self) -> NoReturn:
        raise TypeError("A tensor has no value while the graph is built; session.run gives it")


def is_dense_tensor_like(t: Any) -> bool:
    """True for tensors and variables."""
    return isinstance(t, Tensor | Variable)


def get_gradient_function(op: Operation) -> Callable[..., Any] | None:
    """The function that gives the gradient of an operation, as ``gradient_override_map`` says."""
    if not op.inputs:
        return None
    return gradient_function(op.gradient_name or op.type)


class _GradientRegistry:
    """The gradients by types of operations."""

    @staticmethod
    def lookup(name: str) -> Callable[..., Any] | None:
        """The function that gives the gradient of operations of a type."""
        return gradient_function(name)


_gradient_registry = _GradientRegistry()


def strip_name_scope(name: str, export_scope: str | None) -> str:
    """``name`` as seen from inside ``export_scope``."""
    return strip_scope(name, export_scope)


def prepend_name_scope(name: str, import_scope: str | None) -> str:
    """``name`` when what it belongs to was imported under ``import_scope``."""
    return add_scope(name, import_scope)


def name_from_scope_name(name: str) -> str:
    """The name of a scope, such as ``layer/``, as one of an operation."""
    return name.removesuffix("/")


_name_from_scope_name = name_from_scope_name


def set_shapes_for_outputs(op: Operation) -> None:
    """Nothing: an operation has the shapes of its outputs when it is made."""


_uids = itertools.count()


def uid() -> int:
    """Another number each time."""
    return next(_uids)


# What is asked of ``context`` ---------------------------------------------------------------------


def in_graph_mode() -> bool:
    """True: operations are described, and run by a session."""
    return True


def in_eager_mode() -> bool:
    """False: operations are described, and run by a session."""
    return False


executing_eagerly_outside_functions = in_eager_mode


def graph_mode() -> AbstractContextManager[Any]:
    """The mode that there is."""
    return get_default_graph().as_default()


def eager_mode() -> NoReturn:
    """Refused: there is no eager execution."""
    raise NotImplementedError(
        "runnel describes graphs that a tf.Session runs. It does not have eager execution."
    )
