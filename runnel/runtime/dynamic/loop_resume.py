"""Leads from a written loop back to pending counts, when an operation in it has to wait.

The function of a loop with blocking operations (``runtime.dynamic.loop_code``) runs as long as they
have their results at once. When one does not, the function hands over its local variables. This
module turns them into the iteration that counts would have at that point: tasks that have run have
told their consumers, and later ones are ready or not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from runnel.passes.structure.liveness import Conditions
from runnel.queues.rendezvous import DEAD
from runnel.runtime.dynamic.layout import (
    CONSTANT,
    ENTER,
    EXIT,
    NEXT,
    SWITCH,
    Layout,
    Task,
)
from runnel.runtime.dynamic.running_frames import Iteration, Running
from runnel.runtime.state.step_context import NodeWaiter

if TYPE_CHECKING:
    from runnel.runtime.dynamic.region_run import RegionRun


class Interrupted:
    """A written loop that cannot go on: in which iteration, and the values of its locals."""

    __slots__ = ("names", "waiter", "number", "found")

    def __init__(
        self, names: LocalNames, waiter: NodeWaiter, number: int, found: dict[str, Any]
    ) -> None:
        self.names = names
        self.waiter = waiter
        self.number = number
        self.found = found


class LocalNames:
    """What the locals of a written loop stand for."""

    def __init__(
        self,
        names: dict[int, str],
        passed_on: dict[int, str],
        constants: dict[str, Any],
        conditions_of: Callable[[Task | Layout], Conditions],
        decides: Callable[[int], int],
    ) -> None:
        self.names = names
        """The name of each value in its frame."""
        self.passed_on = passed_on
        """What goes into inner loops, to the next iteration or out, by the value that results."""
        self.constants = constants
        self.conditions_of = conditions_of
        self.variables: list[tuple[Task, Task, Task]] = []
        """Of each loop variable: its Enter, its NextIteration, its Merge."""
        self.decides = decides


def resume(step: RegionRun, running: Running, interrupted: Interrupted) -> None:
    """Makes the iterations of ``running`` what they are after ``interrupted``."""
    _Resumption(step, running, interrupted).run()


class _Resumption:
    def __init__(self, step: RegionRun, running: Running, interrupted: Interrupted) -> None:
        self._step = step
        self._running = running
        self._names = interrupted.names
        self._found = interrupted.found
        self._waiter = interrupted.waiter
        self._number = interrupted.number
        self._iteration = Iteration(running.layout, running, self._number)

    def run(self) -> None:
        step, running, iteration = self._step, self._running, self._iteration
        running.iterations[self._number] = iteration
        entered, running.entered = running.entered or [], None
        for task, value in entered:
            if task.is_constant:
                running.constants.append((task, value))
                step.arrive(iteration, task, value)
        for enter, following, merge in self._names.variables:
            source = following if self._number else enter
            step.arrive(iteration, source, self._local(self._names.names[merge.results[0]]))
        home, run, _, waiting, start = self._waiter.where
        for unit in running.layout.tasks[: waiting.rank]:
            if isinstance(unit, Layout):
                self._replay_loop(unit)
            else:
                self._replay(unit, waiting.rank)
        # A sorted list is a heap.
        iteration.ready = sorted(rank for rank in iteration.ready if rank > waiting.rank)
        self._waiter.where = home, run, iteration, waiting, start
        step.begin_waiting(iteration)

    def _local(self, name: str) -> Any:
        return self._found[name] if name in self._found else self._names.constants[name]

    def _is_alive(self, unit: Task | Layout) -> bool:
        return all(
            bool(self._found.get(f"q{predicate}")) == bool(side)
            for predicate, side in self._names.conditions_of(unit)
        )

    def _replay_loop(self, loop: Layout) -> None:
        alive = self._is_alive(loop)
        self._step.release(self._iteration, loop.followers, False)
        for task in loop.exits:
            value = self._local(self._names.names[task.results[0]]) if alive else DEAD
            self._step.arrive(self._iteration, task, value)

    def _replay(self, task: Task, until: int) -> None:
        """Tells the consumers of a task what has become of it."""
        step, iteration, names = self._step, self._iteration, self._names
        if task.kind == ENTER and task.target is not None and task.target.rank < until:
            step.release(iteration, task.followers, False)
            return  # its loop has run
        if not self._is_alive(task):
            step.pass_on_death(iteration, task)
            return
        if task.kind in (ENTER, NEXT, EXIT):
            step.release(iteration, task.followers, False)
        if task.kind == ENTER:
            step.enter(iteration, task, self._local(names.passed_on[task.results[0]]))
        elif task.kind == NEXT:
            following = step.iteration(self._running, self._number + 1)
            step.arrive(following, task, self._local(names.passed_on[task.results[0]]))
        elif task.kind == EXIT:
            running = self._running
            assert running.parent is not None
            running.exited.add(task.rank)
            step.arrive(running.parent, task, self._local(names.passed_on[task.results[0]]))
        else:
            step.complete(iteration, task, self._results(task))

    def _results(self, task: Task) -> list[Any]:
        if task.kind == CONSTANT:
            return [task.node.attrs["value"]]
        if task.kind == SWITCH:
            data = self._local(self._names.names[task.results[0]])
            taken = self._found[f"q{self._names.decides(task.inputs[1])}"]
            return [DEAD, data] if taken else [data, DEAD]
        names = [self._names.names.get(value) for value in task.results]
        return [None if name is None else self._local(name) for name in names]
