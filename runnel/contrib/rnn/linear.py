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
    kernel, bias = linear_variables(
        require_depth(joined.shape),
        size,
        joined.dtype.base_dtype,
        use_bias,
        bias_initializer,
        kernel_initializer,
    )
    return apply_linear([joined], kernel, bias)


def linear_variables(
    depth: int,
    size: int,
    dtype: Any,
    use_bias: bool = True,
    bias_initializer: Any = None,
    kernel_initializer: Any = None,
) -> tuple[Any, Any]:
    """``kernel`` and ``bias`` (None without) of the current scope."""
    kernel = get_variable("kernel", [depth, size], dtype=dtype, initializer=kernel_initializer)
    if not use_bias:
        return kernel, None
    start = bias_initializer or Zeros(dtype=dtype)
    return kernel, get_variable("bias", [size], dtype=dtype, initializer=start)


def apply_linear(values: Sequence[Any], kernel: Any, bias: Any) -> Any:
    """The values, joined, times ``kernel`` plus ``bias``, if there is one."""
    product = matmul(concat(values, 1) if len(values) > 1 else values[0], kernel)
    return product if bias is None else bias_add(product, bias)
