"""The event-driven executor: runs steps with dynamic control flow.

A node runs when what it waits for has arrived; *pending* counts say how much is missing. Values
arrive in an iteration of a frame: ``Enter`` begins a child frame, ``NextIteration`` an iteration,
``Exit`` hands a value to the iteration that began the frame. A node reached by a *dead* value does
not run: its outputs are dead too, except that ``Merge`` waits for an input that is alive, that
``NextIteration`` ends there, and that ``Exit`` tells its frame's parent only when the whole loop
has ended without a live value.

Of the nodes that are ready, the one runs that comes first in its frame (``runnel.passes.frames``):
the order of construction within an iteration, iterations one after the other. So effects on state
have a defined order. An iteration is forgotten when it has run.

A blocking operation that has to wait keeps back what needs it; everything else goes on, later
iterations included: as many as the loop's ``parallel_iterations`` are under way at once. When only
waiting is left, the step gives its variables back (what it has written is stored), sleeps, and
takes them again.

Nodes are interpreted with NumPy, one by one. Two things are meant to attach here without changing
these rules: a pass that replaces a whole well-formed loop or conditional by one node that XLA
runs, before :class:`DataflowPlan` is made; and compiled stretches, for which a :class:`Task` needs
only a ``call`` that stands for several nodes of one frame and branch.
"""

from __future__ import annotations

import time
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from runnel.graph import errors
from runnel.passes.program import Node, Program
from runnel.queues.waiter import WAITING
from runnel.runtime import verification
from runnel.runtime.dataflow_frames import Iteration, Running
from runnel.runtime.dataflow_layout import (
    BLOCKING,
    CONSTANT,
    DEAD,
    DYNAMIC_OPS,
    ENTER,
    EXIT,
    MERGE,
    NEXT,
    PLAIN,
    SWITCH,
    TRIGGER,
    VARIABLE,
    Layout,
    StepLayout,
    Task,
)
from runnel.runtime.interpreter import as_op_error, require_time
from runnel.runtime.random_streams import RandomStreams
from runnel.runtime.state import StateStore, as_numpy
from runnel.runtime.step_state import Reference, StepState, StepVariables
from runnel.runtime.tiers import SegmentRunner
from runnel.runtime.waiting import NodeWaiter, StepWaits


class DataflowPlan:
    """A step with dynamic control flow, prepared once for a signature and run many times."""

    runners: tuple[SegmentRunner, ...] = ()

    def __init__(
        self, program: Program, store: StateStore, streams: RandomStreams, device: str
    ) -> None:
        self._store = store
        self._program = program
        self._layout = StepLayout(program, device)
        self._variables = StepVariables(program, store, streams)

    def run(
        self, values: dict[int, Any], deadline: float | None = None, observer: Any = None
    ) -> None:
        """Adds the fetched values to ``values``, which are those fed; state is replaced."""
        layout = self._layout
        state = self._variables.begin()
        step: _Step | None = None
        try:
            step = _Step(self._store, state, deadline, observer)
            root = Iteration(layout.root, Running(layout.root, None), 0)
            root.running.iterations[0] = root
            root.ready = list(layout.sources)
            heapify(root.ready)
            for value, edges in layout.feeds.items():
                step.deliver(root, edges, layout.fed_merges[value], as_numpy(values[value]), False)
            with np.errstate(all="ignore"):
                step.run_iteration(layout.root, root)
                while step.waits.outstanding:
                    step.wait()
                    step.run_iteration(layout.root, root)
            fetched = {
                value: self._fetched(root.values[slot], value, state)
                for slot, value in layout.fetches
            }
            state.commit()
            values.update(fetched)
        finally:
            state.end()
            if step is not None:
                step.waits.end()

    def _fetched(self, value: Any, number: int, state: StepState) -> Any:
        if isinstance(value, Reference):
            return state.final(value)
        if value is DEAD or value is None:
            from runnel.control_flow.context import how_to_bring_out

            op = self._program.producers()[number].op
            message = f"{op.name!r} was fetched, but has no value: a branch was not taken. "
            raise errors.InvalidArgumentError(None, op, message + how_to_bring_out(op))
        return value


