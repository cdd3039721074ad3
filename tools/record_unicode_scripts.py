"""Writes the script of every character, as ICU numbers scripts, from what TensorFlow says.

Run it where ``tensorflow`` is installed; its version decides which Unicode it is::

    python tools/record_unicode_scripts.py
"""

import os
import textwrap

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

_HEAD = '''\
"""The scripts of characters, as TensorFlow {version} has them from ICU.

``tools/record_unicode_scripts.py`` writes this file.
"""

RANGES = """
{ranges}
"""
"""Where the script changes: the first character from which on it is another, and the script."""
'''


def main() -> None:
    """Asks for every character, and writes ``runnel/ops/strings/unicode_script_ranges.py``."""
    with tf.Graph().as_default(), tf.Session() as sess:
        scripts = sess.run(tf.strings.unicode_script(np.arange(0x110000, dtype=np.int32)))
    firsts = np.flatnonzero(np.diff(scripts, prepend=-1))
    ranges = " ".join(f"{first:x}:{scripts[first]}" for first in firsts)
    path = os.path.join(ROOT, "runnel", "ops", "strings", "unicode_script_ranges.py")
    with open(path, "w") as file:
        lines = "\n".join(textwrap.wrap(ranges, 99))
        file.write(_HEAD.format(version=tf.__version__, ranges=lines))
    print(f"{len(firsts)} ranges of TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main()
