"""Asks the tasks of a cluster for their status, again and again, each on a thread of its own."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Mapping

from runnel.graph.errors import OpError
from runnel.launch.cluster_view import ClusterView, TaskRow

_JOIN_SECONDS = 2.0

Asker = Callable[[str], tuple[Callable[[], str], Callable[[], None]]]
"""Of an address: how the task there is asked for its status as JSON, and how that is ended."""


class StatusPoller:
    """Keeps a :class:`ClusterView` current while it is open."""

    def __init__(
        self, addresses: Mapping[str, str], interval: float = 1.0, asker: Asker | None = None
    ) -> None:
        """``addresses`` are by name of the task."""
        self._view = ClusterView(addresses)
        self._lock = threading.Lock()  # guards the view
        self._interval = interval
        self._asker = asker or status_by_grpc
        self._ended = threading.Event()
        self._closers: dict[str, Callable[[], None]] = {}
        self._threads = [
            threading.Thread(target=self._poll, args=(address,), name="runnel-watch", daemon=True)
            for address in addresses.values()
        ]
        for thread in self._threads:
            thread.start()

    def rows(self) -> list[TaskRow]:
        """What is known now."""
        with self._lock:
            return self._view.rows(time.time())

    def close(self) -> None:
        """Asks no more."""
        self._ended.set()
        for close in list(self._closers.values()):
            close()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)

    def __enter__(self) -> StatusPoller:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _poll(self, address: str) -> None:
        while not self._ended.is_set():
            # After a failure another connection is made: gRPC's own would wait for long.
            with contextlib.suppress(_Failed):
                ask, close = self._asker(address)
                self._closers[address] = close
                try:
                    while not self._ended.is_set():
                        self._observe(address, ask)
                        self._ended.wait(self._interval)
                finally:
                    close()
            self._ended.wait(self._interval)

    def _observe(self, address: str, ask: Callable[[], str]) -> None:
        try:
            status = json.loads(ask())
            with self._lock:
                self._view.observe(address, status, time.time())
        except (OpError, ValueError, KeyError) as error:
            with self._lock:
                self._view.failed(address, getattr(error, "message", str(error)).split(". ")[0])
            raise _Failed from error


class _Failed(Exception):
    """A task could not be asked."""


def status_by_grpc(address: str) -> tuple[Callable[[], str], Callable[[], None]]:
    """How the task at an address is asked for its status, and how that is ended."""
    from runnel.distributed.client_calls import Client
    from runnel.distributed.protocol import client_pb2 as messages

    client = Client(address)
    return lambda: client.call("Status", messages.Empty()).json, client.close
