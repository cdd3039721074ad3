"""Records the order in which TensorFlow 1.15 gives the elements of shuffled, repeated datasets.

Run it where ``tensorflow`` 1.15.5 is installed (Python 3.7, ``protobuf<3.21``, ``numpy<1.19``),
after changing ``tests/shuffle_orders.py``::

    python tools/record_shuffle_orders.py
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

import tensorflow as tf  # noqa: E402

from tests.shuffle_orders import BEGINNINGS, CASES, elements  # noqa: E402


def main() -> None:
    """Runs every dataset and writes ``tests/recorded/shuffle_orders.json``."""
    tf.logging.set_verbosity(tf.logging.ERROR)
    recorded = {
        "tensorflow": tf.__version__,
        "orders": {
            beginning: {case: elements(tf, case, beginning) for case in CASES}
            for beginning in BEGINNINGS
        },
        "of a graph with a seed": {
            case: elements(tf, case, "initializable", graph_seed=7) for case in CASES
        },
    }
    path = os.path.join(ROOT, "tests", "recorded", "shuffle_orders.json")
    with open(path, "w") as file:
        json.dump(recorded, file, sort_keys=True)
        file.write("\n")
    print(f"{len(CASES)} datasets under TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main()
