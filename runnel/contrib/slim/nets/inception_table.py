"""The table of an Inception network, and the functions that build what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runnel.contrib.framework.arg_scope import ArgScope, arg_scope
from runnel.contrib.layers.convolutions import convolution2d
from runnel.contrib.layers.fully_connected import fully_connected
from runnel.contrib.layers.initializers import variance_scaling_initializer
from runnel.contrib.layers.normalization import batch_norm
from runnel.contrib.layers.pooling import avg_pool2d, max_pool2d
from runnel.contrib.layers.regularizers import l2_regularizer
from runnel.graph.collections import GraphKeys
from runnel.ops.activations import relu
from runnel.ops.joining import concat
from runnel.variables.initializers import TruncatedNormal
from runnel.variables.variable_scope import variable_scope

Depth = Callable[[int], int]
"""The channels of a layer, from those that the table has."""


@dataclass(frozen=True, slots=True)
class Conv:
    """A convolution, normalised and rectified."""

    scope: str
    depth: int
    kernel: tuple[int, int]
    stride: int = 1
    stddev: float | None = None
    """Of the normal numbers with which the weights begin; None: what the scope in force says."""
    padding: str = "SAME"

    def add(self, net: Any, depth: Depth) -> Any:
        """The layer over ``net``."""
        initializer = {} if self.stddev is None else {"weights_initializer": normal(self.stddev)}
        return convolution2d(
            net,
            depth(self.depth),
            list(self.kernel),
            stride=self.stride,
            padding=self.padding,
            scope=self.scope,
            **initializer,
        )


@dataclass(frozen=True, slots=True)
class Pool:
    """The largest value of each window, or their mean."""

    scope: str
    kernel: int
    stride: int = 1
    padding: str = "SAME"

    def add(self, net: Any, depth: Depth) -> Any:
        """The layer over ``net``."""
        pool = max_pool2d if self.scope.startswith("MaxPool") else avg_pool2d
        window = [self.kernel, self.kernel]
        return pool(net, window, stride=self.stride, padding=self.padding, scope=self.scope)


@dataclass(frozen=True, slots=True)
class Fork:
    """Layers beside each other, joined."""

    layers: tuple[Conv, ...]

    def add(self, net: Any, depth: Depth) -> Any:
        """The layers over ``net``."""
        return concat([layer.add(net, depth) for layer in self.layers], axis=3)


Layer = Conv | Pool | Fork


@dataclass(frozen=True, slots=True)
class Mixed:
    """Branches, which are layers that follow one another, joined."""

    scope: str
    branches: tuple[tuple[Layer, ...], ...]

    def add(self, net: Any, depth: Depth) -> Any:
        """The branches over ``net``."""
        with variable_scope(self.scope):
            outputs = []
            for number, branch in enumerate(self.branches):
                with variable_scope(f"Branch_{number}"):
                    output = net
                    for layer in branch:
                        output = layer.add(output, depth)
                    outputs.append(output)
            return concat(outputs, axis=3)


def normal(stddev: float) -> TruncatedNormal:
    """The initializer with numbers around zero."""
    return TruncatedNormal(0.0, stddev)


def depth_rule(min_depth: int, depth_multiplier: float) -> Depth:
    """The rule that scales all layers, but keeps ``min_depth`` channels."""
    if depth_multiplier <= 0:
        raise ValueError("depth_multiplier is not greater than zero.")
    return lambda depth: max(int(depth * depth_multiplier), min_depth)


def base(
    net: Any,
    layers: Mapping[str, Callable[[Any], Any]],
    final_endpoint: str,
    scope: Any,
    default_scope: str,
) -> tuple[Any, dict[str, Any]]:
    """Adds layers up to ``final_endpoint``: its output, and those of all layers by name."""
    with variable_scope(scope, default_scope, [net]):
        end_points = {}
        for name, add in layers.items():
            net = end_points[name] = add(net)
            if name == final_endpoint:
                return net, end_points
    raise ValueError(f"Unknown final endpoint {final_endpoint}: it is none of {', '.join(layers)}")


def adders(table: tuple[Layer | Mixed, ...], depth: Depth) -> dict[str, Callable[[Any], Any]]:
    """For each row of a table, by the scope of its layer, what adds it."""

    def adder(row: Layer | Mixed) -> Callable[[Any], Any]:
        return lambda net: row.add(net, depth)

    return {row.scope: adder(row) for row in table if not isinstance(row, Fork)}


def fitting_window(net: Any, window: tuple[int, int]) -> list[int]:
    """The window, or the whole of smaller images."""
    dims = net.get_shape().as_list()[1:3]
    if None in dims:
        return list(window)
    return [min(dim, edge) for dim, edge in zip(dims, window, strict=True)]


def inception_arg_scope(
    weight_decay: float, normalization: dict[str, Any] | None, collection: str
) -> ArgScope:
    """The defaults of an Inception network; ``normalization`` has arguments of ``batch_norm``."""
    normalizer: dict[str, Any] = {"normalizer_fn": None, "normalizer_params": {}}
    if normalization is not None:
        collections = {
            "beta": None,
            "gamma": None,
            "moving_mean": [collection],
            "moving_variance": [collection],
        }
        params = {
            "decay": 0.9997,
            "epsilon": 0.001,
            "updates_collections": GraphKeys.UPDATE_OPS,
            "variables_collections": collections,
            **normalization,
        }
        normalizer = {"normalizer_fn": batch_norm, "normalizer_params": params}
    with (
        arg_scope(
            [convolution2d, fully_connected], weights_regularizer=l2_regularizer(weight_decay)
        ),
        arg_scope(
            [convolution2d],
            weights_initializer=variance_scaling_initializer(),
            activation_fn=relu,
            **normalizer,
        ) as scope,
    ):
        return scope
