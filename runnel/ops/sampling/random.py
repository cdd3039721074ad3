"""Random tensors: uniform, normal and truncated normal, shuffles, crops and draws of classes.

With the same seeds these draw TensorFlow's numbers, execution for execution; see
:mod:`runnel.ops.sampling.distributions` for how exactly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value, constant_value_as_dims
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import get_seed, skip_op_ids
from runnel.graph.registry import register_op
from runnel.graph.shape_inference import unchanged
from runnel.graph.shapes import Dims, dimension_value, format_dims
from runnel.ops.arithmetic import add, multiply
from runnel.ops.sampling import distributions
from runnel.ops.sampling.philox import (
    reserved_for_multinomial,
    reserved_for_outputs,
    reserved_for_shuffle,
)

SEEDS = ["seed: int = 0", "seed2: int = 0"]
FLOATS = "dtype: {half, bfloat16, float, double}"
SHAPE_TYPE = "T: {int32, int64}"


def reserved_for_shape(shape: tuple[int, ...]) -> int:
    """Counters by which an output of ``shape`` advances the stream of most random ops."""
    return reserved_for_outputs(math.prod(shape))


def dims_of_shape(shape: Tensor) -> Dims:
    """The static shape of an output whose shape is the value of the vector ``shape``."""
    if shape.dims is not None and len(shape.dims) != 1:
        raise ValueError(f"shape must be a vector, not of shape {format_dims(shape.dims)}")
    return constant_value_as_dims(shape)


def concrete_shape(shape: np.ndarray) -> tuple[int, ...]:
    """The value of a ``shape`` input as a tuple; a negative dimension is a ValueError."""
    if shape.ndim != 1:
        raise ValueError(f"shape must be a vector, not of shape {format_dims(shape.shape)}")
    wanted = tuple(shape.tolist())
    if min(wanted, default=0) < 0:
        raise ValueError(f"a dimension of shape is negative: {format_dims(wanted)}")
    return wanted


def _register_float_op(name: str, draw: Any) -> Any:
    op_def = register_op(
        name,
        inputs="shape: T",
        outputs="output: dtype",
        attrs=[*SEEDS, FLOATS, SHAPE_TYPE],
        static_inputs=("shape",),
        random=reserved_for_shape,
        differentiable=False,
    )
    op_def.shape(dims_of_shape)

    @op_def.kernel
    def _(xp, shape, *, dtype, stream):
        return draw(xp, stream, concrete_shape(shape), dtype.np_dtype)

    def in_blocks(shape: Any, *, dtype: Any, stream: Any) -> Any:
        return distributions.in_blocks(draw, stream, concrete_shape(shape), dtype.np_dtype)

    op_def.block_kernel = in_blocks
    return op_def


random_uniform_op = _register_float_op("RandomUniform", distributions.uniform)
random_standard_normal_op = _register_float_op("RandomStandardNormal", distributions.normal)
truncated_normal_op = _register_float_op("TruncatedNormal", distributions.truncated_normal)

random_uniform_int_op = register_op(
    "RandomUniformInt",
    inputs="shape: T, minval: Tout, maxval: Tout",
    outputs="output: Tout",
    attrs=[*SEEDS, "Tout: {int32, int64}", SHAPE_TYPE],
    static_inputs=("shape",),
    random=reserved_for_shape,
    differentiable=False,
)


@random_uniform_int_op.shape
def _(shape, minval, maxval):
    require_scalars(minval=minval, maxval=maxval)
    return dims_of_shape(shape)


@random_uniform_int_op.kernel
def _(xp, shape, minval, maxval, *, Tout, stream, check):
    return draw_int(xp, stream, shape, minval, maxval, Tout, check)


def require_scalars(**inputs: Tensor) -> None:
    """A ValueError unless each of the named inputs can be a scalar."""
    for name, tensor in inputs.items():
        if tensor.dims not in (None, ()):
            raise ValueError(f"{name} must be a scalar, not of shape {format_dims(tensor.dims)}")


def draw_int(
    xp: Any, stream: Any, shape: np.ndarray, minval: Any, maxval: Any, dtype: DType, check: Any
) -> Any:
    """Integers in [minval, maxval), which may not be empty if any are wanted."""
    wanted = concrete_shape(shape)
    if 0 in wanted:
        return xp.zeros(wanted, dtype.np_dtype)
    for name, bound in (("minval", minval), ("maxval", maxval)):
        if np.ndim(bound):
            raise ValueError(f"{name} must be a scalar, not of shape {np.shape(bound)}")
    check(minval < maxval, lambda: f"minval must be less than maxval, but {minval} >= {maxval}")
    return distributions.uniform_int(xp, stream, wanted, minval, maxval, dtype.np_dtype)


# Shuffling ------------------------------------------------------------------------------------

random_shuffle_op = register_op(
    "RandomShuffle",
    inputs="value: T",
    outputs="output: T",
    attrs=[*SEEDS, "T: type"],
    random=lambda shape: reserved_for_shuffle(shape[0] if shape and math.prod(shape) else 0),
    differentiable=False,
)
random_shuffle_op.shape(unchanged)


@random_shuffle_op.kernel
def _(xp, value, *, stream):
    if value.ndim == 0:
        return value
    order = distributions.permutation(xp, stream, value.shape[0])
    return xp.take(value, order, axis=0, mode="clip")


# Drawing classes ------------------------------------------------------------------------------

multinomial_op = register_op(
    "Multinomial",
    inputs="logits: T, num_samples: int32",
    outputs="output: output_dtype",
    attrs=[*SEEDS, "T: realnumbertype", "output_dtype: {int32, int64} = DT_INT64"],
    static_inputs=("num_samples",),
    random=lambda shape: reserved_for_multinomial(*shape),
    differentiable=False,
)


def dims_of_samples(logits: Tensor, num_samples: Tensor) -> Dims:
    """The static shape of ``num_samples`` draws for each row of ``logits``."""
    require_scalars(num_samples=num_samples)
    if logits.dims is not None and len(logits.dims) != 2:
        raise ValueError(f"logits must be a matrix, not of shape {format_dims(logits.dims)}")
    count = constant_value(num_samples)
    return None if logits.dims is None else logits.dims[0], None if count is None else int(count)


def draw_classes(xp: Any, stream: Any, logits: Any, num_samples: np.ndarray, dtype: DType) -> Any:
    """Class indices for each row of ``logits``, after checking the shapes."""
    if logits.ndim != 2 or num_samples.ndim != 0:
        raise ValueError(
            f"logits must be a matrix and num_samples a scalar, but their shapes are "
            f"{format_dims(logits.shape)} and {format_dims(num_samples.shape)}"
        )
    count = int(num_samples)
    if count < 0:
        raise ValueError(f"num_samples must not be negative, but is {count}")
    if logits.shape[1] == 0:
        raise ValueError(f"logits has no classes: its shape is {format_dims(logits.shape)}")
    return distributions.multinomial(xp, stream, logits, count, dtype.np_dtype)


@multinomial_op.shape
def _(logits, num_samples):
    return dims_of_samples(logits, num_samples)


@multinomial_op.kernel
def _(xp, logits, num_samples, *, output_dtype, stream):
    return draw_classes(xp, stream, logits, num_samples, output_dtype)


# The functions of the user --------------------------------------------------------------------


def shape_tensor(shape: Any) -> Tensor:
    """``shape`` (a list, a TensorShape, a tensor, or a list with tensors in it) as a vector."""
    if isinstance(shape, list | tuple):
        shape = [dimension_value(dimension) for dimension in shape]
        return convert_to_tensor(shape, None if shape else dtypes.int32, name="shape")
    return convert_to_tensor(shape, name="shape")


def op_seeds(seed: int | None) -> dict[str, Any]:
    """The seed attributes of an operation made now whose own seed is ``seed``."""
    first, second = get_seed(seed)
    return {} if first is None else {"seed": first, "seed2": second}


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Uniform random values in [minval, maxval); floats are in [0, 1) unless told otherwise.

    Integers need a ``maxval``; they are slightly biased unless ``maxval - minval`` is a power of
    two. The bounds of floats may be tensors that broadcast with ``shape``.

    Example:
        >>> tf.random_uniform([2, 3], minval=-1.0, maxval=1.0, seed=7)
    """
    dtype = as_dtype(dtype).base_dtype
    if dtype not in (*dtypes.FLOATING, dtypes.int32, dtypes.int64):
        raise ValueError(
            f"random_uniform draws float16, bfloat16, float32, float64, int32 or int64, "
            f"not {dtype.name}"
        )
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"random_uniform of {dtype.name} needs maxval: there is no default")
        maxval = 1
    with name_scope(name, "random_uniform", [shape, minval, maxval]) as scope:
        shape = shape_tensor(shape)
        from_zero = isinstance(minval, int) and minval == 0
        to_one = isinstance(maxval, int) and maxval == 1
        if dtype.is_integer or not (from_zero and to_one):
            minval = convert_to_tensor(minval, dtype, name="min")
            maxval = convert_to_tensor(maxval, dtype, name="max")
        else:
            skip_op_ids(2)
        seeds = op_seeds(seed)
        if dtype.is_integer:
            return random_uniform_int_op(shape, minval, maxval, **seeds, name=scope)
        drawn = random_uniform_op(shape, dtype=dtype, **seeds)
        if from_zero:
            skip_op_ids(3 if to_one else 2)
            return drawn if to_one else multiply(drawn, maxval)
        return add(drawn * (maxval - minval), minval, name=scope)


