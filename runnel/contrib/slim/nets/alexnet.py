"""AlexNet in the form of Krizhevsky, *One weird trick for parallelizing CNNs* (2014)."""

from __future__ import annotations

from typing import Any

from runnel.contrib.framework.arg_scope import ArgScope
from runnel.contrib.slim.nets.chain import Classifier, Convolved, Pooled, chain_arg_scope, chained
from runnel.variables.initializers import Constant, TruncatedNormal

__all__ = ["alexnet_v2", "alexnet_v2_arg_scope"]

_LAYERS = (
    Convolved("conv1", 64, 11, 4, "VALID"),
    Pooled("pool1", 3),
    Convolved("conv2", 192, 5),
    Pooled("pool2", 3),
    Convolved("conv3", 384, 3),
    Convolved("conv4", 384, 3),
    Convolved("conv5", 256, 3),
    Pooled("pool5", 3),
)
_CLASSIFIER = Classifier(
    5,
    (4096, 4096),
    {"weights_initializer": TruncatedNormal(0.0, 0.005), "biases_initializer": Constant(0.1)},
)


def alexnet_v2_arg_scope(weight_decay: float = 0.0005) -> ArgScope:
    """The defaults with which :func:`alexnet_v2` was trained."""
    return chain_arg_scope(weight_decay, Constant(0.1), padding="VALID")


def alexnet_v2(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: Any = "alexnet_v2",
) -> tuple[Any, dict[str, Any]]:
    """The logits of images of 224 x 224 pixels, and the outputs of the layers by name.

    Larger images give logits for each place, if ``spatial_squeeze`` is false.

    Example:
        >>> with slim.arg_scope(alexnet.alexnet_v2_arg_scope()):
        ...     logits, end_points = alexnet.alexnet_v2(images, num_classes=10)
    """
    return chained(
        inputs,
        _LAYERS,
        _CLASSIFIER,
        num_classes,
        is_training,
        dropout_keep_prob,
        spatial_squeeze,
        scope,
        "alexnet_v2",
        "{scope}_end_points",
    )


alexnet_v2.default_image_size = 224  # type: ignore[attr-defined]


def __dir__() -> list[str]:
    return __all__
