"""Fourier transforms, frames and mel scales compared with TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.conformance.cases import case  # noqa: E402
from tests.conformance.same_fetches import assert_same_fetches  # noqa: E402
from tests.conformance.side_by_side import compare  # noqa: E402

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(2, 3, 8)).astype(np.float32)
CUBE = RNG.normal(size=(2, 3, 4, 5)).astype(np.float32)
SIGNAL = RNG.normal(size=(2, 40)).astype(np.float32)


def as_complex(tf: Any, x: Any) -> Any:
    return tf.complex(x, x[..., ::-1] * 0.5)


def parts(tf: Any, *values: Any) -> list[Any]:
    """Real and imaginary parts, so that gradients are of real numbers."""
    return [part(value) for value in values for part in (tf.real, tf.imag)]


CASES = [
    case(
        "complex",
        lambda tf, x: parts(
            tf,
            tf.fft(as_complex(tf, x)),
            tf.ifft(as_complex(tf, x)),
            tf.spectral.fft2d(as_complex(tf, x)),
            tf.signal.ifft3d(as_complex(tf, x)),
        ),
        REAL,
        rtol=1e-4,
        atol=1e-4,
    ),
    case(
        "real",
        lambda tf, x: parts(
            tf,
            tf.spectral.rfft(x),
            tf.signal.rfft(x, [11]),
            tf.spectral.rfft2d(x[..., :5]),
        ),
        REAL,
        rtol=1e-4,
        atol=1e-4,
    ),
    case(
        "inverse of real",
        lambda tf, x: [
            tf.spectral.irfft(as_complex(tf, x)),
            tf.spectral.irfft(as_complex(tf, x), [15]),
            tf.signal.irfft2d(as_complex(tf, x)),
        ],
        REAL,
        rtol=1e-4,
        atol=1e-4,
    ),
    case(  # of which TensorFlow has no gradient
        "cut off",
        lambda tf, x: [
            *parts(tf, tf.spectral.rfft(x, [7])),
            tf.spectral.irfft(as_complex(tf, x), [9]),
        ],
        REAL,
        order=0,
        rtol=1e-4,
        atol=1e-4,
    ),
    case(
        "three dimensions",
        lambda tf, x: [
            *parts(tf, tf.signal.rfft3d(x)),
            tf.signal.irfft3d(tf.signal.rfft3d(x), [3, 4, 5]),
        ],
        CUBE,
        order=0,
        rtol=1e-4,
        atol=1e-4,
    ),
    case(
        "cosines",
        lambda tf, x: [
            tf.spectral.dct(x),
            tf.signal.dct(x, norm="ortho"),
            tf.signal.dct(x, type=3),
            tf.signal.dct(x, type=1),
            tf.signal.dct(x, n=5),
            tf.spectral.idct(x),
            tf.signal.idct(x, norm="ortho"),
        ],
        REAL,
        rtol=1e-4,
        atol=1e-4,
    ),
]


@pytest.mark.parametrize(("build", "arrays", "options"), CASES)
def test_same_as_tensorflow(build: Any, arrays: Any, options: Any) -> None:
    compare(build, *arrays, **options)


def test_frames_and_scales_are_the_same():
    def build(tf: Any) -> list[Any]:
        x = tf.constant(SIGNAL)
        spectra = tf.signal.stft(x, 12, 4)
        return [
            tf.signal.hann_window(9),
            tf.signal.hamming_window(8, periodic=False),
            tf.signal.frame(x, 10, 7),
            tf.signal.frame(x, 10, 7, pad_end=True),
            tf.signal.frame(x, 2, 1, axis=0),
            tf.signal.overlap_and_add(tf.signal.frame(x, 10, 4), 4),
            tf.abs(spectra),
            tf.signal.inverse_stft(spectra, 12, 4, window_fn=tf.signal.inverse_stft_window_fn(4)),
            tf.signal.linear_to_mel_weight_matrix(8, 33),
            tf.signal.mfccs_from_log_mel_spectrograms(tf.constant(REAL)),
            tf.signal.fftshift(x),
            tf.signal.ifftshift(x, axes=[1]),
        ]

    assert_same_fetches(build, rtol=2e-4)
