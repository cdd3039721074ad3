"""Dropout, as graph code over a random op."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import skip_op_ids
from runnel.graph.shapes import TensorShape, as_dims, format_dims, is_fully_defined
from runnel.ops.array_shape import shape
from runnel.ops.casting import cast
from runnel.ops.comparison import greater_equal
from runnel.ops.constants import constant
from runnel.ops.sampling.random import random_uniform
from runnel.ops.selection import where_v2


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """``x`` with each element set to 0 with probability ``rate``, and the others scaled up.

    The scale ``1 / (1 - rate)`` keeps the expected value. ``noise_shape`` broadcasts against
    ``x``: elements along its dimensions of size 1 are kept or dropped together. ``keep_prob``
    is the older way to say ``1 - rate``.

    Example:
        >>> hidden = tf.nn.dropout(hidden, rate=0.5)
    """
    if keep_prob is not None:
        if rate is not None:
            raise ValueError("Cannot specify both 'keep_prob' and 'rate'.")
        rate = 1 - keep_prob
    if rate is None:
        raise ValueError("dropout needs a rate, the fraction of elements to drop.")
    with name_scope(name, "dropout", [x]):
        x = convert_to_tensor(x, name="x")
        dtype = x.dtype.base_dtype
        if not dtype.is_floating:
            raise ValueError(
                f"dropout scales what it keeps, so x must be of a floating-point type, "
                f"not {dtype.name}."
            )
        if isinstance(rate, float | int):
            if not 0 <= rate < 1:
                raise ValueError(f"The rate of dropout must be in the range [0, 1), not {rate}.")
            if rate == 0:
                return x
            scaled = x * constant(1.0 / (1.0 - rate), dtype)
            before, after = -1, 4
        else:
            rate = convert_to_tensor(rate, name="rate", dtype_hint=dtype)
            if rate.dims:
                raise ValueError(
                    f"The rate of dropout must be a scalar, not of shape {format_dims(rate.dims)}."
                )
            rate = cast(rate, dtype)
            scaled = x / (constant(1.0, dtype) - rate)
            before, after = -3, 5
        skip_op_ids(before)
        noise = random_uniform(_noise_shape(x, noise_shape), seed=seed, dtype=dtype)
        kept = greater_equal(noise, rate)
        # Selecting, not multiplying by 0, keeps a dropped infinity or NaN from surviving; programs
        # ask for the result by the name of TensorFlow's product.
        result = where_v2(kept, scaled, constant(0.0, dtype), name="mul_1")
        result.set_shape(x.dims)
        skip_op_ids(after)
        return result


def _noise_shape(x: Tensor, noise_shape: Any) -> Any:
    """``noise_shape``, with what it leaves unknown taken from ``x``."""
    if noise_shape is None:
        return shape(x)
    if isinstance(noise_shape, Tensor):
        return noise_shape
    try:
        wanted = as_dims(noise_shape)
    except (TypeError, ValueError):
        return noise_shape  # holds tensors
    if wanted is not None and x.dims is not None and len(wanted) == len(x.dims):
        wanted = tuple(b if a is None else a for a, b in zip(wanted, x.dims, strict=True))
    if not is_fully_defined(wanted):
        raise ValueError(
            f"noise_shape {format_dims(as_dims(noise_shape))} leaves dimensions unknown that the "
            f"shape of x, {TensorShape(x.dims)}, does not tell."
        )
    return list(wanted or ())
