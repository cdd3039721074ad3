"""A part of a step at its worker: prepared when it first runs, and run by whichever thread can.

A part that can only wait holds no thread: whoever brings what it waits for resumes it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from runnel.distributed.protocol.worker_pb2 import Register
from runnel.distributed.step_rendezvous import task_of
from runnel.distributed.worker import WorkerStep
from runnel.graph import errors
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import Graph
from runnel.graph.import_graph_def import import_graph_def
from runnel.graph.operation import Operation, Tensor
from runnel.passes.placement.part_graph import FUNCTION_BODY
from runnel.runtime.devices.session_devices import SessionDevices
from runnel.runtime.schedule.plan import StepPlan
from runnel.runtime.session import settings
from runnel.runtime.state.at_exit import require_running
from runnel.runtime.state.options import SessionOptions
from runnel.runtime.state.step_context import RunningSteps, StepContext
from runnel.runtime.state.task_state import TaskState
from runnel.step_time import limited_by


class Host(Protocol):
    """Who runs parts."""

    def take_up(self, run: PartRun) -> None:
        """Has a thread go on with ``run``."""

    def parked(self) -> None:
        """A step can only wait."""

    def ended(
        self, run: PartRun, values: Sequence[Any] = (), error: BaseException | None = None
    ) -> None:
        """A part has ended."""


class HostedPart:
    """A part that was registered: its plan is made when it first runs."""

    def __init__(self, register: Register, session: HostedSession, devices: SessionDevices) -> None:
        self._register: Register | None = register
        self._session = session
        self._devices = devices
        # One thread prepares the plan; the others wait for it.
        self._lock = threading.Lock()
        self._plan: StepPlan | None = None
        self.seconds = 1.0
        """How long a run takes, about, without its waiting; it is not known at first."""
        self.holds_thread = True
        """Whether an operation of it may wait on its thread; known when it has been prepared."""
        self.receivers: frozenset[str] = frozenset()
        """The tasks to which it sends, then known, too; its own may be one."""

    def plan(self) -> StepPlan:
        """What runs it."""
        if self._plan is None:
            with self._lock:
                if self._plan is None:
                    assert self._register is not None
                    self._plan = self._prepared(self._register)
                    self._register = None
        return self._plan

    def _prepared(self, message: Register) -> StepPlan:
        from tensorboard.compat.proto.graph_pb2 import GraphDef

        graph = Graph()
        try:
            with graph.as_default():
                import_graph_def(GraphDef.FromString(message.graph_def), name="")
            fetches = [graph.get_tensor_by_name(name) for name in message.fetches]
            feeds = [graph.get_tensor_by_name(name) for name in message.feeds]
        except errors.OpError:
            raise
        except Exception as error:
            raise errors.InvalidArgumentError(
                None, None, f"A part of a step cannot be read: {error}"
            ) from error
        self.holds_thread = any(op.op_def.holds_thread for op in graph.get_operations())
        self.receivers = frozenset(
            task_of(op.attrs["recv_device"])
            for op in graph.get_operations()
            if op.type in ("_Send", "_SendMany")
        )
        return StepPlan(
            fetches,
            [
                op
                for op in graph.get_operations()
                if op.type != "Placeholder" and FUNCTION_BODY not in op.attrs
            ],
            feeds,
            self._session.state,
            self._devices,
            _options(message),
        )


def function_planner(
    message: Register, session: HostedSession, devices: SessionDevices
) -> Callable[[list[Tensor], list[Operation], list[Tensor]], StepPlan]:
    """Prepares the functions of datasets here, as ``message`` says parts are prepared."""
    options = _options(message)

    def plan(fetches: list[Tensor], targets: list[Operation], feeds: list[Tensor]) -> StepPlan:
        return StepPlan(fetches, targets, feeds, session.state, devices, options)

    return plan


def _options(message: Register) -> SessionOptions:
    """How ``message`` has parts run; what it leaves open, this process says."""
    tensor_float_32 = settings.current.tensor_float_32
    if message.HasField("tensor_float_32"):
        tensor_float_32 = message.tensor_float_32
    return SessionOptions(
        jit=message.jit,
        optimizer=message.optimizer,
        raises=message.raises,
        precision=as_dtype(message.precision) if message.precision else None,
        steps_ahead=0,
        tensor_float_32=tensor_float_32,
    )


@dataclass(slots=True)
class HostedSession:
    """What a session has here."""

    number: int
    state: TaskState
    steps: RunningSteps
    isolated: bool
    parts: dict[int, HostedPart] = field(default_factory=dict)
    peers: dict[str, str] = field(default_factory=dict)
    """The addresses of the tasks that have parts of its steps, as its master knows them."""


class PartRun:
    """One run of a part, driven by whichever thread has something for it."""

    def __init__(
        self,
        host: Host,
        step: WorkerStep,
        part: HostedPart,
        context: StepContext,
        feeds: Sequence[Any],
    ) -> None:
        self.step = step
        self.context = context
        self.begun = time.time()
        self._host = host
        self._part = part
        self._feeds = feeds
        self._steps: Any = None
        # Guards the two flags: one thread drives at a time, and none of the calls is missed.
        self._lock = threading.Lock()
        self.driven = True
        """False while it can only wait."""
        self._roused = False
        self._spent = 0.0
        self.part = part

    def roused(self) -> None:
        """Something has arrived, or the step has to stop; from any thread, under any lock."""
        with self._lock:
            self._roused = True
            if self.driven:
                return
            self.driven = True
        self._host.take_up(self)

    def drive(self) -> None:
        """Goes on until the step can only wait, or has ended."""
        begun = time.perf_counter()
        # What its operations run as steps of their own is found by this thread, and ends with it.
        self.context.thread = threading.get_ident()
        while True:
            with self._lock:
                self._roused = False
            with limited_by(self.context.look):  # its master may have it end at any time
                has_ended = self._advance()
            if has_ended:
                self._let_go()
                self._spent += time.perf_counter() - begun
                self._part.seconds += (self._spent - self._part.seconds) / 4
                if self._spent < self._part.seconds:
                    self._part.seconds = self._spent
                return
            with self._lock:
                if not self._roused:
                    self.driven = False
                    self.context.thread = 0
                    self._spent += time.perf_counter() - begun
                    break
        self._host.parked()

    def _let_go(self) -> None:
        """Forgets the values of the run, which has ended: nothing but this keeps them."""
        self.context.on_arrival = None  # it leads here
        self._feeds, self._steps = (), None

    def _advance(self) -> bool:
        """True when the part has ended."""
        context = self.context
        try:
            require_running()
            if self._steps is None:
                self._steps = self._part.plan().proceed(list(self._feeds), context)
            next(self._steps)
            return False
        except StopIteration as ended:
            self._host.ended(self, values=ended.value)
        except Exception as error:  # noqa: BLE001 (told to the master)
            self._host.ended(self, error=error)
        return True
