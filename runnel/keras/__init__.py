"""``tf.keras``: models of layers, trained by ``fit`` or in a session of the program's own.

Layers own resource variables that are named after the scope of names, as in TensorFlow 1.15.
Their losses and updates are in ``layer.losses`` and ``layer.updates``, not in the graph's
collections; ``fit`` runs them, and so does a program that trains in a session.
"""

from runnel.keras import (
    activations,
    backend,
    callbacks,
    constraints,
    initializers,
    layers,
    losses,
    metrics,
    models,
    optimizers,
    preprocessing,
    regularizers,
    utils,
)
from runnel.keras.inputs import Input
from runnel.keras.models import Model, Sequential

__version__ = "2.2.4-tf"

__all__ = [
    "Input",
    "Model",
    "Sequential",
    "activations",
    "backend",
    "callbacks",
    "constraints",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "models",
    "optimizers",
    "preprocessing",
    "regularizers",
    "utils",
]


def __dir__() -> list[str]:
    return __all__
