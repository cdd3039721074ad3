"""``tf.keras`` as far as programs that build graphs use it: layers, and what is given to them.

Layers own resource variables that are named after the scope of names, as in TensorFlow 1.15.
Their losses and updates are in ``layer.losses`` and ``layer.updates``, not in the graph's
collections. There is no ``compile``, ``fit`` or ``predict``: a program runs its graph in a session.
"""

from runnel.keras import (
    activations,
    backend,
    constraints,
    initializers,
    layers,
    losses,
    models,
    regularizers,
    utils,
)
from runnel.keras.inputs import Input
from runnel.keras.models import Model, Sequential

__all__ = [
    "Input",
    "Model",
    "Sequential",
    "activations",
    "backend",
    "constraints",
    "initializers",
    "layers",
    "losses",
    "models",
    "regularizers",
    "utils",
]


def __dir__() -> list[str]:
    return __all__
