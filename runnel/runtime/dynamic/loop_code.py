"""Writes Python for each loop of a region whose course is known.

In a regular frame (``passes.structure.liveness``) the tasks of an iteration run in the order of
their ranks, if none has to wait. So the whole loop is one function: nodes that pass values on
(``Switch``, ``Merge``, ``NextIteration``, ``Exit``) give them another name, nodes that are alive
under a condition stand behind an ``if``, and an inner loop is a call.

    def run(step, e0, e1):                # what enters
        m4 = e0[()]
        while True:
            w7 = m4 < e1
            q7 = w7
            if q7:
                w12 = m4 + c2
            if not q7:
                x0 = m4
                break
            m4 = w12
        return x0                         # what leaves

The function runs when everything that enters the loop is there. Otherwise, and when each operation
is to be observed, tasks run one by one as their inputs arrive. So does the rest of a loop in which
a blocking operation has no result yet (``runnel.runtime.dynamic.loop_resume``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.passes.program.program import Node, ValueInfo
from runnel.passes.structure.frames import Frame
from runnel.passes.structure.liveness import Conditions, Liveness
from runnel.runtime.dynamic.layout import (
    BLOCKING,
    CONSTANT,
    ENTER,
    EXIT,
    MERGE,
    NEXT,
    PASS,
    PLAIN,
    STRETCH,
    SWITCH,
    TRIGGER,
    VARIABLE,
    Layout,
    StepLayout,
    Task,
)
from runnel.runtime.dynamic.loop_resume import Interrupted, LocalNames
from runnel.runtime.interpret.function_writer import FunctionWriter
from runnel.runtime.interpret.scalar_code import is_number
from runnel.runtime.state.step_context import NodeWaiter


def add_functions(step: StepLayout, liveness: Liveness, infos: list[ValueInfo]) -> None:
    """Gives each regular frame of ``step`` its function, inner ones first."""
    for frame in reversed(list(step.layouts)):
        layout = step.layouts[frame]
        inner = [item for item in frame.items if isinstance(item, Frame)]
        written = all(step.layouts[f].function is not None for f in inner)
        # Another part of the step wants to hear of each iteration, also of what does not run in it.
        alone = not any(isinstance(task, Task) and task.exchanges for task in layout.tasks)
        known = frame in liveness.predicate and alone and written
        if known and liveness.may_wait.isdisjoint(inner):
            layout.function = _Writer(step, layout, liveness, infos).function()


class _Writer:
    """Writes the function of one frame."""

    def __init__(
        self, step: StepLayout, layout: Layout, liveness: Liveness, infos: list[ValueInfo]
    ) -> None:
        self._step = step
        self._layout = layout
        self._liveness = liveness
        self._infos = infos
        self._predicate = liveness.predicate[layout.frame]
        condition = next(
            task.node
            for task in layout.tasks
            if isinstance(task, Task) and task.node.op_def.name == "LoopCond"
        )
        self._condition = condition
        self._out = FunctionWriter(condition, infos)
        self._names: dict[int, str] = {}
        self._passed_on: dict[int, str] = {}
        """What goes into inner loops, to the next iteration or out, by the value that results."""
        self._decided: dict[int, list[Conditions]] = {}
        """Where predicates have been looked at."""
        self._conditions: Conditions | None = None
        self._may_wait = layout.frame in liveness.may_wait
        self._local_names = LocalNames(
            self._names, self._passed_on, self._out.bound, self._conditions_of, liveness.decides
        )

    def function(self) -> Callable[..., Any]:
        out, layout = self._out, self._layout
        merges = [
            task
            for task in layout.tasks
            if isinstance(task, Task) and task.kind == MERGE and task.node not in self._merged
        ]
        parameters = [f"e{position}" for position in range(layout.enters)]
        for name, enter in zip(parameters, layout.frame.enters, strict=True):
            value = enter.outputs[0]
            self._names[value] = name
            if self._is_number(value) and not self._step.tasks[enter].references:
                on_device = enter.inputs[0] in self._step.on_device
                number = out.as_numpy(name, value) if on_device else f"{name}[()]"
                out.line(f"{name} = {number}", enter)
        for task in merges:
            self._begin_variable(task)
        out.line("context = step.context")
        out.line("deadline = context.deadline")
        if self._may_wait:
            out.line("number = 0")
        for predicate in self._predicates():
            out.line(f"q{predicate} = None")
        out.begin("while True:")
        for unit in layout.tasks:
            if isinstance(unit, Layout):
                self._write_loop(unit)
            elif unit not in merges:
                self._write_task(unit)
        self._write(frozenset({(self._predicate, 0)}), "break")
        self._close()
        following = {}
        for task in merges:
            back = next(v for v in task.inputs if v in self._passed_on)
            following[self._names[task.results[0]]] = self._passed_on[back]
            if self._is_used(task, 1):
                index = out.bind("c", np.int32(task.inputs.index(back)))
                following[self._names[task.results[1]]] = index
        out.move(list(following), list(following.values()))
        if self._may_wait:
            out.line("number += 1")
            self._tell_names(merges)
        out.look(self._condition)
        out.end()
        return out.function(["step", *parameters], self._results())

    @property
    def _merged(self) -> dict[Node, tuple[int, int, int]]:
        return self._liveness.merges

    def _predicates(self) -> list[int]:
        """What decides in this frame.

        A predicate that is looked at in a branch only has no value, or that of an earlier
        iteration, where the branch is not taken. It is tested there, but always together with the
        predicate that has not taken the branch.
        """
        return sorted(
            {
                self._liveness.decides(task.inputs[1])
                for task in self._layout.tasks
                if isinstance(task, Task) and task.kind == SWITCH
            }
        )

    def _results(self) -> list[str]:
        return [f"x{position}" for position in range(len(self._layout.exits))] or ["()"]

    def _begin_variable(self, task: Task) -> None:
        first = next(v for v in task.inputs if v in self._names)
        name = self._names[task.results[0]] = f"m{task.results[0]}"
        self._out.line(f"{name} = {self._names[first]}")
        if self._is_used(task, 1):
            index = self._out.bind("c", np.int32(task.inputs.index(first)))
            name = self._names[task.results[1]] = f"m{task.results[1]}"
            self._out.line(f"{name} = {index}")

    @staticmethod
    def _is_used(task: Task, output: int) -> bool:
        return bool(task.outputs[output] or task.merges[output])

    def _tell_names(self, merges: list[Task]) -> None:
        """Says what is in the locals, for when the loop cannot go on."""
        tasks, made_by = self._step.tasks, {}
        for node, task in tasks.items():
            made_by.update({value: task for value in node.outputs if task.kind in (ENTER, NEXT)})
        variables = []
        for merge in merges:
            sources = [made_by[value] for value in merge.inputs]
            sources.sort(key=lambda task: task.kind == NEXT)
            variables.append((sources[0], sources[1], merge))
        self._local_names.variables = variables

    # Lines ----------------------------------------------------------------------------------

    def _write(
        self,
        conditions: Conditions,
        text: str,
        node: Node | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        """A line that runs under ``conditions``."""
        if conditions != self._conditions:
            self._close()
            if conditions:
                tests = [f"q{p}" if side else f"not q{p}" for p, side in sorted(conditions)]
                self._out.begin(f"if {' and '.join(tests)}:")
            self._conditions = conditions
        self._out.line(text, node, arguments)

    def _close(self) -> None:
        if self._conditions:
            self._out.end()
        self._conditions = None

    def _is_number(self, value: int) -> bool:
        return is_number(self._infos[value])

    def _host(self, name: str, value: int) -> str:
        """An expression for an array or number of NumPy."""
        return self._out.as_numpy(name, value) if value in self._step.on_device else name

    # Units ----------------------------------------------------------------------------------

    def _write_loop(self, inner: Layout) -> None:
        enters = inner.frame.enters
        given = [self._passed_on[enter.outputs[0]] for enter in enters]
        results = []
        for task in inner.exits:
            results.append(f"w{task.results[0]}")
            self._names[task.results[0]] = results[-1]
        call = self._out.bind("k", inner.function)
        assigned = f"{', '.join(results)} = " if results else ""
        conditions = self._conditions_of(inner)
        self._write(conditions, f"{assigned}{call}({', '.join(['step', *given])})", enters[0])

    def _write_task(self, task: Task) -> None:
        node, kind = task.node, task.kind
        if kind == STRETCH:
            self._write_stretch(task)
            return
        names = self._names
        conditions = self._liveness.of[node]
        if kind == PLAIN:
            self._write_node(task, conditions)
        elif kind == CONSTANT:
            names[node.outputs[0]] = self._out.constant(node)
        elif kind == VARIABLE:
            name = names[node.outputs[0]] = f"w{node.outputs[0]}"
            op = self._out.bind("n", node.op)
            self._write(conditions, f"{name} = step.state.reference({op})", node)
        elif kind == MERGE:
            self._write_merge(task, conditions)
        elif kind == SWITCH:
            self._look_at_predicate(task, conditions)
            passed = self._passed(task, conditions)
            names.update(dict.fromkeys(node.outputs, passed))
        elif kind in (NEXT, ENTER, EXIT):
            passed = self._passed_on[node.outputs[0]] = self._passed(task, conditions)
            if kind == EXIT:
                position = self._layout.exits.index(task)
                self._write(conditions, f"x{position} = {passed}", node)
        elif kind == BLOCKING:
            self._write_blocking(task, conditions)
        elif kind == PASS:
            names[node.outputs[0]] = self._passed(task, conditions)
        else:
            assert kind == TRIGGER

    def _passed(self, task: Task, conditions: Conditions) -> str:
        """The name of what ``task`` passes on."""
        name = self._names[task.inputs[0]]
        if not task.references:
            return name
        new = f"w{task.node.outputs[0]}"
        bound = self._out.bind("n", task)
        self._write(conditions, f"{new} = step.passed({bound}, {name})", task.node)
        return new

    def _look_at_predicate(self, task: Task, conditions: Conditions) -> None:
        """A name for what decides, where there is none yet."""
        decides = self._liveness.decides(task.inputs[1])
        looked = self._decided.setdefault(decides, [])
        if any(earlier <= conditions for earlier in looked):
            return
        looked.append(conditions)
        name = self._names[task.inputs[1]]
        if self._infos[task.inputs[1]].dims != () or task.references:
            bound = self._out.bind("n", task)
            name = f"step.predicate({bound}, {name})"
        elif task.inputs[1] in self._step.on_device:
            name = f"bool({name})"
        self._write(conditions, f"q{decides} = {name}", task.node)

    def _write_merge(self, task: Task, conditions: Conditions) -> None:
        predicate, one, other = self._merged[task.node]
        values = self._names[one], self._names[other]
        name = self._names[task.results[0]] = f"w{task.results[0]}"
        self._write(conditions, f"{name} = {values[1]} if q{predicate} else {values[0]}", task.node)
        if self._is_used(task, 1):
            indices = [np.int32(task.inputs.index(value)) for value in (one, other)]
            bound = [self._out.bind("c", index) for index in indices]
            name = self._names[task.results[1]] = f"w{task.results[1]}"
            self._write(conditions, f"{name} = {bound[1]} if q{predicate} else {bound[0]}")

    def _write_node(self, task: Task, conditions: Conditions) -> None:
        node = task.node
        given = [self._names[value] for value in node.inputs]
        results = [f"w{value}" for value in node.outputs]
        self._names.update(zip(node.outputs, results, strict=True))
        if node.op_def.name == "NoOp":
            return
        if task.references or node.op_def.random is not None:
            bound = self._out.bind("n", task)
            assigned = f"{', '.join(results)}, = " if results else ""
            text = f"{assigned}step.compute({bound}, [{', '.join(given)}])"
            self._write(conditions, text, node)
            return
        if task.takes_numpy:
            given = [self._host(n, v) for n, v in zip(given, node.inputs, strict=True)]
        call = task.call
        assert call is not None
        text = self._out.computed(node, given, lambda: call)
        assigned = f"{', '.join(results)} = " if results else ""
        names = [name for name in given if name.isidentifier()]
        self._write(conditions, f"{assigned}{text}", node, names)

    def _write_blocking(self, task: Task, conditions: Conditions) -> None:
        """Goes on if there is a result; otherwise hands the locals over."""
        out = self._out
        given = [self._names[value] for value in task.inputs]
        results = [f"w{value}" for value in task.results]
        self._names.update(zip(task.results, results, strict=True))
        begun = f"step.begin({out.bind('n', task)}, [{', '.join(given)}])"
        self._write(conditions, f"begun = {begun}", task.node)
        out.bind_as("Waiter", NodeWaiter)
        interrupted = out.bind_as("Interrupted", Interrupted)
        names = out.bind_as("names", self._local_names)
        self._write(conditions, "if type(begun) is Waiter:")
        self._write(conditions, f"    return {interrupted}({names}, begun, number, locals())")
        if results:
            self._write(conditions, f"{', '.join(results)}, = begun", task.node)

    def _write_stretch(self, task: Task) -> None:
        assert task.stretch is not None
        conditions = self._conditions_of(task)
        given = [self._names[value] for value in task.inputs]
        results = [f"w{value}" for value in task.results]
        self._names.update(zip(task.results, results, strict=True))
        bound = self._out.bind("n", task)
        assigned = f"{', '.join(results)}, = " if results else ""
        text = f"{assigned}step.run_stretch({bound}, [{', '.join(given)}])"
        self._write(conditions, text, task.node)

    def _conditions_of(self, unit: Task | Layout) -> Conditions:
        if isinstance(unit, Layout):
            return frozenset().union(*(self._liveness.of[enter] for enter in unit.frame.enters))
        if unit.stretch is None:
            return self._liveness.of[unit.node]
        return next(self._liveness.of[n] for n, task in self._step.tasks.items() if task is unit)
