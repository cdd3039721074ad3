"""The patches that a sliding window sees, each as one row of channels."""

from __future__ import annotations

import itertools
from typing import Any

from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import Dims
from runnel.ops.arithmetic import maximum
from runnel.ops.array_shape import at_run_time
from runnel.ops.convolution.sliding_window import SlidingWindow, channels_last, output_size
from runnel.ops.convolution.window_dims import with_rank
from runnel.ops.image.frames import dimension
from runnel.ops.joining import concat
from runnel.ops.padding import pad
from runnel.ops.reduce_functions import one_of
from runnel.ops.strings.texts import encoded

_PADDING = "padding: {'SAME', 'VALID'}"

image_patches_op = register_op(
    "ExtractImagePatches",
    inputs="images: T",
    outputs="patches: T",
    attrs=[
        "ksizes: list(int) >= 4",
        "strides: list(int) >= 4",
        "rates: list(int) >= 4",
        "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, "
        "uint64, complex64, complex128, bool}",
        _PADDING,
    ],
)
volume_patches_op = register_op(
    "ExtractVolumePatches",
    inputs="input: T",
    outputs="patches: T",
    attrs=[
        "ksizes: list(int) >= 5",
        "strides: list(int) >= 5",
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
        "uint64}",
        _PADDING,
    ],
)


def _dims(x: Tensor, ksizes: Any, strides: Any, rates: Any, padding: Any) -> Dims:
    rank = len(ksizes)
    for what, values in (("ksizes", ksizes), ("strides", strides), ("rates", rates)):
        if len(values) != rank or values[0] != 1 or values[-1] != 1 or min(values) < 1:
            raise ValueError(
                f"{what} must be {rank} positive numbers, the first and the last of them 1, not "
                f"{list(values)}"
            )
    dims = with_rank("images", x.dims, rank)
    kind = encoded(padding).decode()
    sizes = [
        output_size(dims[axis], ksizes[axis], strides[axis], kind, dilation=rates[axis])
        for axis in range(1, rank - 1)
    ]
    depth = dims[-1]
    for k in ksizes[1:-1]:
        depth = None if depth is None else depth * k
    return (dims[0], *sizes, depth)


@image_patches_op.shape
def _(x, *, ksizes, strides, rates, padding):
    return _dims(x, ksizes, strides, rates, padding)


@volume_patches_op.shape
def _(x, *, ksizes, strides, padding):
    return _dims(x, ksizes, strides, [1] * 5, padding)


def _window(shape: Any, ksizes: Any, strides: Any, rates: Any, padding: Any) -> SlidingWindow:
    layout = channels_last(len(ksizes))
    return at_run_time(
        lambda: SlidingWindow.from_attributes(
            shape, ksizes[1:-1], strides, padding, layout, dilations=rates
        )
    )


def _patches(xp: Any, x: Any, ksizes: Any, strides: Any, rates: Any, padding: Any) -> Any:
    window = _window(x.shape, ksizes, strides, rates, padding)
    return xp.concatenate(window.taps(xp, x), axis=-1)


@image_patches_op.kernel
def _(xp, x, *, ksizes, strides, rates, padding):
    return _patches(xp, x, ksizes, strides, rates, padding)


@volume_patches_op.kernel
def _(xp, x, *, ksizes, strides, padding):
    return _patches(xp, x, ksizes, strides, [1] * 5, padding)


# The same of ordinary operations, for the gradient ------------------------------------------------


def _formula(x: Any, ksizes: Any, strides: Any, rates: Any, padding: Any) -> Tensor:
    same = encoded(padding) == b"SAME"
    borders, spans = [], []
    for axis in range(1, len(ksizes) - 1):
        size = dimension(x, axis)
        reach = (ksizes[axis] - 1) * rates[axis]
        step = strides[axis]
        count = (size + step - 1) // step if same else (size - reach - 1) // step + 1
        missing = (count - 1) * step + reach + 1 - size
        if isinstance(missing, Tensor):
            total: Any = maximum(missing, 0) if same else 0
        else:
            total = max(missing, 0) if same else 0
        borders.append([total // 2, total - total // 2])
        spans.append((count - 1) * step + 1)
    padded: Any = pad(x, [[0, 0], *borders, [0, 0]])
    inner = slice(1, -1)
    offsets = itertools.product(
        *(range(0, k * r, r) for k, r in zip(ksizes[inner], rates[inner], strict=True))
    )
    steps = strides[inner]
    taps = []
    for offset in offsets:
        where = tuple(
            slice(o, o + span, step) for o, span, step in zip(offset, spans, steps, strict=True)
        )
        taps.append(padded[(slice(None), *where)])
    return concat(taps, -1)


@image_patches_op.formula
def _(op, x):
    names = ("ksizes", "strides", "rates", "padding")
    return _formula(x, *(op.get_attr(name) for name in names))


@volume_patches_op.formula
def _(op, x):
    return _formula(
        x, op.get_attr("ksizes"), op.get_attr("strides"), [1] * 5, op.get_attr("padding")
    )


# Functions ------------------------------------------------------------------------------------


def extract_image_patches(
    images: Any,
    ksizes: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: Any = None,
) -> Tensor:
    """What a window of ``ksizes`` sees wherever it stops, the pixels of a patch as channels.

    Example:
        >>> tf.extract_image_patches(
        ...     images, ksizes=[1, 3, 3, 1], strides=[1, 2, 2, 1], rates=[1, 1, 1, 1],
        ...     padding="VALID")
    """
    return image_patches_op(
        images,
        ksizes=one_of("sizes", sizes, "ksizes", ksizes),
        strides=strides,
        rates=rates,
        padding=padding,
        name=name,
    )


def extract_patches(
    images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Tensor:
    """:func:`extract_image_patches`, as TensorFlow 2 calls it."""
    return extract_image_patches(images, sizes, strides, rates, padding, name)


def extract_volume_patches(
    input: Any,  # noqa: A002 (TensorFlow's name)
    ksizes: Any,
    strides: Any,
    padding: str,
    name: str | None = None,
) -> Tensor:
    """The patches of volumes, [batch, planes, rows, columns, depth]."""
    return volume_patches_op(input, ksizes=ksizes, strides=strides, padding=padding, name=name)
