"""Activation functions: the rectifiers, the exponential units, softplus, softsign and relatives.

Each is an op with an op for its gradient, as in TensorFlow, so that graphs can be exchanged; the
gradient ops have gradients themselves, so derivatives of any order work.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shape_inference import unchanged
from runnel.graph.shapes import Dims, merge_dims
from runnel.ops.arithmetic import multiply
from runnel.ops.casting import cast
from runnel.ops.choice import choose
from runnel.ops.elementwise import abs as absolute
from runnel.ops.elementwise import negative, sigmoid, sign, tanh
from runnel.ops.fill import zeros_like
from runnel.ops.half_precision import narrow, widen
from runnel.ops.joining import concat
from runnel.ops.selection import where
from runnel.ops.special_functions import erf

_FLOAT = "T: {half, bfloat16, float, double}"
_REAL = "T: realnumbertype"
_LEAKY = ["alpha: float = 0.2", "T: {half, bfloat16, float, double} = DT_FLOAT"]


def _activation(name: str, attrs: str | list[str]) -> OpDef:
    op_def = register_op(name, inputs="features: T", outputs="activations: T", attrs=attrs)
    op_def.shape(unchanged)
    return op_def


def _backprop(name: str, attrs: str | list[str], of: str = "features") -> OpDef:
    """The op that gives the gradient for the features, from that of the activations."""
    op_def = register_op(name, inputs=f"gradients: T, {of}: T", outputs="backprops: T", attrs=attrs)

    @op_def.shape
    def _(gradients: Tensor, other: Tensor) -> Dims:
        return merge_dims(gradients.dims, other.dims)

    return op_def


# The rectified linear units --------------------------------------------------------------------

relu_op = _activation("Relu", "T: {realnumbertype, qint8}")
relu_grad_op = _backprop("ReluGrad", _REAL)
relu6_op = _activation("Relu6", _REAL)
relu6_grad_op = _backprop("Relu6Grad", _REAL)
leaky_relu_op = _activation("LeakyRelu", _LEAKY)
leaky_relu_grad_op = _backprop("LeakyReluGrad", _LEAKY)


@relu_op.kernel
def _(xp, x):
    return xp.maximum(x, 0)


@relu_grad_op.kernel
def _(xp, g, x):
    return choose(xp, x > 0, g, xp.zeros((), g.dtype))


@relu6_op.kernel
def _(xp, x):
    return xp.minimum(xp.maximum(x, 0), 6)


@relu6_grad_op.kernel
def _(xp, g, x):
    return choose(xp, (x > 0) & (x < 6), g, xp.zeros((), g.dtype))


@leaky_relu_op.kernel
def _(xp, x, *, alpha):
    wide = widen(x)
    return narrow(choose(xp, wide > 0, wide, alpha * wide), x.dtype)


@leaky_relu_grad_op.kernel
def _(xp, g, x, *, alpha):
    wide = widen(g)
    return narrow(choose(xp, x > 0, wide, alpha * wide), g.dtype)


# The outputs of Relu and Relu6 are positive (and below 6) exactly where the inputs are, so their
# gradients need only the outputs, and the inputs' memory can be reused.


@relu_op.gradient
def _(op, grad):
    return relu_grad_op(grad, op.outputs[0])


@relu_grad_op.gradient
def _(op, grad):
    return [relu_grad_op(grad, op.inputs[1]), zeros_like(op.inputs[1])]


@relu6_op.gradient
def _(op, grad):
    return relu6_grad_op(grad, op.outputs[0])


@relu6_grad_op.gradient
def _(op, grad):
    return [relu6_grad_op(grad, op.inputs[1]), zeros_like(op.inputs[1])]


@leaky_relu_op.gradient
def _(op, grad):
    return leaky_relu_grad_op(grad, op.inputs[0], alpha=op.attrs["alpha"])


@leaky_relu_grad_op.gradient
def _(op, grad):
    x = op.inputs[1]
    return [leaky_relu_grad_op(grad, x, alpha=op.attrs["alpha"]), zeros_like(x)]


# The exponential linear units --------------------------------------------------------------------

elu_op = _activation("Elu", _FLOAT)
elu_grad_op = _backprop("EluGrad", _FLOAT, of="outputs")
selu_op = _activation("Selu", _FLOAT)
selu_grad_op = _backprop("SeluGrad", _FLOAT, of="outputs")

# Klambauer et al., "Self-Normalizing Neural Networks", 2017: mean 0 and variance 1 are fixed.
_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


@elu_op.kernel
def _(xp, x):
    wide = widen(x)
    return narrow(choose(xp, wide < 0, xp.expm1(wide), wide), x.dtype)


@elu_grad_op.kernel
def _(xp, g, y):
    wide, out = widen(g), widen(y)
    return narrow(choose(xp, out < 0, wide * (out + 1), wide), g.dtype)


@selu_op.kernel
def _(xp, x):
    wide = widen(x)
    y = choose(xp, wide < 0, _SELU_SCALE_ALPHA * xp.expm1(wide), _SELU_SCALE * wide)
    return narrow(y, x.dtype)


@selu_grad_op.kernel
def _(xp, g, y):
    wide, out = widen(g), widen(y)
    grad = choose(xp, out < 0, wide * (out + _SELU_SCALE_ALPHA), wide * _SELU_SCALE)
    return narrow(grad, g.dtype)


@elu_op.gradient
def _(op, grad):
    return elu_grad_op(grad, op.outputs[0])


@selu_op.gradient
def _(op, grad):
    return selu_grad_op(grad, op.outputs[0])


def _exponential_unit_second_order(op: Any, grad: Tensor) -> list[Tensor]:
    g, y = op.inputs
    product = grad * g
    return [op.op_def(grad, y), where(y < 0, product, zeros_like(product))]


elu_grad_op.gradient(_exponential_unit_second_order)
selu_grad_op.gradient(_exponential_unit_second_order)


# Softplus and softsign ----------------------------------------------------------------------------

softplus_op = _activation("Softplus", _FLOAT)
softplus_grad_op = _backprop("SoftplusGrad", _FLOAT)
softsign_op = _activation("Softsign", _FLOAT)
softsign_grad_op = _backprop("SoftsignGrad", _FLOAT)


@softplus_op.kernel
def _(xp, x):
    wide = widen(x)
    return narrow(xp.maximum(wide, 0) + xp.log1p(xp.exp(-xp.abs(wide))), x.dtype)


@softplus_grad_op.kernel
def _(xp, g, x):
    return narrow(widen(g) / (xp.exp(-widen(x)) + 1), g.dtype)


@softsign_op.kernel
def _(xp, x):
    wide = widen(x)
    return narrow(wide / (xp.abs(wide) + 1), x.dtype)


@softsign_grad_op.kernel
def _(xp, g, x):
    return narrow(widen(g) / xp.square(xp.abs(widen(x)) + 1), g.dtype)


@softplus_op.gradient
def _(op, grad):
    return softplus_grad_op(grad, op.inputs[0])


@softplus_grad_op.gradient
def _(op, grad):
    g, x = op.inputs
    return [softplus_grad_op(grad, x), grad * g * sigmoid(x) * sigmoid(-x)]


@softsign_op.gradient
def _(op, grad):
    return softsign_grad_op(grad, op.inputs[0])


@softsign_grad_op.gradient
def _(op, grad):
    g, x = op.inputs
    through = softsign_grad_op(grad, x)
    return [through, -2 * g * through * sign(x) / (absolute(x) + 1)]


# Functions ----------------------------------------------------------------------------------------


def relu(features: Any, name: str | None = None) -> Tensor:
    """``max(features, 0)``.

    Example:
        >>> tf.Session().run(tf.nn.relu([-1.0, 2.0]))
        array([0., 2.], dtype=float32)
    """
    return relu_op(features, name=name)


def relu6(features: Any, name: str | None = None) -> Tensor:
    """``min(max(features, 0), 6)``."""
    return relu6_op(features, name=name)


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """``features`` where positive, ``alpha * features`` elsewhere; integers become float32."""
    features = convert_to_tensor(features, name="features")
    if features.dtype.is_integer:
        features = cast(features, dtypes.float32)
    return leaky_relu_op(features, alpha=np.asarray(alpha).item(), name=name)


def elu(features: Any, name: str | None = None) -> Tensor:
    """``exp(features) - 1`` where negative, ``features`` elsewhere (exponential linear unit)."""
    return elu_op(features, name=name)


def selu(features: Any, name: str | None = None) -> Tensor:
    """The scaled exponential linear unit, which keeps activations at mean 0 and variance 1."""
    return selu_op(features, name=name)


def softplus(features: Any, name: str | None = None) -> Tensor:
    """``log(exp(features) + 1)``, without overflow."""
    return softplus_op(features, name=name)


def softsign(features: Any, name: str | None = None) -> Tensor:
    """``features / (|features| + 1)``."""
    return softsign_op(features, name=name)


def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """The positive and the negative part of ``features``, concatenated along ``axis``.

    Example:
        >>> tf.Session().run(tf.nn.crelu([-1.0, 2.0]))
        array([0., 2., 1., 0.], dtype=float32)
    """
    with name_scope(name, "CRelu", [features]) as scope:
        features = convert_to_tensor(features, name="features")
        return relu_op(concat([features, -features], axis, name=scope))


def swish(features: Any, beta: Any = 1.0) -> Tensor:
    """``features * sigmoid(beta * features)``, also known as SiLU.

    Example:
        >>> tf.Session().run(tf.nn.swish([0.0, 100.0]))
        array([  0., 100.], dtype=float32)
    """
    with name_scope(None, "swish", [features]) as scope:
        features = convert_to_tensor(features, name="features")
        scaled = features if isinstance(beta, float | int) and beta == 1 else beta * features
        return multiply(features, sigmoid(scaled), name=scope)


silu = swish


def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Tensor:
    """``features`` times the probability that a standard normal variable is below it.

    ``approximate`` replaces the exact distribution function by one of tanh.
    """
    with name_scope(name, "Gelu", [features]):
        x = convert_to_tensor(features, name="features")
        if not x.dtype.is_floating:
            raise ValueError(f"gelu takes floating-point features, not {x.dtype.name}.")
        if approximate:
            inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
            return 0.5 * x * (1 + tanh(inner))
        return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """``log(sigmoid(x))``, without overflow.

    Example:
        >>> tf.Session().run(tf.log_sigmoid([-1000.0, 0.0]))
        array([-1.000000e+03, -6.931472e-01], dtype=float32)
    """
    with name_scope(name, "LogSigmoid", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return negative(softplus_op(-x), name=scope)
