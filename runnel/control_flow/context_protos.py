"""Contexts of branches and loops as protocol buffers, which a ``MetaGraphDef`` carries.

TensorFlow cannot differentiate a loop or a conditional that it has read without them. Here a loop
is found again in the graph (``recovery.py``); the protocol buffers then say what the graph does
not: in which branch an operation was made.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from runnel.control_flow.cond_context import CondContext
from runnel.control_flow.context import ControlFlowContext, while_context_of
from runnel.control_flow.while_context import WhileContext
from runnel.graph.graph import Graph
from runnel.graph.message_types import BOOL, INT32, MESSAGE, STRING, MessageTypes, many, one
from runnel.graph.operation import Operation, Tensor

logger = logging.getLogger("runnel")

_TYPES = MessageTypes(
    "control_flow",
    {
        "ValuesDef": [
            many("values", 1, STRING),
            many("external_values", 2, MESSAGE, "ValuesDef.ExternalValuesEntry"),
        ],
        "ValuesDef.ExternalValuesEntry": [one("key", 1, STRING), one("value", 2, STRING)],
        "ControlFlowContextDef": [
            one("cond_ctxt", 1, MESSAGE, "CondContextDef"),
            one("while_ctxt", 2, MESSAGE, "WhileContextDef"),
        ],
        "CondContextDef": [
            one("context_name", 1, STRING),
            one("pred_name", 2, STRING),
            one("pivot_name", 3, STRING),
            one("branch", 4, INT32),
            one("values_def", 5, MESSAGE, "ValuesDef"),
            many("nested_contexts", 6, MESSAGE, "ControlFlowContextDef"),
        ],
        "WhileContextDef": [
            one("context_name", 1, STRING),
            one("parallel_iterations", 2, INT32),
            one("back_prop", 3, BOOL),
            one("swap_memory", 4, BOOL),
            one("pivot_name", 5, STRING),
            one("pivot_for_pred_name", 6, STRING),
            one("pivot_for_body_name", 7, STRING),
            many("loop_exit_names", 8, STRING),
            many("loop_enter_names", 10, STRING),
            one("values_def", 9, MESSAGE, "ValuesDef"),
            one("maximum_iterations_name", 11, STRING),
            many("nested_contexts", 12, MESSAGE, "ControlFlowContextDef"),
        ],
    },
    choices={"ControlFlowContextDef": "ctxt"},
)


@cache
def message(name: str) -> Any:
    """The class of the message ``name``."""
    return _TYPES[name]


# Out --------------------------------------------------------------------------------------------


class ContextWriter:
    """Describes the contexts of ``graph``, with names as seen from inside ``scope``."""

    def __init__(self, graph: Graph, scope: str | None = None) -> None:
        self._inside = f"{scope.rstrip('/')}/" if scope else ""
        self._nested: dict[Any, dict[ControlFlowContext, None]] = defaultdict(dict)
        for op in graph.get_operations():
            context = op.control_flow_context
            while context is not None:
                self._nested[context.outer_context][context] = None
                context = context.outer_context

    def describe(self, context: ControlFlowContext) -> Any:
        """``context`` and those inside of it; None if it lies outside of the scope."""
        if not context.name.startswith(self._inside):
            return None
        if isinstance(context, CondContext):
            return self._cond(context)
        return self._loop(context) if isinstance(context, WhileContext) else None

    def _cond(self, context: CondContext) -> Any:
        described = message("CondContextDef")(
            context_name=self._name(context.name),
            pred_name=self._name(context.pred.name),
            pivot_name=self._name(context.pivot.name),
            branch=context.branch,
        )
        self._add_values(described, context)
        return described

    def _loop(self, context: WhileContext) -> Any:
        described = message("WhileContextDef")(
            context_name=self._name(context.name),
            parallel_iterations=context.parallel_iterations,
            back_prop=context.back_prop,
            swap_memory=context.swap_memory,
            loop_exit_names=[self._name(t.name) for t in context.loop_exits],
            loop_enter_names=[self._name(t.name) for t in context.loop_enters],
        )
        named = {
            "pivot_name": context.pivot,
            "pivot_for_pred_name": context._pivot_for_pred,
            "pivot_for_body_name": context._pivot_for_body,
            "maximum_iterations_name": context.maximum_iterations,
        }
        for field, tensor in named.items():
            if tensor is not None:
                setattr(described, field, self._name(tensor.name))
        self._add_values(described, context)
        return described

    def _add_values(self, described: Any, context: ControlFlowContext) -> None:
        values = described.values_def
        values.values.extend(sorted(self._name(t.name) for t in context._values))
        for outside, inside in context._external_values.items():
            values.external_values[self._name(outside.name)] = self._name(inside.name)
        for nested in self._nested[context]:
            found = self.describe(nested)
            if found is not None:
                field = "cond_ctxt" if isinstance(nested, CondContext) else "while_ctxt"
                getattr(described.nested_contexts.add(), field).CopyFrom(found)

    def _name(self, name: str) -> str:
        return name.removeprefix(self._inside)


# In ---------------------------------------------------------------------------------------------


class ContextReader:
    """Gives imported operations the contexts that protocol buffers describe.

    The loops of ``graph`` have been found already. ``scope`` is where it was imported.
    """

    def __init__(self, graph: Graph, scope: str | None = None) -> None:
        self._graph = graph
        self._inside = f"{scope.rstrip('/')}/" if scope else ""

    def read(self, kind: str, content: bytes) -> ControlFlowContext | None:
        """The context that ``content`` describes, a serialized message of the type ``kind``.

        One that names what is not there (TensorFlow writes such, of one context in another, where
        it exports a scope) is left out, and the log says so: gradients come from the graph.
        """
        from google.protobuf.message import DecodeError

        try:
            described = message(kind).FromString(content)
        except DecodeError as error:
            raise ValueError(f"A {kind} is damaged: {error}") from None
        try:
            return self._make(described, None)
        except (KeyError, TypeError, ValueError) as error:
            text = error.args[0] if error.args else error
            logger.warning("A %s does not fit the graph it came with: %s", kind, text)
            return None

    def _make(self, described: Any, outer: ControlFlowContext | None) -> ControlFlowContext:
        if described.DESCRIPTOR.name == "CondContextDef":
            context: ControlFlowContext = self._cond(described, outer)
        else:
            context = self._loop(described, outer)
        for nested in described.nested_contexts:
            kind = nested.WhichOneof("ctxt")
            if kind is not None:
                self._make(getattr(nested, kind), context)
        return context

    def _cond(self, described: Any, outer: ControlFlowContext | None) -> CondContext:
        with self._graph._scopes.override(control_flow_context=outer):
            context = CondContext(
                self._tensor(described.pred_name),
                self._tensor(described.pivot_name),
                1 if described.branch else 0,
            )
        context._name = self._inside + described.context_name
        values = described.values_def
        outside = dict(self._pairs(values.external_values))
        inside = [self._tensor(name) for name in values.values]
        context._values.update(inside)
        context._external_values.update(outside)
        for op in dict.fromkeys(t.op for t in inside if t not in outside):
            self._place(op, context)
        return context

    def _place(self, op: Operation, context: CondContext) -> None:
        """Puts ``op`` into a branch, unless it lies in a loop that is not around the branch."""
        if while_context_of(op) is context.GetWhileContext():
            op.control_flow_context = context

    def _loop(self, described: Any, outer: ControlFlowContext | None) -> WhileContext:
        entered = [self._tensor(name) for name in described.loop_enter_names]
        context = while_context_of(entered[0].op) if entered else None
        if context is None:
            raise ValueError(f"there is no loop {described.context_name!r}")
        around = context.outer_context
        if (outer and outer.GetWhileContext()) is not (around and around.GetWhileContext()):
            raise ValueError(f"the loop {described.context_name!r} lies elsewhere")
        context._outer_context = outer
        context._back_prop = described.back_prop
        context._swap_memory = described.swap_memory
        if described.maximum_iterations_name:
            context._maximum_iterations = self._tensor(described.maximum_iterations_name)
        return context

    def _pairs(self, names: Mapping[str, str]) -> Iterable[tuple[Tensor, Tensor]]:
        return ((self._tensor(k), self._tensor(v)) for k, v in names.items())

    def _tensor(self, name: str) -> Tensor:
        return self._graph.get_tensor_by_name(self._inside + name)
