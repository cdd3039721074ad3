"""Records the public names of TensorFlow 1.15, one in a line.

``tools/list_names.py`` compares runnel's with them. Run it where ``tensorflow`` 1.15.5 is installed
(Python 3.7, ``protobuf<3.21``, ``numpy<1.19``)::

    python tools/record_tensorflow_names.py
"""

import os
import sys
import types
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

# Whole libraries of their own, and the same names once more.
LEFT_OUT = {"tf.compat", "tf.contrib", "tf.core", "tf.estimator", "tf.keras", "tf.python"}
LEFT_OUT |= {"tf.raw_ops"}


def names_in(module: Any, prefix: str, seen: Any) -> Any:
    """The names under ``prefix``; of a module those that it holds."""
    found = []
    for name in sorted(dir(module)):
        path = prefix + "." + name
        if name.startswith("_") or path in LEFT_OUT:
            continue
        value = getattr(module, name)
        if isinstance(value, types.ModuleType):
            if (
                "tensorflow" in value.__name__
                and "_api" in value.__name__
                and id(value) not in seen
            ):
                found += names_in(value, path, seen | {id(value)})
        else:
            found.append(path)
    return found


def main() -> None:
    """Writes ``tools/tensorflow_names.txt``."""
    names = names_in(tf, "tf", {id(tf)})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tensorflow_names.txt")
    with open(path, "w") as file:
        file.write(f"# The public names of TensorFlow {tf.__version__}\n")
        file.write("\n".join(names) + "\n")
    sys.stdout.write(f"{len(names)} names of TensorFlow {tf.__version__}\n")


if __name__ == "__main__":
    main()
