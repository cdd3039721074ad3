"""The functions of tensors in ``tf.keras.backend``, with Keras' arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.control_flow.smart_cond import smart_cond
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.operation import Tensor
from runnel.keras.backend_state import epsilon, floatx, variable
from runnel.keras.learning_phase import resolved
from runnel.ops import arithmetic, casting, clipping, comparison, elementwise, fill, l2
from runnel.ops.arg_extrema import argmax as _argmax
from runnel.ops.arg_extrema import argmin as _argmin
from runnel.ops.array_shape import expand_dims as _expand_dims
from runnel.ops.array_shape import reshape, squeeze
from runnel.ops.array_shape import shape as shape
from runnel.ops.cross_entropy import (
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)
from runnel.ops.division import truediv
from runnel.ops.joining import concat, stack
from runnel.ops.matmul import matmul
from runnel.ops.one_hot import one_hot as _one_hot
from runnel.ops.padding import tile
from runnel.ops.reduce_functions import (
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from runnel.ops.reversal import reverse as _reverse
from runnel.ops.rounding import round as round  # noqa: A004 (TensorFlow's name)
from runnel.ops.sampling.dropout import dropout as _dropout
from runnel.ops.sampling.likelihood import sigmoid_cross_entropy_with_logits
from runnel.ops.sampling.random import random_normal as _random_normal
from runnel.ops.sampling.random import random_uniform as _random_uniform
from runnel.ops.sampling.random import truncated_normal as _truncated_normal
from runnel.ops.tensordot import tensordot
from runnel.ops.transposition import transpose

# Shapes ---------------------------------------------------------------------------------------


def int_shape(x: Any) -> tuple[int | None, ...] | None:
    """The static shape as a tuple; None where nothing is known."""
    dims = convert_to_tensor(x).dims
    return None if dims is None else tuple(dims)


def ndim(x: Any) -> int | None:
    """The number of dimensions."""
    dims = int_shape(x)
    return None if dims is None else len(dims)


def dtype(x: Any) -> str:
    """The name of the type."""
    return str(x.dtype.base_dtype.name)


def count_params(x: Any) -> int:
    """The number of elements."""
    return int(np.prod([d or 0 for d in int_shape(x) or ()]))


def cast(x: Any, dtype: Any) -> Tensor:  # noqa: F811
    """``x`` as another type."""
    return casting.cast(x, dtype)


def cast_to_floatx(x: Any) -> np.ndarray:
    """An array as :func:`floatx`."""
    return np.asarray(x, floatx())


def batch_flatten(x: Any) -> Tensor:
    """Everything but the batch in one dimension."""
    width = convert_to_tensor(x).shape[1:].num_elements()
    if width is not None:
        return reshape(x, [-1, width])
    return reshape(x, stack([-1, reduce_prod(shape(x)[1:])]))


def flatten(x: Any) -> Tensor:
    """All elements in one dimension."""
    return reshape(x, [-1])


def permute_dimensions(x: Any, pattern: Any) -> Tensor:
    """The dimensions in another order."""
    return transpose(x, perm=pattern)


def expand_dims(x: Any, axis: int = -1) -> Tensor:
    """Another dimension of size 1."""
    return _expand_dims(x, axis)


def concatenate(tensors: Any, axis: int = -1) -> Tensor:
    """Tensors one after the other."""
    return concat(list(tensors), axis)


def repeat(x: Any, n: int) -> Tensor:
    """Rows ``n`` times, along a new axis after the first."""
    return tile(_expand_dims(x, 1), [1, n, 1])


def repeat_elements(x: Any, rep: int, axis: int) -> Tensor:
    """Every element ``rep`` times along ``axis``."""
    from runnel.keras.convolutional_layers import repeated

    return repeated(x, rep, axis)  # type: ignore[no-any-return]


def reverse(x: Any, axes: Any) -> Tensor:
    """The other way round along ``axes``."""
    return _reverse(x, [axes] if isinstance(axes, int) else axes)


def one_hot(indices: Any, num_classes: int) -> Tensor:
    """1 at each index, else 0."""
    return _one_hot(indices, depth=num_classes, axis=-1)


# New tensors ----------------------------------------------------------------------------------


def zeros(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A variable of zeros; a tensor where the shape is not known."""
    return _filled(fill.zeros, shape, dtype, name)


