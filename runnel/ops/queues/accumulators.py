"""Accumulators of gradients: ``tf.ConditionalAccumulator`` and the sparse one, and their ops.

Several workers apply gradients; whoever takes waits until enough have come. So synchronous training
waits for the first n of m workers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import TensorShape
from runnel.ops.queues.queue_ops import denoted
from runnel.queues.accumulator import Accumulator, DenseAccumulator, SparseAccumulator

_ATTRS = [
    "dtype: numbertype",
    "shape: shape",
    "container: string = ''",
    "shared_name: string = ''",
    "reduction_type: {'MEAN', 'SUM'} = 'MEAN'",
]


def _accumulator_op(name: str, handle: str, kind: type[Accumulator]) -> OpDef:
    made = register_op(
        name, outputs=f"handle: {handle}", attrs=_ATTRS, blocking=True, differentiable=False
    )
    made.shape((lambda: ()) if handle == "resource" else (lambda: (2,)))

    @made.kernel
    def _(xp, *, waiter, operation, dtype, shape, reduction_type):
        def make(shared: str) -> Accumulator:
            return kind(shared, dtype, shape._dims, reduction_type == "MEAN")

        def check(present: Accumulator) -> None:
            if (present.dtype, present.dims) != (dtype, shape._dims):
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Shared accumulator {present.name!r} has type {present.dtype.name} and shape "
                    f"{TensorShape(present.dims)}, but this operation says {dtype.name} and "
                    f"{shape}. Give one of them another shared_name",
                )

        return (waiter.resources.handle(operation, kind, make, check),)

    return made


dense_op = _accumulator_op("ResourceConditionalAccumulator", "resource", DenseAccumulator)
old_dense_op = _accumulator_op("ConditionalAccumulator", "Ref(string)", DenseAccumulator)
sparse_op = _accumulator_op("SparseConditionalAccumulator", "Ref(string)", SparseAccumulator)


def _on_accumulator(name: str, inputs: str = "", outputs: str = "", attrs: Any = ()) -> Any:
    """Registers an op on a string handle and its like on a resource handle; the latter first."""
    return tuple(
        register_op(
            op_name,
            inputs=f"handle: {kind}{', ' if inputs else ''}{inputs}",
            outputs=outputs,
            attrs=list(attrs),
            blocking=True,
            differentiable=False,
        )
        for op_name, kind in ((f"Resource{name}", "resource"), (name, "Ref(string)"))
    )


apply_ops = _on_accumulator(
    "AccumulatorApplyGradient", "local_step: int64, gradient: dtype", attrs=["dtype: numbertype"]
)
take_ops = _on_accumulator(
    "AccumulatorTakeGradient", "num_required: int32", "average: dtype", ["dtype: numbertype"]
)
set_step_ops = _on_accumulator("AccumulatorSetGlobalStep", "new_global_step: int64")
count_ops = _on_accumulator("AccumulatorNumAccumulated", "", "num_accumulated: int32")
dropped_ops = _on_accumulator("AccumulatorNumDropped", "", "num_dropped: int64")
apply_sparse_op = register_op(
    "SparseAccumulatorApplyGradient",
    inputs="handle: Ref(string), local_step: int64, gradient_indices: int64, "
    "gradient_values: dtype, gradient_shape: int64",
    attrs=["dtype: numbertype", "has_known_shape: bool"],
    blocking=True,
    differentiable=False,
)
take_sparse_op = register_op(
    "SparseAccumulatorTakeGradient",
    inputs="handle: Ref(string), num_required: int32",
    outputs="indices: int64, values: dtype, shape: int64",
    attrs="dtype: numbertype",
    blocking=True,
    differentiable=False,
)

for _op in apply_ops:

    @_op.kernel
    def _(xp, handle, local_step, gradient, *, waiter):
        denoted(handle, DenseAccumulator).apply(int(local_step), gradient)
        return ()


for _op in take_ops:
    _op.shape(lambda handle, num_required: None)

    @_op.kernel
    def _(xp, handle, num_required, *, waiter):
        return denoted(handle, DenseAccumulator).take(int(num_required), waiter)


for _op in set_step_ops:

    @_op.kernel
    def _(xp, handle, new_global_step, *, waiter):
        denoted(handle, Accumulator).set_step(int(new_global_step))
        return ()


for _op in count_ops:
    _op.shape(lambda handle: ())

    @_op.kernel
    def _(xp, handle, *, waiter):
        return (np.int32(denoted(handle, Accumulator).count),)


for _op in dropped_ops:
    _op.shape(lambda handle: ())

    @_op.kernel
    def _(xp, handle, *, waiter):
        return (np.int64(denoted(handle, Accumulator).dropped),)


@apply_sparse_op.kernel
def _(xp, handle, local_step, indices, values, shape, *, waiter, has_known_shape):
    known = shape if has_known_shape else None
    denoted(handle, SparseAccumulator).apply(int(local_step), indices, values, known)
    return ()


@take_sparse_op.shape
def _(handle, num_required):
    return [None, None, None]


@take_sparse_op.kernel
def _(xp, handle, num_required, *, waiter):
    return denoted(handle, SparseAccumulator).take(int(num_required), waiter)


class ConditionalAccumulatorBase:
    """An accumulator that exists already, denoted by ``accumulator_ref``."""

    _ops = 0
    """Which of a pair of ops serves the handle: 0 for a resource, 1 for a string."""

    def __init__(self, dtype: Any, shape: Any, accumulator_ref: Tensor) -> None:
        self._dtype = as_dtype(dtype)
        self._shape = TensorShape(shape)
        self._accumulator_ref = accumulator_ref
        self._name = accumulator_ref.op.name.split("/")[-1]

    @property
    def accumulator_ref(self) -> Tensor:
        """The tensor that denotes the accumulator."""
        return self._accumulator_ref

    @property
    def name(self) -> str:
        """The name of the accumulator."""
        return self._name

    @property
    def dtype(self) -> DType:
        """The type of the gradients."""
        return self._dtype

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """How many gradients have come since the last were taken."""
        return count_ops[self._ops](
            self._accumulator_ref, name=name or f"{self._name}_NumAccumulated"
        )

    def num_dropped(self, name: str | None = None) -> Tensor:
        """How many gradients came too late, ever. TensorFlow does not tell."""
        return dropped_ops[self._ops](
            self._accumulator_ref, name=name or f"{self._name}_NumDropped"
        )

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        """Moves the accumulator to a step: gradients of earlier steps are dropped."""
        return set_step_ops[self._ops](self._accumulator_ref, _step(new_global_step), name=name)


def _step(step: Any) -> Tensor:
    from runnel.ops.casting import cast

    return cast(convert_to_tensor(step), dtypes.int64)


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """A sum of dense gradients, whose mean (or sum) is taken when enough have come.

    A gradient says at which step it was computed; one from before the accumulator's own step is
    dropped. Taking moves to the next step.

    Example:
        >>> accumulator = tf.ConditionalAccumulator(tf.float32, shape=[784, 10])
        >>> apply = accumulator.apply_grad(gradient, local_step=step)
        >>> mean = accumulator.take_grad(num_required=4)  # waits for four
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        ref = dense_op(
            dtype=dtype,
            shape=TensorShape(shape),
            shared_name=shared_name or "",
            name=name,
            reduction_type=reduction_type,
        )
        super().__init__(dtype, shape, ref)

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Operation:
        """Adds a gradient that was computed at ``local_step``, unless that is over."""
        gradient = convert_to_tensor(grad, self._dtype)
        gradient.get_shape().assert_is_compatible_with(self._shape)
        return apply_ops[0](self._accumulator_ref, _step(local_step), gradient, name=name)

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """The mean (or sum) of the gradients, when there are ``num_required``."""
        taken = take_ops[0](self._accumulator_ref, num_required, dtype=self._dtype, name=name)
        taken.set_shape(self._shape)
        return taken


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """A sum of gradients of some rows; the mean of a row is over those gradients that had it.

    Example:
        >>> accumulator = tf.SparseConditionalAccumulator(tf.float32, shape=[1000, 64])
        >>> apply = accumulator.apply_indexed_slices_grad(slices, local_step=step)
        >>> mean = accumulator.take_indexed_slices_grad(num_required=4)
    """

    _ops = 1

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        ref = sparse_op(
            dtype=dtype,
            shape=TensorShape(shape),
            shared_name=shared_name or "",
            name=name,
            reduction_type=reduction_type,
        )
        super().__init__(dtype, shape, ref)

    def apply_indexed_slices_grad(
        self, grad: IndexedSlices, local_step: Any = 0, name: str | None = None
    ) -> Operation:
        """Adds a gradient that was computed at ``local_step``, unless that is over."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self,
        grad_indices: Any,
        grad_values: Any,
        grad_shape: Any = None,
        local_step: Any = 0,
        name: str | None = None,
    ) -> Operation:
        """Adds a gradient in parts: the rows' places, the rows, and the shape of the whole."""
        shape = [] if grad_shape is None else grad_shape
        return apply_sparse_op(
            self._accumulator_ref,
            _step(local_step),
            _step(grad_indices),
            convert_to_tensor(grad_values, self._dtype),
            convert_to_tensor(np.zeros(0, np.int64)) if grad_shape is None else _step(shape),
            has_known_shape=grad_shape is not None,
            name=name,
        )

    def take_grad(self, num_required: Any, name: str | None = None) -> list[Tensor]:
        """Places, rows and shape of the mean (or sum), when there are ``num_required``."""
        return take_sparse_op(self._accumulator_ref, num_required, dtype=self._dtype, name=name)

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """The mean (or sum) of the gradients, when there are ``num_required``."""
        indices, values, shape = self.take_grad(num_required, name)
        return IndexedSlices(values, indices, shape)
