"""OverFeat: Sermanet et al., *Integrated Recognition, Localization and Detection* (2014)."""

from __future__ import annotations

from typing import Any

from runnel.contrib.framework.arg_scope import ArgScope
from runnel.contrib.slim.nets.chain import Classifier, Convolved, Pooled, chain_arg_scope, chained
from runnel.variables.initializers import Constant, TruncatedNormal, Zeros

__all__ = ["overfeat", "overfeat_arg_scope"]

_LAYERS = (
    Convolved("conv1", 64, 11, 4, "VALID"),
    Pooled("pool1", 2),
    Convolved("conv2", 256, 5, 1, "VALID"),
    Pooled("pool2", 2),
    Convolved("conv3", 512, 3),
    Convolved("conv4", 1024, 3),
    Convolved("conv5", 1024, 3),
    Pooled("pool5", 2),
)
_CLASSIFIER = Classifier(
    6,
    (3072, 4096),
    {"weights_initializer": TruncatedNormal(0.0, 0.005), "biases_initializer": Constant(0.1)},
)


def overfeat_arg_scope(weight_decay: float = 0.0005) -> ArgScope:
    """The defaults with which :func:`overfeat` was trained."""
    return chain_arg_scope(weight_decay, Zeros(), padding="VALID")


def overfeat(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: Any = "overfeat",
) -> tuple[Any, dict[str, Any]]:
    """The logits of images of 231 x 231 pixels, and the outputs of the layers by name.

    Example:
        >>> with slim.arg_scope(overfeat.overfeat_arg_scope()):
        ...     logits, end_points = overfeat.overfeat(images, num_classes=10)
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
        "overfeat",
        "{name}_end_points",
    )


overfeat.default_image_size = 231  # type: ignore[attr-defined]


def __dir__() -> list[str]:
    return __all__
