"""Bijectors of vectors: linear ones, permutations, and others that mix elements."""

from __future__ import annotations

from typing import Any

from runnel.distributions.bijectors.bijector import Bijector, no_change
from runnel.distributions.scalar_family import parameter
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.activations import softplus
from runnel.ops.array_shape import expand_dims, reshape, shape, squeeze
from runnel.ops.band import matrix_band_part
from runnel.ops.broadcasting import broadcast_dynamic_shape, broadcast_to
from runnel.ops.cumulative import cumsum
from runnel.ops.diagonal import matrix_diag, matrix_diag_part
from runnel.ops.elementwise import abs as abs_
from runnel.ops.elementwise import exp, log
from runnel.ops.fill import zeros_like
from runnel.ops.gather import gather
from runnel.ops.joining import concat
from runnel.ops.linear_algebra import matrix_solve, matrix_triangular_solve, slogdet
from runnel.ops.matmul import matmul
from runnel.ops.reduce_functions import reduce_logsumexp, reduce_prod, reduce_sum
from runnel.ops.selection import where_v2
from runnel.ops.softmax import softmax
from runnel.ops.transposition import invert_permutation


class _Vector(Bijector):
    """A bijector of vectors."""

    def __init__(self, validate_args: bool = False, name: str | None = None, **more: Any) -> None:
        super().__init__(validate_args=validate_args, forward_min_event_ndims=1, name=name, **more)


class Affine(_Vector):
    """``y = scale @ x + shift``, where ``scale`` is the sum of what is given of it.

    That is ``scale_identity_multiplier * I``, ``diag(scale_diag)``, ``scale_tril`` and
    ``scale_perturb_factor @ diag(scale_perturb_diag) @ scale_perturb_factor.T``.
    """

    def __init__(
        self,
        shift: Any = None,
        scale_identity_multiplier: Any = None,
        scale_diag: Any = None,
        scale_tril: Any = None,
        scale_perturb_factor: Any = None,
        scale_perturb_diag: Any = None,
        validate_args: bool = False,
        name: str = "affine",
    ) -> None:
        super().__init__(validate_args, name, is_constant_jacobian=True)
        self._shift = None if shift is None else parameter(shift)
        diagonal = None if scale_diag is None else parameter(scale_diag)
        if scale_identity_multiplier is not None:  # one number for all elements
            multiplier = expand_dims(parameter(scale_identity_multiplier), -1)
            diagonal = multiplier if diagonal is None else diagonal + multiplier
        self._triangular = scale_perturb_factor is None
        matrix = None
        if scale_tril is not None:
            matrix = matrix_band_part(parameter(scale_tril), -1, 0)
        if scale_perturb_factor is not None:
            factor = parameter(scale_perturb_factor)
            weighted = factor
            if scale_perturb_diag is not None:
                weighted = factor * expand_dims(parameter(scale_perturb_diag), -2)
            low_rank = matmul(weighted, factor, transpose_b=True)
            matrix = low_rank if matrix is None else matrix + low_rank
            if diagonal is None and scale_tril is None:
                diagonal = parameter([1.0])
        if matrix is not None and diagonal is not None:
            matrix = matrix + matrix_diag(zeros_like(matrix_diag_part(matrix)) + diagonal)
        self._matrix = matrix
        self._diagonal = diagonal if matrix is None else None

    @property
    def shift(self) -> Tensor | None:
        """What is added."""
        return self._shift

    def _matrix_for(self, vectors: Tensor) -> Tensor:
        """The matrix for each vector."""
        matrix = self._matrix
        batch = broadcast_dynamic_shape(shape(matrix)[:-2], shape(vectors)[:-1])  # type: ignore[index,arg-type]
        return broadcast_to(matrix, concat([batch, shape(matrix)[-2:]], 0))  # type: ignore[arg-type]

    def _forward(self, x: Tensor) -> Tensor:
        if self._matrix is not None:
            columns = expand_dims(x, -1)
            x = squeeze(matmul(self._matrix_for(x), columns), [-1])
        elif self._diagonal is not None:
            x = x * self._diagonal
        return x if self._shift is None else x + self._shift

    def _inverse(self, y: Tensor) -> Tensor:
        if self._shift is not None:
            y = y - self._shift
        if self._matrix is not None:
            solve = matrix_triangular_solve if self._triangular else matrix_solve
            return squeeze(solve(self._matrix_for(y), expand_dims(y, -1)), [-1])
        return y if self._diagonal is None else y / self._diagonal

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        if self._matrix is None:
            if self._diagonal is None:
                return no_change()
            return reduce_sum(log(abs_(self._diagonal)) + zeros_like(x), -1)
        if self._triangular:
            return reduce_sum(log(abs_(matrix_diag_part(self._matrix))), -1)
        return slogdet(self._matrix)[1]


