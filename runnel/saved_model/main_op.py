"""``tf.saved_model.main_op``: what runs when a model has been loaded."""

from __future__ import annotations

from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.graph import control_dependencies, get_default_graph
from runnel.graph.operation import Operation
from runnel.ops.control import group
from runnel.variables.initialization import (
    global_variables_initializer,
    local_variables_initializer,
)

__all__ = ["main_op", "main_op_with_restore"]


def __dir__() -> list[str]:
    return __all__


def main_op() -> Operation:
    """An operation that initialises all variables and tables."""
    tables = get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS)
    return group(global_variables_initializer(), local_variables_initializer(), *tables)


def main_op_with_restore(restore_op_name: Any) -> Operation:
    """An operation that initialises all variables and tables, then runs ``restore_op_name``."""
    restored = get_default_graph().as_graph_element(restore_op_name)
    with control_dependencies([main_op()]):
        return group(restored)
