"""``tf.get_variable``: variables made or shared by name."""

from __future__ import annotations

from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.variables.synchronization import VariableAggregation, VariableSynchronization
from runnel.variables.variable_scope import get_variable_scope
from runnel.variables.variable_store import default_variable_store


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = VariableAggregation.NONE,
) -> Any:
    """The variable of that name in the current variable scope: a new one, or a shared one.

    ``initializer`` is a function of shape and dtype, a function without arguments, a tensor or a
    value; by default floats are drawn by ``glorot_uniform_initializer`` and integers are zero.
    What ``regularizer`` makes of a new variable is added to the regularization losses. With a
    ``partitioner`` the result is a ``PartitionedVariable``. ``custom_getter(getter, name, ...)``
    is called in place of making the variable. The other arguments are ``tf.Variable``'s.

    Example:
        >>> with tf.variable_scope("softmax"):
        ...     b = tf.get_variable("b", [10], initializer=tf.zeros_initializer())
    """
    return get_variable_scope().get_variable(
        default_variable_store(),
        name,
        shape=shape,
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        collections=collections,
        caching_device=caching_device,
        partitioner=partitioner,
        validate_shape=validate_shape,
        use_resource=use_resource,
        custom_getter=custom_getter,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
    )


def get_local_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = False,
    collections: Any = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """``get_variable`` for a variable that is local to a process: not trained, not saved."""
    collections = [*(collections or ()), GraphKeys.LOCAL_VARIABLES]
    return get_variable(
        name, shape, dtype, initializer, regularizer, False, collections, *args, **kwargs
    )
