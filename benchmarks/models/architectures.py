"""The networks that are compared, as data, and the walk over them that every framework makes.

AlexNet (the single tower of Krizhevsky's "One weird trick"), Overfeat (fast), OxfordNet (VGG-A)
and GoogleNet (Inception v1) are those of soumith's convnet-benchmarks, the networks of Table 1 of
the OSDI 2016 paper: no dropout, no auxiliary classifiers, no local response normalisation.
ResNet-50 has the stride in its 3×3 convolutions.

A framework is a `Backend`: what it does for each layer. `apply` walks an architecture with one,
`Survey` is the backend that only looks at shapes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy

CLASSES = 1000


@dataclass(frozen=True, slots=True)
class Conv:
    """A convolution with a bias, or with batch normalisation in its place."""

    name: str
    size: int
    filters: int
    stride: int = 1
    padding: int = 0
    relu: bool = True
    normalized: bool = False


@dataclass(frozen=True, slots=True)
class MaxPool:
    """Max-pooling with TensorFlow's "SAME" (`same`) or "VALID" padding."""

    size: int
    stride: int
    same: bool = False


@dataclass(frozen=True, slots=True)
class GlobalAverage:
    """The mean over all positions."""


@dataclass(frozen=True, slots=True)
class Dense:
    """A fully connected layer."""

    name: str
    units: int
    relu: bool = True


@dataclass(frozen=True, slots=True)
class Branches:
    """Several paths from one value, their results side by side in the channels."""

    paths: tuple[tuple[Layer, ...], ...]


@dataclass(frozen=True, slots=True)
class Residual:
    """The rectified sum of a path and a shortcut (the value itself where it is empty)."""

    path: tuple[Layer, ...]
    shortcut: tuple[Layer, ...]


Layer = Conv | MaxPool | GlobalAverage | Dense | Branches | Residual


@dataclass(frozen=True, slots=True)
class Architecture:
    """A network and the size of the square images that it takes."""

    title: str
    image_size: int
    layers: tuple[Layer, ...]


def _alexnet() -> tuple[Layer, ...]:
    return (
        Conv("conv1", 11, 64, stride=4, padding=2),
        MaxPool(3, 2),
        Conv("conv2", 5, 192, padding=2),
        MaxPool(3, 2),
        Conv("conv3", 3, 384, padding=1),
        Conv("conv4", 3, 256, padding=1),
        Conv("conv5", 3, 256, padding=1),
        MaxPool(3, 2),
        Dense("fc6", 4096),
        Dense("fc7", 4096),
        Dense("fc8", CLASSES, relu=False),
    )


def _overfeat() -> tuple[Layer, ...]:
    return (
        Conv("conv1", 11, 96, stride=4),
        MaxPool(2, 2),
        Conv("conv2", 5, 256),
        MaxPool(2, 2),
        Conv("conv3", 3, 512, padding=1),
        Conv("conv4", 3, 1024, padding=1),
        Conv("conv5", 3, 1024, padding=1),
        MaxPool(2, 2),
        Dense("fc6", 3072),
        Dense("fc7", 4096),
        Dense("fc8", CLASSES, relu=False),
    )


def _vgg_a() -> tuple[Layer, ...]:
    layers: list[Layer] = []
    for block, (filters, depth) in enumerate([(64, 1), (128, 1), (256, 2), (512, 2), (512, 2)], 1):
        for number in range(1, depth + 1):
            layers.append(Conv(f"conv{block}_{number}", 3, filters, padding=1))
        layers.append(MaxPool(2, 2))
    return (
        *layers,
        Dense("fc6", 4096),
        Dense("fc7", 4096),
        Dense("fc8", CLASSES, relu=False),
    )


def _inception(
    name: str, one: int, three: tuple[int, int], five: tuple[int, int], pooled: int
) -> Branches:
    return Branches(
        (
            (Conv(f"{name}_1x1", 1, one),),
            (Conv(f"{name}_3x3_reduce", 1, three[0]), Conv(f"{name}_3x3", 3, three[1], padding=1)),
            (Conv(f"{name}_5x5_reduce", 1, five[0]), Conv(f"{name}_5x5", 5, five[1], padding=2)),
            (MaxPool(3, 1, same=True), Conv(f"{name}_pool", 1, pooled)),
        )
    )


