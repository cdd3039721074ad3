"""VGG: Simonyan and Zisserman, *Very Deep Convolutional Networks* (2014)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.contrib.framework.arg_scope import ArgScope
from runnel.contrib.slim.nets.chain import Classifier, Convolved, Pooled, chain_arg_scope, chained
from runnel.variables.initializers import Zeros

__all__ = ["vgg_16", "vgg_19", "vgg_a", "vgg_arg_scope", "vgg_d", "vgg_e"]

_DEPTHS = (64, 128, 256, 512, 512)
_CLASSIFIER = Classifier(7, (4096, 4096), {})


def vgg_arg_scope(weight_decay: float = 0.0005) -> ArgScope:
    """The defaults with which the networks were trained."""
    return chain_arg_scope(weight_decay, Zeros())


def _network(
    name: str, repeats: tuple[int, ...], collection: str
) -> Callable[..., tuple[Any, dict[str, Any]]]:
    """The function for a network with so many convolutions in each of its five blocks."""
    layers: list[Convolved | Pooled] = []
    for block, (depth, count) in enumerate(zip(_DEPTHS, repeats, strict=True), start=1):
        layers += [Convolved(f"conv{block}/conv{block}_{i}", depth, 3) for i in range(1, count + 1)]
        layers.append(Pooled(f"pool{block}", 2))

    def network(
        inputs: Any,
        num_classes: int = 1000,
        is_training: Any = True,
        dropout_keep_prob: float = 0.5,
        spatial_squeeze: bool = True,
        scope: Any = name,
    ) -> tuple[Any, dict[str, Any]]:
        return chained(
            inputs,
            layers,
            _CLASSIFIER,
            num_classes,
            is_training,
            dropout_keep_prob,
            spatial_squeeze,
            scope,
            name,
            collection,
        )

    network.__name__ = network.__qualname__ = name
    network.__doc__ = f"""The logits of images of 224 x 224 pixels, and the layers' outputs by name.

    The network has {sum(repeats) + 3} layers with weights.

    Example:
        >>> with slim.arg_scope(vgg.vgg_arg_scope()):
        ...     logits, end_points = vgg.{name}(images, num_classes=10)
    """
    network.default_image_size = 224  # type: ignore[attr-defined]
    return network


vgg_a = _network("vgg_a", (1, 1, 2, 2, 2), "{scope}_end_points")
vgg_16 = _network("vgg_16", (2, 2, 3, 3, 3), "{scope}_end_points")
vgg_19 = _network("vgg_19", (2, 2, 4, 4, 4), "{name}_end_points")
vgg_d = vgg_16
vgg_e = vgg_19


def __dir__() -> list[str]:
    return __all__
