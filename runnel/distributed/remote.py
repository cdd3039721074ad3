"""The client's side of a session whose master is in another process."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from runnel.distributed.client_calls import VERSION, Client, limit_of
from runnel.distributed.client_values import from_message, require_one_message, to_message
from runnel.distributed.protocol import client_pb2 as messages
from runnel.graph import errors
from runnel.graph.device import parsed_device
from runnel.graph.device_set import LogicalDevice
from runnel.graph.graph import Graph
from runnel.graph.operation import Operation, Tensor
from runnel.runtime.session.partial_run import PartialRun, RunPlan
from runnel.runtime.state.random_streams import RandomStreams
from runnel.runtime.state.resources import Resources
from runnel.runtime.state.step_context import StepContext


class RemoteBackend:
    """A session on a task of another process."""

    def __init__(self, address: str, graph: Graph, config: Any) -> None:
        self._client = Client(address, limit_of(config))
        self._graph = graph
        self.resources = Resources()
        self.streams = RandomStreams()
        # Guards the version: one thread extends the graph at a time.
        self._lock = threading.Lock()
        self._unused: list[int] = []
        """Callables that no plan refers to any more, and the task has yet to be told of."""
        request = messages.CreateSessionRequest(version=VERSION)
        request.graph_def = graph.as_graph_def(
            add_shapes=True, add_origins=True
        ).SerializeToString()
        if config is not None:
            request.config = config.SerializeToString()
        try:
            self._client.connect()
            reply = self._client.call("CreateSession", request)
            self.session = reply.session
            self._version = reply.graph_version
            self._attached = self._client.attach(self.session)
        except BaseException:
            self._client.close()
            raise

    def call(self, name: str, request: Any, context: StepContext | None = None) -> Any:
        """A reply to a call of this session."""
        return self._client.call(name, request, self._graph._by_name.get, context)

    def _extend(self) -> None:
        with self._lock:
            count = len(self._graph.get_operations())
            if count == self._version:
                return
            request = messages.ExtendSessionRequest(
                session=self.session, graph_version=self._version
            )
            written = self._graph.as_graph_def(self._version, add_shapes=True, add_origins=True)
            request.graph_def = written.SerializeToString()
            self._version = self.call("ExtendSession", request).graph_version

    def keeps(self, op: Operation) -> bool:
        """Nothing is in this process."""
        return False

    def reach(self, *step: Any) -> None:
        """The master waits for the tasks that a step needs."""

    def plan(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Sequence[Tensor],
        done: Collection[Operation],
        precision: Any,
    ) -> RemotePlan:
        assert not done, "the parts of a partial run are planned where they run"
        self._extend()
        while self._unused:
            unused = messages.ReleaseCallableRequest(
                session=self.session, callable=self._unused.pop()
            )
            self.call("ReleaseCallable", unused)
        request = messages.MakeCallableRequest(
            session=self.session,
            feeds=[tensor.name for tensor in feeds],
            fetches=[tensor.name for tensor in fetches],
            targets=[op.name for op in targets],
        )
        number = self.call("MakeCallable", request).callable
        plan = RemoteCallable(self, number)
        weakref.finalize(plan, self._unused.append, number).atexit = False
        return plan

    def partial_run(self, session: Any, fetches: Any, feeds: list[Any]) -> PartialRun:
        """A step of ``session`` that is fed and fetched in several parts."""
        return RemotePartialRun(self, session, fetches, feeds)

    def begin_partial_run(
        self, fetches: Iterable[Tensor | Operation], feeds: Iterable[Tensor]
    ) -> int:
        """The number of a partial run there."""
        self._extend()
        elements = list(fetches)
        request = messages.PartialRunSetupRequest(
            session=self.session,
            feeds=[tensor.name for tensor in feeds],
            fetches=[e.name for e in elements if isinstance(e, Tensor)],
            targets=[e.name for e in elements if isinstance(e, Operation)],
        )
        return self.call("PartialRunSetup", request).partial_run

    def list_devices(self) -> list[LogicalDevice]:
        """The devices of the cluster."""
        reply = self.call("ListDevices", messages.SessionRequest(session=self.session))
        return [
            LogicalDevice(
                device.name,
                device.type,
                parsed_device(device.name).device_index or 0,
                device.memory,
                incarnation=device.incarnation,
            )
            for device in reply.devices
        ]

    def close(self) -> None:
        """Closes the session there."""
        if self._attached.is_active():  # else it is over there, or nobody is there
            with contextlib.suppress(errors.OpError):
                self.call("CloseSession", messages.SessionRequest(session=self.session))
        self._attached.cancel()
        self._client.close()


class RemotePlan:
    """A step that runs in another process."""

    def __init__(self, backend: RemoteBackend) -> None:
        self._backend = backend

    def _request(self, feeds: list[Any]) -> tuple[str, Any]:
        """The call that runs the step."""
        raise NotImplementedError

    def run(self, feeds: list[Any], context: StepContext) -> list[Any]:
        """The fetched values."""
        name, request = self._request(feeds)
        if context.deadline is not None:
            request.timeout_ms = max(int(context.patience(1e9) * 1000), 1)
        request.trace = context.observer is not None
        reply = self._backend.call(name, request, context)
        if reply.run_metadata:
            context.observer.add_metadata(reply.run_metadata)
        return [_writable(from_message(value)) for value in reply.values]

    def device_of(self, op: Operation) -> LogicalDevice:
        """Known there only."""
        return LogicalDevice(op.device or "/device:CPU:0", "CPU", 0)

    def device_error(self, error: Exception) -> errors.OpError:
        """There is no device here that a step uses."""
        return errors.InternalError(None, None, str(error))

    def add_partition_graphs(self, run_metadata: Any) -> None:
        """A part of a partial run has none of its own."""


class RemoteCallable(RemotePlan):
    """A step that another process has prepared."""

    def __init__(self, backend: RemoteBackend, number: int) -> None:
        super().__init__(backend)
        self._number = number

    def _request(self, feeds: list[Any]) -> tuple[str, Any]:
        require_one_message(feeds)
        request = messages.RunCallableRequest(session=self._backend.session, callable=self._number)
        for value in feeds:
            to_message(value, request.feeds.add())
        return "RunCallable", request

    def add_partition_graphs(self, run_metadata: Any) -> None:
        """Adds a graph for each device of any task that has something to run."""
        request = messages.PartitionGraphsRequest(
            session=self._backend.session, callable=self._number
        )
        for content in self._backend.call("PartitionGraphs", request).graph_defs:
            run_metadata.partition_graphs.add().ParseFromString(content)


class RemotePart(RemotePlan):
    """A part of a partial run."""

    def __init__(self, backend: RemoteBackend, form: Any, feeds: list[Tensor]) -> None:
        """``form`` is the call without the values of ``feeds``."""
        super().__init__(backend)
        self._form = form
        self._feeds = feeds

    def _request(self, feeds: list[Any]) -> tuple[str, Any]:
        require_one_message(feeds)
        for tensor, value in zip(self._feeds, feeds, strict=True):
            to_message(value, self._form.feeds.add(name=tensor.name).value)
        return "Run", self._form


class RemotePartialRun(PartialRun):
    """A partial run whose values stay in the other process until they are fetched."""

    def __init__(
        self, backend: RemoteBackend, session: Any, fetches: Any, feeds: list[Any]
    ) -> None:
        super().__init__(session, fetches, feeds)
        self._backend = backend
        self._sent: set[Tensor] = set()
        self._number = backend.begin_partial_run(self._may_fetch, self._may_feed)

    def _advance(self, session: Any, elements: list[Any], run_plan: RunPlan | None) -> None:
        tensors = [e for e in elements if isinstance(e, Tensor)]
        form = messages.RunRequest(
            session=self._backend.session,
            partial_run=self._number,
            fetches=[tensor.name for tensor in tensors],
            targets=[e.name for e in elements if isinstance(e, Operation)],
        )
        feeds = [t for t in self._known if t in self._may_feed and t not in self._sent]
        given = [self._known[tensor] for tensor in feeds]
        self._sent.update(feeds)  # a part that fails has been fed nevertheless
        values = session._run_plan(RemotePart(self._backend, form, feeds), given, None, None)
        self._known.update(zip(tensors, values, strict=True))
        self._sent.update(tensors)  # known there


def _writable(value: Any) -> Any:
    return value[()] if value.ndim == 0 else value.copy()