def _googlenet() -> tuple[Layer, ...]:
    return (
        Conv("conv1", 7, 64, stride=2, padding=3),
        MaxPool(3, 2, same=True),
        Conv("conv2_reduce", 1, 64),
        Conv("conv2", 3, 192, padding=1),
        MaxPool(3, 2, same=True),
        _inception("3a", 64, (96, 128), (16, 32), 32),
        _inception("3b", 128, (128, 192), (32, 96), 64),
        MaxPool(3, 2, same=True),
        _inception("4a", 192, (96, 208), (16, 48), 64),
        _inception("4b", 160, (112, 224), (24, 64), 64),
        _inception("4c", 128, (128, 256), (24, 64), 64),
        _inception("4d", 112, (144, 288), (32, 64), 64),
        _inception("4e", 256, (160, 320), (32, 128), 128),
        MaxPool(3, 2, same=True),
        _inception("5a", 256, (160, 320), (32, 128), 128),
        _inception("5b", 384, (192, 384), (48, 128), 128),
        GlobalAverage(),
        Dense("fc", CLASSES, relu=False),
    )


def _bottleneck(name: str, filters: int, stride: int, projected: bool) -> Residual:
    shortcut = (
        Conv(f"{name}_shortcut", 1, 4 * filters, stride=stride, relu=False, normalized=True),
    )
    return Residual(
        (
            Conv(f"{name}_reduce", 1, filters, normalized=True),
            Conv(f"{name}_3x3", 3, filters, stride=stride, padding=1, normalized=True),
            Conv(f"{name}_expand", 1, 4 * filters, relu=False, normalized=True),
        ),
        shortcut if projected else (),
    )


def _resnet50() -> tuple[Layer, ...]:
    layers: list[Layer] = [
        Conv("conv1", 7, 64, stride=2, padding=3, normalized=True),
        MaxPool(3, 2, same=True),
    ]
    for stage, (filters, depth) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)], 2):
        for block in range(depth):
            stride = 2 if block == 0 and stage > 2 else 1
            layers.append(_bottleneck(f"conv{stage}_{block + 1}", filters, stride, block == 0))
    return (*layers, GlobalAverage(), Dense("fc", CLASSES, relu=False))


ARCHITECTURES = {
    "alexnet": Architecture("AlexNet", 224, _alexnet()),
    "overfeat": Architecture("Overfeat", 231, _overfeat()),
    "vgg_a": Architecture("OxfordNet (VGG-A)", 224, _vgg_a()),
    "googlenet": Architecture("GoogleNet", 224, _googlenet()),
    "resnet50": Architecture("ResNet-50", 224, _resnet50()),
}


