"""Complex numbers: parts, modulus, angle and conjugate."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, get_op_def, register_op
from runnel.graph.shape_inference import broadcast, unchanged
from runnel.ops.broadcast_gradient import unbroadcast

_COMPLEX = "T: {complex64, complex128} = DT_COMPLEX64"
_REAL_OUTPUT = "Tout: {float, double} = DT_FLOAT"


def _register_part(
    name: str, kernel: Any, argument: str = "input", result: str = "output"
) -> OpDef:
    """An op from complex numbers to real ones."""
    op_def = register_op(
        name,
        inputs=f"{argument}: T",
        outputs=f"{result}: Tout",
        attrs=[_COMPLEX, _REAL_OUTPUT],
    )
    op_def.shape(unchanged)

    @op_def.kernel
    def _(xp, x, *, Tout):  # noqa: N803 (TensorFlow's attribute name)
        return kernel(xp, x).astype(Tout.np_dtype)

    return op_def


real_op = _register_part("Real", lambda xp, x: xp.real(x))
imag_op = _register_part("Imag", lambda xp, x: xp.imag(x))
angle_op = _register_part("Angle", lambda xp, x: xp.angle(x))
complex_abs_op = _register_part("ComplexAbs", lambda xp, x: xp.absolute(x), "x", "y")

conj_op = register_op(
    "Conj",
    inputs="input: T",
    outputs="output: T",
    attrs="T: {complex64, complex128, variant} = DT_COMPLEX64",
)
conj_op.shape(unchanged)


@conj_op.kernel
def _(xp, x):
    return xp.conjugate(x)


complex_op = register_op(
    "Complex",
    inputs="real: T, imag: T",
    outputs="out: Tout",
    attrs=["T: {float, double} = DT_FLOAT", "Tout: {complex64, complex128} = DT_COMPLEX64"],
)
complex_op.shape(broadcast)


@complex_op.kernel
def _(xp, re, im, *, Tout):  # noqa: N803 (TensorFlow's attribute name)
    # Not re + 1j * im: 1j * inf has a NaN real part.
    kind = Tout.np_dtype
    re, im = xp.broadcast_arrays(re, im)
    return xp.stack([re, im], axis=-1).view(kind)[..., 0]


@complex_op.kernel(tier="compiled")
def _(xp, re, im):
    from jax import lax

    return lax.complex(*xp.broadcast_arrays(re, im))


@real_op.gradient
def _(op, grad):
    return complex(grad, _zero(grad))


@imag_op.gradient
def _(op, grad):
    return complex(_zero(grad), grad)


@angle_op.gradient
def _(op, grad):
    x = op.inputs[0]
    re, im = real(x), imag(x)
    inverse = get_op_def("Reciprocal")(complex(im, re))
    return get_op_def("Neg")(inverse) * complex(grad, _zero(grad))


@complex_abs_op.gradient
def _(op, grad):
    modulus = op.outputs[0]
    scale = get_op_def("DivNoNan")(grad, modulus)
    return complex(scale, _zero(scale)) * op.inputs[0]


@conj_op.gradient
def _(op, grad):
    return conj_op(grad)


@complex_op.gradient
def _(op, grad):
    re, im = op.inputs
    return unbroadcast(re, im, real(grad), imag(grad))


def _zero(x: Tensor) -> Tensor:
    return convert_to_tensor(0.0, x.dtype.base_dtype)


# Functions ------------------------------------------------------------------------------------


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:  # noqa: A001
    """The complex tensor with the given parts, both float32 or both float64.

    Example:
        >>> tf.complex([1.0], [2.0])
        <tf.Tensor 'Complex:0' shape=(1,) dtype=complex64>
    """
    re = convert_to_tensor(real, name="real")
    im = convert_to_tensor(imag, name="imag", dtype_hint=re.dtype.base_dtype)
    with name_scope(name, "Complex", [re, im]) as scope:
        kinds = {re.dtype.base_dtype, im.dtype.base_dtype}
        if kinds == {dtypes.float64}:
            whole = dtypes.complex128
        elif kinds == {dtypes.float32}:
            whole = dtypes.complex64
        else:
            raise TypeError(
                "real and imag must both be float32 or both float64, "
                f"but are {re.dtype.name} and {im.dtype.name}"
            )
        return complex_op(re, im, Tout=whole, name=scope)


def _part(op_def: OpDef, x: Tensor, name: str | None) -> Tensor:
    return op_def(x, Tout=x.dtype.base_dtype.real_dtype, name=name)


def real(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The real part; a real tensor itself."""
    with name_scope(name, "Real", [input]) as scope:
        x = convert_to_tensor(input, name="input")
        return _part(real_op, x, scope) if x.dtype.is_complex else x


def imag(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The imaginary part; zeros for a real tensor."""
    with name_scope(name, "Imag", [input]) as scope:
        x = convert_to_tensor(input, name="input")
        return _part(imag_op, x, scope) if x.dtype.is_complex else get_op_def("ZerosLike")(x)


def angle(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The angle of each complex number, in (-pi, pi]; zeros for a real tensor."""
    with name_scope(name, "Angle", [input]) as scope:
        x = convert_to_tensor(input, name="input")
        return _part(angle_op, x, scope) if x.dtype.is_complex else get_op_def("ZerosLike")(x)


def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate; a real tensor itself."""
    with name_scope(name, "Conj", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex:
            return conj_op(x, name=scope)
        if x.dtype.is_floating or x.dtype.is_integer:
            return x
        raise TypeError(f"conj takes numbers, not {x.dtype.name}")
