"""``tf.contrib.slim``: layers, arguments, variables, losses and training under one name."""

from runnel.contrib import framework as _framework
from runnel.contrib import layers as _layers
from runnel.contrib import losses, metrics
from runnel.contrib.framework import *  # noqa: F403
from runnel.contrib.layers import *  # noqa: F403
from runnel.contrib.slim import evaluation, learning

_PARTS = {"evaluation": evaluation, "learning": learning, "losses": losses, "metrics": metrics}

__all__ = sorted({*_framework.__all__, *_layers.__all__, *_PARTS})


def __dir__() -> list[str]:
    return __all__
