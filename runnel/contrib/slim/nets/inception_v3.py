"""Inception v3: Szegedy et al., *Rethinking the Inception Architecture* (2015)."""

from __future__ import annotations

from typing import Any

from runnel.contrib.framework.arg_scope import ArgScope, arg_scope
from runnel.contrib.layers.arrangements import dropout, softmax
from runnel.contrib.layers.convolutions import convolution2d
from runnel.contrib.layers.normalization import batch_norm
from runnel.contrib.layers.pooling import avg_pool2d
from runnel.contrib.slim.nets.inception_table import (
    Conv,
    Depth,
    Fork,
    Layer,
    Mixed,
    Pool,
    adders,
    base,
    depth_rule,
    fitting_window,
    inception_arg_scope,
    normal,
)
from runnel.graph.collections import GraphKeys
from runnel.ops.array_shape import squeeze
from runnel.variables.variable_scope import variable_scope

__all__ = ["inception_v3", "inception_v3_arg_scope", "inception_v3_base"]


def _conv(name: str, depth: int, stride: int = 1, padding: str = "SAME") -> Conv:
    """A convolution whose window stands at the end of its name, as in ``Conv2d_0b_1x7``."""
    high, wide = name.rpartition("_")[2].split("x")
    return Conv(name, depth, (int(high), int(wide)), stride, padding=padding)


def _row(*names_and_depths: tuple[str, int]) -> tuple[Layer, ...]:
    return tuple(_conv(f"Conv2d_{name}", depth) for name, depth in names_and_depths)


def _pooled(depth: int) -> tuple[Layer, ...]:
    return (Pool("AvgPool_0a_3x3", 3), _conv("Conv2d_0b_1x1", depth))


def _mixed_5(scope: str, pooled: int, names: tuple[str, str]) -> Mixed:
    """A module at 35 x 35; one spells the names of its second branch otherwise."""
    return Mixed(
        scope,
        (
            _row(("0a_1x1", 64)),
            (_conv(names[0], 48), _conv(names[1], 64)),
            _row(("0a_1x1", 64), ("0b_3x3", 96), ("0c_3x3", 96)),
            _pooled(pooled),
        ),
    )


def _mixed_6(scope: str, inner: int) -> Mixed:
    """A module at 17 x 17, of windows one pixel high or wide."""
    return Mixed(
        scope,
        (
            _row(("0a_1x1", 192)),
            _row(("0a_1x1", inner), ("0b_1x7", inner), ("0c_7x1", 192)),
            _row(
                ("0a_1x1", inner),
                ("0b_7x1", inner),
                ("0c_1x7", inner),
                ("0d_7x1", inner),
                ("0e_1x7", 192),
            ),
            _pooled(192),
        ),
    )


def _mixed_7(scope: str, tall: str) -> Mixed:
    """A module at 8 x 8, whose branches fork; ``tall`` names a window that modules name apart."""

    def fork(*names: str) -> Fork:
        return Fork(tuple(_conv(f"Conv2d_{name}", 384) for name in names))

    return Mixed(
        scope,
        (
            _row(("0a_1x1", 320)),
            (*_row(("0a_1x1", 384)), fork("0b_1x3", tall)),
            (*_row(("0a_1x1", 448), ("0b_3x3", 384)), fork("0c_1x3", "0d_3x1")),
            _pooled(192),
        ),
    )


_SHRINKING_POOL = (Pool("MaxPool_1a_3x3", 3, 2, "VALID"),)

_TABLE = (
    _conv("Conv2d_1a_3x3", 32, 2, "VALID"),
    _conv("Conv2d_2a_3x3", 32, 1, "VALID"),
    _conv("Conv2d_2b_3x3", 64),
    Pool("MaxPool_3a_3x3", 3, 2, "VALID"),
    _conv("Conv2d_3b_1x1", 80, 1, "VALID"),
    _conv("Conv2d_4a_3x3", 192, 1, "VALID"),
    Pool("MaxPool_5a_3x3", 3, 2, "VALID"),
    _mixed_5("Mixed_5b", 32, ("Conv2d_0a_1x1", "Conv2d_0b_5x5")),
    _mixed_5("Mixed_5c", 64, ("Conv2d_0b_1x1", "Conv_1_0c_5x5")),
    _mixed_5("Mixed_5d", 64, ("Conv2d_0a_1x1", "Conv2d_0b_5x5")),
    Mixed(  # the windows of the last convolutions are larger than their names say
        "Mixed_6a",
        (
            (Conv("Conv2d_1a_1x1", 384, (3, 3), 2, padding="VALID"),),
            (
                *_row(("0a_1x1", 64), ("0b_3x3", 96)),
                Conv("Conv2d_1a_1x1", 96, (3, 3), 2, padding="VALID"),
            ),
            _SHRINKING_POOL,
        ),
    ),
    _mixed_6("Mixed_6b", 128),
    _mixed_6("Mixed_6c", 160),
    _mixed_6("Mixed_6d", 160),
    _mixed_6("Mixed_6e", 192),
    Mixed(
        "Mixed_7a",
        (
            (*_row(("0a_1x1", 192)), _conv("Conv2d_1a_3x3", 320, 2, "VALID")),
            (
                *_row(("0a_1x1", 192), ("0b_1x7", 192), ("0c_7x1", 192)),
                _conv("Conv2d_1a_3x3", 192, 2, "VALID"),
            ),
            _SHRINKING_POOL,
        ),
    ),
    _mixed_7("Mixed_7b", "0b_3x1"),
    _mixed_7("Mixed_7c", "0c_3x1"),
)


