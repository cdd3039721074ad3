"""TensorBoard's plugins that take a configuration."""

from runnel.contrib.tensorboard.plugins import projector

__all__ = ["projector"]


def __dir__() -> list[str]:
    return __all__
