"""16-bit floating point: stored in 16 bits, computed in 32.

Sums and exponentials lose too much in float16 and bfloat16, and NumPy has no consistent rule for
bfloat16 with Python numbers; kernels that are more than one operation widen their inputs, compute
in float32 and narrow the result. XLA fuses both conversions into the loop, so they cost nothing.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

_HALF = frozenset({np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)})


def widen(x: Any) -> Any:
    """``x`` in the type to compute with: float32 for 16-bit floats, else its own."""
    return x.astype(np.float32) if x.dtype in _HALF else x


def narrow(x: Any, dtype: Any) -> Any:
    """``x`` in the type that the op declares."""
    return x if x.dtype == dtype else x.astype(dtype)
