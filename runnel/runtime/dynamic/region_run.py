"""One run of a region: what has arrived where, which tasks are ready, which wait.

See ``runnel.runtime.dynamic.region`` for the rules.
"""

from __future__ import annotations

import time
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.queues.rendezvous import DEAD
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
from runnel.runtime.dynamic.loop_resume import Interrupted, resume
from runnel.runtime.dynamic.node_runner import NodeRunner
from runnel.runtime.dynamic.region_state import RegionState
from runnel.runtime.dynamic.running_frames import Iteration, Running
from runnel.runtime.interpret.interpreter import arrived
from runnel.runtime.state.cell import as_numpy
from runnel.runtime.state.step_context import NodeWaiter, StepContext


class RegionRun:
    """One run of a region: frames, their iterations, and what waits."""

    __slots__ = ("state", "_nodes", "_observer", "_root", "_layout")

    def __init__(
        self, layout: StepLayout, state: RegionState, context: StepContext, unit: Any
    ) -> None:
        self.state = state
        """The state that it has taken."""
        self._nodes = NodeRunner(context, state, unit, self)
        self._observer = context.observer
        self._layout = layout.root
        self._root = Iteration(layout.root, Running(layout.root, None), 0)
        self._root.running.iterations[0] = self._root
        self._root.ready = list(layout.sources)
        heapify(self._root.ready)

    @property
    def values(self) -> list[Any]:
        """The slots of the outermost frame."""
        return self._root.values

    def feed(self, layout: StepLayout, value: int, given: Any) -> None:
        """Brings in the value of number ``value``; None is dead."""
        given = DEAD if given is None else as_numpy(given)
        self.deliver(self._root, layout.feeds[value], layout.fed_merges[value], given, False)

    def go_on(self) -> bool:
        """Runs what is ready; False when something has to be waited for."""
        with np.errstate(all="ignore"):
            self.run_iteration(self._layout, self._root)
        return self._root.waiting == 0

    # Waiting --------------------------------------------------------------------------------

    def begin_waiting(self, iteration: Iteration) -> None:
        """Notes that an operation of ``iteration`` waits."""
        inner: Iteration | None = iteration
        while inner is not None:
            inner.waiting += 1
            inner = inner.running.parent

    def take_up(self, waiter: NodeWaiter) -> None:
        """Passes on what an operation that waited has got."""
        _, _, iteration, task, start = waiter.where
        results = arrived(waiter)
        if task.exchanges and results[0] is DEAD:
            self.pass_on_death(iteration, task)
        else:
            self._nodes.note(task, start, results)
            self.complete(iteration, task, results)
        inner = iteration
        while True:
            inner.waiting -= 1
            parent = inner.running.parent
            if parent is None:
                break
            rank = inner.running.layout.rank
            if rank not in parent.ready:
                heappush(parent.ready, rank)
            inner = parent

    # Frames ---------------------------------------------------------------------------------

    def run_frame(self, running: Running) -> None:
        """Runs what is ready in a frame, iterations in order; late ones may not begin yet."""
        layout = running.layout
        iterations = running.iterations
        if running.entered is not None:
            if running.arrived < layout.enters:
                # Something that enters has to be waited for: what does not need it begins.
                entered, running.entered = running.entered, None
                for task, value in entered:
                    self._begin_with(running, task, value)
            elif self._run_whole(running, running.entered):
                return
        while True:
            if running.arrived == layout.enters:
                self._forget_iterations(iterations)
            number = next((n for n, i in iterations.items() if i.ready), None)
            if number is None or number - next(iter(iterations)) >= layout.parallel_iterations:
                break
            self.run_iteration(layout, iterations[number])
        if running.has_ended():
            self._end_frame(running)

    def _run_whole(self, running: Running, entered: list[tuple[Task, Any]]) -> bool:
        """Runs a loop that all has entered; False if something in it has to be waited for."""
        layout, parent = running.layout, running.parent
        assert layout.function is not None and parent is not None
        if any(value is DEAD for _, value in entered):
            running.entered = None
            self._end_frame(running)  # all of it is
            return True
        value_of = {task.node: value for task, value in entered}
        results = layout.function(self._nodes, *[value_of[node] for node in layout.frame.enters])
        if type(results) is Interrupted:
            resume(self, running, results)
            return False
        running.entered = None
        for task, value in zip(layout.exits, results if len(layout.exits) != 1 else (results,)):
            self.arrive(parent, task, value)
        return True

    @staticmethod
    def _forget_iterations(iterations: dict[int, Iteration]) -> None:
        """Drops the iterations in which nothing can arrive any more, all before them being over."""
        while iterations:
            number = next(iter(iterations))
            if iterations[number].ready or iterations[number].waiting:
                break
            del iterations[number]

    def _end_frame(self, running: Running) -> None:
        """Tells the parent of values that will never leave the loop."""
        parent = running.parent
        assert parent is not None
        for task in running.layout.exits:
            if task.rank not in running.exited:
                self.deliver(parent, task.outputs[0], task.merges[0], DEAD, False)
                self.release(parent, task.controls, dead=True)

    def enter(self, iteration: Iteration, task: Task, value: Any) -> None:
        """Brings a value into the loop that the Enter ``task`` leads into."""
        layout = task.target
        assert layout is not None
        if iteration.children is None:
            iteration.children = {}
        rank = layout.rank
        running = iteration.children.get(rank)
        if running is None:
            running = iteration.children[rank] = Running(layout, iteration)
            if layout.function is not None and self._observer is None:
                running.entered = []
        running.arrived += 1
        if running.entered is not None:
            running.entered.append((task, value))
        else:
            self._begin_with(running, task, value)
        if rank not in iteration.ready:
            heappush(iteration.ready, rank)

    def _begin_with(self, running: Running, task: Task, value: Any) -> None:
        """Brings what enters into the first iteration, or into all of them."""
        if task.is_constant:
            running.constants.append((task, value))
            for present in running.iterations.values():
                self.arrive(present, task, value)
            if 0 not in running.iterations:
                self.iteration(running, 0)
        else:
            self.arrive(self.iteration(running, 0), task, value)

    def iteration(self, running: Running, number: int) -> Iteration:
        """The iteration of that number, which may begin with this."""
        found = running.iterations.get(number)
        if found is None:
            found = running.iterations[number] = Iteration(running.layout, running, number)
            for task, value in running.constants:
                self.arrive(found, task, value)
        return found

    def arrive(self, iteration: Iteration, task: Task, value: Any) -> None:
        """The output of an Enter, an Exit or a NextIteration, in its iteration."""
        self.deliver(iteration, task.outputs[0], task.merges[0], value, task.kind == ENTER)
        if task.controls:
            self.release(iteration, task.controls, value is DEAD)

    # Values ---------------------------------------------------------------------------------

    def deliver(
        self,
        iteration: Iteration,
        edges: list[tuple[int, int]],
        merges: list[tuple[int, int, int]],
        value: Any,
        enters: bool,
    ) -> None:
        """Puts ``value`` where it is wanted; what waits for nothing more is ready."""
        values, pending = iteration.values, iteration.pending
        if value is DEAD:
            for slot, rank in edges:
                values[slot] = DEAD
                iteration.dead.add(rank)
                pending[rank] -= 1
                if pending[rank] == 0:
                    heappush(iteration.ready, rank)
        else:
            for slot, rank in edges:
                values[slot] = value
                pending[rank] -= 1
                if pending[rank] == 0:
                    heappush(iteration.ready, rank)
        for rank, slot, index in merges:
            self._deliver_to_merge(iteration, rank, slot, index, value, enters)

    @staticmethod
    def _deliver_to_merge(
        iteration: Iteration, rank: int, slot: int, index: int, value: Any, enters: bool
    ) -> None:
        first = slot - index
        if iteration.values[first] is not None:
            return  # it has its value already
        if value is DEAD:
            if iteration.dead_inputs is None:
                iteration.dead_inputs = {}
            count = iteration.dead_inputs[rank] = iteration.dead_inputs.get(rank, 0) + 1
            # A loop whose variable comes in dead does not run: no next iteration will arrive.
            if not enters and count < iteration.running.layout.merge_inputs[rank]:
                return
            iteration.dead.add(rank)
            iteration.values[first] = DEAD
        else:
            iteration.values[first] = (value, index)
        iteration.pending[rank] -= 1
        if iteration.pending[rank] == 0:
            heappush(iteration.ready, rank)

    @staticmethod
    def release(iteration: Iteration, ranks: list[int], dead: bool) -> None:
        """Tells the nodes that wait for another one that it has run, or never will."""
        pending = iteration.pending
        for rank in ranks:
            if dead and rank not in iteration.running.layout.merge_inputs:
                iteration.dead.add(rank)
            pending[rank] -= 1
            if pending[rank] == 0:
                heappush(iteration.ready, rank)

    def complete(self, iteration: Iteration, task: Task, results: Any) -> None:
        """Hands on what a task has given."""
        for edges, merges, result in zip(task.outputs, task.merges, results):
            self.deliver(iteration, edges, merges, result, False)
        self.release(iteration, task.controls, False)
        self.release(iteration, task.followers, False)

    # Nodes ----------------------------------------------------------------------------------

    def run_iteration(self, layout: Layout, iteration: Iteration) -> None:
        """Runs what is ready in an iteration until nothing is."""
        tasks, values, ready, dead = layout.tasks, iteration.values, iteration.ready, iteration.dead
        nodes, observer = self._nodes, self._observer
        context = nodes.context
        deadline = context.deadline
        while ready:
            task = tasks[heappop(ready)]
            if type(task) is Layout:
                assert iteration.children is not None
                running = iteration.children[task.rank]
                self.run_frame(running)
                if running.has_ended():
                    del iteration.children[task.rank]
                    self.release(iteration, task.followers, False)
                continue
            assert type(task) is Task
            if deadline is not None or context.cancelled is not None:
                context.require_time(task.node)
            kind = task.kind
            if task.rank in dead and kind != TRIGGER:
                self.pass_on_death(iteration, task)
                continue
            if kind == PLAIN:
                start = time.perf_counter_ns() if observer is not None else 0
                results = nodes.compute(task, values[task.first : task.last])
                if observer is not None:
                    observer.operation(task.node, start, time.perf_counter_ns(), results)
            elif kind == STRETCH:
                results = nodes.run_stretch(task, values[task.first : task.last])
            elif kind == CONSTANT:
                results = (task.node.attrs["value"],)
            elif kind == BLOCKING:
                results = nodes.begin(task, values[task.first : task.last], iteration)
                if type(results) is NodeWaiter:
                    self.begin_waiting(iteration)
                    continue
                if results and results[0] is DEAD:
                    self.pass_on_death(iteration, task)
                    continue
            elif kind == SWITCH:
                data, pred = values[task.first : task.last]
                if task.references:
                    data = nodes.passed(task, data)
                results = (DEAD, data) if nodes.predicate(task, pred) else (data, DEAD)
            elif kind == MERGE:
                value, index = values[task.first]
                results = (value, np.int32(index))
            elif kind == VARIABLE:
                results = (self.state.reference(task.node.op),)
            elif kind == TRIGGER:
                results = ()
            else:
                value = values[task.first]
                if task.references:
                    value = nodes.passed(task, value)
                if kind != PASS:
                    self.release(iteration, task.followers, False)
                if kind == NEXT:
                    following = self.iteration(iteration.running, iteration.number + 1)
                    self.arrive(following, task, value)
                    continue
                if kind == ENTER:
                    self.enter(iteration, task, value)
                    continue
                if kind == EXIT:
                    running = iteration.running
                    if task.rank in running.exited:
                        raise InvalidArgumentError(
                            None,
                            task.node.op,
                            "A value leaves the loop in more than one iteration: this is no loop "
                            "that tf.while_loop builds",
                        )
                    running.exited.add(task.rank)
                    assert running.parent is not None
                    self.arrive(running.parent, task, value)
                    continue
                results = (value,)
            for edges, merges, result in zip(task.outputs, task.merges, results):
                if merges or result is DEAD:
                    self.deliver(iteration, edges, merges, result, False)
                    continue
                pending = iteration.pending
                for slot, rank in edges:
                    values[slot] = result
                    left = pending[rank] = pending[rank] - 1
                    if left == 0:
                        heappush(ready, rank)
            if task.controls or task.followers:
                self.release(iteration, task.controls, False)
                self.release(iteration, task.followers, False)

    def pass_on_death(self, iteration: Iteration, task: Task) -> None:
        """Tells the consumers of a task that it will not run."""
        self.release(iteration, task.followers, False)
        if task.sends:
            self._nodes.send_dead(task, iteration)
        if task.kind in (NEXT, EXIT):
            return  # the loop ends here; whether a value has left it is known when it has run
        if task.kind == ENTER:
            self.enter(iteration, task, DEAD)
            return
        for edges, merges in zip(task.outputs, task.merges, strict=True):
            self.deliver(iteration, edges, merges, DEAD, False)
        self.release(iteration, task.controls, True)
