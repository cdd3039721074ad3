"""``tf.profiler.Profiler``: profiles over several traced steps."""

from __future__ import annotations

from typing import Any

from runnel.graph.graph import Graph, get_default_graph
from runnel.profiler.profile import make_profile


class Profiler:
    """Collects traces of steps, and makes profiles of them.

    Example:
        >>> profiler = tf.profiler.Profiler(sess.graph)
        >>> profiler.add_step(100, run_metadata)
        >>> profiler.profile_operations(tf.profiler.ProfileOptionBuilder.time_and_memory())
    """

    def __init__(self, graph: Graph | None = None, op_log: Any = None) -> None:
        self._graph = graph or get_default_graph()
        self._traces: dict[int, Any] = {}

    def add_step(self, step: int, run_meta: Any) -> None:
        """Adds the ``RunMetadata`` of a step that was traced."""
        self._traces[step] = run_meta

    def profile_operations(self, options: dict[str, Any]) -> Any:
        """A profile by type of operation: a ``MultiGraphNodeProto``."""
        return make_profile(self._graph, self._chosen(options), "op", options)

    def profile_name_scope(self, options: dict[str, Any]) -> Any:
        """A profile by scope: a ``GraphNodeProto``."""
        return make_profile(self._graph, self._chosen(options), "scope", options)

    def _chosen(self, options: dict[str, Any]) -> list[Any]:
        step = options.get("step", -1)
        if step == -1:
            return list(self._traces.values())
        if step not in self._traces:
            raise ValueError(f"No trace of step {step} was added; there are {sorted(self._traces)}")
        return [self._traces[step]]
