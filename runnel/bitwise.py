"""``tf.bitwise``: operations on the bits of integers."""

from runnel.ops.bitwise import bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift

__all__ = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
    "left_shift",
    "right_shift",
]


def __dir__() -> list[str]:
    return __all__