def ones(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A variable of ones; a tensor where the shape is not known."""
    return _filled(fill.ones, shape, dtype, name)


def _filled(make: Any, shape: Any, dtype: Any, name: str | None) -> Any:
    made = make(shape, as_dtype(dtype or floatx()), name=name)
    known = made.shape.is_fully_defined()
    return variable(made, dtype=made.dtype, name=name) if known else made


def zeros_like(x: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Zeros of the shape of ``x``."""
    return fill.zeros_like(x, dtype=dtype, name=name)


def ones_like(x: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Ones of the shape of ``x``."""
    return fill.ones_like(x, dtype=dtype, name=name)


def random_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Tensor:
    """Normal values; with a seed drawn by NumPy where none is given, as in TensorFlow."""
    return _random_normal(shape, mean, stddev, as_dtype(dtype or floatx()), _seed(seed))


def truncated_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Tensor:
    """Normal values within two deviations."""
    return _truncated_normal(shape, mean, stddev, as_dtype(dtype or floatx()), _seed(seed))


def random_uniform(
    shape: Any,
    minval: float = 0.0,
    maxval: float = 1.0,
    dtype: Any = None,
    seed: int | None = None,
) -> Tensor:
    """Uniform values."""
    return _random_uniform(shape, minval, maxval, as_dtype(dtype or floatx()), _seed(seed))


def random_binomial(
    shape: Any, p: float = 0.0, dtype: Any = None, seed: int | None = None
) -> Tensor:
    """1 with the probability ``p``, else 0."""
    kind = as_dtype(dtype or floatx())
    drawn = _random_uniform(shape, dtype=kind, seed=_seed(seed))
    return casting.cast(comparison.less_equal(drawn, p), kind)


def _seed(seed: int | None) -> int:
    return int(np.random.randint(10_000_000)) if seed is None else seed


# Arithmetic -----------------------------------------------------------------------------------

abs, exp, log, _sqrt = elementwise.abs, elementwise.exp, elementwise.log, elementwise.sqrt  # noqa: A001
sign, square = elementwise.sign, elementwise.square
maximum, minimum, pow = arithmetic.maximum, arithmetic.minimum, arithmetic.pow  # noqa: A001
equal, not_equal = comparison.equal, comparison.not_equal
greater, greater_equal = comparison.greater, comparison.greater_equal
less, less_equal = comparison.less, comparison.less_equal


def sqrt(x: Any) -> Tensor:
    """The square root, of 0 where ``x`` is negative."""
    return _sqrt(maximum(x, 0.0))


def clip(x: Any, min_value: Any, max_value: Any) -> Tensor:
    """``x`` between two values."""
    return clipping.clip_by_value(x, min_value, max_value)


def _in_floats(x: Any) -> Any:
    tensor = convert_to_tensor(x)
    return casting.cast(tensor, floatx()) if tensor.dtype.name == "bool" else tensor


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A001
    """The sum along ``axis``."""
    return reduce_sum(x, axis, keepdims)


def prod(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The product along ``axis``."""
    return reduce_prod(x, axis, keepdims)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean along ``axis``; the share of True of booleans."""
    return reduce_mean(_in_floats(x), axis, keepdims)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A001
    """The largest along ``axis``."""
    return reduce_max(x, axis, keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A001
    """The smallest along ``axis``."""
    return reduce_min(x, axis, keepdims)


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A001
    """Whether one along ``axis`` is True."""
    return reduce_any(casting.cast(x, "bool"), axis, keepdims)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A001
    """Whether all along ``axis`` are True."""
    return reduce_all(casting.cast(x, "bool"), axis, keepdims)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials."""
    return reduce_logsumexp(x, axis, keepdims)


def var(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The variance along ``axis``."""
    values = _in_floats(x)
    centred = arithmetic.subtract(values, reduce_mean(values, axis, True))
    return reduce_mean(square(centred), axis, keepdims)


def std(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The standard deviation along ``axis``."""
    return _sqrt(var(x, axis, keepdims))


def argmax(x: Any, axis: int = -1) -> Tensor:
    """Where the largest along ``axis`` is."""
    return _argmax(x, axis)


def argmin(x: Any, axis: int = -1) -> Tensor:
    """Where the smallest along ``axis`` is."""
    return _argmin(x, axis)


def dot(x: Any, y: Any) -> Tensor:
    """Products along the last axis of ``x`` and the last but one of ``y``."""
    a, b = convert_to_tensor(x), convert_to_tensor(y)
    rank = len(b.dims or ())
    if len(a.dims or ()) == 2 and rank == 2:
        return matmul(a, b)
    return tensordot(a, b, [[len(a.dims or ()) - 1], [rank - 2 if rank > 1 else 0]])


def batch_dot(x: Any, y: Any, axes: Any = None) -> Tensor:
    """Products of the examples of two batches, as of ``tf.keras.layers.Dot``."""
    from runnel.keras.core_layers import dot as of_layers

    ranks = [len(convert_to_tensor(t).dims or ()) for t in (x, y)]
    chosen = [ranks[0] - 1, ranks[1] - 2 if ranks[1] > 2 else 1] if axes is None else axes
    return of_layers([x, y], chosen)  # type: ignore[no-any-return]


def l2_normalize(x: Any, axis: Any = None) -> Tensor:
    """``x`` with the norm 1 along ``axis``."""
    return l2.l2_normalize(x, axis=axis)


# Choices --------------------------------------------------------------------------------------


def switch(condition: Any, then_expression: Any, else_expression: Any) -> Any:
    """One of two tensors, or of what two functions give; by element for a tensor of choices."""
    from runnel.ops.selection import where_v2

    def call(given: Any) -> Any:
        return given() if callable(given) else given

    if not len(convert_to_tensor(condition).dims or ()):
        return smart_cond(
            casting.cast(condition, "bool"),
            lambda: call(then_expression),
            lambda: call(else_expression),
        )
    chosen, other = convert_to_tensor(call(then_expression)), call(else_expression)
    wanted = casting.cast(condition, "bool")
    for _ in range(len(chosen.dims or ()) - len(wanted.dims or ())):
        wanted = _expand_dims(wanted, -1)
    return where_v2(wanted, chosen, other)


def in_train_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """``x`` in training, else ``alt``; by the learning phase unless ``training`` says."""
    return smart_cond(
        resolved(training),
        lambda: convert_to_tensor(x() if callable(x) else x),
        lambda: convert_to_tensor(alt() if callable(alt) else alt),
    )


def in_test_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """``alt`` in training, else ``x``."""
    return in_train_phase(alt, x, training)


def dropout(x: Any, level: Any, noise_shape: Any = None, seed: int | None = None) -> Tensor:
    """Sets elements to 0 with the probability ``level`` and scales up the others."""
    return _dropout(x, rate=level, noise_shape=noise_shape, seed=_seed(seed))


# Losses ---------------------------------------------------------------------------------------


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Tensor:
    """The cross entropy of each probability (or logit) with its target.

    Of probabilities that a sigmoid gave, it takes the sigmoid's input, as TensorFlow does.
    """
    output = convert_to_tensor(output)
    if not from_logits and output.op.type != "Sigmoid":
        least = epsilon()
        p = clip(output, least, 1.0 - least)
        right = arithmetic.multiply(target, log(arithmetic.add(p, least)))
        rest = log(arithmetic.add(1.0 - p, least))
        wrong = arithmetic.multiply(1.0 - target, rest)
        return elementwise.negative(arithmetic.add(right, wrong))
    logits = output if from_logits else output.op.inputs[0]
    return sigmoid_cross_entropy_with_logits(labels=target, logits=logits)


def categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """The cross entropy of probabilities (or logits) along ``axis`` with targets."""
    output = convert_to_tensor(output)
    if not from_logits and output.op.type != "Softmax":
        total = reduce_sum(output, axis, True)
        p = clip(truediv(output, total), epsilon(), 1.0 - epsilon())
        return elementwise.negative(reduce_sum(arithmetic.multiply(target, log(p)), axis))
    logits = output if from_logits else output.op.inputs[0]
    return softmax_cross_entropy_with_logits_v2(labels=target, logits=logits, axis=axis)


def sparse_categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """The cross entropy of probabilities (or logits) along ``axis`` with numbers of classes."""
    output = convert_to_tensor(output)
    if not from_logits and output.op.type != "Softmax":
        logits = log(clip(output, epsilon(), 1.0 - epsilon()))
    else:
        logits = output if from_logits else output.op.inputs[0]
    rank = len(logits.dims or ())
    if axis % rank != rank - 1:
        order = [d for d in range(rank) if d != axis % rank]
        logits = transpose(logits, [*order, axis % rank])
    labels = casting.cast(target, "int64")
    if len(labels.dims or ()) == rank:
        labels = squeeze(labels, [-1])
    return sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def print_tensor(x: Any, message: str = "") -> Tensor:
    """``x``, which is printed when it is computed."""
    from runnel.ops.printing import Print

    return Print(x, [x], message)  # type: ignore[no-any-return]
