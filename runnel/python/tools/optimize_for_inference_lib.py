"""Makes a frozen graph smaller and faster, with the same results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from runnel.graph.dtypes import as_dtype
from runnel.graph.tensor_proto import MakeNdarray, encode_array
from runnel.graph_util import remove_training_nodes
from runnel.python.tools.strip_unused_lib import strip_unused

__all__ = ["fold_batch_norms", "node_name_from_input", "optimize_for_inference"]

_INPUTS = {
    "BatchNormWithGlobalNormalization": ("conv", "mean", "variance", "beta", "gamma"),
    "FusedBatchNorm": ("conv", "gamma", "beta", "mean", "variance"),
    "FusedBatchNormV2": ("conv", "gamma", "beta", "mean", "variance"),
    "FusedBatchNormV3": ("conv", "gamma", "beta", "mean", "variance"),
}
"""What the inputs of each kind of batch normalisation are."""
_EPSILON = {"BatchNormWithGlobalNormalization": "variance_epsilon"}


def optimize_for_inference(
    input_graph_def: Any,
    input_node_names: Sequence[str],
    output_node_names: Sequence[str],
    placeholder_type_enum: Any,
    toco_compatible: bool = False,
) -> Any:
    """The graph without what only training needs, with batch normalisations inside convolutions.

    The inputs become placeholders of ``placeholder_type_enum``, a type or one for each.

    Example:
        >>> from runnel.python.tools import optimize_for_inference_lib
        >>> small = optimize_for_inference_lib.optimize_for_inference(
        ...     frozen, ["images"], ["softmax"], tf.float32.as_datatype_enum)
    """
    found = strip_unused(
        input_graph_def, input_node_names, output_node_names, placeholder_type_enum
    )
    return fold_batch_norms(remove_training_nodes(found, output_node_names))


def node_name_from_input(node_name: str) -> str:
    """The node behind an input ``"x"``, ``"x:1"`` or ``"^x"``."""
    return node_name.removeprefix("^").partition(":")[0]


def fold_batch_norms(input_graph_def: Any) -> Any:
    """The graph with constant batch normalisations after convolutions as scaled weights and a bias.

    A convolution that others use too, or whose weights others use, stays as it is.
    """
    nodes = {node.name: node for node in input_graph_def.node}
    uses: dict[str, int] = {}
    for node in input_graph_def.node:
        for text in node.input:
            uses[node_name_from_input(text)] = uses.get(node_name_from_input(text), 0) + 1
    replaced: dict[str, list[Any]] = {}
    for node in input_graph_def.node:
        folded = _folded(node, nodes, uses)
        if folded is not None:
            conv = nodes[node_name_from_input(node.input[0])]
            replaced[node_name_from_input(conv.input[1])] = []
            replaced[conv.name] = []
            replaced[node.name] = folded
    result = type(input_graph_def)()
    for node in input_graph_def.node:
        result.node.extend(replaced.get(node.name, [node]))
    if input_graph_def.HasField("library"):
        result.library.CopyFrom(input_graph_def.library)
    result.versions.CopyFrom(input_graph_def.versions)
    return result


def _constants(names: Iterable[str], nodes: dict[str, Any]) -> list[Any] | None:
    """The values of nodes, if all are constants."""
    found = []
    for name in names:
        node = nodes.get(node_name_from_input(name))
        if node is None or node.op != "Const":
            return None
        found.append(MakeNdarray(node.attr["value"].tensor))
    return found


def _folded(node: Any, nodes: dict[str, Any], uses: dict[str, int]) -> list[Any] | None:
    """What computes the same as a batch normalisation and the convolution before it."""
    if node.op not in _INPUTS or node.attr["is_training"].b:
        return None
    roles = dict(zip(_INPUTS[node.op], node.input))
    conv = nodes.get(node_name_from_input(roles["conv"]))
    if conv is None or conv.op not in ("Conv2D", "DepthwiseConv2dNative"):
        return None
    weights_name = node_name_from_input(conv.input[1])
    used_once = uses[conv.name] == 1 and uses.get(weights_name) == 1
    values = _constants([conv.input[1], *node.input[1:]], nodes)
    if not used_once or values is None or conv.attr["data_format"].s not in (b"", b"NHWC"):
        return None
    weights, parts = values[0], dict(zip(_INPUTS[node.op][1:], values[1:]))
    scale = 1.0 / np.sqrt(parts["variance"] + node.attr[_EPSILON.get(node.op, "epsilon")].f)
    if node.op != "BatchNormWithGlobalNormalization" or node.attr["scale_after_normalization"].b:
        scale = scale * parts["gamma"]
    if conv.op == "DepthwiseConv2dNative":
        scaled = weights * scale.reshape(weights.shape[2:])
    else:
        scaled = weights * scale
    offset = parts["beta"] - parts["mean"] * scale
    new_conv, bias = type(node)(), type(node)(name=node.name, op="BiasAdd", device=node.device)
    new_conv.CopyFrom(conv)
    bias.input.extend([conv.name, f"{conv.name}_bn_offset"])
    for key in ("T", "data_format"):
        if key in conv.attr:
            bias.attr[key].CopyFrom(conv.attr[key])
    kind = as_dtype(conv.attr["T"].type)
    return [
        _constant(type(node)(name=weights_name), scaled, kind),
        new_conv,
        _constant(type(node)(name=f"{conv.name}_bn_offset"), offset, kind),
        bias,
    ]


def _constant(node: Any, value: Any, dtype: Any) -> Any:
    node.op = "Const"
    node.attr["dtype"].type = dtype.as_datatype_enum
    content = encode_array(np.asarray(value, dtype.as_numpy_dtype), dtype)
    node.attr["value"].tensor.MergeFromString(content.SerializeToString())
    return node
