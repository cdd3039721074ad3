"""The context of a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.control_flow import context as contexts
from runnel.control_flow.context import (
    ControlFlowContext,
    add_control_inputs,
    output_context,
)
from runnel.control_flow.loop_variable import LoopVariable
from runnel.control_flow.shape_invariants import invariants_of, require_invariant
from runnel.control_flow.structure import flatten, is_nested, pack_as, require_same
from runnel.control_flow.tensor_array_flow import as_flow, restore_arrays
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import Dims, format_dims
from runnel.ops.constants import constant
from runnel.ops.control import identity
from runnel.ops.control_flow import (
    ENTERS,
    enter,
    exit,
    loop_cond,
    merge,
    next_iteration,
    switch,
)


class WhileContext(ControlFlowContext):
    """A loop that is being built, or was built.

    A tensor from outside is brought in by an ``Enter`` that makes it known in every iteration.
    A subclass may have values of another loop stand for something inside (:meth:`may_take`).
    """

    def __init__(
        self,
        maximum_iterations: Tensor | None = None,
        parallel_iterations: int = 10,
        back_prop: bool = True,
        swap_memory: bool = False,
        name: str = "while_context",
    ) -> None:
        super().__init__(name)
        self._maximum_iterations = maximum_iterations
        self._parallel_iterations = parallel_iterations
        self._back_prop = back_prop
        self._swap_memory = swap_memory
        self._pivot_for_pred: Tensor | None = None
        self._pivot_for_body: Tensor | None = None
        self._pivot: Tensor | None = None
        self._loop_enters: list[Tensor] = []
        self._variables: list[LoopVariable] = []
        self._stray_exits: list[Tensor] = []
        self._inner_loops: list[WhileContext] = []
        around = self._outer_context.GetWhileContext() if self._outer_context else None
        if around is not None:
            around._inner_loops.append(self)
        self._awaited = frozenset(self._graph._scopes.control_inputs)
        """What the whole loop waits for: its Enters do."""
        self._graph._check_loops = contexts.check_inputs

    @property
    def maximum_iterations(self) -> Tensor | None:
        return self._maximum_iterations

    @property
    def parallel_iterations(self) -> int:
        return self._parallel_iterations

    @property
    def back_prop(self) -> bool:
        return self._back_prop

    @property
    def swap_memory(self) -> bool:
        return self._swap_memory

    @property
    def pivot(self) -> Tensor | None:
        """The loop's condition."""
        return self._pivot

    @property
    def loop_enters(self) -> list[Tensor]:
        return self._loop_enters

    @property
    def loop_exits(self) -> list[Tensor]:
        """The loop variables as they leave the loop."""
        return [v.exit for v in self._variables if v.exit is not None]

    @property
    def variables(self) -> list[LoopVariable]:
        return self._variables

    @property
    def invariants(self) -> list[Tensor]:
        """What stands inside, in every iteration, for tensors from outside."""
        inside = dict.fromkeys(self._external_values.values())
        return [t for t in inside if _is_constant_enter(t.op) and t.op.control_flow_context is self]

    @property
    def stray_exits(self) -> list[Tensor]:
        """What leaves an imported loop and is none of its variables."""
        return self._stray_exits

    @property
    def inner_loops(self) -> list[WhileContext]:
        """The loops directly inside this one."""
        return self._inner_loops

    def GetWhileContext(self) -> WhileContext:
        return self

    def GetControlPivot(self) -> Tensor | None:
        return self._pivot_for_body if self._pivot_for_body is not None else self._pivot_for_pred

    # Taking in ------------------------------------------------------------------------------

    def AddValue(self, value: Tensor) -> Tensor:
        if value in self._values or value.op.control_flow_context is self:
            return self._external_values.get(value, value)
        self._values.add(value)
        stand_in = self._stand_in(value)
        if stand_in is not None:
            self._external_values[value] = stand_in
            return stand_in
        result = value
        if self._outer_context is not None:
            result = self._outer_context.AddValue(value)
        inside = contexts.while_context_of_output(result.op)
        if inside is not None and not contexts.contains(inside, self):
            raise contexts.used_outside(result, f"in the loop {self._name!r}")
        with self._graph.control_dependencies(None):
            entered = enter(
                result,
                self._name,
                is_constant=True,
                parallel_iterations=self._parallel_iterations,
                use_ref=True,
            )
        self._graph.prevent_feeding(entered)
        self._adopt_enters([entered])
        self._values.add(entered)
        self._external_values[value] = entered
        return entered

    def may_take(self, inside: WhileContext) -> bool:
        """True when operations here may take what has a value in each iteration of ``inside``."""
        return contexts.contains(inside, self)

    def _stand_in(self, value: Tensor) -> Tensor | None:
        """What stands inside for ``value``, other than itself, brought in by an ``Enter``."""
        return None

    def AddOp(self, op: Operation) -> None:
        with self._graph.name_scope(f"{op.name}/"):
            self._add_op(op)

    def _add_op(self, op: Operation) -> None:
        pivot = self.GetControlPivot()
        if not op.inputs:
            external = self._remove_external_control_inputs(op)
            if not op.control_inputs and pivot is not None:
                add_control_inputs(op, [pivot.op])
        else:
            self._take_inputs(op)
            external = self._remove_external_control_inputs(op)
            if pivot is not None and self._is_free(op):
                add_control_inputs(op, [pivot.op])
        self._values.update(op.outputs)
        external = [x for x in external if x not in self._awaited]
        if external:
            # What the operation waits for outside comes in as a value.
            with self._graph.control_dependencies(None):
                self.Enter()
                waits = [identity(x.outputs[0]).op for x in external if x.outputs]
                self.Exit()
            add_control_inputs(op, waits)
        self._hide(op)

    @staticmethod
    def _is_free(op: Operation) -> bool:
        """True when ``op`` would run although the loop has ended: all its inputs are constant."""
        return not op.control_inputs and all(_is_constant_enter(t.op) for t in op.inputs)

    def _adopt_enters(self, entered: Sequence[Tensor]) -> None:
        """Enters run outside, and wait for what the operations around them wait for."""
        outer_loop = self._outer_context.GetWhileContext() if self._outer_context else None
        for tensor in entered:
            op = tensor.op
            source = op.inputs[0].op
            waits = []
            for control in self._graph._scopes.control_inputs:
                if control is not source and self._is_around(output_context(control), outer_loop):
                    waits.append(control)
            op.control_flow_context = self
            add_control_inputs(op, waits)

    def _is_around(self, found: Any, outer_loop: Any) -> bool:
        """True for a context around this one, within the loop around this one."""
        outer: Any = self._outer_context
        while outer is not found:
            if outer is None or outer is outer_loop:
                return False
            outer = outer.outer_context
        return True

    # Building -------------------------------------------------------------------------------

    def build(
        self,
        pred: Callable[..., Any],
        body: Callable[..., Any],
        loop_vars: Any,
        shape_invariants: Any,
        return_same_structure: bool,
    ) -> Any:
        """Builds the loop; returns the loop variables as they leave it."""
        flat = [convert_to_tensor(as_flow(leaf)) for leaf in flatten(loop_vars)]
        dims = invariants_of(loop_vars, flat, shape_invariants)
        self.Enter()
        try:
            result, exits = self._build(pred, body, loop_vars, flat, dims)
        finally:
            self.Exit()
        packed = pack_as(result, restore_arrays(flatten(result), exits))
        if return_same_structure:
            return packed
        return packed[0] if len(exits) == 1 else packed

    def _build(
        self,
        pred: Callable[..., Any],
        body: Callable[..., Any],
        loop_vars: Any,
        flat: list[Tensor],
        dims: list[Dims],
    ) -> tuple[Any, list[Tensor]]:
        entered = self.enter_all(flat, dims)
        merged = [merge([x, x])[0] for x in entered]
        self._pivot_for_pred = merged[0]
        originals = flatten(loop_vars)
        arguments = pack_as(loop_vars, restore_arrays(originals, merged))
        condition = convert_to_tensor(pred(*arguments))
        _require_condition(condition)
        self._pivot = loop_cond(condition, name="LoopCond")
        switched = [_colocated_switch(x, self._pivot) for x in merged]
        self._variables = [
            LoopVariable(x, m, s[0].op) for x, m, s in zip(entered, merged, switched, strict=True)
        ]
        inside = [identity(x[1]) for x in switched]
        self._pivot_for_body = inside[0]
        arguments = pack_as(loop_vars, restore_arrays(originals, inside))
        result = body(*arguments)
        if not is_nested(result):
            result = [result]
        require_same(list(arguments), list(result), ("loop_vars", "the result of body"))
        leaves = [convert_to_tensor(as_flow(leaf)) for leaf in flatten(result)]
        for variable, value in zip(flat, leaves, strict=True):
            if variable.dtype.base_dtype is not value.dtype.base_dtype:
                raise TypeError(
                    f"The loop variable {variable.name} is {variable.dtype.name}, but body returns "
                    f"{value.name}, which is {value.dtype.name}, for it; tf.cast makes them agree"
                )
        for variable, value in zip(merged, leaves, strict=True):
            self.add_back_edge(variable, value)
        exits = [exit(x[0]) for x in switched]
        for made, left in zip(self._variables, exits, strict=False):
            made.exit = left
        self.ExitResult(exits)
        return result, exits

    def enter_all(self, flat: list[Tensor], dims: list[Dims]) -> list[Tensor]:
        """The loop variables, brought into the loop."""
        self._values = set(flat)
        real = flat
        outer = self._outer_context
        if outer is not None:
            real = [outer.AddValue(x) for x in flat]
        with self._graph.control_dependencies(None):
            entered = [
                enter(
                    x,
                    self._name,
                    parallel_iterations=self._parallel_iterations,
                    use_input_shape=False,
                )
                for x in real
            ]
        for x in entered:
            self._graph.prevent_feeding(x)
        pivot = None
        while outer is not None and pivot is None:
            pivot = outer.GetControlPivot()
            outer = outer.outer_context
        if pivot is not None:
            for x in entered:
                if _is_constant_enter(x.op.inputs[0].op):
                    add_control_inputs(x.op, [pivot.op])
        for x, known in zip(entered, dims, strict=True):
            x.set_shape(known)
        self._adopt_enters(entered)
        self._values = set(entered)
        self._loop_enters = entered
        return entered

    def add_variable(self, first: Tensor, dims: Dims) -> tuple[LoopVariable, Tensor]:
        """A further loop variable, and its value in the body, which is being built."""
        assert self._pivot is not None
        graph, outer = self._graph, self._outer_context
        with graph._scopes.override(control_inputs=(), control_flow_context=outer):
            entered = enter(
                first,
                self._name,
                parallel_iterations=self._parallel_iterations,
                use_input_shape=False,
            )
            if outer is not None and _is_constant_enter(entered.op.inputs[0].op):
                pivot = outer.GetControlPivot()
                add_control_inputs(entered.op, [] if pivot is None else [pivot.op])
        graph.prevent_feeding(entered)
        entered.set_shape(dims)
        self._adopt_enters([entered])
        self._values.add(entered)
        self._loop_enters.append(entered)
        with graph._scopes.override(control_inputs=(), control_flow_context=self):
            merged = merge([entered, entered])[0]
            switched = _colocated_switch(merged, self._pivot)
            inside = identity(switched[1])
        made = LoopVariable(entered, merged, switched[0].op)
        self._variables.append(made)
        return made, inside

    def add_counter(
        self, name: str, waits: Sequence[Operation]
    ) -> tuple[Tensor, Operation, Operation]:
        """Counts the iterations, beginning when ``waits`` have run.

        Returns the count, what runs when an iteration begins, and what ends it.
        """
        graph, outer = self._graph, self._outer_context
        with graph._scopes.override(control_inputs=(), control_flow_context=outer):
            zero = constant(0, name=name)
            with graph.control_dependencies(None):
                entered = enter(
                    zero, self._name, parallel_iterations=self._parallel_iterations, name=name
                )
            self._adopt_enters([entered])
            add_control_inputs(entered.op, waits)
            self._values.add(entered)
            self._loop_enters.append(entered)
            self.Enter()
            merged = merge([entered, entered])[0]
            assert self._pivot is not None
            stop, go_on = switch(merged, self._pivot)
            step = go_on + 1
            self.add_back_edge(merged, step)
            count = exit(stop, name=name)
            self.ExitResult([count])
            self.Exit()
        return count, go_on.op, step.op

    def end_variable(self, variable: LoopVariable, value: Tensor) -> Tensor:
        """Ends a variable of :meth:`add_variable`: it is ``value`` next. Its last value."""
        assert variable.switch is not None
        with self._graph._scopes.override(control_inputs=(), control_flow_context=self):
            self.add_back_edge(variable.merged, value)
            variable.exit = exit(variable.switch.outputs[0])
        self.ExitResult([variable.exit])
        return variable.exit

    def add_back_edge(self, merged: Tensor, value: Tensor, same_shape: bool = True) -> Tensor:
        """``value`` is what ``merged`` is in the next iteration."""
        following = next_iteration(value)
        if same_shape:
            require_invariant(merged, following)
        merged.op._update_input(1, following)
        return following


def _colocated_switch(data: Tensor, pred: Tensor) -> list[Tensor]:
    with data.graph.colocate_with(data, True):
        return switch(data, pred)


def _is_constant_enter(op: Operation) -> bool:
    return op.op_def.name in ENTERS and bool(op.attrs["is_constant"])


def _require_condition(condition: Tensor) -> None:
    if condition.dtype.name != "bool" or condition.dims not in ((), None):
        raise (TypeError if condition.dtype.name != "bool" else ValueError)(
            f"The cond of a while_loop must give a scalar bool, but {condition.name} is "
            f"{condition.dtype.name} of shape {format_dims(condition.dims)}"
        )
