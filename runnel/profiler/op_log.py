"""``tf.profiler.write_op_log``: types and arithmetic of operations, in a file beside the graph."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from runnel.graph.graph import Graph, get_default_graph
from runnel.profiler.counts import message
from runnel.profiler.measured import measured


def write_op_log(
    graph: Graph | None,
    log_dir: Any,
    op_log: Any = None,
    run_meta: Any = None,
    add_trace: bool = True,
) -> None:
    """Writes what is known of each operation as ``tfprof_log`` into ``log_dir``: an ``OpLogProto``.

    ``op_log`` adds to it. The lines that made operations are not written.
    """
    log = message("OpLogProto")()
    found = measured(graph or get_default_graph(), [] if run_meta is None else [run_meta], op_log)
    for one in found.values():
        types = one.types[1:]
        if types or one.float_ops:
            log.log_entries.add(name=one.name, float_ops=one.float_ops, types=types)
    folder = Path(os.fsdecode(os.fspath(log_dir)))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tfprof_log").write_bytes(log.SerializeToString())
