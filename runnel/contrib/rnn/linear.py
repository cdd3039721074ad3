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


def linear(
    values: Sequence[Any],
    size: int,
    use_bias: bool = True,
    bias_initializer: Any = None,
    kernel_initializer: Any = None,
) -> Any:
    """The values, joined, times ``kernel`` plus ``bias``, variables of the current scope."""
    joined = concat(values, 1) if len(values) > 1 else values[0]
    dtype, depth = joined.dtype.base_dtype, require_depth(joined.shape)
    kernel = get_variable("kernel", [depth, size], dtype=dtype, initializer=kernel_initializer)
    product = matmul(joined, kernel)
    if not use_bias:
        return product
    start = bias_initializer or Zeros(dtype=dtype)
    bias = get_variable("bias", [size], dtype=dtype, initializer=start)
    return bias_add(product, bias)
