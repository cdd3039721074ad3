"""``tf.collectives``: values that a group of devices, on one task or on many, makes together."""

from runnel.ops.collectives import all_gather, all_reduce, broadcast_recv, broadcast_send

__all__ = [
    "all_gather",
    "all_reduce",
    "broadcast_recv",
    "broadcast_send",
]


def __dir__() -> list[str]:
    return __all__
