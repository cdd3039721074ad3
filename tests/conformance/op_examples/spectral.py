"""Examples of Fourier transforms."""

from __future__ import annotations

import numpy as np

from tests.conformance.exchange import call

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(2, 3, 4, 6)).astype(np.float32)
COMPLEX = (REAL + 1j * REAL[::-1]).astype(np.complex64)

EXAMPLES = {name + dims: call(COMPLEX) for name in ("FFT", "IFFT") for dims in ("", "2D", "3D")}
EXAMPLES |= {
    "RFFT": [call(REAL, [6]), call(REAL, [5])],
    "RFFT2D": call(REAL, [4, 6]),
    "RFFT3D": call(REAL.astype(np.float64), [3, 4, 6], Tcomplex=18),
    "IRFFT": [call(COMPLEX, [10]), call(COMPLEX, [9])],
    "IRFFT2D": call(COMPLEX, [4, 10]),
    "IRFFT3D": call(COMPLEX, [3, 4, 9]),
}

SOUND = RNG.uniform(-1.2, 1.2, size=(700, 2)).astype(np.float32)
SPECTROGRAM = (RNG.normal(size=(2, 5, 129)) ** 2).astype(np.float32)
NUMBERS = (32767 * np.clip(SOUND[:300], -1, 1)).astype("<i2")
WAV = b"".join(
    [
        *(b"RIFF", np.uint32(36 + NUMBERS.nbytes).tobytes(), b"WAVEfmt ", np.uint32(16).tobytes()),
        np.array([1, 2], "<u2").tobytes() + np.array([8000, 32000], "<u4").tobytes(),
        np.array([4, 16], "<u2").tobytes() + b"data" + np.uint32(NUMBERS.nbytes).tobytes(),
        NUMBERS.tobytes(),
    ]
)
EXAMPLES |= {
    "EncodeWav": call(SOUND, 16000),
    "DecodeWav": [
        call(WAV),
        call(WAV, desired_channels=1, desired_samples=100),
        call(WAV, desired_channels=2, desired_samples=400),
    ],
    "AudioSpectrogram": [
        call(SOUND, window_size=100, stride=40, magnitude_squared=True),
        call(SOUND, window_size=64, stride=64),
    ],
    "Mfcc": [call(SPECTROGRAM, 16000), call(SPECTROGRAM, 8000, dct_coefficient_count=20)],
}
