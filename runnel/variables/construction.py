"""What the constructors of all kinds of variables have in common."""

from __future__ import annotations

from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.operation import Tensor


def check_arguments(initial_value: Any, collections: Any, constraint: Any) -> list[Any]:
    """Raises an error for arguments that no variable can take; returns the collections' names."""
    if initial_value is None:
        raise ValueError("A variable needs an initial_value: a tensor, a value or a function.")
    if collections is None:
        collections = [GraphKeys.GLOBAL_VARIABLES]
    if not isinstance(collections, list | tuple | set):
        raise ValueError(
            "The collections of a variable must be a list, tuple or set, "
            f"not {collections!r} of type {type(collections).__name__}"
        )
    if constraint is not None and not callable(constraint):
        raise ValueError(f"The constraint of a variable must be callable, not {constraint!r}")
    return list(collections)


def graph_of(initial_value: Any) -> Graph:
    """The graph in which a variable with this initial value is made."""
    graph = getattr(initial_value, "graph", None)
    return graph if isinstance(graph, Graph) else get_default_graph()


def call_initial_value(initial_value: Any, dtype: Any) -> Tensor:
    """The tensor that a function gives, made on no particular device, in an "Initializer" scope."""
    graph = get_default_graph()
    with graph.name_scope("Initializer"), graph.device(None):
        value = initial_value() if callable(initial_value) else initial_value
        return convert_to_tensor(value, dtype, "initial_value")


def check_not_in_control_flow(value: Tensor, name: str) -> None:
    """Raises an error for an initial value that only exists while a loop or branch runs."""
    if value.op.control_flow_context is not None:
        raise ValueError(
            f"The initial value of variable {name}, {value.name}, was made inside a loop or "
            "conditional, where it exists only while that runs. Give a function that makes the "
            "value instead, such as `lambda: tf.zeros([2])`."
        )


def add_to_collections(variable: Any, collections: list[Any]) -> None:
    """Adds a new variable to its collections, and to the trainable ones if it is trainable."""
    if variable.trainable and GraphKeys.TRAINABLE_VARIABLES not in collections:
        collections = [*collections, GraphKeys.TRAINABLE_VARIABLES]
    variable.graph.add_to_collections(collections, variable)
