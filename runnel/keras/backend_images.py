"""``tf.keras.backend``: images, sequences, normalisation, variables of random values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Tensor
from runnel.keras.backend_state import floatx, variable
from runnel.keras.convolutional_layers import repeated
from runnel.keras.learning_phase import phase_kept
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.batch_norm import batch_normalization as normalized
from runnel.ops.fused_batch_norm import fused_batch_norm
from runnel.ops.image.resize import resize_bilinear, resize_nearest_neighbor
from runnel.ops.moments import moments
from runnel.ops.padding import pad
from runnel.ops.transposition import transpose


@contextmanager
def learning_phase_scope(value: int) -> Iterator[None]:
    """Inside the block, layers are called in the phase ``value``: 0 or 1."""
    if value not in (0, 1):
        raise ValueError("Expected learning phase to be 0 or 1.")
    with phase_kept(get_default_graph(), value):
        yield


def resize_images(
    x: Any, height_factor: int, width_factor: int, data_format: str, interpolation: str = "nearest"
) -> Tensor:
    """Images made larger by whole factors; ``interpolation`` is ``nearest`` or ``bilinear``."""
    if interpolation not in ("nearest", "bilinear"):
        raise ValueError('interpolation should be one of "nearest" or "bilinear".')
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(f"Invalid `data_format` argument: {data_format}")
    if data_format == "channels_first":
        moved = transpose(x, [0, 2, 3, 1])
        found = resize_images(moved, height_factor, width_factor, "channels_last", interpolation)
        return transpose(found, [0, 3, 1, 2])
    size = shape_of(x)[1:3] * np.array([height_factor, width_factor], np.int32)
    if interpolation == "nearest":
        found = resize_nearest_neighbor(x, size, half_pixel_centers=True)
    else:
        found = resize_bilinear(x, size, half_pixel_centers=True)
    height, width = (
        None if d is None else d * n
        for d, n in zip(x.dims[1:3], (height_factor, width_factor), strict=True)
    )
    found.set_shape([x.dims[0], height, width, x.dims[3]])
    return found


def resize_volumes(
    x: Any, depth_factor: int, height_factor: int, width_factor: int, data_format: str
) -> Tensor:
    """Volumes made larger by whole factors: each voxel several times."""
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(f"Invalid data_format: {data_format}")
    first = 2 if data_format == "channels_first" else 1
    for place, factor in enumerate((depth_factor, height_factor, width_factor)):
        x = repeated(x, factor, first + place)
    return x  # type: ignore[no-any-return]


def temporal_padding(x: Any, padding: Any = (1, 1)) -> Tensor:
    """Sequences with zero steps before and after."""
    return pad(x, [[0, 0], list(padding), [0, 0]])


def _padded(x: Any, padding: Any, data_format: str | None) -> Tensor:
    inner = [list(pair) for pair in padding]
    channels_first = data_format == "channels_first"
    whole = [[0, 0], [0, 0], *inner] if channels_first else [[0, 0], *inner, [0, 0]]
    return pad(x, whole)


def spatial_2d_padding(
    x: Any, padding: Any = ((1, 1), (1, 1)), data_format: str | None = None
) -> Tensor:
    """Images with zeros around them."""
    return _padded(x, padding, data_format)


def spatial_3d_padding(
    x: Any, padding: Any = ((1, 1), (1, 1), (1, 1)), data_format: str | None = None
) -> Tensor:
    """Volumes with zeros around them."""
    return _padded(x, padding, data_format)


def batch_normalization(
    x: Any, mean: Any, var: Any, beta: Any, gamma: Any, axis: int = -1, epsilon: float = 1e-3
) -> Tensor:
    """``(x - mean) / sqrt(var + epsilon) * gamma + beta``, by channel."""
    rank = len(x.dims)
    if axis % rank != rank - 1:
        wide = [-1 if i == axis % rank else 1 for i in range(rank)]
        mean, var, beta, gamma = (
            None if v is None else reshape(v, wide) for v in (mean, var, beta, gamma)
        )
    return normalized(x, mean, var, beta, gamma, epsilon)


def normalize_batch_in_training(
    x: Any, gamma: Any, beta: Any, reduction_axes: Any, epsilon: float = 1e-3
) -> tuple[Tensor, Tensor, Tensor]:
    """A batch normalised by its own mean and variance, and these."""
    axes = list(reduction_axes)
    if (
        len(x.dims) == 4
        and axes in ([0, 1, 2], [0, 2, 3])
        and gamma is not None
        and beta is not None
    ):
        # As in TensorFlow the variance is then that of a sample.
        form = "NHWC" if axes == [0, 1, 2] else "NCHW"
        return fused_batch_norm(x, gamma, beta, epsilon=epsilon, data_format=form)  # type: ignore[no-any-return]
    mean, var = moments(x, axes)
    full = [1 if i in axes else d for i, d in enumerate(x.dims)]
    known = [-1 if d is None else d for d in full]

    def wide(value: Any) -> Any:
        return None if value is None else reshape(value, known)

    found = normalized(x, wide(mean), wide(var), wide(beta), wide(gamma), epsilon)
    return found, mean, var


def random_normal_variable(
    shape: Any, mean: float, scale: float, dtype: Any = None, name: Any = None, seed: Any = None
) -> Any:
    """A variable that begins with normal values."""
    drawn = np.random.RandomState(seed).normal(mean, scale, tuple(shape))
    return variable(drawn.astype(dtype or floatx()), dtype, name)


def random_uniform_variable(
    shape: Any, low: float, high: float, dtype: Any = None, name: Any = None, seed: Any = None
) -> Any:
    """A variable that begins with uniform values."""
    drawn = np.random.RandomState(seed).uniform(low, high, tuple(shape))
    return variable(drawn.astype(dtype or floatx()), dtype, name)
