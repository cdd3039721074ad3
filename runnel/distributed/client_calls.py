"""The calls of the clients' protocol, to one task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc

from runnel.distributed.client_values import FAILURE, MOST_METADATA, error_from
from runnel.distributed.health import deadline_from_environment
from runnel.distributed.protocol import client_pb2 as messages
from runnel.distributed.security import Security, is_loopback, split_address
from runnel.graph import errors
from runnel.runtime.state.step_context import StepContext

VERSION = 1
_LEAST_PING_MS = 600  # a server lets clients ask twice a second
SERVICE = "runnel.client.Sessions"
_CONNECT_SECONDS = 30.0
STATUS_SECONDS = 5.0
_REPLIES: dict[str, Any] = {
    "CreateSession": messages.CreateSessionReply,
    "ExtendSession": messages.ExtendSessionReply,
    "Run": messages.RunReply,
    "MakeCallable": messages.MakeCallableReply,
    "RunCallable": messages.RunReply,
    "ReleaseCallable": messages.Empty,
    "PartialRunSetup": messages.PartialRunSetupReply,
    "ListDevices": messages.ListDevicesReply,
    "CloseSession": messages.Empty,
    "Reset": messages.Empty,
    "Status": messages.StatusReply,
}


class Client:
    """The protocol's calls to one task."""

    def __init__(self, address: str) -> None:
        self._address = address
        security = Security.from_environment()
        host, _ = split_address(address)
        if security.token and not security.uses_tls and not is_loopback(host):
            if not security.insecure:
                security.require_allowed(host)
        silence_ms = int(deadline_from_environment() * 500)
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
        try:
            grpc.channel_ready_future(self._channel).result(_CONNECT_SECONDS)
        except grpc.FutureTimeoutError:
            raise errors.UnavailableError(
                None,
                None,
                f"No task answers at {self._address}. Is it running, and does it speak TLS as this "
                "process does?",
            ) from None

    def call(
        self,
        name: str,
        request: Any,
        find: Any = None,
        context: StepContext | None = None,
        seconds: float | None = None,
    ) -> Any:
        """A reply; the error is the one that the task has met. ``context`` may stop the call.

        Without a limit of ``seconds`` a call takes as long as the task lives: see the keepalive.
        """
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
            raise self._error(error, find) from None
        except BaseException:
            future.cancel()
            raise
        finally:
            if context is not None:
                context.on_arrival = None

    def _closed(self) -> errors.CancelledError:
        return errors.CancelledError(None, None, f"The session on {self._address} was closed")

    def _error(self, error: Any, find: Any) -> errors.OpError:
        for key, value in error.trailing_metadata() or ():
            if key == FAILURE:
                return error_from(value, find)
        code = error.code().value[0]
        kind = errors.exception_type_from_error_code(code) if code else errors.UnknownError
        if kind is errors.UnavailableError:
            return kind(None, None, f"The task at {self._address} is lost: {error.details()}")
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
            raise self._error(error, None) from None
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


def reset(address: str, containers: Sequence[str], config: Any) -> None:
    """Clears containers of a cluster."""
    client = Client(address)
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
