"""Collections of variables, and operations that initialise them or say which are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.graph import dtypes
from runnel.graph.collections import GraphKeys
from runnel.graph.default_collections import get_collection
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.ops.assign import is_variable_initialized
from runnel.ops.constants import constant
from runnel.ops.control import group, no_op


def global_variables(scope: str | None = None) -> list[Any]:
    """The variables that are shared by all processes (the default), or those in ``scope``."""
    return get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def all_variables() -> list[Any]:
    """The older name of :func:`global_variables`."""
    return global_variables()


def local_variables(scope: str | None = None) -> list[Any]:
    """The variables that belong to one process and are not saved, or those in ``scope``."""
    return get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """The variables that optimizers train by default, or those in ``scope``."""
    return get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Any]:
    """The variables that are needed for inference, or those in ``scope``."""
    return get_collection(GraphKeys.MODEL_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """The variables that keep moving averages, or those in ``scope``."""
    return get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def variables_initializer(var_list: Sequence[Any], name: str = "init") -> Operation:
    """An operation that initialises the variables of ``var_list``.

    Example:
        >>> sess.run(tf.variables_initializer([w, b]))
    """
    if not var_list:
        return no_op(name=name)
    return group(*[variable.initializer for variable in var_list], name=name)


def initialize_variables(var_list: Sequence[Any], name: str = "init") -> Operation:
    """The older name of :func:`variables_initializer`."""
    return variables_initializer(var_list, name)


def global_variables_initializer() -> Operation:
    """An operation that initialises all global variables made so far.

    Example:
        >>> sess.run(tf.global_variables_initializer())
    """
    return variables_initializer(global_variables())


def initialize_all_variables() -> Operation:
    """The older name of :func:`global_variables_initializer`."""
    return global_variables_initializer()


def local_variables_initializer() -> Operation:
    """An operation that initialises all local variables made so far."""
    return variables_initializer(local_variables())


def initialize_local_variables() -> Operation:
    """The older name of :func:`local_variables_initializer`."""
    return local_variables_initializer()


def _all_variables_or_references() -> list[Any]:
    """The variables of the default graph; their references, when no objects are in collections."""
    found = global_variables() + local_variables()
    if found:
        return found
    ops = get_default_graph().get_operations()
    return [op.outputs[0] for op in ops if op.type in ("Variable", "VariableV2")]


def assert_variables_initialized(var_list: Sequence[Any] | None = None) -> Operation | None:
    """An operation that fails (FailedPreconditionError) unless all variables are initialised.

    None when there are no variables. ``report_uninitialized_variables`` names them instead.
    """
    if var_list is None:
        var_list = _all_variables_or_references()
    if not var_list:
        return None
    reads = [v.value() if hasattr(v, "value") else v for v in var_list]
    with get_default_graph().control_dependencies(reads):
        return no_op(name="assert_variables_initialized")


def report_uninitialized_variables(
    var_list: Sequence[Any] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """A string vector: the names of the variables that are not initialised in the session.

    Example:
        >>> sess.run(tf.report_uninitialized_variables())
        array([], dtype=object)
    """
    from runnel.ops.comparison import logical_not
    from runnel.ops.joining import stack
    from runnel.ops.masking import boolean_mask

    if var_list is None:
        var_list = _all_variables_or_references()
    with name_scope(name):
        initialized = [is_variable_initialized(variable) for variable in var_list]
        with get_default_graph().device("/cpu:0"):
            if not var_list:
                return constant([], dtype=dtypes.string)
            missing = logical_not(stack(initialized))
            names = constant([variable.op.name for variable in var_list])
            return boolean_mask(names, missing)
