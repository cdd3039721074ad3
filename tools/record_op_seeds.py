"""Records the seeds that TensorFlow 1.15 gives to operations where only the graph has one.

They are numbers of operations, so this counts the operations that calls make. Run it where
``tensorflow`` 1.15.5 is installed (Python 3.7, ``protobuf<3.21``, ``numpy<1.19``), after changing
``tests/op_seeds.py``::

    python tools/record_op_seeds.py
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

import tensorflow as tf  # noqa: E402

from tests.op_seeds import CALLS, counted, drawn  # noqa: E402


def main() -> None:
    """Counts every call and writes ``tests/recorded/op_seeds.json``."""
    tf.logging.set_verbosity(tf.logging.ERROR)
    recorded = {
        "tensorflow": tf.__version__,
        "calls": {call: counted(tf, call) for call in CALLS},
        "drawn": drawn(tf),
    }
    path = os.path.join(ROOT, "tests", "recorded", "op_seeds.json")
    with open(path, "w") as file:
        json.dump(recorded, file, indent=0, sort_keys=True)
        file.write("\n")
    print(f"{len(CALLS)} calls under TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main()
