"""``tf.contrib.learn``: what programs kept using of it."""

from runnel.contrib.learn import datasets, preprocessing
from runnel.estimator import ModeKeys, RunConfig

__all__ = ["ModeKeys", "RunConfig", "datasets", "preprocessing"]


def __dir__() -> list[str]:
    return __all__