def inception_v3_arg_scope(
    weight_decay: float = 0.00004,
    batch_norm_var_collection: str = "moving_vars",
    batch_norm_decay: float = 0.9997,
    batch_norm_epsilon: float = 0.001,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    use_fused_batchnorm: bool = True,
) -> ArgScope:
    """The defaults with which :func:`inception_v3` was trained."""
    normalization = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "updates_collections": updates_collections,
        "fused": use_fused_batchnorm,
    }
    return inception_arg_scope(weight_decay, normalization, batch_norm_var_collection)


def inception_v3_base(
    inputs: Any,
    final_endpoint: str = "Mixed_7c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """The layers up to ``final_endpoint``: its output, and those of all layers by name."""
    rows = adders(_TABLE, depth_rule(min_depth, depth_multiplier))
    return base(inputs, rows, final_endpoint, scope, "InceptionV3")


def _auxiliary(net: Any, num_classes: int, depth: Depth, squeezed: bool) -> Any:
    """Logits from the middle of the network, whose loss helps to train the layers below."""
    with variable_scope("AuxLogits"):
        net = avg_pool2d(net, [5, 5], stride=3, padding="VALID", scope="AvgPool_1a_5x5")
        net = convolution2d(net, depth(128), [1, 1], scope="Conv2d_1b_1x1")
        window = fitting_window(net, (5, 5))
        net = convolution2d(
            net,
            depth(768),
            window,
            weights_initializer=normal(0.01),
            padding="VALID",
            scope=f"Conv2d_2a_{window[0]}x{window[1]}",
        )
        logits = convolution2d(
            net,
            num_classes,
            [1, 1],
            activation_fn=None,
            normalizer_fn=None,
            weights_initializer=normal(0.001),
            scope="Conv2d_2b_1x1",
        )
        return squeeze(logits, [1, 2], name="SpatialSqueeze") if squeezed else logits


def inception_v3(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Any = softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV3",
) -> tuple[Any, dict[str, Any]]:
    """The logits of images of 299 x 299 pixels, and the outputs of the layers by name.

    ``end_points["AuxLogits"]`` are logits from the middle of the network. ``depth_multiplier``
    scales the channels of all layers, down to ``min_depth``.

    Example:
        >>> with slim.arg_scope(inception.inception_v3_arg_scope()):
        ...     logits, end_points = inception.inception_v3(images, num_classes=10)
    """
    depth = depth_rule(min_depth, depth_multiplier)
    with (
        variable_scope(scope, "InceptionV3", [inputs, num_classes], reuse=reuse) as opened,
        arg_scope([batch_norm, dropout], is_training=is_training),
    ):
        net, end_points = inception_v3_base(
            inputs, min_depth=min_depth, depth_multiplier=depth_multiplier, scope=opened
        )
        with arg_scope([convolution2d], stride=1, padding="SAME"):
            end_points["AuxLogits"] = _auxiliary(
                end_points["Mixed_6e"], num_classes, depth, spatial_squeeze
            )
        with variable_scope("Logits"):
            window = fitting_window(net, (8, 8))
            edges = "x".join(map(str, window))
            net = avg_pool2d(net, window, padding="VALID", scope=f"AvgPool_1a_{edges}")
            net = dropout(net, dropout_keep_prob, scope="Dropout_1b")
            end_points["PreLogits"] = net
            logits = convolution2d(
                net,
                num_classes,
                [1, 1],
                activation_fn=None,
                normalizer_fn=None,
                scope="Conv2d_1c_1x1",
            )
            if spatial_squeeze:
                logits = squeeze(logits, [1, 2], name="SpatialSqueeze")
        end_points["Logits"] = logits
        end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


inception_v3.default_image_size = 299  # type: ignore[attr-defined]


def __dir__() -> list[str]:
    return __all__
