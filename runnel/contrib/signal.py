"""``tf.contrib.signal``: ``tf.signal`` under the name that it had before."""

from runnel import signal as _signal
from runnel.signal import *  # noqa: F403

__all__ = list(_signal.__all__)


def __dir__() -> list[str]:
    return __all__
