"""The global step: the variable that counts training steps."""

from __future__ import annotations

import logging
from typing import Any

from runnel.graph import dtypes
from runnel.graph.collections import GraphKeys
from runnel.graph.graph import Graph, get_default_graph
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import Zeros
from runnel.variables.synchronization import VariableAggregation
from runnel.variables.variable import Variable

logger = logging.getLogger("runnel")


def get_global_step(graph: Graph | None = None) -> Any:
    """The global step of ``graph``: the member of its collection, or ``global_step:0``, or None."""
    graph = graph or get_default_graph()
    members = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(members) > 1:
        names = ", ".join(member.name for member in members)
        logger.error("Several tensors are in the collection of the global step: %s", names)
        return None
    if members:
        assert_global_step(members[0])
        return members[0]
    try:
        step = graph.get_tensor_by_name("global_step:0")
    except KeyError:
        return None
    assert_global_step(step)
    return step


def create_global_step(graph: Graph | None = None) -> Variable:
    """Makes the global step; a ValueError if there is one already."""
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    with graph.as_default(), graph.name_scope(None):
        return get_variable(
            GraphKeys.GLOBAL_STEP,
            shape=[],
            dtype=dtypes.int64,
            initializer=Zeros(),
            trainable=False,
            aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )


def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """The global step, made if there is none yet."""
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def assert_global_step(global_step_tensor: Any) -> None:
    """A TypeError unless the tensor can be a global step: an integer scalar."""
    dtype = global_step_tensor.dtype.base_dtype
    if not dtype.is_integer:
        raise TypeError(f'Existing "global_step" does not have integer type: {dtype.name}')
    dims = global_step_tensor.get_shape()._dims
    if dims not in ((), None):
        raise TypeError(f'Existing "global_step" is not scalar: {dims}')


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The value of the global step in a session."""
    return int(sess.run(global_step_tensor))
