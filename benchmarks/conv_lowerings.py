"""Convolutions, poolings and their gradients on this CPU, against JAX, PyTorch and TensorFlow.

`python -m benchmarks.conv_lowerings` runs layers of well-known networks at batch 12 in every
direction: our jitted lowering, XLA's own through `jax.vjp`, PyTorch (channels last) and TensorFlow,
in one process, taking turns. `--layers alexnet` chooses by name; `--formulations` compares our own
formulations with each other, which is how the rules in `runnel/ops/conv_formulations.py` were set;
`--allocator default` leaves the memory allocator as it is (otherwise freed memory is kept by the
process, so that page faults, which depend on what ran before, are not measured).
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.interleaving import Measurements, Sample, interleave, times_faster

BATCH = 12
ROUNDS = 5
SHORTEST_SAMPLE = 0.004
LONG_CALL = 0.03
ROW_SECONDS = 0.8
PEERS = ("jax", "pytorch", "tensorflow")

Function = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer with square windows over square images."""

    name: str
    size: int
    channels: int
    window: int
    stride: int
    filters: int = 0
    groups: int = 1
    padding: str = "SAME"
    kind: str = "conv"

    @property
    def output(self) -> int:
        """The output's height and width."""
        if self.padding == "SAME":
            return -(-self.size // self.stride)
        return (self.size - self.window) // self.stride + 1

    @property
    def pad(self) -> int:
        """Symmetric padding that gives the output the same size, for PyTorch."""
        total = (self.output - 1) * self.stride + self.window - self.size
        return -(-total // 2) if self.padding == "SAME" else 0

    @property
    def steps(self) -> list[int]:
        """The strides, one for each axis."""
        return [1, self.stride, self.stride, 1]

    @property
    def sizes(self) -> list[int]:
        """The window, one size for each axis."""
        return [1, self.window, self.window, 1]


CONVOLUTIONS = (
    Layer("alexnet conv1 11×11/4", 224, 3, 11, 4, 64, padding="VALID"),
    Layer("alexnet conv2 5×5", 27, 64, 5, 1, 192),
    Layer("alexnet conv2 5×5, 2 groups", 27, 96, 5, 1, 256, groups=2),
    Layer("googlenet conv1 7×7/2", 224, 3, 7, 2, 64),
    Layer("googlenet conv2 3×3", 56, 64, 3, 1, 192),
    Layer("googlenet 3a 1×1", 28, 192, 1, 1, 64),
    Layer("googlenet 3a 5×5", 28, 16, 5, 1, 32),
    Layer("vgg conv1_1 3×3", 224, 3, 3, 1, 64),
    Layer("vgg conv3_1 3×3", 56, 128, 3, 1, 256),
    Layer("resnet conv2 3×3", 56, 64, 3, 1, 64),
    Layer("resnet conv2 1×1", 56, 64, 1, 1, 256),
    Layer("resnet conv3 3×3/2", 56, 128, 3, 2, 128),
    Layer("resnet conv3 1×1/2", 56, 256, 1, 2, 512),
    Layer("resnet conv5 3×3", 7, 512, 3, 1, 512),
    Layer("mobilenet depthwise 3×3", 56, 128, 3, 1, 128, groups=128),
)
POOLINGS = (
    Layer("alexnet max 3×3/2", 54, 64, 3, 2, padding="VALID", kind="max"),
    Layer("googlenet max 3×3/2", 112, 64, 3, 2, kind="max"),
    Layer("googlenet max 3×3", 28, 192, 3, 1, kind="max"),
    Layer("vgg max 2×2/2", 112, 128, 2, 2, kind="max"),
    Layer("inception avg 3×3", 28, 192, 3, 1, kind="avg"),
    Layer("resnet avg 7×7", 7, 2048, 7, 1, padding="VALID", kind="avg"),
)


class Repeated:
    """A contender that calls a function; short ones several times."""

    def __init__(self, name: str, function: Function) -> None:
        self.name = name
        self.function = function
        function()  # compile
        started = time.perf_counter()
        function()
        self.seconds = time.perf_counter() - started
        self.times = max(1, round(SHORTEST_SAMPLE / self.seconds))

    def sample(self) -> Sample:
        """Time the function, after one call that lets the last contender's threads settle."""
        if self.seconds < LONG_CALL:
            self.function()
        started, cpu = time.perf_counter(), time.process_time()
        for _ in range(self.times):
            self.function()
        return Sample(
            (time.perf_counter() - started) / self.times, (time.process_time() - cpu) / self.times
        )


def operands(layer: Layer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, filter and dy, channels last."""
    random = np.random.default_rng(0)
    shapes = (
        (BATCH, layer.size, layer.size, layer.channels),
        (layer.window, layer.window, layer.channels // layer.groups, layer.filters),
        (BATCH, layer.output, layer.output, layer.filters or layer.channels),
    )
    x, filter, dy = (random.standard_normal(shape, np.float32) for shape in shapes)
    return x, filter, dy


def jitted(function: Callable[..., Any], *arrays: Any) -> Function:
    """A call of the compiled function that waits for its result."""
    import jax

    compiled = jax.jit(function)
    return lambda: compiled(*arrays).block_until_ready()


def by_runnel(layer: Layer, formulation: str | None = None) -> dict[str, Function]:
    """Each direction of the layer by our lowerings."""
    import jax.numpy as jnp

    from runnel.ops.convolution import conv_lowering, pool_lowering

    x, filter, dy = map(jnp.asarray, operands(layer))
    attributes: dict[str, Any] = dict(strides=layer.steps, padding=layer.padding)
    if layer.kind == "conv":
        attributes["formulation"] = formulation
        conv, of_filter, of_input = (
            functools.partial(function, jnp, **attributes)
            for function in (
                conv_lowering.conv2d,
                conv_lowering.conv2d_backprop_filter,
                conv_lowering.conv2d_backprop_input,
            )
        )
        return {
            "forward": jitted(conv, x, filter),
            "filter": jitted(lambda x, dy: of_filter(x, filter.shape, dy), x, dy),
            "input": jitted(lambda filter, dy: of_input(x.shape, filter, dy), filter, dy),
        }
    attributes["ksize"] = layer.sizes
    if layer.kind == "max":
        pool = functools.partial(pool_lowering.max_pool, jnp, **attributes)
        gradient = functools.partial(pool_lowering.max_pool_grad, jnp, **attributes)
        return {"forward": jitted(pool, x), "input": jitted(gradient, x, pool(x), dy)}
    pool = functools.partial(pool_lowering.avg_pool, jnp, **attributes)
    gradient = functools.partial(pool_lowering.avg_pool_grad, jnp, x.shape, **attributes)
    return {"forward": jitted(pool, x), "input": jitted(gradient, dy)}


def by_jax(layer: Layer) -> dict[str, Function]:
    """Each direction of the layer by XLA's own operations and JAX's differentiation."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    x, filter, dy = map(jnp.asarray, operands(layer))
    steps = (layer.stride, layer.stride)

    def gradient(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
        return lambda at, dy: jax.vjp(function, at)[1](dy)[0]

    if layer.kind == "conv":

        def conv(x: Any, filter: Any) -> Any:
            return lax.conv_general_dilated(
                x,
                filter,
                steps,
                layer.padding,
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
                feature_group_count=layer.groups,
            )

        return {
            "forward": jitted(conv, x, filter),
            "filter": jitted(
                lambda x, filter, dy: gradient(lambda filter: conv(x, filter))(filter, dy),
                *(x, filter, dy),
            ),
            "input": jitted(
                lambda x, filter, dy: gradient(lambda x: conv(x, filter))(x, dy), x, filter, dy
            ),
        }
    operation, initial = (lax.max, -np.inf) if layer.kind == "max" else (lax.add, 0.0)

    def pool(x: Any) -> Any:
        sizes, steps = tuple(layer.sizes), tuple(layer.steps)
        y = lax.reduce_window(x, initial, operation, sizes, steps, layer.padding)
        if layer.kind == "max":
            return y
        ones = np.ones((1, *x.shape[1:-1], 1), np.float32)
        return y / lax.reduce_window(ones, initial, operation, sizes, steps, layer.padding)

    return {"forward": jitted(pool, x), "input": jitted(gradient(pool), x, dy)}


def by_pytorch(layer: Layer) -> dict[str, Function]:
    """Each direction of the layer by PyTorch's kernels, without its autograd."""
    import torch

    def channels_last(array: np.ndarray) -> Any:
        tensor = torch.from_numpy(array.transpose(0, 3, 1, 2))
        return tensor.contiguous(memory_format=torch.channels_last)

    aten = torch.ops.aten
    x, filter, dy = operands(layer)
    x, dy = channels_last(x), channels_last(dy)
    k, s, p = [layer.window] * 2, [layer.stride] * 2, [layer.pad] * 2
    if layer.kind == "conv":
        weight = torch.from_numpy(filter.transpose(3, 2, 0, 1)).contiguous(
            memory_format=torch.channels_last
        )
        geometry = (s, p, [1, 1], False, [0, 0], layer.groups)

        def backward(*mask: bool) -> Function:
            return lambda: aten.convolution_backward(dy, x, weight, None, *geometry, mask)

        return {
            "forward": lambda: aten.convolution(x, weight, None, *geometry),
            "filter": backward(False, True, False),
            "input": backward(True, False, False),
        }
    if layer.kind == "max":
        _, index = aten.max_pool2d_with_indices(x, k, s, p)
        return {
            "forward": lambda: aten.max_pool2d_with_indices(x, k, s, p),
            "input": lambda: aten.max_pool2d_with_indices_backward(
                dy, x, k, s, p, [1, 1], False, index
            ),
        }
    return {
        "forward": lambda: aten.avg_pool2d(x, k, s, p, False, False),
        "input": lambda: aten.avg_pool2d_backward(dy, x, k, s, p, False, False, None),
    }


def by_tensorflow(layer: Layer) -> dict[str, Function]:
    """Each direction of the layer by TensorFlow's kernels, in a traced function."""
    import tensorflow as tf

    x, filter, dy = map(tf.constant, operands(layer))
    raw: Any = tf.raw_ops
    attributes: dict[str, Any] = dict(strides=layer.steps, padding=layer.padding)

    def traced(function: Callable[..., Any], *arrays: Any) -> Function:
        concrete = tf.function(function).get_concrete_function(*arrays)
        return lambda: concrete(*arrays)

    if layer.kind == "conv" and layer.groups == 1:
        return {
            "forward": traced(
                lambda x, filter: raw.Conv2D(input=x, filter=filter, **attributes), x, filter
            ),
            "filter": traced(
                lambda x, dy: raw.Conv2DBackpropFilter(
                    input=x, filter_sizes=filter.shape, out_backprop=dy, **attributes
                ),
                *(x, dy),
            ),
            "input": traced(
                lambda filter, dy: raw.Conv2DBackpropInput(
                    input_sizes=x.shape, filter=filter, out_backprop=dy, **attributes
                ),
                *(filter, dy),
            ),
        }
    if layer.kind == "conv" and layer.groups == layer.channels:
        filter = tf.reshape(filter, (layer.window, layer.window, layer.channels, -1))
        return {
            "forward": traced(
                lambda x, filter: raw.DepthwiseConv2dNative(input=x, filter=filter, **attributes),
                *(x, filter),
            ),
            "filter": traced(
                lambda x, dy: raw.DepthwiseConv2dNativeBackpropFilter(
                    input=x, filter_sizes=filter.shape, out_backprop=dy, **attributes
                ),
                *(x, dy),
            ),
            "input": traced(
                lambda filter, dy: raw.DepthwiseConv2dNativeBackpropInput(
                    input_sizes=x.shape, filter=filter, out_backprop=dy, **attributes
                ),
                *(filter, dy),
            ),
        }
    if layer.kind == "conv":  # TensorFlow has no grouped gradients on a CPU
        return {}
    attributes["ksize"] = layer.sizes
    if layer.kind == "max":
        y = raw.MaxPool(input=x, **attributes)
        return {
            "forward": traced(lambda x: raw.MaxPool(input=x, **attributes), x),
            "input": traced(
                lambda x, y, dy: raw.MaxPoolGrad(
                    orig_input=x, orig_output=y, grad=dy, **attributes
                ),
                *(x, y, dy),
            ),
        }
    return {
        "forward": traced(lambda x: raw.AvgPool(value=x, **attributes), x),
        "input": traced(
            lambda dy: raw.AvgPoolGrad(orig_input_shape=x.shape, grad=dy, **attributes), dy
        ),
    }


def check(layer: Layer, direction: str, ours: Function, theirs: Function) -> None:
    """Refuse to time a wrong answer."""
    result, expected = np.asarray(ours()), np.asarray(theirs())
    error = np.abs(result - expected).max() / np.abs(expected).max()
    if not error < 1e-3:
        raise SystemExit(f"{layer.name}, {direction}: off by {error:.2g} of the largest value")


def contenders(layer: Layer, formulations: bool) -> Iterator[tuple[str, list[Repeated]]]:
    """For each direction of the layer, who takes part."""
    from runnel.ops.convolution import conv_formulations

    theirs = by_jax(layer)
    if formulations:
        choices = {
            "forward": conv_formulations.FORWARD,
            "filter": conv_formulations.FILTER_GRADIENT,
            "input": conv_formulations.INPUT_GRADIENT,
        }
        for direction, names in choices.items():
            functions = {"runnel": by_runnel(layer)[direction]}
            functions |= {name: by_runnel(layer, name)[direction] for name in names}
            yield direction, [Repeated(name, function) for name, function in functions.items()]
        return
    parts = {
        "runnel": by_runnel(layer),
        "jax": theirs,
        "pytorch": by_pytorch(layer),
        "tensorflow": by_tensorflow(layer),
    }
    for direction, ours in parts["runnel"].items():
        check(layer, direction, ours, theirs[direction])
        yield (
            direction,
            [
                Repeated(name, functions[direction])
                for name, functions in parts.items()
                if direction in functions
            ],
        )


def peers_line(measurements: Measurements) -> str:
    """Milliseconds of each, and how many times faster we are than each peer."""
    times = (
        f"{measurements[name].wall.median * 1e3:12.2f}" if name in measurements else f"{'–':>12}"
        for name in ("runnel", *PEERS)
    )
    ratios = (times_faster(measurements, "runnel", name) for name in PEERS)
    cells = (f"{'–':>12}" if ratio is None else f"{ratio.median:12.2f}" for ratio in ratios)
    return "".join(times) + "".join(cells)


def formulations_line(measurements: Measurements) -> str:
    """Milliseconds of our choice and of each formulation."""
    return "".join(f"  {n} {m.wall.median * 1e3:.2f}" for n, m in measurements.items())


def keep_freed_memory() -> None:
    """Tell glibc to keep freed memory; elsewhere, do nothing."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        trim_threshold, top_pad, mmap_max, arena_max = -1, -2, -4, -8
        mallopt(mmap_max, 0)
        mallopt(trim_threshold, 2**31 - 1)
        mallopt(top_pad, 256 << 20)
        mallopt(arena_max, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--layers", default="", help="only layers whose name contains this")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--formulations", action="store_true")
    parser.add_argument("--allocator", choices=["keep", "default"], default="keep")
    arguments = parser.parse_args()
    if arguments.allocator == "keep":
        keep_freed_memory()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["CUDA_VISIBLE_DEVICES"], os.environ["JAX_PLATFORMS"] = "-1", "cpu"

    started = time.perf_counter()
    if not arguments.formulations:
        names = ("runnel", *PEERS, *(f"/{peer}" for peer in PEERS))
        print(f"{'ms; then times faster than':37}" + "".join(f"{name:>12}" for name in names))
    logarithms: dict[tuple[str, str, str], list[float]] = {}
    for layer in CONVOLUTIONS if arguments.formulations else CONVOLUTIONS + POOLINGS:
        if arguments.layers not in layer.name:
            continue
        for direction, parts in contenders(layer, arguments.formulations):
            round_seconds = sum(part.seconds * (part.times + 1) for part in parts)
            rounds = max(3, min(arguments.rounds, round(ROW_SECONDS / round_seconds)))
            measurements = interleave(parts, rounds)
            line = formulations_line if arguments.formulations else peers_line
            print(f"{layer.name:28} {direction:8}{line(measurements)}", flush=True)
            for peer in PEERS:
                ratio = times_faster(measurements, "runnel", peer)
                if ratio is not None:
                    key = (layer.kind, direction, peer)
                    logarithms.setdefault(key, []).append(math.log(ratio.median))
    for (kind, direction, peer), values in sorted(logarithms.items()):
        mean = math.exp(sum(values) / len(values))
        print(f"geometric mean, {kind} {direction}: {mean:.2f} times {peer}'s speed")
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
