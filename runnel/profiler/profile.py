"""``tf.profiler.profile``: parameters, arithmetic, time and memory by scope, type or line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from runnel.graph.graph import Graph, get_default_graph
from runnel.profiler.counts import COUNT_OF
from runnel.profiler.group_tree import by_code, by_type
from runnel.profiler.measured import measured
from runnel.profiler.node_tree import by_graph, by_scope
from runnel.profiler.option_builder import ProfileOptionBuilder
from runnel.profiler.pprof import write_pprof
from runnel.timeline import Timeline


def profile(
    graph: Graph | None = None,
    run_meta: Any = None,
    op_log: Any = None,
    cmd: str = "scope",
    options: dict[str, Any] | None = None,
) -> Any:
    """Parameters of a graph, and the time and memory of a step that was traced.

    ``cmd`` is ``scope`` (a tree of scopes) or ``graph`` (from results to inputs), which give a
    ``GraphNodeProto``; ``op`` (types of operations) or ``code`` (the calls that made operations),
    which give a ``MultiGraphNodeProto``. Floating-point operations are those of operations that
    TensorFlow counts, where the graph knows their shapes: give placeholders the size of a batch.
    ``op_log`` (an ``OpLogProto``) adds types and floating-point operations.

    Example:
        >>> build = tf.profiler.ProfileOptionBuilder
        >>> options = build.trainable_variables_parameter()
        >>> tf.profiler.profile(options=options).total_parameters
    """
    traces = [] if run_meta is None else [run_meta]
    return make_profile(graph or get_default_graph(), traces, cmd, options, op_log)


def make_profile(
    graph: Graph, traces: list[Any], cmd: str, options: dict[str, Any] | None, op_log: Any = None
) -> Any:
    """A profile from several traced steps."""
    chosen = ProfileOptionBuilder().build() | (options or {})
    operations = measured(graph, traces, op_log)
    kind, _, rest = chosen["output"].partition(":")
    if kind == "pprof":
        if cmd != "code":
            raise ValueError(
                f"Only a profile by lines of code (cmd='code') is written for pprof, not {cmd!r}"
            )
        write_pprof(Path(rest.removeprefix("outfile=")), graph, operations, chosen)
    if cmd == "scope":
        found = by_scope(operations, chosen)
    elif cmd == "graph":
        found = by_graph(graph, operations, chosen)
    elif cmd == "op":
        found = by_type(operations.values(), chosen)
    elif cmd == "code":
        found = by_code(graph, operations, chosen)
    else:
        raise ValueError(f"cmd is {cmd!r}; there are 'scope', 'graph', 'op' and 'code'")
    _output(found, chosen, traces)
    return found


def _output(found: Any, chosen: dict[str, Any], traces: list[Any]) -> None:
    kind, _, rest = chosen["output"].partition(":")
    if kind == "stdout":
        print(profile_text(found, chosen["select"]))
    elif kind == "file":
        path = rest.removeprefix("outfile=")
        Path(path).write_text(profile_text(found, chosen["select"]) + "\n", encoding="utf-8")
    elif kind == "timeline":
        if not traces:
            raise ValueError("A timeline needs run_meta: the RunMetadata of a step that was traced")
        made = Timeline(traces[-1].step_stats).generate_chrome_trace_format(show_memory=True)
        Path(rest.removeprefix("outfile=")).write_text(made, encoding="utf-8")


def profile_text(found: Any, select: Iterable[str]) -> str:
    """A profile as a table: own counts, and those with all that is inside."""
    columns = [what for what in select if what in COUNT_OF]
    rows = [("node name", *(f"{what} (own/total)" for what in columns))]
    stack = [(found, 0)]
    while stack:
        node, depth = stack.pop()
        cells = [
            f"{getattr(node, COUNT_OF[what])}/{getattr(node, f'total_{COUNT_OF[what]}')}"
            for what in columns
        ]
        rows.append(("  " * depth + node.name, *cells))
        stack += [(child, depth + 1) for child in reversed(node.children)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns) + 1)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
