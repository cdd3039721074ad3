"""The Euclidean norm as a loss and as a normaliser."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shape_inference import scalar
from runnel.ops.arithmetic import maximum, multiply
from runnel.ops.elementwise import rsqrt, square
from runnel.ops.half_precision import narrow, widen
from runnel.ops.reduce_functions import one_of, reduce_sum

l2_loss_op = register_op(
    "L2Loss", inputs="t: T", outputs="output: T", attrs="T: {half, bfloat16, float, double}"
)
l2_loss_op.shape(scalar)


@l2_loss_op.kernel
def _(xp, t):
    return narrow(xp.sum(xp.square(widen(t))) / 2, t.dtype)


@l2_loss_op.gradient
def _(op, grad):
    return op.inputs[0] * grad


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Half the sum of the squares: ``sum(t ** 2) / 2``.

    Example:
        >>> tf.Session().run(tf.nn.l2_loss([3.0, 4.0]))
        np.float32(12.5)
    """
    return l2_loss_op(t, name=name)


def l2_normalize(
    x: Any,
    axis: Any = None,
    epsilon: float = 1e-12,
    name: str | None = None,
    dim: Any = None,
) -> Tensor:
    """``x`` divided by its Euclidean norm over ``axis`` (all of it when None).

    ``epsilon`` bounds the squared norm from below. ``dim`` is the old name of ``axis``.

    Example:
        >>> tf.Session().run(tf.nn.l2_normalize([3.0, 4.0], 0))
        array([0.6, 0.8], dtype=float32)
    """
    axis = one_of("axis", axis, "dim", dim)
    with name_scope(name, "l2_normalize", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        square_sum = reduce_sum(square(x), axis, keepdims=True)
        return multiply(x, rsqrt(maximum(square_sum, epsilon)), name=scope)
