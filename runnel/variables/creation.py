"""Which kind of variable ``tf.Variable(...)`` makes, and who has a say in it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from runnel.graph.graph import Graph, get_default_graph
from runnel.variables.ref_variable import RefVariable
from runnel.variables.resource_variable import ResourceVariable
from runnel.variables.synchronization import VariableAggregation, VariableSynchronization
from runnel.variables.variable import Variable

VariableCreator = Callable[..., Any]


class _Creators(threading.local):
    """The creators in force in this thread, outermost first."""

    def __init__(self) -> None:
        self.stack: list[tuple[Graph, VariableCreator]] = []


_creators = _Creators()
_resource_by_default = False


@contextmanager
def variable_creator_scope(variable_creator: VariableCreator) -> Iterator[None]:
    """Within the block, variables of this graph are made by ``variable_creator``.

    It is called with ``next_creator`` and the arguments of ``tf.Variable`` as keywords, and
    returns a variable: usually what ``next_creator(**kwargs)`` returns.

    Example:
        >>> def on_ps(next_creator, **kwargs):
        ...     with tf.device("/job:ps"):
        ...         return next_creator(**kwargs)
        >>> with tf.variable_creator_scope(on_ps):
        ...     w = tf.Variable(1.0)
    """
    _creators.stack.append((get_default_graph(), variable_creator))
    try:
        yield
    finally:
        _creators.stack.pop()


def create_variable(
    initial_value: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    validate_shape: bool = True,
    caching_device: Any = None,
    name: str | None = None,
    variable_def: Any = None,
    dtype: Any = None,
    expected_shape: Any = None,
    import_scope: str | None = None,
    constraint: Any = None,
    use_resource: bool | None = None,
    synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = VariableAggregation.NONE,
    shape: Any = None,
) -> Any:
    """A variable, made by the innermost creator in force; see :class:`Variable`."""
    graph = get_default_graph()
    create: Callable[..., Any] = default_variable_creator
    for of_graph, creator in _creators.stack:
        if of_graph is graph:
            create = partial(creator, create)
    return create(
        initial_value=initial_value,
        trainable=trainable,
        collections=collections,
        validate_shape=validate_shape,
        caching_device=caching_device,
        name=name,
        variable_def=variable_def,
        dtype=dtype,
        expected_shape=expected_shape,
        import_scope=import_scope,
        constraint=constraint,
        use_resource=use_resource,
        synchronization=synchronization,
        aggregation=aggregation,
        shape=shape,
    )


def default_variable_creator(
    use_resource: bool | None = None, expected_shape: Any = None, **arguments: Any
) -> Variable:
    """A reference or resource variable, as the argument, the scope and the default say."""
    variable_def = arguments["variable_def"]
    if variable_def is not None:
        use_resource = variable_def.is_resource
    if use_resource is None:
        use_resource = _variable_scope_in_force()().use_resource
    if use_resource is None:
        use_resource = _resource_by_default
    return (ResourceVariable if use_resource else RefVariable)(**arguments)


@cache
def _variable_scope_in_force() -> Callable[[], Any]:
    from runnel.variables.variable_scope import get_variable_scope

    return get_variable_scope


def enable_resource_variables() -> None:
    """From now on, variables are resource variables unless ``use_resource=False`` is given."""
    global _resource_by_default
    _resource_by_default = True


def disable_resource_variables() -> None:
    """From now on, variables are reference variables unless ``use_resource=True`` is given."""
    global _resource_by_default
    _resource_by_default = False


def resource_variables_enabled() -> bool:
    """True when variables are resource variables unless ``use_resource=False`` is given."""
    return _resource_by_default
