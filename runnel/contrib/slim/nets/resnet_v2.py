"""Residual networks: He et al., *Identity Mappings in Deep Residual Networks* (2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.contrib.framework.arg_scope import add_arg_scope
from runnel.contrib.layers.convolutions import conv2d
from runnel.contrib.layers.normalization import batch_norm
from runnel.contrib.layers.scoping import collect_named_outputs
from runnel.contrib.layers.utils import last_dimension
from runnel.contrib.slim.nets.resnet_utils import (
    Block,
    Network,
    block_of,
    conv2d_same,
    network_of,
    residual_network,
    resnet_arg_scope,
    subsample,
)
from runnel.ops.activations import relu
from runnel.variables.variable_scope import variable_scope

__all__ = [
    "bottleneck",
    "resnet_arg_scope",
    "resnet_v2",
    "resnet_v2_101",
    "resnet_v2_152",
    "resnet_v2_200",
    "resnet_v2_50",
    "resnet_v2_block",
]


@add_arg_scope
def bottleneck(
    inputs: Any,
    depth: int,
    depth_bottleneck: int,
    stride: int,
    rate: int = 1,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Any:
    """A shortcut, and three convolutions beside it, with normalisation before each.

    ``rate`` dilates the middle one, whose stride is ``stride``.
    """
    with variable_scope(scope, "bottleneck_v2", [inputs]) as opened:
        active = batch_norm(inputs, activation_fn=relu, scope="preact")
        plain = {"activation_fn": None, "normalizer_fn": None}
        if depth == last_dimension(inputs.get_shape(), min_rank=4):
            shortcut = subsample(inputs, stride, "shortcut")
        else:
            shortcut = conv2d(active, depth, [1, 1], stride=stride, scope="shortcut", **plain)
        net = conv2d(active, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        net = conv2d_same(net, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        net = conv2d(net, depth, [1, 1], stride=1, scope="conv3", **plain)
        outputs = shortcut + net
        return collect_named_outputs(outputs_collections, opened.name, outputs)


_NETWORK = Network("resnet_v2", bottleneck, preactivated=True)


def resnet_v2(
    inputs: Any,
    blocks: Sequence[Block],
    num_classes: int | None = None,
    is_training: Any = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    include_root_block: bool = True,
    reuse: Any = None,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """A network of any blocks: the last tensor, and the outputs of all layers by name.

    Without ``num_classes`` the last tensor is the pooled features, or, without ``global_pool``,
    those of each place. ``output_stride`` keeps their resolution by dilating later blocks.

    Example:
        >>> blocks = [resnet_v2.resnet_v2_block("block1", 64, num_units=3, stride=2)]
        >>> features, _ = resnet_v2.resnet_v2(images, blocks, global_pool=False, scope="trunk")
    """
    return residual_network(
        _NETWORK,
        inputs,
        blocks,
        num_classes,
        is_training,
        global_pool,
        output_stride,
        include_root_block,
        reuse,
        scope,
    )


resnet_v2.default_image_size = 224  # type: ignore[attr-defined]


def resnet_v2_block(scope: str, base_depth: int, num_units: int, stride: int) -> Block:
    """So many bottlenecks of ``4 * base_depth`` channels, of which the last one strides."""
    return block_of(bottleneck, scope, base_depth, num_units, stride)


resnet_v2_50 = network_of(resnet_v2, resnet_v2_block, "resnet_v2_50", (3, 4, 6, 3))
resnet_v2_101 = network_of(resnet_v2, resnet_v2_block, "resnet_v2_101", (3, 4, 23, 3))
resnet_v2_152 = network_of(resnet_v2, resnet_v2_block, "resnet_v2_152", (3, 8, 36, 3))
resnet_v2_200 = network_of(resnet_v2, resnet_v2_block, "resnet_v2_200", (3, 24, 36, 3))


def __dir__() -> list[str]:
    return __all__
