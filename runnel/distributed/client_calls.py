"""The calls of the clients' protocol, to one task."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Sequence
from typing import Any

import grpc

from runnel.distributed.client_values import FAILURE, MOST_METADATA, error_from
from runnel.distributed.health import deadline_from_environment
from runnel.distributed.protocol import client_pb2 as messages
from runnel.distributed.security import Security, is_loopback, split_address
from runnel.graph import errors
from runnel.runtime.state.step_context import StepContext

logger = logging.getLogger("runnel")

VERSION = 1
_LEAST_PING_MS = 600  # a server lets clients ask twice a second
SERVICE = "runnel.client.Sessions"
_CONNECT_SECONDS = 30.0
"""For how long a task is waited for that is not there: it may be starting, too."""
_LOOK_SECONDS = 0.5
_SAYING_SECONDS = 3.0
"""How much longer than a limit an answer may take: the task itself says best what was too slow."""
_MOST_BACKOFF_MS = 1000
STATUS_SECONDS = 5.0
_REPLIES: dict[str, Any] = {
    "CreateSession": messages.CreateSessionReply,
    "ExtendSession": messages.ExtendSessionReply,
    "Run": messages.RunReply,
    "MakeCallable": messages.MakeCallableReply,
    "RunCallable": messages.RunReply,
    "ReleaseCallable": messages.Empty,
    "PartitionGraphs": messages.PartitionGraphsReply,
    "PartialRunSetup": messages.PartialRunSetupReply,
    "ListDevices": messages.ListDevicesReply,
    "CloseSession": messages.Empty,
    "Reset": messages.Empty,
    "Status": messages.StatusReply,
}


class Client:
    """The protocol's calls to one task."""

    def __init__(self, address: str, limit: float | None = None) -> None:
        """``limit``: the seconds that a call may take for which nobody has another."""
        self._address = address
        self._limit = limit
        security = Security.from_environment()
        host, _ = split_address(address)
        if security.token and not security.uses_tls and not is_loopback(host):
            if not security.insecure:
                security.require_allowed(host)
        self._silence = deadline_from_environment()
        silence_ms = int(self._silence * 500)
        options = [
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", MOST_METADATA),
            # A task that was stopped, or cut off, answers no ping: calls to it fail.
            ("grpc.keepalive_time_ms", max(silence_ms, _LEAST_PING_MS)),
            ("grpc.keepalive_timeout_ms", silence_ms),
            # gRPC sends pings of its own, and no other before they are answered.
            ("grpc.http2.ping_timeout_ms", 2 * silence_ms),
            ("grpc.http2.max_pings_without_data", 0),
            # Of a task that takes connections and says nothing gRPC would think for 20 s.
            ("grpc.min_reconnect_backoff_ms", 2 * silence_ms),
            ("grpc.max_reconnect_backoff_ms", _MOST_BACKOFF_MS),
        ]
        if security.uses_tls:
            self._channel = grpc.secure_channel(address, _credentials(security), options)
        else:
            self._channel = grpc.insecure_channel(address, options)
        self._metadata = []
        if security.token:
            self._metadata = [("authorization", f"Bearer {security.token.decode()}")]
        self._calls = {
            name: self._channel.unary_unary(
                f"/{SERVICE}/{name}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=kind.FromString,
            )
            for name, kind in _REPLIES.items()
        }

    def connect(self) -> None:
        """Waits until the task answers, for a while."""
        patience = _CONNECT_SECONDS if self._limit is None else min(self._limit, _CONNECT_SECONDS)
        silence = min(self._silence, patience + _SAYING_SECONDS)
        ready = grpc.channel_ready_future(self._channel)
        begun, listens, told = time.monotonic(), 0.0, False
        while True:
            try:
                ready.result(min(_LOOK_SECONDS, patience))
                return
            except grpc.FutureTimeoutError:
                refusal = self._refusal()
            now = time.monotonic()
            if refusal is None:
                listens = listens or now
                if now - listens >= silence:
                    raise self._no_answer(
                        f"something listens there and has said nothing for {silence:g} s. It is "
                        "stopped or hung, or is no task, or does not speak TLS as this process does"
                    )
                continue
            listens = 0.0
            if now - begun >= patience:
                raise self._no_answer(f"{refusal}. Is it running? It was waited for {patience:g} s")
            if not told:
                told = True
                logger.warning("Waiting for a task at %s (%s)", self._address, refusal)

    def _refusal(self) -> OSError | None:
        """Why nobody can be reached at the address; None when somebody listens there."""
        try:
            socket.create_connection(split_address(self._address), _LOOK_SECONDS).close()
        except OSError as error:
            return error
        return None

    def _no_answer(self, why: str) -> errors.UnavailableError:
        return errors.UnavailableError(None, None, f"No task answers at {self._address}: {why}")

    def call(
        self,
        name: str,
        request: Any,
        find: Any = None,
        context: StepContext | None = None,
        seconds: float | None = None,
    ) -> Any:
        """A reply; the error is the one that the task has met. ``context`` may stop the call.

        Without a limit (``seconds``, the deadline of ``context``, or the client's) a call takes as
        long as the task lives: see the keepalive.
        """
        limit = self._limit
        if context is not None and context.deadline is not None:
            limit = context.patience(0.0)
        if seconds is None and limit is not None:
            seconds = limit + _SAYING_SECONDS
        try:
            future = self._calls[name].future(request, seconds, metadata=self._metadata)
        except ValueError:  # of a channel that was closed
            raise self._closed() from None
        try:
            if context is not None:
                context.on_arrival = lambda: future.cancel() if context.cancelled else None
                if context.cancelled is not None:
                    future.cancel()
            return future.result()
        except grpc.FutureCancelledError:
            why = context.cancelled if context is not None else "the call was cancelled"
            raise errors.CancelledError(None, None, f"The step was cancelled: {why}") from None
        except grpc.RpcError as error:
            raise self._error(error, find, name, seconds) from None
        except BaseException:
            future.cancel()
            raise
        finally:
            if context is not None:
                context.on_arrival = None

    def _closed(self) -> errors.CancelledError:
        return errors.CancelledError(None, None, f"The session on {self._address} was closed")

    def _error(
        self, error: Any, find: Any = None, name: str = "", seconds: float | None = None
    ) -> errors.OpError:
        for key, value in error.trailing_metadata() or ():
            if key == FAILURE:
                return error_from(value, find)
        code = error.code().value[0]
        kind = errors.exception_type_from_error_code(code) if code else errors.UnknownError
        if kind is errors.UnavailableError:
            return kind(
                None,
                None,
                f"The task at {self._address} is lost: {error.details()}. When it is there again, "
                "make a new session",
            )
        if kind is errors.DeadlineExceededError and seconds is not None:
            return kind(
                None,
                None,
                f"The task at {self._address} has not answered {name} for {seconds:.3g} s: it is "
                "stopped, cut off or busy; `runnel cluster status` says more",
            )
        return kind(None, None, f"{self._address}: {error.details()}")

    def attach(self, session: int) -> Any:
        """Tells the task that this client lives; what is returned has to be cancelled."""
        attach = self._channel.unary_stream(
            f"/{SERVICE}/Attach",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=messages.Empty.FromString,
        )
        stream = attach(messages.SessionRequest(session=session), metadata=self._metadata)
        try:
            if next(stream, None) is None:
                raise self._closed()
        except grpc.RpcError as error:
            raise self._error(error) from None
        return stream

    def close(self) -> None:
        """Hangs up."""
        self._channel.close()


def _credentials(security: Security) -> Any:
    def content(path: str) -> bytes | None:
        if not path:
            return None
        with open(path, "rb") as file:
            return file.read()

    return grpc.ssl_channel_credentials(
        content(security.authority or security.certificate),
        content(security.key or security.certificate) if security.certificate else None,
        content(security.certificate),
    )


def limit_of(config: Any) -> float | None:
    """The seconds that whatever blocks may take in a session of ``config``, if it says so."""
    if config is None or config.operation_timeout_in_ms <= 0:
        return None
    return float(config.operation_timeout_in_ms / 1000)


def reset(address: str, containers: Sequence[str], config: Any) -> None:
    """Clears containers of a cluster."""
    client = Client(address, limit_of(config))
    try:
        client.call("Reset", messages.ResetRequest(containers=list(containers)))
    finally:
        client.close()


def status(address: str, seconds: float = STATUS_SECONDS) -> str:
    """What a task is doing, as JSON; it has ``seconds`` to answer."""
    client = Client(address)
    try:
        return client.call("Status", messages.Empty(), seconds=seconds).json
    finally:
        client.close()