def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normal random values with the given mean and standard deviation.

    ``mean`` and ``stddev`` may be tensors that broadcast with ``shape``.

    Example:
        >>> tf.random_normal([784, 10], stddev=0.35, seed=7)
    """
    with name_scope(name, "random_normal", [shape, mean, stddev]) as scope:
        return _scaled(random_standard_normal_op, shape, mean, stddev, dtype, seed, scope)


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normal random values, drawn again while more than two standard deviations from the mean.

    Example:
        >>> tf.truncated_normal([784, 10], stddev=0.1, seed=7)
    """
    with name_scope(name, "truncated_normal", [shape, mean, stddev]) as scope:
        return _scaled(truncated_normal_op, shape, mean, stddev, dtype, seed, scope)


def _scaled(
    op_def: Any, shape: Any, mean: Any, stddev: Any, dtype: Any, seed: int | None, scope: str
) -> Tensor:
    dtype = as_dtype(dtype).base_dtype
    with get_default_graph().one_creation_site():
        shape = shape_tensor(shape)
        mean = convert_to_tensor(mean, dtype, name="mean")
        stddev = convert_to_tensor(stddev, dtype, name="stddev")
        drawn = op_def(shape, dtype=dtype, **op_seeds(seed))
        return add(drawn * stddev, mean, name=scope)


