"""Signals in frames: windows, short-time spectra, and adding frames up again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.arithmetic import maximum
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.elementwise import square
from runnel.ops.fill import ones
from runnel.ops.gather import gather
from runnel.ops.joining import concat, stack
from runnel.ops.padding import pad, tile
from runnel.ops.ranges import range as sequence
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.segments import unsorted_segment_sum
from runnel.ops.spectral.fourier import irfft, rfft
from runnel.ops.transposition import transpose
from runnel.ops.trigonometry import cos


def _raised_cosine(
    length: Any, periodic: bool, dtype: Any, name: str | None, a: float, label: str
) -> Tensor:
    kind = as_dtype(dtype)
    if not kind.is_floating:
        raise ValueError(f"dtype must be a floating point type, not {kind.name}")
    with name_scope(name, label, [length]):
        size = convert_to_tensor(length, dtypes.int32)
        known = constant_value(size)
        if known is not None and int(known) == 1:
            return ones([1], kind)
        even = 1 - size % 2
        periods: Any = cast(size + int(periodic) * even - 1, kind)
        steps: Any = cast(sequence(size), kind)
        return a - (1 - a) * cos(2 * np.pi * steps / periods)


def hann_window(
    window_length: Any, periodic: bool = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Hann's window: a raised cosine that begins and ends with 0."""
    return _raised_cosine(window_length, periodic, dtype, name, 0.5, "hann_window")


def hamming_window(
    window_length: Any, periodic: bool = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Hamming's window: a raised cosine."""
    return _raised_cosine(window_length, periodic, dtype, name, 0.54, "hamming_window")


def _moved_last(x: Tensor, axis: int) -> tuple[Tensor, list[int] | None]:
    rank = len(x.dims or ())
    place = axis % rank
    if place == rank - 1:
        return x, None
    order = [a for a in range(rank) if a != place] + [place]
    return transpose(x, order), order


def frame(
    signal: Any,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: int = -1,
    name: str | None = None,
) -> Tensor:
    """Frames of ``frame_length`` samples, ``frame_step`` apart, along ``axis``."""
    with name_scope(name, "frame", [signal, frame_length, frame_step]):
        signal = convert_to_tensor(signal, name="signal")
        if signal.dims is None:
            raise ValueError("The rank of the signal must be known")
        rank = len(signal.dims)
        moved, order = _moved_last(signal, axis)
        length = convert_to_tensor(frame_length, dtypes.int32)
        step = convert_to_tensor(frame_step, dtypes.int32)
        size = shape_of(moved)[-1]
        if pad_end:
            count = (size + step - 1) // step
            missing = maximum(0, length + step * (count - 1) - size)
            paddings = (
                concat([[[0, 0]] * (rank - 1), reshape(stack([0, missing]), [1, 2])], 0)
                if rank > 1
                else reshape(stack([0, missing]), [1, 2])
            )
            moved = pad(moved, paddings, constant_values=pad_value)
        else:
            count = maximum(0, 1 + (size - length) // step)
        places = reshape(sequence(count) * step, [-1, 1]) + reshape(sequence(length), [1, -1])
        frames = gather(moved, places, axis=rank - 1)
        if order is None:
            return frames
        place = axis % rank
        back = [*range(place), rank - 1, rank, *range(place, rank - 1)]
        return transpose(frames, back)


def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """Frames, the last two dimensions, laid ``frame_step`` apart and added up."""
    with name_scope(name, "overlap_and_add", [signal, frame_step]):
        signal = convert_to_tensor(signal, name="signal")
        step = convert_to_tensor(frame_step, dtypes.int32)
        sizes = shape_of(signal)
        count, length = sizes[-2], sizes[-1]
        places = reshape(sequence(count) * step, [-1, 1]) + reshape(sequence(length), [1, -1])
        total = (count - 1) * step + length
        flat = reshape(signal, concat([[-1], reshape(count * length, [1])], 0))
        summed = unsorted_segment_sum(transpose(flat), reshape(places, [-1]), total)
        result = reshape(transpose(summed), concat([sizes[:-2], reshape(total, [1])], 0))
        if signal.dims is not None:
            result.set_shape([*signal.dims[:-2], None])
        return result


def _enclosing_power(value: Tensor) -> Tensor:
    """The smallest power of two that is not below ``value``."""
    known = constant_value(value)
    if known is not None:
        return convert_to_tensor(1 << max(int(known) - 1, 0).bit_length(), dtypes.int32)
    powers = 2 ** np.arange(31, dtype=np.int64)
    below = reduce_sum(cast(cast(value, dtypes.int64) > powers, dtypes.int32))
    return cast(gather(powers, below), dtypes.int32)


def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Callable[..., Any] | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """The spectra of overlapping frames of ``signals``, each multiplied by a window.

    Example:
        >>> tf.signal.stft(signals, frame_length=256, frame_step=128)
    """
    with name_scope(name, "stft", [signals, frame_length, frame_step]):
        signals = convert_to_tensor(signals, name="signals")
        length = convert_to_tensor(frame_length, dtypes.int32)
        size = _enclosing_power(length) if fft_length is None else fft_length
        frames: Any = frame(signals, length, frame_step, pad_end)
        if window_fn is not None:
            frames = frames * window_fn(length, dtype=frames.dtype)
        return rfft(frames, reshape(size, [1]))


def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Callable[..., Any] | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """The signals of which short-time spectra are, but for the windows' effect.

    With ``window_fn=inverse_stft_window_fn(frame_step)`` they are the original ones.
    """
    with name_scope(name, "inverse_stft", [stfts]):
        stfts = convert_to_tensor(stfts, name="stfts")
        length = convert_to_tensor(frame_length, dtypes.int32)
        size = _enclosing_power(length) if fft_length is None else fft_length
        frames: Any = irfft(stfts, reshape(size, [1]))
        missing = maximum(0, length - shape_of(frames)[-1])
        rank = len(frames.dims or ())
        paddings = concat([[[0, 0]] * (rank - 1), reshape(stack([0, missing]), [1, 2])], 0)
        frames = pad(frames, paddings)[..., :length]
        if window_fn is not None:
            frames = frames * window_fn(length, dtype=frames.dtype)
        return overlap_and_add(frames, frame_step)


def inverse_stft_window_fn(
    frame_step: Any,
    forward_window_fn: Callable[..., Any] = hann_window,
    name: str | None = None,
) -> Callable[..., Tensor]:
    """The window with which :func:`inverse_stft` undoes :func:`stft`."""

    def window(frame_length: Any, dtype: Any) -> Tensor:
        with name_scope(name, "inverse_stft_window_fn", [forward_window_fn]):
            length = convert_to_tensor(frame_length, dtypes.int32)
            step = convert_to_tensor(frame_step, dtypes.int32)
            forward: Any = forward_window_fn(length, dtype=dtype)
            overlaps = -(-length // step)
            squared = pad(square(forward), reshape(stack([0, overlaps * step - length]), [1, 2]))
            rows = reshape(squared, stack([overlaps, step]))
            total = concat([[1], reshape(overlaps, [1])], 0)[1:]
            sums = tile(reduce_sum(rows, axis=0), total)
            return forward / sums[:length]

    return window
