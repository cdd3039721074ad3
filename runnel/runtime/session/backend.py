"""Backends of sessions: this process, or a cluster.

A session keeps feeds, fetches and the plans of its calls. A backend prepares plans, and owns or
reaches the state against which they run. The packages that have backends for other targets than
this process register them here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, Protocol

from runnel.graph import errors
from runnel.graph.graph import Graph
from runnel.graph.operation import Operation, Tensor
from runnel.runtime.devices.session_devices import SessionDevices
from runnel.runtime.schedule.plan import StepPlan
from runnel.runtime.session import settings
from runnel.runtime.session.partial_run import PartialRun
from runnel.runtime.state.options import SessionOptions
from runnel.runtime.state.random_streams import RandomStreams
from runnel.runtime.state.resources import Resources
from runnel.runtime.state.sent_ahead import raise_first
from runnel.runtime.state.step_context import StepContext
from runnel.runtime.state.task_state import TaskState


class Plan(Protocol):
    """A step, prepared."""

    def run(self, feeds: list[Any], context: StepContext) -> list[Any]:
        """The fetched values, which are the caller's."""

    def device_of(self, op: Operation) -> Any:
        """Where ``op`` runs."""

    def device_error(self, error: Exception) -> errors.OpError:
        """The error for a device that failed while nobody was waiting for it."""

    def add_partition_graphs(self, run_metadata: Any) -> None:
        """Adds a graph for each device that has something to run."""


class Backend(Protocol):
    """Prepares steps, and owns or reaches the state that they run against."""

    @property
    def resources(self) -> Resources:
        """What the steps that run in this process share beside variables."""

    @property
    def streams(self) -> RandomStreams:
        """The random streams of the steps that run in this process."""

    def keeps(self, op: Operation) -> bool:
        """Whether what ``op`` makes, such as a queue, is among :attr:`resources`."""

    def reach(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Sequence[Tensor],
    ) -> None:
        """Waits until all that a step needs is there."""

    def plan(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Sequence[Tensor],
        done: Collection[Operation],
        precision: Any,
    ) -> Plan:
        """Prepares a step."""

    def partial_run(self, session: Any, fetches: Any, feeds: list[Any]) -> PartialRun:
        """Prepares a step of ``session`` that is fed and fetched in several parts."""

    def list_devices(self) -> list[Any]:
        """The devices that steps can use."""

    def close(self) -> None:
        """The session is over; raises what nobody has been told of."""


class LocalBackend:
    """This process: a session here has state of its own, which ends with it."""

    def __init__(self, config: Any, options: SessionOptions) -> None:
        self.task = TaskState()
        self.devices = SessionDevices.from_config(config)
        self._options = options

    @property
    def resources(self) -> Resources:
        return self.task.resources

    @property
    def streams(self) -> RandomStreams:
        return self.task.streams

    def keeps(self, op: Operation) -> bool:
        """All is in this process."""
        return True

    def reach(self, *step: Any) -> None:
        """This process is here."""

    def plan(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Sequence[Tensor],
        done: Collection[Operation],
        precision: Any,
        known: Mapping[Tensor, bool] | None = None,
    ) -> StepPlan:
        options, current = self._options, settings.current
        options = replace(
            options,
            precision=precision,
            steps_ahead=_first_given(options.steps_ahead, current.steps_ahead),
            tensor_float_32=_first_given(options.tensor_float_32, current.tensor_float_32),
        )
        return StepPlan(fetches, targets, feeds, self.task, self.devices, options, done, known)

    def partial_run(self, session: Any, fetches: Any, feeds: list[Any]) -> PartialRun:
        return PartialRun(session, fetches, feeds)

    def list_devices(self) -> list[Any]:
        return list(self.devices.devices)

    def close(self) -> None:
        failures = self.task.settle_all()
        self.task.clear()
        raise_first(failures)


def _first_given(*values: Any) -> Any:
    """The first of ``values`` that is not None, or None."""
    return next((value for value in values if value is not None), None)


Open = Callable[[str, Graph, Any, SessionOptions], Backend]
Reset = Callable[[str, Sequence[str], Any], None]

# Named here and not by who loads it: a session may be made before anything else of a cluster.
_elsewhere: dict[str, Callable[[], tuple[Open, Reset]]] = {
    "grpc": lambda: import_module("runnel.distributed.targets").load()
}


def open_backend(target: str, graph: Graph, config: Any, options: SessionOptions) -> Backend:
    """What is behind a session on ``target``; "" is this process."""
    if target in ("", "local"):
        return LocalBackend(config, options)
    return _loaded(target)[0](target, graph, config, options)


def reset_target(target: str, containers: Sequence[str], config: Any) -> None:
    """Clears containers of the cluster at ``target``."""
    _loaded(target)[1](target, containers, config)


def _loaded(target: str) -> tuple[Open, Reset]:
    scheme, found, _ = target.partition("://")
    if not found or scheme not in _elsewhere:
        raise errors.NotFoundError(
            None,
            None,
            f"There is no session target {target!r}; '' is this process, 'grpc://host:port' a task "
            "of a cluster (tf.train.Server)",
        )
    return _elsewhere[scheme]()
