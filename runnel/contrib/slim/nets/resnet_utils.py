"""What residual networks of both versions are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from runnel.contrib.framework.arg_scope import ArgScope, add_arg_scope, arg_scope
from runnel.contrib.layers.arrangements import softmax
from runnel.contrib.layers.convolutions import convolution2d
from runnel.contrib.layers.initializers import variance_scaling_initializer
from runnel.contrib.layers.normalization import batch_norm
from runnel.contrib.layers.pooling import max_pool2d
from runnel.contrib.layers.regularizers import l2_regularizer
from runnel.contrib.layers.scoping import collect_named_outputs, convert_collection_to_dict
from runnel.graph.collections import GraphKeys
from runnel.ops.activations import relu
from runnel.ops.padding import pad
from runnel.ops.reduce_functions import reduce_mean
from runnel.variables.variable_scope import variable_scope

__all__ = ["Block", "conv2d_same", "resnet_arg_scope", "stack_blocks_dense", "subsample"]


class Block(NamedTuple):
    """Units that follow one another: ``unit_fn`` is called with each mapping of ``args``."""

    scope: str
    unit_fn: Callable[..., Any]
    args: list[dict[str, Any]]


def block_of(
    unit_fn: Callable[..., Any], scope: str, base_depth: int, num_units: int, stride: int
) -> Block:
    """A block of bottlenecks, of which the last one strides."""
    unit = {"depth": base_depth * 4, "depth_bottleneck": base_depth, "stride": 1}
    return Block(scope, unit_fn, [unit] * (num_units - 1) + [{**unit, "stride": stride}])


def subsample(inputs: Any, factor: int, scope: Any = None) -> Any:
    """Every ``factor``-th pixel of both dimensions."""
    return inputs if factor == 1 else max_pool2d(inputs, [1, 1], stride=factor, scope=scope)


def conv2d_same(
    inputs: Any, num_outputs: int, kernel_size: int, stride: int, rate: int = 1, scope: Any = None
) -> Any:
    """A convolution whose padding does not depend on the size of its inputs.

    So its result with a stride is every ``stride``-th pixel of the result without.
    """
    if stride == 1:
        return convolution2d(
            inputs, num_outputs, kernel_size, stride=1, rate=rate, padding="SAME", scope=scope
        )
    whole = (kernel_size - 1) * rate
    before, after = whole // 2, whole - whole // 2
    inputs = pad(inputs, [[0, 0], [before, after], [before, after], [0, 0]])
    return convolution2d(
        inputs, num_outputs, kernel_size, stride=stride, rate=rate, padding="VALID", scope=scope
    )


@add_arg_scope
def stack_blocks_dense(
    net: Any, blocks: Sequence[Block], output_stride: Any = None, outputs_collections: Any = None
) -> Any:
    """Runs the units of all blocks.

    Once the strides multiply to ``output_stride``, later units dilate in place of striding, so that
    the output keeps its resolution.
    """
    current, rate = 1, 1
    for block in blocks:
        with variable_scope(block.scope, "block", [net]) as opened:
            for number, unit in enumerate(block.args, start=1):
                if output_stride is not None and current > output_stride:
                    raise ValueError("The target output_stride cannot be reached.")
                stride = unit.get("stride", 1)
                with variable_scope(f"unit_{number}", values=[net]):
                    if output_stride is not None and current == output_stride:
                        net = block.unit_fn(net, rate=rate, **{**unit, "stride": 1})
                        rate *= stride
                    else:
                        net = block.unit_fn(net, rate=1, **unit)
                        current *= stride
            net = collect_named_outputs(outputs_collections, opened.name, net)
    if output_stride is not None and current != output_stride:
        raise ValueError("The target output_stride cannot be reached.")
    return net


def resnet_arg_scope(
    weight_decay: float = 0.0001,
    batch_norm_decay: float = 0.997,
    batch_norm_epsilon: float = 1e-5,
    batch_norm_scale: bool = True,
) -> ArgScope:
    """The defaults with which the networks were trained."""
    normalization = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "scale": batch_norm_scale,
        "updates_collections": GraphKeys.UPDATE_OPS,
    }
    with (
        arg_scope(
            [convolution2d],
            weights_regularizer=l2_regularizer(weight_decay),
            weights_initializer=variance_scaling_initializer(),
            activation_fn=relu,
            normalizer_fn=batch_norm,
            normalizer_params=normalization,
        ),
        arg_scope([batch_norm], **normalization),
        # The paper pads the pooling "VALID"; padded "SAME", features lie where the pixels are.
        arg_scope([max_pool2d], padding="SAME") as scope,
    ):
        return scope


class Network(NamedTuple):
    """What the two versions do differently."""

    default_scope: str
    unit_fn: Callable[..., Any]
    preactivated: bool
    """Normalisation and activation come before the convolutions, so also after the last block."""


def residual_network(
    network: Network,
    inputs: Any,
    blocks: Sequence[Block],
    num_classes: int | None,
    is_training: Any,
    global_pool: bool,
    output_stride: int | None,
    include_root_block: bool,
    reuse: Any,
    scope: Any,
) -> tuple[Any, dict[str, Any]]:
    """The network of the blocks, and the outputs of its layers by name."""
    with variable_scope(scope, network.default_scope, [inputs], reuse=reuse) as opened:
        kept = opened.original_name_scope + "_end_points"
        collecting = [convolution2d, network.unit_fn, stack_blocks_dense]
        with (
            arg_scope(collecting, outputs_collections=kept),
            arg_scope([batch_norm], is_training=is_training),
        ):
            net, stride = inputs, output_stride
            if include_root_block:
                if output_stride is not None:
                    if output_stride % 4 != 0:
                        raise ValueError("The output_stride needs to be a multiple of 4.")
                    stride = output_stride // 4
                net = _root(net, network.preactivated)
            net = stack_blocks_dense(net, blocks, stride)
            if network.preactivated:
                net = batch_norm(net, activation_fn=relu, scope="postnorm")
            if global_pool:
                net = reduce_mean(net, [1, 2], name="pool5", keepdims=True)
            if num_classes is not None:
                net = convolution2d(
                    net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="logits"
                )
            end_points = convert_collection_to_dict(kept)
            if num_classes is not None:
                end_points["predictions"] = softmax(net, scope="predictions")
            return net, end_points


def _root(net: Any, preactivated: bool) -> Any:
    if preactivated:  # The first unit normalises and activates.
        with arg_scope([convolution2d], activation_fn=None, normalizer_fn=None):
            net = conv2d_same(net, 64, 7, stride=2, scope="conv1")
    else:
        net = conv2d_same(net, 64, 7, stride=2, scope="conv1")
    return max_pool2d(net, [3, 3], stride=2, scope="pool1")


def network_of(
    build: Callable[..., tuple[Any, dict[str, Any]]],
    block: Callable[..., Block],
    name: str,
    units: tuple[int, ...],
) -> Callable[..., tuple[Any, dict[str, Any]]]:
    """The function ``name`` for the network that has so many units in its four blocks.

    ``block`` makes a block of the version of residual networks that ``build`` puts together.
    """
    version = build.__name__
    blocks = [
        block(f"block{i + 1}", 64 * 2**i, count, stride=1 if i == 3 else 2)
        for i, count in enumerate(units)
    ]

    def network(
        inputs: Any,
        num_classes: int | None = None,
        is_training: Any = True,
        global_pool: bool = True,
        output_stride: int | None = None,
        reuse: Any = None,
        scope: Any = name,
    ) -> tuple[Any, dict[str, Any]]:
        return build(
            inputs,
            blocks,
            num_classes,
            is_training,
            global_pool,
            output_stride,
            include_root_block=True,
            reuse=reuse,
            scope=scope,
        )

    network.__name__ = network.__qualname__ = name
    network.__doc__ = f"""The network of {3 * sum(units) + 2} layers; see :func:`{version}`.

    Example:
        >>> with slim.arg_scope({version}.resnet_arg_scope()):
        ...     logits, end_points = {version}.{name}(images, num_classes=10)
    """
    network.default_image_size = 224  # type: ignore[attr-defined]
    return network


def __dir__() -> list[str]:
    return __all__
