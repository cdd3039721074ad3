"""A client's session, on the task that serves it."""

from __future__ import annotations

import threading
import time
from typing import Any

from runnel.graph.graph import Graph
from runnel.graph.import_graph_def import extend_graph
from runnel.runtime.session.partial_run import PartialRun
from runnel.runtime.session.session import Session

UNATTACHED_SECONDS = 60.0
"""For how long a session that no client has attached may do nothing, before it is closed."""


class ClientSession:
    """A client's session: its graph, and a session on this task's master."""

    def __init__(self, server: Any, config: bytes, graph_def: bytes) -> None:
        from tensorboard.compat.proto.config_pb2 import ConfigProto

        self.graph = Graph()
        # Held by who extends the graph.
        self.extending = threading.Lock()
        self.extend(graph_def)
        self.session = Session(server.target, self.graph, ConfigProto.FromString(config))
        self.callables: dict[int, Any] = {}
        self.partial_runs: dict[int, PartialRun] = {}
        self.is_attached = False
        """True when the end of its client will be seen."""
        self.used_at = time.monotonic()
        """When a call has last named it."""

    def extend(self, graph_def: bytes) -> None:
        """Adds operations; those that are there already may be inputs."""
        from tensorboard.compat.proto.graph_pb2 import GraphDef

        if not graph_def:
            return
        extend_graph(self.graph, GraphDef.FromString(graph_def))

    @property
    def version(self) -> int:
        return len(self.graph.get_operations())

    def is_forsaken(self, now: float) -> bool:
        """True when its client seems to have died before it could attach the session."""
        if self.is_attached or self.session._steps.running():
            return False
        return now - self.used_at > UNATTACHED_SECONDS

    def close(self) -> None:
        self.session.close()
