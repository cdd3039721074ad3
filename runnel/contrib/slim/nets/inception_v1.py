"""GoogLeNet: Szegedy et al., *Going deeper with convolutions* (2014)."""

from __future__ import annotations

from typing import Any

from runnel.contrib.framework.arg_scope import ArgScope, arg_scope
from runnel.contrib.layers.arrangements import dropout, softmax
from runnel.contrib.layers.convolutions import convolution2d
from runnel.contrib.layers.normalization import batch_norm
from runnel.contrib.layers.pooling import avg_pool2d
from runnel.contrib.slim.nets.inception_table import (
    Conv,
    Mixed,
    Pool,
    adders,
    base,
    inception_arg_scope,
)
from runnel.ops.array_shape import squeeze
from runnel.variables.variable_scope import variable_scope

__all__ = ["inception_v1", "inception_v1_arg_scope", "inception_v1_base"]

_STDDEV = 0.01


def _conv(scope: str, depth: int, edge: int, stride: int = 1) -> Conv:
    return Conv(scope, depth, (edge, edge), stride, _STDDEV)


def _mixed(
    scope: str,
    direct: int,
    middle: tuple[int, int],
    wide: tuple[int, int],
    pooled: int,
    last: str = "Conv2d_0b_3x3",
) -> Mixed:
    """A module: the channels of its branches, and a name that one module spells otherwise."""
    return Mixed(
        scope,
        (
            (_conv("Conv2d_0a_1x1", direct, 1),),
            (_conv("Conv2d_0a_1x1", middle[0], 1), _conv("Conv2d_0b_3x3", middle[1], 3)),
            (_conv("Conv2d_0a_1x1", wide[0], 1), _conv(last, wide[1], 3)),
            (Pool("MaxPool_0a_3x3", 3), _conv("Conv2d_0b_1x1", pooled, 1)),
        ),
    )


_TABLE = (
    _conv("Conv2d_1a_7x7", 64, 7, stride=2),
    Pool("MaxPool_2a_3x3", 3, 2),
    _conv("Conv2d_2b_1x1", 64, 1),
    _conv("Conv2d_2c_3x3", 192, 3),
    Pool("MaxPool_3a_3x3", 3, 2),
    _mixed("Mixed_3b", 64, (96, 128), (16, 32), 32),
    _mixed("Mixed_3c", 128, (128, 192), (32, 96), 64),
    Pool("MaxPool_4a_3x3", 3, 2),
    _mixed("Mixed_4b", 192, (96, 208), (16, 48), 64),
    _mixed("Mixed_4c", 160, (112, 224), (24, 64), 64),
    _mixed("Mixed_4d", 128, (128, 256), (24, 64), 64),
    _mixed("Mixed_4e", 112, (144, 288), (32, 64), 64),
    _mixed("Mixed_4f", 256, (160, 320), (32, 128), 128),
    Pool("MaxPool_5a_2x2", 2, 2),
    _mixed("Mixed_5b", 256, (160, 320), (32, 128), 128, last="Conv2d_0a_3x3"),
    _mixed("Mixed_5c", 384, (192, 384), (48, 128), 128),
)


def inception_v1_arg_scope(
    weight_decay: float = 0.00004,
    use_batch_norm: bool = True,
    batch_norm_var_collection: str = "moving_vars",
) -> ArgScope:
    """The defaults with which :func:`inception_v1` was trained."""
    normalization: dict[str, Any] | None = {} if use_batch_norm else None
    return inception_arg_scope(weight_decay, normalization, batch_norm_var_collection)


def inception_v1_base(
    inputs: Any, final_endpoint: str = "Mixed_5c", scope: Any = "InceptionV1"
) -> tuple[Any, dict[str, Any]]:
    """The layers up to ``final_endpoint``: its output, and those of all layers by name."""
    rows = adders(_TABLE, lambda depth: depth)
    return base(inputs, rows, final_endpoint, scope, "InceptionV1")


def inception_v1(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    prediction_fn: Any = softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV1",
) -> tuple[Any, dict[str, Any]]:
    """The logits of images of 224 x 224 pixels, and the outputs of the layers by name.

    Example:
        >>> with slim.arg_scope(inception.inception_v1_arg_scope()):
        ...     logits, end_points = inception.inception_v1(images, num_classes=10)
    """
    with (
        variable_scope(scope, "InceptionV1", [inputs, num_classes], reuse=reuse) as opened,
        arg_scope([batch_norm, dropout], is_training=is_training),
    ):
        net, end_points = inception_v1_base(inputs, scope=opened)
        with variable_scope("Logits"):
            net = avg_pool2d(net, [7, 7], stride=1, scope="MaxPool_0a_7x7")
            net = dropout(net, dropout_keep_prob, scope="Dropout_0b")
            logits = convolution2d(
                net,
                num_classes,
                [1, 1],
                activation_fn=None,
                normalizer_fn=None,
                scope="Conv2d_0c_1x1",
            )
            if spatial_squeeze:
                logits = squeeze(logits, [1, 2], name="SpatialSqueeze")
            end_points["Logits"] = logits
            end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


inception_v1.default_image_size = 224  # type: ignore[attr-defined]


def __dir__() -> list[str]:
    return __all__
