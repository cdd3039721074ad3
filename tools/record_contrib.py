"""Records what programs with ``tf.contrib`` give under TensorFlow 1.15 (Python 3.7).

    python tools/record_contrib.py [MODULE ...]

writes ``tests/recorded/contrib/<module>.npz``, which ``tests/contrib/test_programs.py`` compares.
``network_structure`` has what the networks of ``slim.nets`` consist of.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from tests.contrib.network_structure import NETWORKS, structure  # noqa: E402
from tests.contrib.programs import frame  # noqa: E402

FOLDER = ROOT / "tests" / "recorded" / "contrib"


def main() -> None:
    """Records the modules that are named, or all."""
    assert tf.__version__.startswith("1.15"), tf.__version__
    tf.logging.set_verbosity(tf.logging.ERROR)
    for module in sys.argv[1:] or (*frame.MODULES, "network_structure"):
        if module == "network_structure":
            lines: Any = {name: np.array("\n".join(structure(tf, name))) for name in NETWORKS}
            np.savez_compressed(str(FOLDER / "network_structure.npz"), **lines)
            continue
        arrays, described = {}, {}
        for name, program in frame.programs(module).items():
            found, variables = frame.run_program(
                tf, program, lambda graph: frame.plain_session(tf, graph)
            )
            described[name] = variables
            for number, value in enumerate(found):
                arrays[f"{name}/{number}"] = value
        arrays["variables"] = np.array(json.dumps(described))
        np.savez_compressed(str(FOLDER / f"{module}.npz"), **arrays)


main()
