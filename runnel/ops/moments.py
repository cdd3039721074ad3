"""Means, variances and other statistics of a tensor's elements."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.arithmetic import add, multiply, squared_difference, subtract
from runnel.ops.array_shape import shape, size, squeeze
from runnel.ops.casting import cast
from runnel.ops.comparison import not_equal
from runnel.ops.constants import constant
from runnel.ops.control import identity, stop_gradient
from runnel.ops.elementwise import reciprocal, square
from runnel.ops.fill import zeros_like
from runnel.ops.gather import gather
from runnel.ops.reduce_functions import one_of, reduce_mean, reduce_prod, reduce_sum
from runnel.ops.zero_safe import div_no_nan


def _axes(axes: Any) -> list[int]:
    return [int(a) for a in axes] if hasattr(axes, "__iter__") else [int(axes)]


def _keeps(keepdims: bool | None, keep_dims: bool | None) -> bool:
    return bool(one_of("keepdims", keepdims, "keep_dims", keep_dims))


def moments(
    x: Any,
    axes: Any,
    shift: Any = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean and the variance of ``x`` over ``axes``.

    16-bit types are computed in float32. ``shift`` is accepted and ignored: the variance is
    computed from the distances to the mean, which needs no shift. ``keep_dims`` is the old name
    of ``keepdims``.

    Example:
        >>> tf.Session().run(tf.nn.moments(tf.constant([1.0, 3.0]), [0]))
        (np.float32(2.0), np.float32(1.0))
    """
    keep = _keeps(keepdims, keep_dims)
    with name_scope(name, "moments", [x, axes]):
        x = convert_to_tensor(x, name="x")
        narrow = x.dtype.base_dtype.size == 2 and x.dtype.is_floating
        y = cast(x, dtypes.float32) if narrow else x
        mean = reduce_mean(y, axes, keepdims=True, name="mean")
        # The mean minimises the squared distances, so the variance has no slope along it, and
        # the gradient need not go that way.
        distances = squared_difference(y, stop_gradient(mean))
        variance = reduce_mean(distances, axes, keepdims=True, name="variance")
        if not keep:
            mean, variance = squeeze(mean, _axes(axes)), squeeze(variance, _axes(axes))
        if narrow:
            return cast(mean, x.dtype.base_dtype), cast(variance, x.dtype.base_dtype)
        return mean, variance


def sufficient_statistics(
    x: Any,
    axes: Any,
    shift: Any = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """What is needed of ``x`` to compute its mean and variance over ``axes``, in one pass.

    The number of elements, their sum, the sum of their squares and ``shift``, a value near the
    mean that is subtracted first for numerical stability (None for none). See
    :func:`normalize_moments`.

    Example:
        >>> count, mean_ss, var_ss, _ = tf.nn.sufficient_statistics(tf.constant([1.0, 3.0]), [0])
        >>> tf.Session().run([count, mean_ss, var_ss])
        [np.float32(2.0), np.float32(4.0), np.float32(10.0)]
    """
    keep = _keeps(keepdims, keep_dims)
    axes = _axes(axes)
    with name_scope(name, "sufficient_statistics", [x, shift]):
        x = convert_to_tensor(x, name="x")
        dtype = x.dtype.base_dtype
        sizes = [None] if x.dims is None else [x.dims[a] for a in axes]
        if None not in sizes:
            number = 1
            for d in sizes:
                number *= d or 0
            counts = constant(number, dtype)
        else:
            counts = identity(reduce_prod(cast(gather(shape(x), axes), dtype)), name="count")
        if shift is not None:
            shift = convert_to_tensor(shift, dtype, name="shift")
            values, squares = subtract(x, shift), squared_difference(x, shift)
        else:
            values, squares = x, square(x)
        mean_ss = reduce_sum(values, axes, keepdims=keep, name="mean_ss")
        variance_ss = reduce_sum(squares, axes, keepdims=keep, name="var_ss")
        return counts, mean_ss, variance_ss, shift


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The mean and the variance from what :func:`sufficient_statistics` returns."""
    with name_scope(name, "normalize", [counts, mean_ss, variance_ss, shift]):
        divisor = reciprocal(counts, name="divisor")
        if shift is not None:
            shifted_mean = multiply(mean_ss, divisor, name="shifted_mean")
            mean = add(shifted_mean, shift, name="mean")
        else:
            shifted_mean = mean = multiply(mean_ss, divisor, name="mean")
        squares = multiply(variance_ss, divisor)
        return mean, subtract(squares, square(shifted_mean), name="variance")


def weighted_moments(
    x: Any,
    axes: Any,
    frequency_weights: Any,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean and the variance of ``x`` over ``axes``, each element counted by its weight.

    ``frequency_weights`` broadcasts with ``x``. Where all weights are 0, both are 0.

    Example:
        >>> x = tf.constant([1.0, 3.0])
        >>> tf.Session().run(tf.nn.weighted_moments(x, [0], [3.0, 1.0]))
        (np.float32(1.5), np.float32(0.75))
    """
    keep = _keeps(keepdims, keep_dims)
    with name_scope(name, "weighted_moments", [x, frequency_weights, axes]):
        given = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(
            frequency_weights, name="frequency_weights", dtype_hint=given.dtype
        )
        narrow = given.dtype.base_dtype.size == 2 and given.dtype.is_floating
        x = cast(given, dtypes.float32) if narrow else given
        if weights.dtype.base_dtype is not x.dtype.base_dtype:
            weights = cast(weights, x.dtype.base_dtype)
        weighted = reduce_sum(weights * x, axes, keepdims=True, name="weighted_input_sum")
        # Broadcast first: the sum has to count every element that a weight stands for.
        total = reduce_sum(weights + zeros_like(x), axes, keepdims=True, name="sum_of_weights")
        mean = div_no_nan(weighted, total)
        distances = weights * squared_difference(x, mean)
        distance = reduce_sum(distances, axes, keepdims=True, name="weighted_distsq")
        variance = div_no_nan(distance, total)
        if not keep:
            mean, variance = squeeze(mean, _axes(axes)), squeeze(variance, _axes(axes))
        if narrow:
            return cast(mean, given.dtype.base_dtype), cast(variance, given.dtype.base_dtype)
        return mean, variance


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The fraction of zeros in ``value``, a float32: how sparse an activation is.

    Example:
        >>> tf.Session().run(tf.nn.zero_fraction([0.0, 1.0, 2.0, 0.0]))
        np.float32(0.5)
    """
    with name_scope(name, "zero_fraction", [value]):
        value = convert_to_tensor(value, name="value")
        count = size(value, out_type=dtypes.int64)
        zero = constant(0, value.dtype.base_dtype)
        nonzero = reduce_sum(cast(not_equal(value, zero), dtypes.int64))
        # Counted in integers (float32 counts to 16 million), divided in float32.
        fraction = cast(count - nonzero, dtypes.float32) / cast(count, dtypes.float32)
        return identity(fraction, name="fraction")
