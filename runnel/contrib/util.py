"""``tf.contrib.util``: values of tensors, and messages of them."""

from runnel.graph.constant_value import constant_value
from runnel.graph.tensor_proto import make_ndarray, make_tensor_proto

__all__ = ["constant_value", "make_ndarray", "make_tensor_proto"]


def __dir__() -> list[str]:
    return __all__