def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """The rows of ``value`` (its slices along the first dimension) in random order.

    Example:
        >>> tf.random_shuffle([[1, 2], [3, 4], [5, 6]])  # e.g. [[5, 6], [1, 2], [3, 4]]
    """
    return random_shuffle_op(value, **op_seeds(seed), name=name)


def multinomial(
    logits: Any,
    num_samples: Any,
    seed: int | None = None,
    name: str | None = None,
    output_dtype: Any = None,
) -> Tensor:
    """Draws ``num_samples`` classes for each row of ``logits``, unnormalised log-probabilities.

    Example:
        >>> tf.multinomial(tf.log([[0.9, 0.1]]), 5)  # e.g. [[0, 0, 1, 0, 0]]
    """
    with name_scope(name, "multinomial", [logits]):
        return _draw_classes(logits, num_samples, output_dtype, seed)


def categorical(
    logits: Any,
    num_samples: Any,
    dtype: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws ``num_samples`` classes for each row of ``logits``; the newer ``multinomial``."""
    with name_scope(name, "categorical", [logits]):
        return _draw_classes(logits, num_samples, dtype, seed)


def _draw_classes(logits: Any, num_samples: Any, dtype: Any, seed: int | None) -> Tensor:
    logits = convert_to_tensor(logits, name="logits")
    return multinomial_op(logits, num_samples, **op_seeds(seed), output_dtype=class_type(dtype))


def class_type(dtype: Any) -> DType:
    """The element type of drawn classes: ``dtype``, or int64 when it is None."""
    wanted = dtypes.int64 if dtype is None else as_dtype(dtype)
    if wanted not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"classes are drawn as int32 or int64, not {wanted.name}")
    return wanted
