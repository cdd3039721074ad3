"""``tensor_util``: values of tensors, while building."""

from runnel.graph.constant_value import constant_value
from runnel.graph.tensor_proto import make_ndarray, make_tensor_proto

__all__ = ["MakeNdarray", "constant_value", "make_ndarray", "make_tensor_proto"]

MakeNdarray = make_ndarray
