"""``tf.keras.preprocessing``: sequences and text as arrays."""

from runnel.keras.preprocessing import sequence, text

__all__ = ["sequence", "text"]


def __dir__() -> list[str]:
    return __all__
