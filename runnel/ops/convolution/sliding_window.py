"""The window that a convolution or a pooling slides over an array: where it stops, what it sees.

`SlidingWindow` holds the geometry, with TensorFlow's padding rules, and the two array operations
that everything else is made of: `taps` (for each offset inside the window, the elements that it
sees at that offset at every stop) and `fold`, its adjoint. Both take channels-last arrays,
``(batch, *spatial, channels)``; ``xp`` is NumPy or ``jax.numpy``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any
Namespace = Any


def output_size(
    input_size: int | None,
    window: int | None,
    stride: int,
    padding: str,
    explicit: tuple[int, int] = (0, 0),
    dilation: int = 1,
) -> int | None:
    """How often a window fits along one axis, None where a size is unknown.

    >>> output_size(28, 5, 2, "SAME"), output_size(28, 5, 2, "VALID")
    (14, 12)
    """
    if input_size is None or (window is None and padding != "SAME"):
        return None
    if padding == "SAME":
        return -(-input_size // stride)
    assert window is not None
    if padding == "EXPLICIT":
        input_size += sum(explicit)
    extent = (window - 1) * dilation + 1
    if input_size < extent:
        raise ValueError(
            f"a window of {extent} does not fit into an axis of {input_size} with padding "
            f"{padding}: enlarge the input, shrink the window or use padding SAME"
        )
    return (input_size - extent) // stride + 1


def spatial_axes(data_format: str) -> tuple[int, ...]:
    """The axes that a window slides over.

    >>> spatial_axes("NHWC"), spatial_axes("NCHW"), spatial_axes("NDHWC")
    ((1, 2), (2, 3), (1, 2, 3))
    """
    return tuple(i for i, letter in enumerate(data_format) if letter not in "NC")


def channels_last(rank: int) -> str:
    """The data format with the channels last, of arrays with ``rank`` axes.

    >>> channels_last(4)
    'NHWC'
    """
    return {3: "NWC", 4: "NHWC", 5: "NDHWC"}[rank]


def to_channels_last(xp: Namespace, x: Array, data_format: str) -> Array:
    """Move the channel axis of ``x`` to the end, where it is not there yet."""
    return x if data_format[-1] == "C" else xp.moveaxis(x, 1, -1)


def from_channels_last(xp: Namespace, x: Array, data_format: str) -> Array:
    """Move the last axis of ``x`` to where ``data_format`` has the channels."""
    return x if data_format[-1] == "C" else xp.moveaxis(x, -1, 1)


def channels_last_shape(shape: Sequence[int], data_format: str) -> tuple[int, ...]:
    """``shape``, written in ``data_format``, with the channels last."""
    batch, channel = data_format.index("N"), data_format.index("C")
    return (shape[batch], *(shape[axis] for axis in spatial_axes(data_format)), shape[channel])


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """A strided, dilated window over the padded spatial axes of an array."""

    input_sizes: tuple[int, ...]
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    output_sizes: tuple[int, ...]

    @classmethod
    def from_attributes(
        cls,
        input_shape: Sequence[int],
        window: Sequence[int],
        strides: Sequence[int],
        padding: str | bytes,
        data_format: str,
        explicit_paddings: Sequence[int] = (),
        dilations: Sequence[int] | None = None,
    ) -> SlidingWindow:
        """The window that an op's attributes describe.

        ``input_shape``, ``strides``, ``dilations`` and ``explicit_paddings`` (two numbers for each
        axis) are in the order of ``data_format``; ``window`` has spatial sizes only.

        >>> SlidingWindow.from_attributes((8, 28, 28, 3), (5, 5), (1, 2, 2, 1), "SAME", "NHWC")
        SlidingWindow(input_sizes=(28, 28), window=(5, 5), strides=(2, 2), dilations=(1, 1), \
padding=((1, 2), (1, 2)), output_sizes=(14, 14))
        """
        padding = padding.decode() if isinstance(padding, bytes) else padding
        rank, axes = len(data_format), spatial_axes(data_format)
        dilations = (1,) * rank if dilations is None or not len(dilations) else dilations
        explicit = explicit_pairs(padding, explicit_paddings, data_format)
        steps = along_space("strides", strides, data_format)
        spacing = along_space("dilations", dilations, data_format)
        sizes = tuple(int(input_shape[axis]) for axis in axes)
        pads, stops = [], []
        for axis, size, k, s, d in zip(axes, sizes, window, steps, spacing, strict=True):
            count = output_size(size, k, s, padding, explicit[axis], d)
            assert count is not None
            stops.append(count)
            if padding == "SAME":
                total = max(0, (count - 1) * s + (k - 1) * d + 1 - size)
                pads.append((total // 2, total - total // 2))
            else:
                pads.append(explicit[axis])
        return cls(sizes, tuple(map(int, window)), steps, spacing, tuple(pads), tuple(stops))

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return len(self.window)

    @property
    def tap_count(self) -> int:
        """The number of offsets inside the window."""
        return math.prod(self.window)

    @property
    def stop_count(self) -> int:
        """The number of places at which the window stops, in one example."""
        return math.prod(self.output_sizes)

    @property
    def is_padded(self) -> bool:
        """Whether the window reaches outside of the array."""
        return any(low or high for low, high in self.padding)

    @property
    def spans(self) -> tuple[int, ...]:
        """Along each axis, the distance between the first and the last stop, plus one."""
        return tuple((count - 1) * step + 1 for count, step in zip(self.output_sizes, self.strides))

    @property
    def cells(self) -> tuple[int, ...]:
        """Along each axis, how many blocks of one stride cover the array and every stop.

        For undilated windows: an element at ``cell·stride + phase`` of the padded array is seen by
        the stops ``cell - j``, at the offsets ``j·stride + phase``.
        """
        return tuple(
            max(n + -(-k // s) - 1, -(-(low + size) // s))
            for n, k, s, (low, _), size in zip(
                self.output_sizes, self.window, self.strides, self.padding, self.input_sizes
            )
        )

    def offsets(self) -> Iterable[tuple[int, ...]]:
        """The offsets of the taps in the padded array, in row-major order."""
        return itertools.product(*(range(0, k * d, d) for k, d in zip(self.window, self.dilations)))

    def pad(self, xp: Namespace, x: Array, fill: float = 0) -> Array:
        """The array with its padding, filled with ``fill``."""
        return pad(xp, x, self.padding, fill)

    def taps(self, xp: Namespace, x: Array, fill: float = 0) -> list[Array]:
        """For each offset, what the window sees there: arrays ``(batch, *output_sizes, channels)``.

        >>> window = SlidingWindow.from_attributes((1, 4, 1), (2,), (1, 1, 1), "VALID", "NWC")
        >>> [tap.ravel().tolist() for tap in window.taps(np, np.arange(4).reshape(1, 4, 1))]
        [[0, 1, 2], [1, 2, 3]]
        """
        padded = self.pad(xp, x, fill)
        return [
            strided_slice(
                xp,
                padded,
                offset,
                tuple(o + span for o, span in zip(offset, self.spans)),
                self.strides,
            )
            for offset in self.offsets()
        ]

    def fold(self, xp: Namespace, taps: Iterable[Array]) -> Array:
        """Add up ``taps`` (any iterable, in the order of `offsets`) at the elements they came from.

        >>> window = SlidingWindow.from_attributes((1, 4, 1), (2,), (1, 1, 1), "VALID", "NWC")
        >>> window.fold(np, [np.ones((1, 3, 1))] * 2).ravel().tolist()
        [1.0, 2.0, 2.0, 1.0]
        """
        if xp is np:
            return self._fold_in_place(taps)
        from jax import lax

        total = None
        for offset, tap in zip(self.offsets(), taps):
            # Negative amounts crop: elements that fell into the padding.
            low = [o - pads[0] for o, pads in zip(offset, self.padding)]
            config = [
                (lo, size - lo - span, step - 1)
                for lo, size, span, step in zip(low, self.input_sizes, self.spans, self.strides)
            ]
            term = lax.pad(tap, np.zeros((), tap.dtype), [(0, 0, 0), *config, (0, 0, 0)])
            total = term if total is None else total + term
        return total

    def _fold_in_place(self, taps: Iterable[Array]) -> Array:
        padded: Any = None
        for offset, tap in zip(self.offsets(), taps):
            if padded is None:
                sizes = (n + sum(pads) for n, pads in zip(self.input_sizes, self.padding))
                padded = np.zeros((tap.shape[0], *sizes, tap.shape[-1]), tap.dtype)
            stops = tuple(
                slice(o, o + span, step) for o, span, step in zip(offset, self.spans, self.strides)
            )
            padded[(slice(None), *stops)] += tap
        inside = tuple(slice(low, low + n) for (low, _), n in zip(self.padding, self.input_sizes))
        return padded[(slice(None), *inside)]


def widen(x: Array) -> Array:
    """``x`` in the type that sums over a window are kept in: float32 for the 16-bit floats."""
    narrow = x.dtype.itemsize == 2 and x.dtype.kind not in "iu"
    return x.astype(np.float32) if narrow else x


def along_space(name: str, values: Sequence[int], data_format: str) -> tuple[int, ...]:
    """The spatial part of ``values``, which have one number for each axis of ``data_format``.

    >>> along_space("strides", [1, 1, 2, 3], "NCHW")
    (2, 3)
    """
    rank, axes = len(data_format), spatial_axes(data_format)
    if len(values) != rank or any(v < 1 for v in values):
        raise ValueError(
            f"{name} must be {rank} positive numbers, one for each axis of {data_format}, "
            f"but got {list(values)}"
        )
    if any(values[i] != 1 for i in range(rank) if i not in axes):
        raise ValueError(
            f"{name} must be 1 along the batch and the channels of {data_format}, "
            f"but got {list(values)}"
        )
    return tuple(int(values[axis]) for axis in axes)


def explicit_pairs(
    padding: str, explicit_paddings: Sequence[int], data_format: str
) -> list[tuple[int, int]]:
    """The flat attribute ``explicit_paddings`` as a (before, after) pair for each axis."""
    if padding not in ("SAME", "VALID", "EXPLICIT"):
        raise ValueError(f"padding must be SAME, VALID or EXPLICIT, but got {padding!r}")
    rank, values = len(data_format), [int(v) for v in explicit_paddings]
    if padding != "EXPLICIT":
        if values:
            raise ValueError(
                f"explicit_paddings must be empty with padding {padding}, but got {values}: "
                "use padding EXPLICIT"
            )
        return [(0, 0)] * rank
    if len(values) != 2 * rank or min(values) < 0:
        raise ValueError(
            f"explicit_paddings must be {2 * rank} numbers, none negative: before and after each "
            f"axis of {data_format}; got {values}"
        )
    pairs = list(zip(values[::2], values[1::2]))
    if any(pairs[data_format.index(letter)] != (0, 0) for letter in "NC"):
        raise ValueError(
            f"explicit_paddings must be 0 along the batch and the channels of {data_format}, "
            f"but got {values}"
        )
    return pairs


def pad(
    xp: Namespace, x: Array, amounts: Sequence[tuple[int, int]], fill: float | Array = 0
) -> Array:
    """``x``, channels-last, with ``amounts`` of ``fill`` before and after each spatial axis."""
    if not any(low or high for low, high in amounts):
        return x
    if xp is np:
        # np.pad spends longer in Python than a small layer takes to compute.
        sizes = [n + low + high for n, (low, high) in zip(x.shape[1:-1], amounts)]
        padded = np.full((x.shape[0], *sizes, x.shape[-1]), fill, x.dtype)
        inside = tuple(slice(low, low + n) for n, (low, _) in zip(x.shape[1:-1], amounts))
        padded[(slice(None), *inside)] = x
        return padded
    from jax import lax

    config = [(low, high, 0) for low, high in amounts]
    return lax.pad(x, np.asarray(fill, x.dtype), [(0, 0, 0), *config, (0, 0, 0)])


def strided_slice(
    xp: Namespace,
    x: Array,
    starts: Sequence[int],
    limits: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """``x[:, starts[0]:limits[0]:strides[0], ..., :]`` over the spatial axes."""
    steps = strides or (1,) * len(starts)
    if xp is np:
        return x[(slice(None), *map(slice, starts, limits, steps))]
    from jax import lax

    # Not jnp's indexing: it takes ten times longer to trace.
    return lax.slice(x, (0, *starts, 0), (x.shape[0], *limits, x.shape[-1]), (1, *steps, 1))
