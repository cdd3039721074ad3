"""What a monitored session needs of a graph, made where the user has not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.graph import get_default_graph
from runnel.ops.control import group
from runnel.summary.summaries import merge_all
from runnel.train.saver import Saver
from runnel.variables.initialization import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
)


class Scaffold:
    """The operations that initialise, check, save and summarize a graph.

    What is not given comes from the graph's collections, or is made by :meth:`finalize`.

    Example:
        >>> scaffold = tf.train.Scaffold(init_fn=lambda scaffold, sess: saver.restore(sess, path))
    """

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Any = None,
        init_fn: Callable[[Any, Any], Any] | None = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Saver | None = None,
        copy_from_scaffold: Scaffold | None = None,
        local_init_feed_dict: Any = None,
    ) -> None:
        if copy_from_scaffold is not None and not isinstance(copy_from_scaffold, Scaffold):
            raise TypeError(f"copy_from_scaffold must be a Scaffold, not {copy_from_scaffold!r}")
        other = copy_from_scaffold
        self._init_op = _first(init_op, other and other.init_op)
        self._init_feed_dict = _first(init_feed_dict, other and other.init_feed_dict)
        self._user_init_fn: Callable[[Any, Any], Any] | None = _first(
            init_fn, other and other._user_init_fn
        )
        self._ready_op = _first(ready_op, other and other.ready_op)
        self._ready_for_local_init_op = _first(
            ready_for_local_init_op, other and other.ready_for_local_init_op
        )
        self._local_init_op = _first(local_init_op, other and other.local_init_op)
        self._local_init_feed_dict = _first(
            local_init_feed_dict, other and other.local_init_feed_dict
        )
        self._summary_op = _first(summary_op, other and other.summary_op)
        self._saver = _first(saver, other and other.saver)

    def finalize(self) -> Scaffold:
        """Makes what is missing, and finalizes the graph."""
        if self._init_op is None:
            self._init_op = _collected(GraphKeys.INIT_OP, self.default_init_op)
        if self._ready_op is None:
            self._ready_op = _collected(GraphKeys.READY_OP, report_uninitialized_variables)
        if self._ready_for_local_init_op is None:
            self._ready_for_local_init_op = _collected(
                GraphKeys.READY_FOR_LOCAL_INIT_OP,
                lambda: report_uninitialized_variables(global_variables()),
            )
        if self._local_init_op is None:
            self._local_init_op = _collected(GraphKeys.LOCAL_INIT_OP, self.default_local_init_op)
        if self._summary_op is None:
            self._summary_op = _collected(GraphKeys.SUMMARY_OP, merge_all)
        if self._saver is None:
            self._saver = _collected(
                GraphKeys.SAVERS, lambda: Saver(sharded=True, allow_empty=True)
            )
        if self._saver is not None:
            self._saver.build()
        get_default_graph().finalize()
        return self

    @staticmethod
    def default_init_op() -> Any:
        """Initialises all global variables."""
        return group(global_variables_initializer(), name="init")

    @staticmethod
    def default_local_init_op() -> Any:
        """Initialises all local variables and tables."""
        graph = get_default_graph()
        tables = graph.get_collection(GraphKeys.TABLE_INITIALIZERS)
        return group(local_variables_initializer(), *tables)

    @property
    def init_fn(self) -> Callable[[Any], Any] | None:
        """What is called with a new session, after ``init_op``."""
        user = self._user_init_fn
        return None if user is None else lambda sess: user(self, sess)

    @property
    def init_op(self) -> Any:
        return self._init_op

    @property
    def init_feed_dict(self) -> Any:
        return self._init_feed_dict

    @property
    def ready_op(self) -> Any:
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        return self._ready_for_local_init_op

    @property
    def local_init_op(self) -> Any:
        return self._local_init_op

    @property
    def local_init_feed_dict(self) -> Any:
        return self._local_init_feed_dict

    @property
    def summary_op(self) -> Any:
        return self._summary_op

    @property
    def saver(self) -> Any:
        return self._saver

    @staticmethod
    def get_or_default(
        arg_name: str, collection_key: str, default_constructor: Callable[[], Any]
    ) -> Any:
        """The only element of a collection, or what ``default_constructor`` makes, put into it."""
        return _collected(collection_key, default_constructor, arg_name)


def _first(given: Any, other: Any) -> Any:
    return given if given is not None else other


def _collected(key: str, make: Callable[[], Any], argument: str = "") -> Any:
    graph = get_default_graph()
    elements = graph.get_collection(key)
    if len(elements) > 1:
        raise RuntimeError(
            f"The collection {key!r} has {len(elements)} elements; please give the one to use"
            + (f" as {argument}" if argument else "")
        )
    if elements:
        return elements[0]
    made = make()
    if made is not None:
        graph.add_to_collection(key, made)
    return made
