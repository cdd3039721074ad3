"""Discrete cosine transforms, and the scales of pitch that speech recognition uses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.tensordot import tensordot


def _matrix(kind: int, size: int, norm: str | None) -> np.ndarray:
    """The transform as a matrix: row k has the cosine of frequency k."""
    k, n = np.arange(size)[:, None], np.arange(size)[None, :]
    if kind == 1:
        weights = np.full(size, 2.0)
        weights[[0, -1]] = 1.0
        return np.cos(math.pi * k * n / (size - 1)) * weights
    if kind == 2:
        matrix = 2 * np.cos(math.pi * k * (2 * n + 1) / (2 * size))
        if norm == "ortho":
            matrix *= np.sqrt(np.where(k == 0, 1 / (4 * size), 1 / (2 * size)))
        return matrix
    return (
        _matrix(2, size, norm).T
        if norm == "ortho"
        else np.where(n == 0, 1.0, 2 * np.cos(math.pi * n * (2 * k + 1) / (2 * size)))
    )


def _require(kind: int, axis: int, norm: str | None) -> None:
    if axis != -1:
        raise NotImplementedError(f"axis must be -1. Got: {axis}")
    if kind not in (1, 2, 3):
        raise ValueError(f"Only Types I, II and III (I)DCT are supported, not {kind}.")
    if norm not in (None, "ortho"):
        raise ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm}")
    if kind == 1 and norm == "ortho":
        raise ValueError("Normalization is not supported for the Type-I DCT.")


def _transformed(x: Tensor, matrix: np.ndarray) -> Tensor:
    kernel = convert_to_tensor(matrix.T.astype(x.dtype.np_dtype))
    return tensordot(x, kernel, [[len(x.dims or ()) - 1], [0]])


def _last(x: Tensor) -> int:
    size = None if not x.dims else x.dims[-1]
    if size is None:
        raise ValueError(f"The last dimension must be known for a cosine transform: {x.shape}")
    return size


def dct(
    input: Any,  # noqa: A002 (TensorFlow's name)
    type: int = 2,  # noqa: A002
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The discrete cosine transform of type 1, 2 or 3 of the last dimension.

    It is one product with a matrix, whose size must be known.
    """
    _require(type, axis, norm)
    with name_scope(name, "dct", [input]):
        x = convert_to_tensor(input, dtype_hint=dtypes.float32)
        size = _last(x)
        if n is not None:
            if n <= 0:
                raise ValueError("n should be a positive integer or None")
            return _transformed(x[..., :n], _matrix(type, n, norm)[:, : min(n, size)])
        return _transformed(x, _matrix(type, size, norm))


def idct(
    input: Any,  # noqa: A002 (TensorFlow's name)
    type: int = 2,  # noqa: A002
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The inverse of :func:`dct`, but for a factor of 2N (2(N-1) for type 1) without a norm."""
    _require(type, axis, norm)
    if n is not None:
        raise ValueError("n is not supported for the inverse")
    return dct(input, {1: 1, 2: 3, 3: 2}[type], norm=norm, name=name or "idct")


_BREAK, _HIGH = 700.0, 1127.0


def _mel(hertz: Any) -> Any:
    return _HIGH * np.log1p(np.asarray(hertz, np.float64) / _BREAK)


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: Any = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """The matrix that turns linear spectra, as rows, into ones of the mel scale."""
    kind = as_dtype(dtype)
    values = [num_spectrogram_bins, sample_rate]
    bins, rate = (v if not isinstance(v, Tensor) else constant_value(v) for v in values)
    if bins is None or rate is None:
        raise ValueError("num_spectrogram_bins and sample_rate must be known while building")
    if num_mel_bins <= 0 or float(rate) <= 0:
        raise ValueError("num_mel_bins and sample_rate must be positive")
    if lower_edge_hertz < 0 or lower_edge_hertz >= upper_edge_hertz:
        raise ValueError(
            f"lower_edge_hertz {lower_edge_hertz} must be non-negative and below upper_edge_hertz "
            f"{upper_edge_hertz}"
        )
    if upper_edge_hertz > float(rate) / 2:
        raise ValueError(f"upper_edge_hertz must be at most {float(rate) / 2}, half of the rate")
    with name_scope(name, "linear_to_mel_weight_matrix"):
        # The frequency 0 has no weight.
        spectrum = _mel(np.linspace(0.0, float(rate) / 2, int(bins))[1:])[:, None]
        edges = np.linspace(_mel(lower_edge_hertz), _mel(upper_edge_hertz), num_mel_bins + 2)
        low, center, high = edges[:-2], edges[1:-1], edges[2:]
        rising = (spectrum - low) / (center - low)
        falling = (high - spectrum) / (high - center)
        weights = np.maximum(0.0, np.minimum(rising, falling))
        return convert_to_tensor(np.pad(weights, [[1, 0], [0, 0]]).astype(kind.np_dtype))


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """The mel-frequency cepstral coefficients of logarithms of mel spectra."""
    with name_scope(name, "mfccs_from_log_mel_spectrograms", [log_mel_spectrograms]):
        spectra = convert_to_tensor(log_mel_spectrograms)
        size = _last(spectra)
        if size == 0:
            raise ValueError("num_mel_bins must be positive")
        return dct(spectra) * float(np.float32(1 / math.sqrt(2.0 * size)))
