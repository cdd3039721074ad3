"""``tf.flags`` and ``tf.app.flags``: settings of a program from its command line, by absl."""

from absl.flags import *  # noqa: F403
from absl.flags import FLAGS

__all__ = ["FLAGS"]
