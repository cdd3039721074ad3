"""``tf.profiler.Profiler``: profiles over several traced steps."""

from __future__ import annotations

from typing import Any

from runnel.graph.errors import UnimplementedError
from runnel.graph.graph import Graph, get_default_graph
from runnel.profiler.advice import advice_of
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
        self._op_log = op_log
        self._traces: dict[int, Any] = {}

    def add_step(self, step: int, run_meta: Any) -> None:
        """Adds the ``RunMetadata`` of a step that was traced."""
        self._traces[step] = run_meta

    def profile_operations(self, options: dict[str, Any]) -> Any:
        """A profile by type of operation: a ``MultiGraphNodeProto``."""
        return self._profile("op", options)

    def profile_name_scope(self, options: dict[str, Any]) -> Any:
        """A profile by scope: a ``GraphNodeProto``."""
        return self._profile("scope", options)

    def profile_graph(self, options: dict[str, Any]) -> Any:
        """A profile from results to inputs: a ``GraphNodeProto``."""
        return self._profile("graph", options)

    def profile_python(self, options: dict[str, Any]) -> Any:
        """A profile by the calls that made operations: a ``MultiGraphNodeProto``."""
        return self._profile("code", options)

    def advise(self, options: dict[str, Any]) -> Any:
        """Reports on the steps that were added: an ``AdviceProto``."""
        return advice_of(self._graph, list(self._traces.values()), options)

    def serialize_to_string(self) -> bytes:
        """Other programs' format for whole profiles is not written."""
        raise UnimplementedError(
            None,
            None,
            "A Profiler is not serialized as a ProfileProto. Keep the RunMetadata of its steps "
            "(SerializeToString), or write a profile with with_file_output or with_timeline_output",
        )

    def _profile(self, cmd: str, options: dict[str, Any]) -> Any:
        return make_profile(self._graph, self._chosen(options), cmd, options, self._op_log)

    def _chosen(self, options: dict[str, Any]) -> list[Any]:
        step = options.get("step", -1)
        if step == -1:
            return list(self._traces.values())
        if step not in self._traces:
            raise ValueError(f"No trace of step {step} was added; there are {sorted(self._traces)}")
        return [self._traces[step]]