class Permute(_Vector):
    """The elements in another order: ``y[i] = x[permutation[i]]``."""

    def __init__(
        self, permutation: Any, validate_args: bool = False, name: str | None = None
    ) -> None:
        super().__init__(validate_args, name or "permute", is_constant_jacobian=True)
        self._permutation = convert_to_tensor(permutation)
        if not self._permutation.dtype.is_integer:
            raise TypeError(f"permutation.dtype ({self._permutation.dtype.name}) should be `int`.")
        known = constant_value(self._permutation)
        if known is not None and sorted(known.tolist()) != list(range(len(known))):
            raise ValueError(
                f"Permutation over `d` must contain exactly one of each of `{{0, 1, ..., d}}`, not "
                f"{known.tolist()}"
            )

    @property
    def permutation(self) -> Tensor:
        """The order."""
        return self._permutation

    def _forward(self, x: Tensor) -> Tensor:
        return gather(x, self._permutation, axis=-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return gather(y, invert_permutation(self._permutation), axis=-1)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return no_change()


class Ordered(_Vector):
    """Increasing elements as any: the first, then the logarithms of the differences."""

    def __init__(self, validate_args: bool = False, name: str = "ordered") -> None:
        super().__init__(validate_args, name)

    def _forward(self, x: Tensor) -> Tensor:
        return concat([x[..., :1], log(x[..., 1:] - x[..., :-1])], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return cumsum(concat([y[..., :1], exp(y[..., 1:])], -1), axis=-1)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return reduce_sum(y[..., 1:], -1)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -reduce_sum(log(x[..., 1:] - x[..., :-1]), -1)


class SoftmaxCentered(_Vector):
    """The softmax of the elements and a zero behind them: one element more, with the sum 1."""

    def __init__(self, validate_args: bool = False, name: str = "softmax_centered") -> None:
        super().__init__(validate_args, name)

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        return _resized(input_shape, 1)

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        return _resized(output_shape, -1)

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return concat([input_shape[:-1], input_shape[-1:] + 1], 0)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return concat([output_shape[:-1], output_shape[-1:] - 1], 0)

    def _forward(self, x: Tensor) -> Tensor:
        return softmax(concat([x, zeros_like(x[..., :1])], -1))

    def _inverse(self, y: Tensor) -> Tensor:
        return log(y[..., :-1]) - log(y[..., -1:])

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return -reduce_sum(log(y), -1)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        norm = softplus(reduce_logsumexp(x, -1, keepdims=True))
        return squeeze(reduce_sum(x - norm, -1, keepdims=True) - norm, [-1])


def _resized(given: TensorShape, more: int) -> TensorShape:
    dims = given.as_list()
    if len(dims) < 1:
        raise ValueError("SoftmaxCentered works on vectors")
    last = None if dims[-1] is None else dims[-1] + more
    return TensorShape([*dims[:-1], last])


class Reshape(Bijector):
    """An event in another shape, of which one size may be -1."""

    def __init__(
        self,
        event_shape_out: Any,
        event_shape_in: Any = (-1,),
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        self._out = convert_to_tensor(event_shape_out, int32)
        self._in = convert_to_tensor(event_shape_in, int32)
        super().__init__(
            is_constant_jacobian=True,
            validate_args=validate_args,
            forward_min_event_ndims=_length(self._in),
            inverse_min_event_ndims=_length(self._out),
            name=name or "reshape",
        )

    def _forward(self, x: Tensor) -> Tensor:
        return self._reshaped(x, self._in, self._out)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._reshaped(y, self._out, self._in)

    def _reshaped(self, value: Tensor, before: Tensor, after: Tensor) -> Tensor:
        whole = shape(value)
        found = reshape(value, concat([whole[: shape(whole)[0] - _length(before)], after], 0))
        if value.shape.rank is not None:
            count = value.shape.rank - _length(before)
            found.set_shape(
                value.shape[:count].concatenate(_other(value.shape[count:], before, after))
            )
        return found

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return no_change()

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        return _other(input_shape, self._in, self._out)

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        return _other(output_shape, self._out, self._in)

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return _other_tensor(input_shape, self._in, self._out)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return _other_tensor(output_shape, self._out, self._in)


def _length(dims: Tensor) -> int:
    count = dims.shape[0].value if dims.shape.rank == 1 else None
    if count is None:
        raise NotImplementedError("The rank of the shapes of a Reshape must be known")
    return int(count)


def _other(given: TensorShape, before: Tensor, after: Tensor) -> TensorShape:
    """The shape ``after``, its -1 replaced by what is left of ``given``."""
    wanted = constant_value(after)
    if wanted is None:
        return TensorShape([None] * _length(after))
    dims = [None if size < 0 else int(size) for size in wanted]
    total = given[given.rank - _length(before) :].num_elements() if given.rank is not None else None
    rest = [size for size in dims if size is not None]
    if len(rest) == len(dims) - 1 and total is not None:
        product = 1
        for size in rest:
            product *= size
        dims[dims.index(None)] = total // product
    return TensorShape(dims)


def _other_tensor(given: Tensor, before: Tensor, after: Tensor) -> Tensor:
    total = reduce_prod(given)
    known = reduce_prod(after) * -1  # the product of the others, if there is a -1
    return concat([_filled(after[i], total, known) for i in range(_length(after))], 0)


def _filled(size: Tensor, total: Tensor, others: Tensor) -> Tensor:
    return expand_dims(where_v2(size < 0, total // others, size), 0)
