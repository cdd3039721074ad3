"""Answers clients of other processes: sessions on this task's master, over gRPC.

The server listens on a local socket only. The task's listener passes on what comes from elsewhere,
after TLS. ``docs/cluster-protocol.md`` describes the protocol.
"""

from __future__ import annotations

import hmac
import itertools
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from runnel.distributed.client_session import ClientSession
from runnel.distributed.client_values import (
    FAILURE,
    failure_bytes,
    from_message,
    require_one_message,
    to_message,
)
from runnel.distributed.master import MasterSession
from runnel.distributed.protocol import client_pb2 as messages
from runnel.distributed.security import Security
from runnel.distributed.status import status_of
from runnel.graph import errors
from runnel.graph.graph import Graph
from runnel.graph.operation import Operation, Tensor
from runnel.runtime.schedule.tracing import StepTracer
from runnel.runtime.session.feeds import check_feed
from runnel.runtime.session.partial_run import PartialRun
from runnel.runtime.state import at_exit
from runnel.threads import Threads

VERSION = 1
SERVICE = "runnel.client.Sessions"
_MOST_DETAILS = 1000
"""Characters of an error's text in the status itself; the failure beside it has more."""
_MOST_CALLS = 4096
"""Calls that may wait at once; each has a thread while it does."""
_LEAST_PING_MS = 500
"""How often a client may ask whether the server lives; more often is taken for an attack."""


