"""``TensorInfo``: a tensor's name, type and shape in a protocol buffer."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor
from runnel.variables.proto_names import add_scope


def build_tensor_info(tensor: Any) -> Any:
    """The ``TensorInfo`` of a tensor, dense or sparse, for a signature.

    Example:
        >>> tf.saved_model.build_tensor_info(tf.constant([1.0], name="x")).name
        'x:0'
    """
    from tensorboard.compat.proto.meta_graph_pb2 import TensorInfo

    if isinstance(tensor, SparseTensor):
        encoding = TensorInfo.CooSparse(
            values_tensor_name=tensor.values.name,
            indices_tensor_name=tensor.indices.name,
            dense_shape_tensor_name=tensor.dense_shape.name,
        )
        return TensorInfo(
            coo_sparse=encoding,
            dtype=tensor.dtype.as_datatype_enum,
            tensor_shape=tensor.get_shape().as_proto(),
        )
    tensor = convert_to_tensor(tensor)
    return TensorInfo(
        name=tensor.name,
        dtype=tensor.dtype.as_datatype_enum,
        tensor_shape=tensor.shape.as_proto(),
    )


def get_tensor_from_tensor_info(
    tensor_info: Any, graph: Graph | None = None, import_scope: str | None = None
) -> Tensor | SparseTensor:
    """The tensor that ``tensor_info`` names, in a graph that was imported under a scope."""
    graph = graph or get_default_graph()
    encoding = tensor_info.WhichOneof("encoding")
    if encoding == "coo_sparse":
        parts = tensor_info.coo_sparse
        names = parts.indices_tensor_name, parts.values_tensor_name, parts.dense_shape_tensor_name
        return SparseTensor(
            *(graph.get_tensor_by_name(add_scope(name, import_scope)) for name in names)
        )
    if encoding != "name":
        raise ValueError(f"A TensorInfo with {encoding or 'no name'} denotes no tensor here")
    return graph.get_tensor_by_name(add_scope(tensor_info.name, import_scope))