class _Step:
    """One run of a plan."""

    __slots__ = ("_store", "_state", "_deadline", "_observer", "waits")

    def __init__(
        self, store: StateStore, state: StepState, deadline: float | None, observer: Any
    ) -> None:
        self._store = store
        self._state = state
        self._deadline = deadline
        self._observer = observer
        self.waits = StepWaits(store.waiting)

    # Waiting --------------------------------------------------------------------------------

    def _begin_waiting(self, iteration: Iteration) -> None:
        inner: Iteration | None = iteration
        while inner is not None:
            inner.waiting += 1
            inner = inner.running.parent

    def wait(self) -> None:
        """Sleeps until an operation that waits has its result, and passes that on.

        Meanwhile the step holds no variable: what it has written is there for others to see.
        """
        self._state.suspend()
        waiter = self.waits.next(self._deadline)
        self._state.resume()
        iteration, task, start = waiter.where
        if waiter.error is not None:
            raise as_op_error(waiter.error, task.node, ()) from waiter.error
        assert waiter.made is not None
        results = waiter.made()
        if verification.enabled:
            verification.verify_all(task.node, task.infos, results)
        if self._observer is not None:
            self._observer.operation(task.node, start, time.perf_counter_ns(), results)
        for edges, merges, result in zip(task.outputs, task.merges, results):
            self.deliver(iteration, edges, merges, result, False)
        self._release(iteration, task.controls, False)
        inner = iteration
        while True:
            inner.waiting -= 1
            parent = inner.running.parent
            if parent is None:
                break
            rank = inner.running.layout.frame.rank
            if rank not in parent.ready:
                heappush(parent.ready, rank)
            inner = parent

    # Frames ---------------------------------------------------------------------------------

    def run_frame(self, running: Running) -> None:
        """Runs what is ready in a frame, iterations in order; late ones may not begin yet."""
        layout = running.layout
        iterations = running.iterations
        while True:
            if running.arrived == layout.enters:
                self._forget_iterations(iterations)
            number = next((n for n, i in iterations.items() if i.ready), None)
            if number is None or number - next(iter(iterations)) >= layout.parallel_iterations:
                break
            self.run_iteration(layout, iterations[number])
        if running.has_ended():
            self._end_frame(running)

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
                self._release(parent, task.controls, dead=True)

    def _enter(self, iteration: Iteration, task: Task, value: Any) -> None:
        layout = task.target
        assert layout is not None
        if iteration.children is None:
            iteration.children = {}
        rank = layout.frame.rank
        running = iteration.children.get(rank)
        if running is None:
            running = iteration.children[rank] = Running(layout, iteration)
        running.arrived += 1
        if task.is_constant:
            running.constants.append((task, value))
            for present in running.iterations.values():
                self._arrive(present, task, value)
            if 0 not in running.iterations:
                self._iteration(running, 0)
        else:
            self._arrive(self._iteration(running, 0), task, value)
        if rank not in iteration.ready:
            heappush(iteration.ready, rank)

    def _iteration(self, running: Running, number: int) -> Iteration:
        found = running.iterations.get(number)
        if found is None:
            found = running.iterations[number] = Iteration(running.layout, running, number)
            for task, value in running.constants:
                self._arrive(found, task, value)
        return found

    def _arrive(self, iteration: Iteration, task: Task, value: Any) -> None:
        """The output of an Enter, an Exit or a NextIteration, in its iteration."""
        self.deliver(iteration, task.outputs[0], task.merges[0], value, task.kind == ENTER)
        if task.controls:
            self._release(iteration, task.controls, value is DEAD)

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
    def _release(iteration: Iteration, ranks: list[int], dead: bool) -> None:
        """Tells the nodes that wait for another one that it has run, or never will."""
        pending = iteration.pending
        for rank in ranks:
            if dead and rank not in iteration.running.layout.merge_inputs:
                iteration.dead.add(rank)
            pending[rank] -= 1
            if pending[rank] == 0:
                heappush(iteration.ready, rank)

    # Nodes ----------------------------------------------------------------------------------

    def run_iteration(self, layout: Layout, iteration: Iteration) -> None:
        """Runs what is ready in an iteration until nothing is."""
        tasks, values, ready, dead = layout.tasks, iteration.values, iteration.ready, iteration.dead
        deadline, store, observer = self._deadline, self._store, self._observer
        deliver = self.deliver
        while ready:
            task = tasks[heappop(ready)]
            if type(task) is Layout:
                assert iteration.children is not None
                running = iteration.children[task.frame.rank]
                self.run_frame(running)
                if running.has_ended():
                    del iteration.children[task.frame.rank]
                continue
            assert type(task) is Task
            if store.closed:
                raise _closed(task.node)
            if deadline is not None:
                require_time(deadline, task.node)
            kind = task.kind
            if task.rank in dead and kind != TRIGGER:
                self._pass_on_death(iteration, task)
                continue
            if kind == PLAIN:
                start = time.perf_counter_ns() if observer is not None else 0
                results = self._compute(task, values[task.first : task.last])
                if observer is not None:
                    observer.operation(task.node, start, time.perf_counter_ns(), results)
            elif kind == CONSTANT:
                results = (task.node.attrs["value"],)
            elif kind == BLOCKING:
                results = self._start(iteration, task, values[task.first : task.last])
                if results is WAITING:
                    self._begin_waiting(iteration)
                    continue
            elif kind == SWITCH:
                data, pred = values[task.first : task.last]
                if task.references:
                    data = self._passed(task, data)
                    if isinstance(pred, Reference):
                        pred = self._state.read(pred, task.node)
                if np.ndim(pred):
                    raise errors.InvalidArgumentError(
                        None, task.node.op, f"pred must be a scalar, but has shape {pred.shape}"
                    )
                results = (DEAD, data) if pred else (data, DEAD)
            elif kind == MERGE:
                value, index = values[task.first]
                results = (value, np.int32(index))
            elif kind == VARIABLE:
                results = (self._state.reference(task.node.op),)
            elif kind == TRIGGER:
                results = ()
            else:
                value = values[task.first]
                if task.references:
                    value = self._passed(task, value)
                if kind == NEXT:
                    following = self._iteration(iteration.running, iteration.number + 1)
                    self._arrive(following, task, value)
                    continue
                if kind == ENTER:
                    self._enter(iteration, task, value)
                    continue
                if kind == EXIT:
                    running = iteration.running
                    running.exited.add(task.rank)
                    assert running.parent is not None
                    self._arrive(running.parent, task, value)
                    continue
                results = (value,)
            for edges, merges, result in zip(task.outputs, task.merges, results):
                if merges or result is DEAD:
                    deliver(iteration, edges, merges, result, False)
                    continue
                pending = iteration.pending
                for slot, rank in edges:
                    values[slot] = result
                    left = pending[rank] = pending[rank] - 1
                    if left == 0:
                        heappush(ready, rank)
            if task.controls:
                self._release(iteration, task.controls, False)

    def _pass_on_death(self, iteration: Iteration, task: Task) -> None:
        if task.kind in (NEXT, EXIT):
            return  # the loop ends here; whether a value has left it is known when it has run
        if task.kind == ENTER:
            self._enter(iteration, task, DEAD)
            return
        for edges, merges in zip(task.outputs, task.merges, strict=True):
            self.deliver(iteration, edges, merges, DEAD, False)
        self._release(iteration, task.controls, True)

    def _passed(self, task: Task, value: Any) -> Any:
        """What control flow passes on: a reference where the op is one on references."""
        if isinstance(value, Reference):
            output = task.node.op.outputs[0].dtype
            stands = task.node.op_def.name == "Identity"
            if not (output.is_ref_dtype or output.name == "resource" or stands):
                return self._state.read(value, task.node)
        return value

    def _start(self, iteration: Iteration, task: Task, args: list[Any]) -> Any:
        """Begins a blocking operation; WAITING if it has no result yet."""
        start = time.perf_counter_ns() if self._observer is not None else 0
        waiter = NodeWaiter(self.waits, task.node, (iteration, task, start))
        assert task.call is not None
        try:
            if task.references:
                self._resolve(task, args)
            results = task.call(waiter, *args)
        except Exception as error:
            raise as_op_error(error, task.node, args) from error
        if results is WAITING:
            self.waits.outstanding[waiter] = None
            return WAITING
        if verification.enabled:
            verification.verify_all(task.node, task.infos, results)
        if self._observer is not None:
            self._observer.operation(task.node, start, time.perf_counter_ns(), results)
        return results

    def _compute(self, task: Task, args: list[Any]) -> Any:
        node = task.node
        op_def = node.op_def
        written: list[Reference] = []
        assert task.call is not None
        try:
            if task.references:
                written = self._resolve(task, args)
            if op_def.random is not None:
                *results, drawn = task.call(*args, self._state.stream(node.op))
                self._state.advance(node.op, drawn)
                return results
            result = task.call(*args)
            if not written:
                return (result,) if len(node.outputs) == 1 else result
            if len(written) == 1 and not isinstance(result, tuple | list):
                result = (result,)
            left = [
                self._state.write(reference, value, node)
                for reference, value in zip(written, result)
            ]
            others = iter(result[len(written) :])
            return [left[0] if t.dtype.is_ref_dtype else next(others) for t in node.op.outputs]
        except Exception as error:
            raise as_op_error(error, node, args) from error

    def _resolve(self, task: Task, args: list[Any]) -> list[Reference]:
        """Replaces references in ``args`` by values; returns those that the node will write."""
        node, state = task.node, self._state
        op_def = node.op_def
        written = []
        for position in (*op_def.updates, *op_def.overwrites):
            if not isinstance(args[position], Reference):
                raise errors.InvalidArgumentError(
                    None,
                    node.op,
                    f"Input {position} of {node.op.name!r} must be a variable; a fed or computed "
                    "reference cannot be updated.",
                )
            written.append(args[position])
        for position, value in enumerate(args):
            if isinstance(value, Reference):
                if position in op_def.overwrites:
                    args[position] = None
                elif position in op_def.updates:
                    args[position] = state.present(value, node)
                else:
                    args[position] = state.read(value, node)
        return written


def _closed(node: Node) -> errors.CancelledError:
    return errors.CancelledError(
        None, node.op, f"The session was closed before {node.op.name!r} could run"
    )


__all__ = ["DYNAMIC_OPS", "DataflowPlan"]
