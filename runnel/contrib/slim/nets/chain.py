"""Networks whose layers follow one another: what AlexNet, OverFeat and VGG are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from runnel.contrib.framework.arg_scope import ArgScope, arg_scope
from runnel.contrib.layers.arrangements import dropout
from runnel.contrib.layers.convolutions import convolution2d
from runnel.contrib.layers.fully_connected import fully_connected
from runnel.contrib.layers.pooling import max_pool2d
from runnel.contrib.layers.regularizers import l2_regularizer
from runnel.contrib.layers.scoping import convert_collection_to_dict
from runnel.ops.activations import relu
from runnel.ops.array_shape import squeeze
from runnel.variables.initializers import Zeros
from runnel.variables.variable_scope import variable_scope


class Convolved(NamedTuple):
    """A convolution: its scope, its channels, and the edges of its window."""

    scope: str
    depth: int
    kernel: int
    stride: int = 1
    padding: str | None = None
    """None: that of the scope in force."""


class Pooled(NamedTuple):
    """The largest value of each window, two pixels apart."""

    scope: str
    kernel: int


class Classifier(NamedTuple):
    """The last three layers, as convolutions: their channels and how their variables begin."""

    window: int
    depths: tuple[int, int]
    initializers: dict[str, Any]
    """Arguments of the layers; the last one's biases begin with zeros."""


def chain_arg_scope(weight_decay: float, biases_initializer: Any, **pooling: Any) -> ArgScope:
    """The defaults of the layers: rectified, decayed, of the size of their inputs."""
    with (
        arg_scope(
            [convolution2d, fully_connected],
            activation_fn=relu,
            weights_regularizer=l2_regularizer(weight_decay),
            biases_initializer=biases_initializer,
        ),
        arg_scope([convolution2d], padding="SAME") as scope,
    ):
        if not pooling:
            return scope
        with arg_scope([max_pool2d], **pooling) as whole:
            return whole


def chained(
    inputs: Any,
    layers: Sequence[Convolved | Pooled],
    classifier: Classifier,
    num_classes: int,
    is_training: Any,
    keep_prob: float,
    squeezed: bool,
    scope: Any,
    default_scope: str,
    collection: str,
) -> tuple[Any, dict[str, Any]]:
    """The logits and the outputs of all layers by their names.

    ``collection`` is the format of the name of the collection that keeps these.
    """
    with variable_scope(scope, default_scope, [inputs]) as opened:
        kept = collection.format(name=opened.name, scope=opened.original_name_scope)
        with arg_scope([convolution2d, fully_connected, max_pool2d], outputs_collections=kept):
            net = inputs
            for layer in layers:
                net = _added(net, layer)
            net = _classified(net, classifier, num_classes, is_training, keep_prob)
            end_points = convert_collection_to_dict(kept)
            if squeezed:
                net = squeeze(net, [1, 2], name="fc8/squeezed")
                end_points[f"{opened.name}/fc8"] = net
            return net, end_points


def _added(net: Any, layer: Convolved | Pooled) -> Any:
    window = [layer.kernel, layer.kernel]
    if isinstance(layer, Pooled):
        return max_pool2d(net, window, 2, scope=layer.scope)
    padding = {} if layer.padding is None else {"padding": layer.padding}
    return convolution2d(net, layer.depth, window, layer.stride, scope=layer.scope, **padding)


def _classified(
    net: Any, classifier: Classifier, num_classes: int, is_training: Any, keep_prob: float
) -> Any:
    window = [classifier.window, classifier.window]
    with arg_scope([convolution2d], **classifier.initializers):
        first, second = classifier.depths
        net = convolution2d(net, first, window, padding="VALID", scope="fc6")
        net = dropout(net, keep_prob, is_training=is_training, scope="dropout6")
        net = convolution2d(net, second, [1, 1], scope="fc7")
        net = dropout(net, keep_prob, is_training=is_training, scope="dropout7")
        last = {"biases_initializer": Zeros()} if classifier.initializers else {}
        return convolution2d(
            net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="fc8", **last
        )
