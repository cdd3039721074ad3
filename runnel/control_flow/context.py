"""Control flow contexts: the branch or loop in which operations are being made.

While a context is entered, each new operation is handed to it (``AddOp``), which routes the
tensors that the operation takes from outside into the branch or the loop. The method names are
TensorFlow's, since graphs and programs know them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.ops.control_flow import ENTERS, EXITS, MERGES, SWITCHES


class ControlFlowContext:
    """The base of :class:`CondContext` and :class:`WhileContext`."""

    def __init__(self, name: str) -> None:
        self._graph = get_default_graph()
        self._name = self._graph.unique_name(name)
        self._outer_context: ControlFlowContext | None = self._graph._get_control_flow_context()
        self._entered: list[ControlFlowContext | None] = []
        self._values: set[Tensor] = set()
        """Tensors that are known inside: made here, or brought in."""
        self._external_values: dict[Tensor, Tensor] = {}
        """What stands inside for a tensor from outside."""

    @property
    def name(self) -> str:
        return self._name

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def outer_context(self) -> ControlFlowContext | None:
        """The context around this one."""
        return self._outer_context

    @property
    def back_prop(self) -> bool:
        return True

    def Enter(self) -> None:  # noqa: N802 (TensorFlow's name)
        """New operations belong to this context, until :meth:`Exit`."""
        self._entered.append(self._graph._get_control_flow_context())
        self._graph._set_control_flow_context(self)

    def Exit(self) -> None:  # noqa: N802 (TensorFlow's name)
        """Back to the context that was in force before :meth:`Enter`."""
        self._graph._set_control_flow_context(self._entered.pop())

    def ExitResult(self, result: Iterable[Any]) -> None:  # noqa: N802 (TensorFlow's name)
        """The contexts around this one know its results."""
        if self._outer_context is not None:
            self._outer_context._know_everywhere(t for t in result if isinstance(t, Tensor))

    def GetWhileContext(self) -> Any:  # noqa: N802 (TensorFlow's name)
        """The innermost loop in which this is."""
        context = self._outer_context
        return context.GetWhileContext() if context is not None else None

    def GetControlPivot(self) -> Tensor | None:  # noqa: N802 (TensorFlow's name)
        """A tensor that is alive whenever operations here are to run."""
        return None

    def AddValue(self, value: Tensor) -> Tensor:  # noqa: N802 (TensorFlow's name)
        """What stands for ``value`` inside."""
        raise NotImplementedError

    def AddOp(self, op: Operation) -> None:  # noqa: N802 (TensorFlow's name)
        """Takes in an operation that is being made."""
        raise NotImplementedError

    def _know_everywhere(self, tensors: Iterable[Tensor]) -> None:
        context: ControlFlowContext | None = self
        tensors = list(tensors)
        while context is not None:
            context._values.update(tensors)
            context = context._outer_context

    def _take_inputs(self, op: Operation) -> None:
        inputs = list(op.inputs)
        real = [self.AddValue(tensor) for tensor in inputs]
        if any(a is not b for a, b in zip(inputs, real, strict=True)):
            op.inputs = real

    def _remove_external_control_inputs(self, op: Operation) -> list[Operation]:
        """Takes away the control inputs from outside the innermost loop, and returns them."""
        loop = self.GetWhileContext()
        if loop is None or not op.control_inputs:
            return []
        internal: list[Operation] = []
        external: list[Operation] = []
        for control in op.control_inputs:
            (internal if while_context_of_output(control) is loop else external).append(control)
        if external:
            op.control_inputs = internal
        return external

    def _hide(self, op: Operation) -> None:
        """What may be dead, or has many values in a step, can be neither fetched nor fed."""
        if self._outer_context is not None or op.op_def.name not in EXITS:
            self._graph.prevent_fetching(op)
            for tensor in op.outputs:
                self._graph.prevent_feeding(tensor)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name!r}>"


def add_control_inputs(op: Operation, controls: Iterable[Operation]) -> None:
    """Adds control inputs to an operation that is being made."""
    present = set(op.control_inputs)
    op.control_inputs = [*op.control_inputs, *(c for c in controls if c not in present)]


def output_context(op: Operation) -> Any:
    """The context in which the outputs of ``op`` are: around the loop for its exits."""
    context = op.control_flow_context
    if context is not None and op.op_def.name in EXITS:
        return context.outer_context
    return context


def while_context_of(op: Operation) -> Any:
    """The innermost loop in which ``op`` runs."""
    context = op.control_flow_context
    return context.GetWhileContext() if context is not None else None


def while_context_of_output(op: Operation) -> Any:
    """The innermost loop in which the outputs of ``op`` are."""
    context = output_context(op)
    return context.GetWhileContext() if context is not None else None


def contains(outer: Any, inner: Any) -> bool:
    """True when ``inner`` is ``outer``, or a context in it."""
    while inner is not None and inner is not outer:
        inner = inner.outer_context
    return inner is outer


def check_inputs(op: Operation, context: Any) -> None:
    """An error when ``op``, made in ``context``, takes a tensor from inside a loop it is not in."""
    if op.op_def.name in ENTERS or op.op_def.name in SWITCHES:
        return  # these are how a context brings tensors in
    loop = context.GetWhileContext() if context is not None else None
    for tensor in op.inputs:
        inside = while_context_of_output(tensor.op)
        if inside is None or (loop is not None and loop.may_take(inside)):
            continue
        raise used_outside(tensor, f"as an input of {op.name!r}")


def used_outside(tensor: Tensor, use: str) -> ValueError:
    """The error for the use of a tensor outside the loop in which it is."""
    loop = while_context_of_output(tensor.op)
    site = tensor.op.creation_site()[-1]
    return ValueError(
        f"Cannot use {tensor.name!r} {use}: it is inside the loop {loop.name!r} (made at {site}) "
        "and has a value in each iteration. To bring its last value out, make it a loop variable "
        "and use what tf.while_loop returns; to keep every value, write it to a tf.TensorArray."
    )


def how_to_bring_out(op: Operation) -> str:
    """For a message about ``op``, which has no value outside: why, and what to do about it."""
    if while_context_of_output(op) is not None:
        return (
            "It is inside a loop and has a value in each iteration: make it a loop variable, and "
            "use what tf.while_loop returns."
        )
    source = _first_in_branch(op)
    if source is None:
        return "It is on a branch that was not taken: use the result of the conditional."
    what = "It is" if source is op else f"It uses {source.name!r}, which is"
    return (
        f"{what} inside a branch of a conditional (made at {source.creation_site()[-1]}) and has "
        "a value only when the branch is taken: return it from both functions of tf.cond, and use "
        "what tf.cond returns."
    )


def _first_in_branch(op: Operation) -> Operation | None:
    """The nearest operation in a branch on which ``op``, outside all loops, depends."""
    seen = {op}
    queue = [op]
    for current in queue:
        if output_context(current) is not None:
            return current
        if current.op_def.name not in MERGES:
            sources = [t.op for t in current.inputs] + list(current.control_inputs)
            queue += [source for source in dict.fromkeys(sources) if source not in seen]
            seen.update(sources)
    return None
