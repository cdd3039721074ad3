"""Runs the nodes of a region: turns references into values, calls kernels."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from runnel.graph import errors
from runnel.graph.device_set import LogicalDevice
from runnel.ops.send_recv import send_dead
from runnel.queues.rendezvous import DEAD
from runnel.queues.waiter import WAITING
from runnel.runtime.devices.devices import xla_device
from runnel.runtime.devices.transfer import put, tell_of_transfer
from runnel.runtime.dynamic.layout import Task
from runnel.runtime.dynamic.region_state import Reference, RegionState
from runnel.runtime.interpret import verification
from runnel.runtime.interpret.interpreter import as_op_error
from runnel.runtime.interpret.stretch import Stretch
from runnel.runtime.state.cell import as_numpy
from runnel.runtime.state.step_context import StepContext


class NodeRunner:
    """Runs nodes and stretches with the state of one run of a region."""

    __slots__ = ("context", "state", "unit", "run", "_arrived")

    def __init__(self, context: StepContext, state: RegionState, unit: Any, run: Any) -> None:
        """``unit`` and ``run`` are what is told when an operation that waits has its result."""
        self.context = context
        self.state = state
        self.unit = unit
        self.run = run
        self._arrived: dict[tuple[int, LogicalDevice], tuple[Any, Any]] = {}
        """What was brought to a device last, of each value: with the value that it was."""

    def compute(self, task: Task, args: list[Any]) -> Any:
        """The outputs of a node."""
        node = task.node
        op_def = node.op_def
        written: list[Reference] = []
        assert task.call is not None
        try:
            if task.takes_numpy:
                args = list(map(as_numpy, args))
            if task.references:
                written = self._resolve(task, args)
            if op_def.random is not None:
                *results, drawn = task.call(*args, self.state.stream(node.op))
                self.state.advance(node.op, drawn)
                return results
            result = task.call(*args)
            if not written:
                return (result,) if len(node.outputs) == 1 else result
            if len(written) == 1 and not isinstance(result, tuple | list):
                result = (result,)
            left = [
                self.state.write(reference, value, node)
                for reference, value in zip(written, result)
            ]
            others = iter(result[len(written) :])
            return [left[0] if t.dtype.is_ref_dtype else next(others) for t in node.op.outputs]
        except Exception as error:
            raise as_op_error(error, node, args) from error

    def run_stretch(self, task: Task, args: list[Any]) -> list[Any]:
        """The outputs of a stretch."""
        stretch, state = task.stretch, self.state
        assert stretch is not None
        if task.references:
            for position, value in enumerate(args):
                if isinstance(value, Reference):
                    args[position] = state.read(value, stretch.taker(position))
        if stretch.device is not None:
            self._bring(stretch, stretch.device, args)
        if not stretch.random:
            return stretch.run(args, self.context)
        args += [state.stream(op) for op in stretch.random]
        results = stretch.run(args, self.context)
        count = len(stretch.outputs)
        for op, drawn in zip(stretch.random, results[count:], strict=True):
            state.advance(op, int(drawn))
        return results[:count]

    def _bring(self, stretch: Stretch, device: LogicalDevice, args: list[Any]) -> None:
        """Puts what is on another device in place: moved once, however many stretches take it."""
        for position, value in enumerate(args):
            if isinstance(value, np.ndarray | np.generic) or not hasattr(value, "devices"):
                continue
            target = xla_device(device)
            if value.devices() != {target}:
                key = stretch.inputs[position], device
                source, moved = self._arrived.get(key, (None, None))
                if source is not value:
                    start = time.perf_counter_ns()
                    moved = put(value, target)
                    if self.context.observer is not None:
                        self._note_transfer(stretch, position, start, moved)
                    self._arrived[key] = value, moved
                args[position] = moved

    def _note_transfer(self, stretch: Stretch, position: int, start: int, moved: Any) -> None:
        """Tells the observer what was brought for a stretch."""
        assert stretch.device is not None
        taker = stretch.taker(position)
        tensor = taker.op.inputs[taker.inputs.index(stretch.inputs[position])]
        observer, receiver = self.context.observer, stretch.device.name
        tell_of_transfer(observer, tensor.name, tensor.op, receiver, start, moved)

    def begin(self, task: Task, args: list[Any], iteration: Any = None) -> Any:
        """Begins a blocking operation of ``iteration``: its results, or what waits for them."""
        context = self.context
        start = time.perf_counter_ns() if context.observer is not None else 0
        waiter = context.waiter(task.node, (self.unit, self.run, iteration, task, start))
        if task.exchanges:
            waiter.iteration = iteration.key()
        assert task.call is not None
        try:
            if task.takes_numpy:
                args = list(map(as_numpy, args))
            if task.references:
                self._resolve(task, args)
            self.state.before_exchange(context)
            results = task.call(waiter, *args)
        except Exception as error:
            raise as_op_error(error, task.node, args) from error
        if results is WAITING:
            context.begin_to_wait(waiter)
            return waiter
        self.state.after_exchange()
        if not (task.exchanges and results and results[0] is DEAD):
            self.note(task, start, results)
        return results

    def send_dead(self, task: Task, iteration: Any) -> None:
        """Tells the part of the step that waits for a Send that it will not run."""
        waiter = self.context.waiter(task.node, None)
        waiter.iteration = iteration.key()
        try:
            send_dead(task.node.attrs, waiter)
        except Exception as error:
            raise as_op_error(error, task.node, ()) from error

    def note(self, task: Task, start: int, results: Any) -> None:
        """Takes note of what a blocking operation has given."""
        if verification.enabled:
            verification.verify_all(task.node, task.infos, results)
        observer = self.context.observer
        if observer is not None:
            observer.operation(task.node, start, time.perf_counter_ns(), results)

    def passed(self, task: Task, value: Any) -> Any:
        """What control flow passes on: a reference where the op is one on references."""
        if isinstance(value, Reference):
            output = task.node.op.outputs[0].dtype
            stands = task.node.op_def.name == "Identity"
            if not (output.is_ref_dtype or output.name == "resource" or stands):
                return self.state.read(value, task.node)
        return value

    def predicate(self, task: Task, value: Any) -> Any:
        """The predicate of a Switch as something that is true or false."""
        if task.references and isinstance(value, Reference):
            value = self.state.read(value, task.node)
        if np.ndim(value):
            raise errors.InvalidArgumentError(
                None, task.node.op, f"pred must be a scalar, but has shape {np.shape(value)}"
            )
        return value

    def _resolve(self, task: Task, args: list[Any]) -> list[Reference]:
        """Replaces references in ``args`` by values; returns those that the node will write."""
        node, state = task.node, self.state
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
