"""``tf.contrib.tensorboard``: what some of TensorBoard's plugins read beside event files."""

from runnel.contrib.tensorboard import plugins

__all__ = ["plugins"]


def __dir__() -> list[str]:
    return __all__
