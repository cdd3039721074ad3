"""Variable scopes: names, defaults and sharing for the variables of ``tf.get_variable``."""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

from runnel.graph import dtypes
from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import Graph, get_default_graph
from runnel.variables.opened_scopes import OpenedScopes
from runnel.variables.synchronization import VariableAggregation, VariableSynchronization
from runnel.variables.variable_store import VariableStore


class _ReuseMode(enum.Enum):
    AUTO_REUSE = 1


AUTO_REUSE = _ReuseMode.AUTO_REUSE
"""For ``reuse``: share the variable if it exists, make it if it does not."""

_SCOPES_KEY = ("__varscope",)


def no_regularizer(_: Any) -> None:
    """A regularizer that adds nothing, to override the one of the scopes around."""
    return None


class VariableScope:
    """A name for variables, and defaults for the arguments of ``tf.get_variable``.

    ``with tf.variable_scope(...) as scope`` gives one; it can be opened again later.
    """

    def __init__(
        self,
        reuse: Any,
        name: str = "",
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        name_scope: str = "",
        dtype: Any = dtypes.float32,
        use_resource: bool | None = None,
        constraint: Any = None,
    ) -> None:
        self.name = name
        self.reuse = reuse
        self.initializer = initializer
        self.regularizer = regularizer
        self.caching_device = caching_device
        self.partitioner = partitioner
        self.custom_getter = custom_getter
        self.dtype = dtype
        self.use_resource = use_resource
        self.constraint = constraint
        self._name_scope = name_scope

    @property
    def original_name_scope(self) -> str:
        """The name scope, with a slash at its end, that was opened with this."""
        return self._name_scope

    def reuse_variables(self) -> None:
        """From now on, variables of this scope must exist already."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        self.initializer = initializer

    def set_dtype(self, dtype: Any) -> None:
        self.dtype = dtype

    def set_use_resource(self, use_resource: bool | None) -> None:
        self.use_resource = use_resource

    def set_regularizer(self, regularizer: Any) -> None:
        self.regularizer = regularizer

    def set_caching_device(self, caching_device: Any) -> None:
        self.caching_device = caching_device

    def set_partitioner(self, partitioner: Any) -> None:
        self.partitioner = partitioner

    def set_custom_getter(self, custom_getter: Any) -> None:
        self.custom_getter = custom_getter

    def get_collection(self, name: Any) -> list[Any]:
        """The members of a collection whose name is in this scope."""
        return get_default_graph().get_collection(name, f"{self.name}/" if self.name else "")

    def trainable_variables(self) -> list[Any]:
        """The trainable variables of this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        """The global variables of this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        """The local variables of this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_variable(
        self,
        var_store: VariableStore,
        name: str,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
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
        """A variable of this scope; what is None has this scope's default."""
        # The variable's name says where it is, so its operations need no name scope.
        with get_default_graph().name_scope(None):
            if dtype is not None and initializer is not None and not callable(initializer):
                given = convert_to_tensor(initializer).dtype.base_dtype
                if given != dtype:
                    raise ValueError(
                        f"The initializer of variable {name} has type {given.name}, but "
                        f"dtype={dtypes.as_dtype(dtype).name} is given"
                    )
            return var_store.get_variable(
                self._full_name(name),
                shape=shape,
                dtype=_first(dtype, self.dtype),
                initializer=_first(initializer, self.initializer),
                regularizer=_first(regularizer, self.regularizer),
                reuse=_first(reuse, self.reuse),
                trainable=trainable,
                collections=collections,
                caching_device=_first(caching_device, self.caching_device),
                partitioner=_first(partitioner, self.partitioner),
                validate_shape=validate_shape,
                use_resource=_first(use_resource, self.use_resource),
                custom_getter=_first(custom_getter, self.custom_getter),
                constraint=_first(constraint, self.constraint),
                synchronization=synchronization,
                aggregation=aggregation,
            )

    def _full_name(self, name: str | None) -> str:
        if name is None or not self.name:
            return self.name or name or ""
        # An empty name leaves a slash at the end: the variable is the scope itself, and its
        # operations re-enter the name scope that the scope has opened.
        return f"{self.name}/{name}"

    def _get_partitioned_variable(
        self, var_store: VariableStore, name: str | None, **arguments: Any
    ) -> Any:
        """The variable that *is* this scope, in parts (``create_partitioned_variables``)."""
        if self.custom_getter is not None:
            raise ValueError(
                "create_partitioned_variables cannot be used in a scope with a custom getter; "
                "use tf.get_variable with a partitioner"
            )
        with get_default_graph().name_scope(None):
            return var_store.get_variable(
                self._full_name(name),
                regularizer=self.regularizer,
                reuse=self.reuse,
                caching_device=self.caching_device,
                validate_shape=True,
                use_resource=self.use_resource,
                constraint=self.constraint,
                **arguments,
            )


def _first(given: Any, default: Any) -> Any:
    return default if given is None else given


class _ScopeState(threading.local):
    """The scope in force in this thread, and how often each scope's name was opened."""

    def __init__(self) -> None:
        self.current = VariableScope(False)
        self.opened = OpenedScopes()


def _scope_state(graph: Graph) -> _ScopeState:
    states = graph._collections.get(_SCOPES_KEY)
    if states:
        return states[0]
    with graph._lock:
        states = graph.get_collection_ref(_SCOPES_KEY)
        if not states:
            states.append(_ScopeState())
        return states[0]


def get_variable_scope() -> VariableScope:
    """The variable scope in force."""
    return _scope_state(get_default_graph()).current


class variable_scope:  # noqa: N801 (TensorFlow's name)
    """Opens a variable scope, and a name scope of the same name, in the default graph.

    ``name_or_scope`` is a name within the current scope, or a :class:`VariableScope` to open
    again wherever the program is. When it is None, ``default_name`` is used, made unique. The
    other arguments are defaults for the variables made inside. ``reuse`` is True (variables must
    exist), ``tf.AUTO_REUSE`` (make or share) or None (as around this scope).
    ``auxiliary_name_scope=False`` opens no name scope.

    Example:
        >>> with tf.variable_scope("layer", reuse=tf.AUTO_REUSE):
        ...     w = tf.get_variable("w", [3, 2])
        >>> w.name
        'layer/w:0'
    """

    def __init__(
        self,
        name_or_scope: str | VariableScope | None,
        default_name: str | None = None,
        values: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        reuse: Any = None,
        dtype: Any = None,
        use_resource: bool | None = None,
        constraint: Any = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if name_or_scope is None and default_name is None:
            raise TypeError("variable_scope needs a name_or_scope or a default_name")
        if not isinstance(name_or_scope, str | VariableScope | None):
            raise TypeError(
                f"name_or_scope must be a string or a VariableScope, not {name_or_scope!r}"
            )
        if reuse not in (True, False, None, AUTO_REUSE):
            raise ValueError(
                f"The reuse parameter must be True, False, None or tf.AUTO_REUSE, not {reuse!r}"
            )
        if name_or_scope is None and reuse:
            raise ValueError("reuse=True cannot be used without a name_or_scope")
        if not isinstance(auxiliary_name_scope, bool):
            raise TypeError(f"auxiliary_name_scope must be a bool, not {auxiliary_name_scope!r}")
        self._name_or_scope = name_or_scope
        self._default_name = default_name
        self._reuse = reuse or None
        self._custom_getter = custom_getter
        self._constraint = constraint
        self._auxiliary_name_scope = auxiliary_name_scope
        self._defaults = {
            "initializer": initializer,
            "regularizer": regularizer,
            "caching_device": caching_device,
            "partitioner": partitioner,
            "dtype": dtype,
            "use_resource": use_resource,
        }
        graphs = (getattr(value, "graph", None) for value in values or ())
        self._graph = next((g for g in graphs if isinstance(g, Graph)), None)
        self._unique_name: str | None = None
        self._exits: list[ExitStack] = []

    def __enter__(self) -> VariableScope:
        graph = self._graph or get_default_graph()
        with ExitStack() as stack:
            stack.enter_context(graph.as_default())
            name_scope = self._open_name_scope(graph, stack)
            scope = self._open(_scope_state(graph), name_scope, stack)
            self._exits.append(stack.pop_all())
        return scope

    def __exit__(self, *exception: Any) -> None:
        self._exits.pop().__exit__(*exception)

    def _open_name_scope(self, graph: Graph, stack: ExitStack) -> str | None:
        if not self._auxiliary_name_scope:
            current = graph.get_name_scope()
            return stack.enter_context(graph.name_scope(f"{current}/" if current else ""))
        given = self._name_or_scope
        name = self._default_name if given is None else given
        if isinstance(name, VariableScope):
            name = name.name.rpartition("/")[2]
        return stack.enter_context(graph.name_scope(name)) if name else None

    def _open(self, state: _ScopeState, name_scope: str | None, stack: ExitStack) -> VariableScope:
        given, outer = self._name_or_scope, state.current
        if isinstance(given, VariableScope):
            scope = self._derive(given, given.name, given._name_scope)
            state.opened.note(scope.name)
            # What is opened inside does not count for the names that are unique outside.
            stack.callback(state.opened.restore, state.opened.begin())
        else:
            name = given if given is not None else self._default_unique_name(state)
            full_name = f"{outer.name}/{name}" if outer.name else name
            scope = self._derive(outer, full_name, name if name_scope is None else name_scope)
            state.opened.note(full_name)
            stack.callback(state.opened.forget_inside, full_name)
        stack.callback(_restore, state, scope, outer)
        state.current = scope
        return scope

    def _derive(self, base: VariableScope, name: str, name_scope: str) -> VariableScope:
        defaults = {key: _first(value, getattr(base, key)) for key, value in self._defaults.items()}
        return VariableScope(
            self._reuse or base.reuse,
            name=name,
            name_scope=name_scope,
            custom_getter=_nest_getters(self._custom_getter, base.custom_getter),
            constraint=self._constraint,
            **defaults,
        )

    def _default_unique_name(self, state: _ScopeState) -> str:
        if self._unique_name is None:
            assert self._default_name is not None
            outer = state.current.name
            prefix = f"{outer}/{self._default_name}" if outer else self._default_name
            suffix, number = "", 0
            while state.opened.count(prefix + suffix) > 0:
                number += 1
                suffix = f"_{number}"
            self._unique_name = self._default_name + suffix
        return self._unique_name


def _restore(state: _ScopeState, scope: VariableScope, outer: VariableScope) -> None:
    if state.current is not scope:
        raise RuntimeError("Variable scopes must be closed in the opposite order of opening.")
    state.current = outer


def _nest_getters(inner: Callable[..., Any] | None, outer: Callable[..., Any] | None) -> Any:
    """The inner custom getter, whose ``getter`` is the outer one."""
    if inner is None or outer is None:
        return inner or outer

    def nested(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return inner(partial(outer, getter), *args, **kwargs)

    return nested


def variable_op_scope(
    values: Any, name_or_scope: Any, default_name: str | None = None, **arguments: Any
) -> variable_scope:
    """``variable_scope`` with its older order of arguments."""
    return variable_scope(name_or_scope, default_name, values, **arguments)
