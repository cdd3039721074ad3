"""Random tensors that are functions of a seed: the same seed gives the same values, always."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import Dims, format_dims
from runnel.ops.arithmetic import add
from runnel.ops.sampling import distributions
from runnel.ops.sampling.philox import philox4x32
from runnel.ops.sampling.random import (
    FLOATS,
    class_type,
    concrete_shape,
    dims_of_samples,
    dims_of_shape,
    draw_classes,
    draw_int,
    require_scalars,
    shape_tensor,
)

_SHAPE_TYPE = "T: {int32, int64} = DT_INT32"
_SEED_TYPE = "Tseed: {int32, int64} = DT_INT64"
# The key with which TensorFlow encrypts a seed, so that neighbouring seeds have unrelated streams.
_SEED_KEY = (0x3EC8F720, 0x02461E29)


def stream_of_seed(xp: Any, seed: Any) -> Any:
    """The Philox stream that begins at a seed of two integers."""
    if seed.shape != (2,):
        raise ValueError(f"seed must hold two integers, but its shape is {format_dims(seed.shape)}")
    wide = xp.asarray(seed).astype(np.int64).view(np.uint64)
    low, high = wide.astype(np.uint32), (wide >> np.uint64(32)).astype(np.uint32)
    counter = (low[:1], high[:1], low[1:], high[1:])
    key = tuple(xp.full(1, word, np.uint32) for word in _SEED_KEY)
    k0, k1, c2, c3 = philox4x32(xp, key, counter)
    zeros = xp.zeros(2, np.uint32)
    return xp.concatenate([k0, k1, zeros, c2, c3])


def _require_pair(seed: Tensor) -> None:
    if seed.dims is not None and (len(seed.dims) != 1 or seed.dims[0] not in (2, None)):
        raise ValueError(f"seed must be of shape (2,), not {format_dims(seed.dims)}")


def _register_float_op(name: str, draw: Any) -> Any:
    op_def = register_op(
        name,
        inputs="shape: T, seed: Tseed",
        outputs="output: dtype",
        attrs=[f"{FLOATS} = DT_FLOAT", _SHAPE_TYPE, _SEED_TYPE],
        static_inputs=("shape",),
        differentiable=False,
    )

    @op_def.shape
    def _(shape: Tensor, seed: Tensor) -> Dims:
        _require_pair(seed)
        return dims_of_shape(shape)

    @op_def.kernel
    def _(xp, shape, seed, *, dtype):
        return draw(xp, stream_of_seed(xp, seed), concrete_shape(shape), dtype.np_dtype)

    return op_def


stateless_random_uniform_op = _register_float_op("StatelessRandomUniform", distributions.uniform)
stateless_random_normal_op = _register_float_op("StatelessRandomNormal", distributions.normal)
stateless_truncated_normal_op = _register_float_op(
    "StatelessTruncatedNormal", distributions.truncated_normal
)

stateless_random_uniform_int_op = register_op(
    "StatelessRandomUniformInt",
    inputs="shape: T, seed: Tseed, minval: dtype, maxval: dtype",
    outputs="output: dtype",
    attrs=["dtype: {int32, int64}", "T: {int32, int64}", _SEED_TYPE],
    static_inputs=("shape",),
    differentiable=False,
)


@stateless_random_uniform_int_op.shape
def _(shape, seed, minval, maxval):
    _require_pair(seed)
    require_scalars(minval=minval, maxval=maxval)
    return dims_of_shape(shape)


@stateless_random_uniform_int_op.kernel
def _(xp, shape, seed, minval, maxval, *, dtype, check):
    return draw_int(xp, stream_of_seed(xp, seed), shape, minval, maxval, dtype, check)


stateless_multinomial_op = register_op(
    "StatelessMultinomial",
    inputs="logits: T, num_samples: int32, seed: Tseed",
    outputs="output: output_dtype",
    attrs=["T: realnumbertype", _SEED_TYPE, "output_dtype: {int32, int64} = DT_INT64"],
    static_inputs=("num_samples",),
    differentiable=False,
)


@stateless_multinomial_op.shape
def _(logits, num_samples, seed):
    _require_pair(seed)
    return dims_of_samples(logits, num_samples)


@stateless_multinomial_op.kernel
def _(xp, logits, num_samples, seed, *, output_dtype):
    return draw_classes(xp, stream_of_seed(xp, seed), logits, num_samples, output_dtype)


def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Uniform values in [minval, maxval), a function of ``seed`` (two integers) and ``shape``.

    Example:
        >>> tf.random.stateless_uniform([2, 3], seed=[7, 17])
    """
    dtype = as_dtype(dtype).base_dtype
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"stateless_uniform of {dtype.name} needs maxval: there is no default")
        maxval = 1
    with name_scope(name, "stateless_random_uniform", [shape, seed, minval, maxval]) as scope:
        shape = shape_tensor(shape)
        minval = convert_to_tensor(minval, dtype, name="min")
        maxval = convert_to_tensor(maxval, dtype, name="max")
        if dtype.is_integer:
            return stateless_random_uniform_int_op(shape, seed, minval, maxval, name=scope)
        drawn = stateless_random_uniform_op(shape, seed, dtype=dtype)
        return add(drawn * (maxval - minval), minval, name=scope)


def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Normal values, a function of ``seed`` (two integers) and ``shape``."""
    with name_scope(name, "stateless_random_normal", [shape, seed, mean, stddev]) as scope:
        return _scaled(stateless_random_normal_op, shape, seed, mean, stddev, dtype, scope)


def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Normal values within two standard deviations, a function of ``seed`` and ``shape``."""
    with name_scope(name, "stateless_truncated_normal", [shape, seed, mean, stddev]) as scope:
        return _scaled(stateless_truncated_normal_op, shape, seed, mean, stddev, dtype, scope)


def _scaled(
    op_def: Any, shape: Any, seed: Any, mean: Any, stddev: Any, dtype: Any, scope: str
) -> Tensor:
    dtype = as_dtype(dtype).base_dtype
    shape = shape_tensor(shape)
    mean = convert_to_tensor(mean, dtype, name="mean")
    stddev = convert_to_tensor(stddev, dtype, name="stddev")
    drawn = op_def(shape, seed, dtype=dtype)
    return add(drawn * stddev, mean, name=scope)


def stateless_multinomial(
    logits: Any,
    num_samples: Any,
    seed: Any,
    output_dtype: Any = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Draws classes with log-probabilities ``logits``, a function of ``seed``."""
    with name_scope(name, "stateless_multinomial", [logits, seed]):
        return _draw_classes(logits, num_samples, seed, output_dtype)


def stateless_categorical(
    logits: Any,
    num_samples: Any,
    seed: Any,
    dtype: Any = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Draws classes with log-probabilities ``logits``; the newer ``stateless_multinomial``."""
    with name_scope(name, "stateless_categorical", [logits, seed]):
        return _draw_classes(logits, num_samples, seed, dtype)


def _draw_classes(logits: Any, num_samples: Any, seed: Any, dtype: Any) -> Tensor:
    logits = convert_to_tensor(logits, name="logits")
    return stateless_multinomial_op(logits, num_samples, seed, output_dtype=class_type(dtype))
