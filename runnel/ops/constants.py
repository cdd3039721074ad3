"""Where values enter a graph: constants and placeholders."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import constant_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import TensorShape, as_dims, merge_dims

const_op = register_op(
    "Const", outputs="output: dtype", attrs="value: tensor, dtype: type", differentiable=False
)


@const_op.shape
def _(*, value):
    return value.shape


@const_op.kernel
def _(xp, *, value):
    return value


placeholder_op = register_op(
    "Placeholder",
    outputs="output: dtype",
    attrs=["dtype: type", "shape: shape = ?"],
    differentiable=False,
    stateful=True,
)


@placeholder_op.shape
def _(*, shape):
    return shape._dims


@placeholder_op.kernel(tier="interpreted")
def _(xp, *, dtype, shape, check):
    check(
        False,
        lambda: (
            f"You must feed a value for this placeholder (type {dtype.name}, shape {shape}): "
            "give it in feed_dict"
        ),
    )


placeholder_with_default_op = register_op(
    "PlaceholderWithDefault",
    inputs="input: dtype",
    outputs="output: dtype",
    attrs=["dtype: type", "shape: shape"],
)


@placeholder_with_default_op.shape
def _(value, *, shape):
    merge_dims(value.dims, shape._dims)  # the default must fit the declared shape
    return shape._dims


@placeholder_with_default_op.kernel
def _(xp, value):
    return value


@placeholder_with_default_op.gradient
def _(op, grad):
    return grad


def constant(
    value: Any,
    dtype: Any = None,
    shape: Any = None,
    name: str = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """A tensor that holds ``value`` in every step.

    ``shape`` reshapes it; where it has more elements, the last one is repeated
    (``verify_shape=True`` makes a different shape an error).

    Example:
        >>> tf.constant([1.0, 2.0])
        <tf.Tensor 'Const:0' shape=(2,) dtype=float32>
    """
    if isinstance(value, Tensor):
        raise TypeError(f"tf.constant takes a value, not the tensor {value.name}; use tf.identity")
    wanted = None if dtype is None else as_dtype(dtype)
    if verify_shape and shape is not None:
        tensor = constant_tensor(value, wanted, None, name)
        if tensor.dims != as_dims(shape):
            raise TypeError(f"Expected the shape {TensorShape(shape)}, but got {tensor.shape}.")
        return tensor
    return constant_tensor(value, wanted, shape, name)


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor whose value ``feed_dict`` gives in each step; running it without is an error.

    Example:
        >>> x = tf.placeholder(tf.float32, [None, 784])
    """
    wanted = as_dtype(dtype).base_dtype
    declared = TensorShape(shape)
    attrs = {"dtype": wanted, "shape": declared}
    add_op = get_default_graph().add_op
    return add_op(placeholder_op, (), attrs, (wanted,), name, dims=declared._dims).outputs[0]


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """A tensor that can be fed, and is ``input`` in steps that do not feed it."""
    return placeholder_with_default_op(input, shape=TensorShape(shape), name=name)


def is_placeholder(tensor: Tensor) -> bool:
    """True for a tensor that must be fed."""
    return tensor.op.type == "Placeholder"
