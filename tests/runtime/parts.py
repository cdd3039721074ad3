"""Running a step in parts: each is written to bytes, read back, and run by a task of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import runnel as tf
from runnel.passes.placement.bundles import bundle
from runnel.passes.placement.node_devices import devices_of_nodes, hand_on_where_made
from runnel.passes.placement.part_graph import part_graph
from runnel.passes.placement.partition import Partition, partition
from runnel.passes.program.checker import check_program
from runnel.passes.program.prune import prune
from runnel.queues.rendezvous import Rendezvous
from runnel.runtime.devices.session_devices import SessionDevices
from runnel.runtime.schedule.plan import StepPlan
from runnel.runtime.state.options import ALWAYS, AUTO, NEVER, SessionOptions
from runnel.runtime.state.step_context import RunningSteps
from runnel.runtime.state.task_state import TaskState
from tests.both_tiers import COMPILED, INTERPRETED

MODES = {INTERPRETED: NEVER, COMPILED: ALWAYS, 0: AUTO}
LIMIT = 60.0


class Task:
    """What one task has: state, and the parts that it was given, read back from bytes."""

    def __init__(self, devices: SessionDevices, level: int) -> None:
        self.state = TaskState()
        self.steps = RunningSteps(self.state.resources)
        self._devices = devices
        self._level = level

    def prepare(self, written: bytes, fetches: list[str], feeds: list[str]) -> StepPlan:
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(tf.GraphDef.FromString(written), name="")
        return StepPlan(
            [graph.get_tensor_by_name(name) for name in fetches],
            [op for op in graph.get_operations() if op.type != "Placeholder"],
            [graph.get_tensor_by_name(name) for name in feeds],
            self.state,
            self._devices,
            SessionOptions(jit=MODES[self._level], steps_ahead=0),
        )


class PreparedPart:
    """A part at its task, and the numbers of the values that it is fed and gives."""

    def __init__(self, task: Task, part: Any, level: int) -> None:
        check_program(part.program, "partition")
        written = part_graph(part)
        self.task = task
        self.feeds = list(written.feeds)
        self.gives = list(written.fetches)
        self.plan = task.prepare(
            written.graph_def.SerializeToString(),
            list(written.fetches.values()),
            list(written.feeds.values()),
        )


class Tasks:
    """A cluster in one process: ``task_of`` names the task of each device."""

    bundles = True

    def __init__(self, task_of: Callable[[Any], str], level: int, devices: int = 3) -> None:
        config = tf.ConfigProto(device_count={"CPU": devices})
        self._devices = SessionDevices.from_config(config)
        self._task_of = task_of
        self._level = level
        self._prepared: dict[Any, Any] = {}
        self.tasks: dict[str, Task] = {}

    def partition(self, fetches: Any, targets: Any, feeds: Any) -> tuple[Any, Partition]:
        program = prune(fetches, targets, feeds)
        placement = self._devices.placement([node.op for node in program.nodes], program)
        self._devices.note_placement(program, placement)
        device_of = devices_of_nodes(program, placement)
        part_of = {node: self._task_of(device) for node, device in device_of.items()}
        hand_on_where_made(program, device_of, part_of)
        found = partition(program, device_of, part_of)
        if self.bundles:
            bundle(found)
        return program, found

    def prepare(self, fetches: tuple[Any, ...], targets: tuple[Any, ...], feeds: Any) -> Any:
        key = fetches, targets, feeds
        if key not in self._prepared:
            program, found = self.partition(*key)
            parts = []
            for name, part in found.parts.items():
                task = self.tasks.get(name)
                if task is None:
                    task = self.tasks[name] = Task(self._devices, self._level)
                parts.append(PreparedPart(task, part, self._level))
            self._prepared[key] = program, parts
        return self._prepared[key]

    def run(self, fetches: Any, feed_dict: Any = None) -> list[Any]:
        """The values of ``fetches``, a list of tensors and operations."""
        feed_dict = feed_dict or {}
        elements = [getattr(f, "_as_graph_element", lambda f=f: f)() for f in fetches]
        tensors = tuple(e for e in elements if isinstance(e, tf.Tensor))
        targets = tuple(e for e in elements if isinstance(e, tf.Operation))
        program, parts = self.prepare(tensors, targets, tuple(feed_dict))
        values = {program.feeds[tensor]: value for tensor, value in feed_dict.items()}
        Step(parts).run(feed_dict, values)
        found = dict(zip(tensors, [values[number] for number in program.fetches], strict=True))
        return [found.get(element) for element in elements]


class Step:
    """One run of a step: a thread and a context for each part, one rendezvous for all."""

    def __init__(self, parts: list[PreparedPart]) -> None:
        self.rendezvous = Rendezvous()
        self.errors: dict[int, Exception] = {}
        self._parts = parts
        self._contexts = []
        for part in parts:
            context = part.task.steps.begin()
            context.rendezvous = self.rendezvous
            self._contexts.append(context)

    def run(self, feed_dict: Any, values: dict[int, Any]) -> None:
        """Runs all parts; what they give is added to ``values``, the first cause is raised."""
        self.run_parts(feed_dict, values)
        if self.rendezvous.error is not None:
            raise self.rendezvous.error

    def run_parts(self, feed_dict: Any, values: dict[int, Any]) -> None:
        threads = [
            threading.Thread(target=self._run, args=(i, feed_dict, values), daemon=True)
            for i in range(len(self._parts))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)
        stuck = [i for i, thread in enumerate(threads) if thread.is_alive()]
        waiting = [
            [(w.node.op.name, w.iteration) for w in self._contexts[i].outstanding or ()]
            for i in stuck
        ]
        for context in self._contexts:
            context.cancel("the test gave up")
        assert not stuck, f"parts {stuck} hang: {waiting}, {list(self.rendezvous._values)}"

    def _run(self, number: int, feed_dict: Any, values: dict[int, Any]) -> None:
        part, context = self._parts[number], self._contexts[number]
        try:
            found = part.plan.run([feed_dict[tensor] for tensor in part.feeds], context)
            values.update(zip(part.gives, found, strict=True))
        except Exception as error:  # noqa: BLE001 (told to the others, and raised there)
            self.errors[number] = error
            self.rendezvous.abort(error)
            for other in self._contexts:
                if other is not context:
                    other.cancel(f"another part of the step failed: {error}")
        finally:
            part.task.steps.end(context)
