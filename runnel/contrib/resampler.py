"""``tf.contrib.resampler``: images read at places that the graph computes."""

from runnel.ops.image.resampler import resampler

__all__ = ["resampler"]


def __dir__() -> list[str]:
    return __all__
