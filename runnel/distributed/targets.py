"""Sessions on ``grpc://host:port``: chooses the master of this process, or of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.distributed.master import MasterSession
from runnel.distributed.server import server_at
from runnel.graph.graph import Graph
from runnel.runtime.session.backend import Backend
from runnel.runtime.state.options import SessionOptions

SCHEME = "grpc"


def open_target(target: str, graph: Graph, config: Any, options: SessionOptions) -> Backend:
    """What is behind a session on ``target``."""
    address = target.partition("://")[2]
    server = server_at(address)
    if server is not None:
        return MasterSession(server, config)
    from runnel.distributed.remote import RemoteBackend

    return RemoteBackend(address, graph, config)


def reset_target(target: str, containers: Sequence[str], config: Any) -> None:
    """Clears the named containers (all by default) on all tasks of a cluster."""
    address = target.partition("://")[2]
    server = server_at(address)
    if server is None:
        from runnel.distributed.client_calls import reset

        reset(address, containers, config)
        return
    session = MasterSession(server, config)
    try:
        session.reset(containers)
    finally:
        session.close()


def load() -> Any:
    """What a session needs to know of these targets."""
    return open_target, reset_target
