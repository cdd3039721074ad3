"""The linear map that cells with variables of their scope use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.nn.rnn_cell.cell import require_depth
from runnel.ops.bias import bias_add
from runnel.ops.joining import concat
from runnel.ops.matmul import matmul
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import Zeros


def linear(values: Sequence[Any], size: int, use_bias: bool = True) -> Any:
    """The values, joined, times ``kernel`` plus ``bias``, variables of the current scope."""
    joined = concat(values, 1) if len(values) > 1 else values[0]
    dtype, depth = joined.dtype.base_dtype, require_depth(joined.shape)
    product = matmul(joined, get_variable("kernel", [depth, size], dtype=dtype))
    if not use_bias:
        return product
    bias = get_variable("bias", [size], dtype=dtype, initializer=Zeros(dtype=dtype))
    return bias_add(product, bias)
