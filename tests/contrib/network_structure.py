"""What the networks of ``slim.nets`` consist of, as lines of text.

``tools/record_contrib.py`` records them under TensorFlow 1.15, so this file is Python 3.7.
"""

from importlib import import_module
from typing import Any, List

# ruff: noqa: UP006, UP032, UP035

NETWORKS = {
    "alexnet_v2": ("alexnet", "alexnet_v2_arg_scope", 224),
    "overfeat": ("overfeat", "overfeat_arg_scope", 231),
    "vgg_a": ("vgg", "vgg_arg_scope", 224),
    "vgg_16": ("vgg", "vgg_arg_scope", 224),
    "vgg_19": ("vgg", "vgg_arg_scope", 224),
    "inception_v1": ("inception", "inception_v1_arg_scope", 224),
    "inception_v2": ("inception", "inception_v2_arg_scope", 224),
    "inception_v3": ("inception", "inception_v3_arg_scope", 299),
    "resnet_v1_50": ("resnet_v1", "resnet_arg_scope", 224),
    "resnet_v1_101": ("resnet_v1", "resnet_arg_scope", 224),
    "resnet_v1_152": ("resnet_v1", "resnet_arg_scope", 224),
    "resnet_v1_200": ("resnet_v1", "resnet_arg_scope", 224),
    "resnet_v2_50": ("resnet_v2", "resnet_arg_scope", 224),
    "resnet_v2_200": ("resnet_v2", "resnet_arg_scope", 224),
}
"""The module of each network, its defaults, and the size of its images."""

_WINDOWS = ("Conv2D", "DepthwiseConv2dNative", "MaxPool", "AvgPool")


def structure(tf: Any, name: str) -> List[str]:
    """Variables, how they begin, operations with windows, end points and regularizers."""
    module_name, scope, size = NETWORKS[name]
    where = tf.__name__ + ".contrib.slim.nets." if tf.__name__ == "runnel" else _INSIDE
    module = import_module(where + module_name)
    with tf.Graph().as_default() as graph:
        images = tf.placeholder(tf.float32, [2, size, size, 3])
        with tf.contrib.slim.arg_scope(getattr(module, scope)()):
            net, end_points = getattr(module, name)(images, 7)
        lines = ["network " + _shown(net)]
        lines += ["variable " + _shown(v) + " " + _begin(tf, v) for v in tf.global_variables()]
        lines += ["end point {} {}".format(key, _shown(value)) for key, value in end_points.items()]
        for collection in ("regularization_losses", "trainable_variables", "moving_vars"):
            found = tf.get_collection(collection)
            lines += ["{} {}".format(collection, value.op.name) for value in found]
        lines += [_window(op) for op in graph.get_operations() if op.type in _WINDOWS]
    return lines


_INSIDE = "tensorflow.contrib.slim.python.slim.nets."


def _shown(tensor: Any) -> str:
    return "{} {}".format(tensor.op.name, tensor.shape.as_list())


def _begin(tf: Any, variable: Any) -> str:
    """The kind of the numbers, with the deviation or the value."""
    value = variable.initializer.inputs[1]
    graph = value.graph
    if value.op.name.endswith("truncated_normal"):
        deviation = graph.get_tensor_by_name(value.op.name + "/stddev:0")
        return "normal {:.4g}".format(float(tf.contrib.util.constant_value(deviation)))
    if value.op.name.endswith("random_uniform"):
        return "uniform"
    value = value.op.inputs[1] if value.op.type == "Fill" else value
    return "constant {:.3g}".format(float(tf.contrib.util.constant_value(value).flat[0]))


def _window(op: Any) -> str:
    spread = op.get_attr("ksize" if "Pool" in op.type else "dilations")
    padding = op.get_attr("padding")
    padding = padding.decode() if isinstance(padding, bytes) else padding
    return "{} {} {} {} {}".format(
        op.type, op.name, list(op.get_attr("strides")), list(spread), padding
    )
