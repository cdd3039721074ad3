"""Inception with batch normalisation: Ioffe and Szegedy, *Batch Normalization* (2015)."""

from __future__ import annotations

from typing import Any

from runnel.contrib.framework.arg_scope import ArgScope, arg_scope
from runnel.contrib.layers.arrangements import dropout, softmax
from runnel.contrib.layers.convolutions import convolution2d, separable_convolution2d
from runnel.contrib.layers.normalization import batch_norm
from runnel.contrib.layers.pooling import avg_pool2d
from runnel.contrib.slim.nets.inception_table import (
    Conv,
    Mixed,
    Pool,
    adders,
    base,
    depth_rule,
    fitting_window,
    inception_arg_scope,
    normal,
)
from runnel.ops.array_shape import squeeze
from runnel.variables.variable_scope import variable_scope

__all__ = ["inception_v2", "inception_v2_arg_scope", "inception_v2_base"]


def _conv(scope: str, depth: int, edge: int, stride: int = 1, stddev: float | None = None) -> Conv:
    return Conv(scope, depth, (edge, edge), stride, stddev)


def _narrow(depth: int) -> Conv:
    """The 1 x 1 convolution before the others of a branch."""
    return _conv("Conv2d_0a_1x1", depth, 1, stddev=0.09)


def _mixed(
    scope: str,
    direct: int,
    middle: tuple[int, int],
    wide: tuple[int, int],
    pooled: int,
    pool: str = "AvgPool_0a_3x3",
) -> Mixed:
    """A module that keeps the resolution: the channels of its branches."""
    return Mixed(
        scope,
        (
            (_conv("Conv2d_0a_1x1", direct, 1),),
            (_narrow(middle[0]), _conv("Conv2d_0b_3x3", middle[1], 3)),
            (
                _narrow(wide[0]),
                _conv("Conv2d_0b_3x3", wide[1], 3),
                _conv("Conv2d_0c_3x3", wide[1], 3),
            ),
            (Pool(pool, 3), _conv("Conv2d_0b_1x1", pooled, 1, stddev=0.1)),
        ),
    )


def _halving(scope: str, middle: tuple[int, int], wide: tuple[int, int]) -> Mixed:
    """A module that halves the resolution."""
    return Mixed(
        scope,
        (
            (_narrow(middle[0]), _conv("Conv2d_1a_3x3", middle[1], 3, 2)),
            (
                _narrow(wide[0]),
                _conv("Conv2d_0b_3x3", wide[1], 3),
                _conv("Conv2d_1a_3x3", wide[1], 3, 2),
            ),
            (Pool("MaxPool_1a_3x3", 3, 2),),
        ),
    )


_TABLE = (
    Pool("MaxPool_2a_3x3", 3, 2),
    _conv("Conv2d_2b_1x1", 64, 1, stddev=0.1),
    _conv("Conv2d_2c_3x3", 192, 3),
    Pool("MaxPool_3a_3x3", 3, 2),
    _mixed("Mixed_3b", 64, (64, 64), (64, 96), 32),
    _mixed("Mixed_3c", 64, (64, 96), (64, 96), 64),
    _halving("Mixed_4a", (128, 160), (64, 96)),
    _mixed("Mixed_4b", 224, (64, 96), (96, 128), 128),
    _mixed("Mixed_4c", 192, (96, 128), (96, 128), 128),
    _mixed("Mixed_4d", 160, (128, 160), (128, 160), 96),
    _mixed("Mixed_4e", 96, (128, 192), (160, 192), 96),
    _halving("Mixed_5a", (128, 192), (192, 256)),
    _mixed("Mixed_5b", 352, (192, 320), (160, 224), 128),
    _mixed("Mixed_5c", 352, (192, 320), (192, 224), 128, pool="MaxPool_0a_3x3"),
)


def inception_v2_arg_scope(
    weight_decay: float = 0.00004, batch_norm_var_collection: str = "moving_vars"
) -> ArgScope:
    """The defaults with which :func:`inception_v2` was trained."""
    return inception_arg_scope(weight_decay, {}, batch_norm_var_collection)


def inception_v2_base(
    inputs: Any,
    final_endpoint: str = "Mixed_5c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """The layers up to ``final_endpoint``: its output, and those of all layers by name.

    The first layer filters each colour by itself.
    """
    depth = depth_rule(min_depth, depth_multiplier)

    def first(net: Any) -> Any:
        return separable_convolution2d(
            net,
            depth(64),
            [7, 7],
            depth_multiplier=min(int(depth(64) / 3), 8),
            stride=2,
            padding="SAME",
            weights_initializer=normal(1.0),
            scope="Conv2d_1a_7x7",
        )

    rows = {"Conv2d_1a_7x7": first, **adders(_TABLE, depth)}
    return base(inputs, rows, final_endpoint, scope, "InceptionV2")


def inception_v2(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Any = softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV2",
) -> tuple[Any, dict[str, Any]]:
    """The logits of images of 224 x 224 pixels, and the outputs of the layers by name.

    ``depth_multiplier`` scales the channels of all layers, down to ``min_depth``.

    Example:
        >>> with slim.arg_scope(inception.inception_v2_arg_scope()):
        ...     logits, end_points = inception.inception_v2(images, num_classes=10)
    """
    with (
        variable_scope(scope, "InceptionV2", [inputs, num_classes], reuse=reuse) as opened,
        arg_scope([batch_norm, dropout], is_training=is_training),
    ):
        net, end_points = inception_v2_base(
            inputs, min_depth=min_depth, depth_multiplier=depth_multiplier, scope=opened
        )
        with variable_scope("Logits"):
            window = fitting_window(net, (7, 7))
            edges = "x".join(map(str, window))
            net = avg_pool2d(net, window, padding="VALID", scope=f"AvgPool_1a_{edges}")
            net = dropout(net, dropout_keep_prob, scope="Dropout_1b")
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


inception_v2.default_image_size = 224  # type: ignore[attr-defined]


def __dir__() -> list[str]:
    return __all__
