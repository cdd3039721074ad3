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