class ClientService:
    """The gRPC server of a task."""

    def __init__(self, server: Any, security: Security) -> None:
        self._task = server
        self._sessions: dict[int, ClientSession] = {}
        self._numbers = itertools.count(1)
        self._folder = tempfile.mkdtemp(prefix="runnel-")  # for this user only
        self.path = os.path.join(self._folder, "clients")
        self._threads = Threads("runnel-client", _MOST_CALLS)
        silence_ms = int(server.peers.deadline * 500)  # half of it passes before a ping, half after
        self._server = grpc.server(
            self._threads,
            interceptors=[_TokenCheck(security.token)] if security.token else [],
            options=[
                ("grpc.max_receive_message_length", -1),
                ("grpc.max_send_message_length", -1),
                ("grpc.keepalive_time_ms", silence_ms),
                ("grpc.keepalive_timeout_ms", silence_ms),
                ("grpc.http2.ping_timeout_ms", 2 * silence_ms),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.http2.max_pings_without_data", 0),
                # gRPC's own limit, five minutes, would end the connection of a quiet client.
                ("grpc.http2.min_ping_interval_without_data_ms", _LEAST_PING_MS),
            ],
        )
        handlers: dict[str, tuple[Any, Any]] = {
            "CreateSession": (self._create, messages.CreateSessionRequest),
            "ExtendSession": (self._extend, messages.ExtendSessionRequest),
            "Run": (self._run, messages.RunRequest),
            "MakeCallable": (self._make_callable, messages.MakeCallableRequest),
            "RunCallable": (self._run_callable, messages.RunCallableRequest),
            "ReleaseCallable": (self._release_callable, messages.ReleaseCallableRequest),
            "PartitionGraphs": (self._partition_graphs, messages.PartitionGraphsRequest),
            "PartialRunSetup": (self._partial_run_setup, messages.PartialRunSetupRequest),
            "ListDevices": (self._list_devices, messages.SessionRequest),
            "CloseSession": (self._close, messages.SessionRequest),
            "Reset": (self._reset, messages.ResetRequest),
            "Status": (self._status, messages.Empty),
        }
        rpcs = {
            name: grpc.unary_unary_rpc_method_handler(
                self._answering(handler),
                request_deserializer=kind.FromString,
                response_serializer=lambda reply: reply.SerializeToString(),
            )
            for name, (handler, kind) in handlers.items()
        }
        rpcs["Attach"] = grpc.unary_stream_rpc_method_handler(
            self._attach,
            request_deserializer=messages.SessionRequest.FromString,
            response_serializer=lambda reply: reply.SerializeToString(),
        )
        handler = grpc.method_handlers_generic_handler(SERVICE, rpcs)
        self._server.add_generic_rpc_handlers((handler,))
        self._server.add_insecure_port(f"unix:{self.path}")
        self._server.start()

    def stop(self) -> None:
        """Ends all sessions."""
        self._server.stop(0).wait()
        self._threads.close()
        for session in list(self._sessions.values()):
            session.close()
        Path(self.path).unlink(missing_ok=True)
        Path(self._folder).rmdir()

    def _answering(self, handler: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """``handler`` with errors as the protocol has them."""

        def answer(request: Any, context: Any) -> Any:
            try:
                return handler(request, context)
            except Exception as error:  # noqa: BLE001 (told to the client)
                self._fail(context, error)

        return answer

    def _fail(self, context: Any, error: Exception) -> None:
        """Ends a call with an error."""
        if isinstance(error, ValueError | TypeError | KeyError | DecodeError):
            text = str(error.args[0] if error.args else error)
            error = errors.InvalidArgumentError(None, None, text)
        code, text, whole = failure_bytes(error, self._task.task)
        context.set_trailing_metadata([(FAILURE, whole)])
        context.abort(_STATUS.get(code, grpc.StatusCode.UNKNOWN), text[:_MOST_DETAILS])

    def _session(self, number: int) -> ClientSession:
        session = self._sessions.get(number)
        if session is None:
            raise errors.AbortedError(
                None,
                None,
                f"{self._task.task} does not know this session: it was closed, or the task was "
                "started anew. Make a new session",
            )
        session.used_at = time.monotonic()
        return session

    def close_forsaken(self) -> None:
        """Closes the sessions of clients that have died before their end could be seen."""
        now = time.monotonic()
        for number, session in list(self._sessions.items()):
            if session.is_forsaken(now):
                self._end(number)

    def _end(self, number: int) -> None:
        session = self._sessions.pop(number, None)
        if session is not None:
            session.close()

    # Calls ----------------------------------------------------------------------------------

    def _create(self, request: Any, context: Any) -> Any:
        if request.version != VERSION:
            raise errors.UnimplementedError(
                None,
                None,
                f"{self._task.task} speaks version {VERSION} of the protocol, not "
                f"{request.version}",
            )
        session = ClientSession(self._task, request.config, request.graph_def)
        number = secrets.randbits(63) | 1
        self._sessions[number] = session
        # The client may have given up while tasks were waited for: it cannot close the session.
        if not context.is_active():
            self._end(number)
        return messages.CreateSessionReply(session=number, graph_version=session.version)

    def _extend(self, request: Any, context: Any) -> Any:
        session = self._session(request.session)
        with session.extending:
            if request.graph_version != session.version:
                raise errors.AbortedError(
                    None,
                    None,
                    f"The session's graph has {session.version} operations here and "
                    f"{request.graph_version} at the client",
                )
            session.extend(request.graph_def)
            return messages.ExtendSessionReply(graph_version=session.version)

    def _run(self, request: Any, context: Any) -> Any:
        session = self._session(request.session)
        graph = session.graph
        fetches = [_tensor(graph, name) for name in request.fetches]
        targets = [_operation(graph, name) for name in request.targets]
        feeds = {_tensor(graph, feed.name): from_message(feed.value) for feed in request.feeds}
        if request.partial_run:
            partial = session.partial_runs.get(request.partial_run)
            if partial is None:
                raise errors.InvalidArgumentError(None, None, "There is no such partial run")
            values = partial.run(
                session.session,
                [*fetches, *targets],
                feeds,
                lambda plan, known: self._stepped(session, plan, known, request, context)[0],
            )
            if partial.is_complete:  # nothing more can be asked of it
                session.partial_runs.pop(request.partial_run, None)
            return _reply(values[: len(fetches)], None)
        prepared, _ = session.session._prepare([*fetches, *targets], dict.fromkeys(feeds))
        values = [check_feed(tensor, feeds[tensor]) for tensor in prepared.feeds]
        found, tracer = self._stepped(session, prepared.plan, values, request, context)
        return _reply(prepared.fetched(found)[: len(fetches)], tracer)

    def _make_callable(self, request: Any, context: Any) -> Any:
        session = self._session(request.session)
        graph = session.graph
        feeds = [_tensor(graph, name) for name in request.feeds]
        fetches = [_tensor(graph, name) for name in request.fetches]
        targets = [_operation(graph, name) for name in request.targets]
        prepared, _ = session.session._prepare([*fetches, *targets], dict.fromkeys(feeds))
        number = next(self._numbers)
        places = [feeds.index(tensor) for tensor in prepared.feeds]
        session.callables[number] = prepared, feeds, places, len(fetches)
        return messages.MakeCallableReply(callable=number)

    def _run_callable(self, request: Any, context: Any) -> Any:
        session = self._session(request.session)
        prepared, feeds, places, count = _callable(session, request.callable)
        if len(request.feeds) != len(feeds):
            raise errors.InvalidArgumentError(
                None, None, f"The callable takes {len(feeds)} values, not {len(request.feeds)}"
            )
        values = [check_feed(feeds[i], from_message(request.feeds[i])) for i in places]
        found, tracer = self._stepped(session, prepared.plan, values, request, context)
        return _reply(prepared.fetched(found)[:count], tracer)

    def _stepped(
        self, session: ClientSession, plan: Any, feeds: list[Any], request: Any, call: Any
    ) -> tuple[list[Any], StepTracer | None]:
        """Runs a step that ends when the client hangs up."""
        timeout_ms = request.timeout_ms or session.session._options.timeout_ms
        deadline = time.monotonic() + timeout_ms / 1000 if timeout_ms > 0 else None
        tracer = StepTracer(plan.device_of) if request.trace else None
        step = session.session._steps.begin(deadline, tracer)
        try:
            if not call.add_callback(lambda: step.cancel("its client has given it up")):
                step.cancel("its client has given it up")
            return plan.run(feeds, step), tracer
        finally:
            session.session._steps.end(step)

    def _release_callable(self, request: Any, context: Any) -> Any:
        self._session(request.session).callables.pop(request.callable, None)
        return messages.Empty()

    def _partition_graphs(self, request: Any, context: Any) -> Any:
        from tensorboard.compat.proto.config_pb2 import RunMetadata

        prepared, *_ = _callable(self._session(request.session), request.callable)
        metadata = RunMetadata()
        prepared.plan.add_partition_graphs(metadata)
        reply = messages.PartitionGraphsReply()
        reply.graph_defs.extend(graph.SerializeToString() for graph in metadata.partition_graphs)
        return reply

    def _partial_run_setup(self, request: Any, context: Any) -> Any:
        session = self._session(request.session)
        graph = session.graph
        fetches: list[Any] = [_tensor(graph, name) for name in request.fetches]
        fetches += [_operation(graph, name) for name in request.targets]
        feeds = [_tensor(graph, name) for name in request.feeds]
        number = next(self._numbers)
        session.partial_runs[number] = PartialRun(session.session, fetches, feeds)
        return messages.PartialRunSetupReply(partial_run=number)

    def _list_devices(self, request: Any, context: Any) -> Any:
        reply = messages.ListDevicesReply()
        for device in self._session(request.session).session.list_devices():
            reply.devices.add(
                name=device.name,
                type=device.device_type,
                memory=device.memory_limit_bytes,
                incarnation=device.incarnation,
            )
        return reply

    def _close(self, request: Any, context: Any) -> Any:
        self._end(request.session)
        return messages.Empty()

    def _attach(self, request: Any, context: Any) -> Any:
        """Stays until the client goes, or the session is closed."""
        try:
            self._session(request.session).is_attached = True
        except errors.AbortedError as error:
            self._fail(context, error)
        gone = threading.Event()
        try:
            if context.add_callback(gone.set):
                # gRPC does not come back when the client has gone by now.
                yield messages.Empty()
                while not gone.wait(1.0) and request.session in self._sessions:
                    pass
        finally:
            self._end(request.session)

    def _reset(self, request: Any, context: Any) -> Any:
        session = MasterSession(self._task, None)
        try:
            session.reset(list(request.containers))
        finally:
            session.close()
        return messages.Empty()

    def _status(self, request: Any, context: Any) -> Any:
        return messages.StatusReply(json=status_of(self._task))


class _TokenCheck(grpc.ServerInterceptor):
    """Refuses who does not know the token, before anything of what it sends is read."""

    def __init__(self, token: bytes) -> None:
        self._expected = b"Bearer " + token
        # A stream is read when it is asked for, which this one never is.
        self._refusal = grpc.stream_stream_rpc_method_handler(self._refuse)

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        given = dict(handler_call_details.invocation_metadata).get("authorization", "")
        if hmac.compare_digest(given.encode(), self._expected):
            return continuation(handler_call_details)
        return self._refusal

    @staticmethod
    def _refuse(requests: Any, context: Any) -> Any:
        context.abort(
            grpc.StatusCode.UNAUTHENTICATED,
            "the token is not this cluster's (RUNNEL_CLUSTER_TOKEN)",
        )


def _tensor(graph: Graph, name: str) -> Tensor:
    found: Any = graph.as_graph_element(name, allow_operation=False)
    return found


def _operation(graph: Graph, name: str) -> Operation:
    found: Any = graph.as_graph_element(name, allow_tensor=False)
    return found


def _callable(session: ClientSession, number: int) -> Any:
    """What ``MakeCallable`` has prepared."""
    found = session.callables.get(number)
    if found is None:
        raise errors.InvalidArgumentError(None, None, "There is no such callable")
    return found


def _reply(values: Sequence[Any], tracer: StepTracer | None) -> Any:
    require_one_message(values)
    reply = messages.RunReply()
    for value in values:
        to_message(value, reply.values.add())
    if tracer is not None:
        from tensorboard.compat.proto.config_pb2 import RunMetadata

        metadata = RunMetadata()
        tracer.fill(metadata)
        reply.run_metadata = metadata.SerializeToString()
    return reply


# The sessions of clients cancel their steps as those of this process do.
at_exit.cancel_at_exit(lambda: None, inside=(ClientService._stepped,))

_STATUS = {code.value[0]: code for code in grpc.StatusCode}
