"""Records what the programs of ``tests/programs`` give under TensorFlow.

``tests/test_recorded.py`` compares runnel with the files that this writes, those in
``tests/recorded``, so that it needs no TensorFlow. Run it where ``tensorflow-cpu`` 2.21 is
installed, after adding or changing a program::

    python tools/record_tensorflow.py              every table
    python tools/record_tensorflow.py optimizers   some of them
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tensorflow.compat.v1 as tf

from tests.programs import recording
from tests.programs.running import run_table
from tests.programs.tables import TABLES


def record(table: str) -> int:
    """Records one table; returns the size of its file."""
    config = tf.ConfigProto()
    # The graph optimizer computes some things in another way than the kernels do.
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    results: dict[str, Any] = run_table(
        tf, TABLES[table], lambda graph: tf.Session(graph=graph, config=config)
    )
    for name, result in results.items():
        if isinstance(result, Exception):
            raise SystemExit(f"{table}: {name} fails under TensorFlow: {result}") from result
    recording.save(table, results, tf.__version__)
    return recording.path_of(table).stat().st_size


def main() -> None:
    """Records the tables that the command line names, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tables", nargs="*", metavar="table", help=f"of {', '.join(TABLES)}")
    names = parser.parse_args().tables or list(TABLES)
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        parser.error(f"no table named {unknown[0]!r}; there are {', '.join(TABLES)}")
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    total = 0
    for name in names:
        size = record(name)
        total += size
        print(f"{name}: {len(TABLES[name])} programs, {size} bytes")
    print(f"{total} bytes from TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main()