@dataclass(frozen=True, slots=True)
class Recurrence:
    """An LSTM that reads a sequence and classifies it by its last output."""

    steps: int = 50
    batch: int = 64
    units: int = 512
    classes: int = 10

    def parameters(self) -> dict[str, numpy.ndarray]:
        """Gates in the order input, forget, candidate, output; rows for x, then for h."""
        generator = numpy.random.default_rng(0)
        shapes = {
            "kernel": (2 * self.units, 4 * self.units),
            "bias": (4 * self.units,),
            "weights": (self.units, self.classes),
        }
        scale = 1 / math.sqrt(self.units)
        return {
            name: generator.uniform(-scale, scale, shape).astype(numpy.float32)
            for name, shape in shapes.items()
        }

    def data(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Sequences (steps, batch, units) and labels."""
        generator = numpy.random.default_rng(1)
        shape = (self.steps, self.batch, self.units)
        inputs = generator.standard_normal(shape, dtype=numpy.float32)
        return inputs, generator.integers(0, self.classes, self.batch).astype(numpy.int32)

    def training_flops(self) -> float:
        """Products forward and in two gradients; the inputs need none."""
        gates = self.steps * self.batch * self.units * 4 * self.units
        return 2.0 * (3 * 2 * gates - gates)


class Backend(Protocol):
    """What a framework does for each kind of layer; values are whatever it likes."""

    def conv(self, value: Any, layer: Conv) -> Any: ...  # noqa: D102

    def max_pool(self, value: Any, layer: MaxPool) -> Any: ...  # noqa: D102

    def global_average(self, value: Any) -> Any: ...  # noqa: D102

    def dense(self, value: Any, layer: Dense) -> Any: ...  # noqa: D102

    def concatenate(self, values: Sequence[Any]) -> Any: ...  # noqa: D102

    def add_and_rectify(self, value: Any, shortcut: Any) -> Any: ...  # noqa: D102


def apply(backend: Backend, layers: Sequence[Layer], value: Any) -> Any:
    """The value that the layers make of `value`."""
    for layer in layers:
        match layer:
            case Conv():
                value = backend.conv(value, layer)
            case MaxPool():
                value = backend.max_pool(value, layer)
            case GlobalAverage():
                value = backend.global_average(value)
            case Dense():
                value = backend.dense(value, layer)
            case Branches():
                value = backend.concatenate([apply(backend, path, value) for path in layer.paths])
            case Residual():
                shortcut = apply(backend, layer.shortcut, value)
                value = backend.add_and_rectify(apply(backend, layer.path, value), shortcut)
    return value


@dataclass(slots=True)
class Survey:
    """A backend whose values are shapes without the batch: finds the parameters and the work."""

    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    flattened: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """For each fully connected layer, the shape of what it takes."""
    multiplications: int = 0
    """In the forward pass, for one image."""
    first: int = 0
    """Those of the first layer, whose input needs no gradient."""

    def conv(self, value: tuple[int, ...], layer: Conv) -> tuple[int, ...]:
        """Notes filters and a bias, or a scale and an offset."""
        height, width, channels = value
        self.shapes[f"{layer.name}/filter"] = (layer.size, layer.size, channels, layer.filters)
        for suffix in ("scale", "offset") if layer.normalized else ("bias",):
            self.shapes[f"{layer.name}/{suffix}"] = (layer.filters,)
        sides = [
            (side + 2 * layer.padding - layer.size) // layer.stride + 1 for side in (height, width)
        ]
        self._count(math.prod(sides) * layer.size**2 * channels * layer.filters)
        return (*sides, layer.filters)

    def max_pool(self, value: tuple[int, ...], layer: MaxPool) -> tuple[int, ...]:
        """Shrinks the image."""
        *sides, channels = value
        if layer.same:
            return (*(-(-side // layer.stride) for side in sides), channels)
        return (*((side - layer.size) // layer.stride + 1 for side in sides), channels)

    def global_average(self, value: tuple[int, ...]) -> tuple[int, ...]:
        """Keeps the channels."""
        return value[-1:]

    def dense(self, value: tuple[int, ...], layer: Dense) -> tuple[int, ...]:
        """Notes weights and a bias."""
        inputs = math.prod(value)
        self.flattened[layer.name] = value
        self.shapes[f"{layer.name}/weights"] = (inputs, layer.units)
        self.shapes[f"{layer.name}/bias"] = (layer.units,)
        self._count(inputs * layer.units)
        return (layer.units,)

    def concatenate(self, values: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """Adds the channels up."""
        return (*values[0][:-1], sum(value[-1] for value in values))

    def add_and_rectify(self, value: tuple[int, ...], shortcut: tuple[int, ...]) -> tuple[int, ...]:
        """Checks that the two fit."""
        assert value == shortcut, (value, shortcut)
        return value

    def _count(self, multiplications: int) -> None:
        self.first = self.first or multiplications
        self.multiplications += multiplications


def survey(architecture: Architecture, image_size: int | None = None) -> Survey:
    """The parameters and the work of an architecture."""
    result = Survey()
    side = image_size or architecture.image_size
    apply(result, architecture.layers, (side, side, 3))
    return result


def training_flops(architecture: Architecture, batch: int) -> float:
    """Floating-point operations of one step: every product forward and in two gradients.

    The first layer's input has no gradient. Element-wise work is not counted.
    """
    found = survey(architecture)
    return 2.0 * batch * (3 * found.multiplications - found.first)


def initial_parameters(
    architecture: Architecture, image_size: int | None = None
) -> dict[str, numpy.ndarray]:
    """The same starting point for every framework: He's normal weights, biases that are not 0."""
    generator = numpy.random.default_rng(0)
    parameters = {}
    for name, shape in survey(architecture, image_size).shapes.items():
        draw = generator.standard_normal(shape, dtype=numpy.float32)
        if len(shape) > 1:
            draw *= numpy.float32(math.sqrt(2.0 / math.prod(shape[:-1])))
        else:
            draw = draw * numpy.float32(0.01) + numpy.float32(name.endswith("/scale"))
        parameters[name] = draw
    return parameters


def synthetic_batch(
    architecture: Architecture, batch: int, image_size: int | None = None
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Images in NHWC and their labels."""
    generator = numpy.random.default_rng(1)
    side = image_size or architecture.image_size
    images = generator.standard_normal((batch, side, side, 3), dtype=numpy.float32)
    return images, generator.integers(0, CLASSES, batch).astype(numpy.int32)


Parameters = Mapping[str, numpy.ndarray]
