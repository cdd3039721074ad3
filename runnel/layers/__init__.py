"""``tf.layers``: layers that own their variables."""

from runnel.layers.base import Layer
from runnel.layers.fully_connected import Dense, dense
from runnel.layers.input_spec import InputSpec

__all__ = ["Dense", "InputSpec", "Layer", "dense"]


def __dir__() -> list[str]:
    return __all__
