"""Fourier transforms of the last one, two or three dimensions, of complex and of real numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shape_inference import unchanged
from runnel.graph.shapes import format_dims
from runnel.ops.arithmetic import maximum, minimum
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.complex_numbers import real
from runnel.ops.joining import concat
from runnel.ops.padding import pad
from runnel.ops.ranges import range as sequence
from runnel.ops.reduce_functions import reduce_prod
from runnel.ops.rolling import roll
from runnel.ops.slicing import slice as slice_of

_COMPLEX = "Tcomplex: {complex64, complex128} = DT_COMPLEX64"
_REAL = "Treal: {float, double} = DT_FLOAT"


def _label(rank: int) -> str:
    return "" if rank == 1 else f"{rank}D"


def _require_rank(x: Any, rank: int) -> None:
    if x.ndim < rank:
        raise InvalidArgumentError(
            None, None, f"input must have at least {rank} dimensions, not {list(x.shape)}"
        )


def _complex_op(name: str, rank: int) -> OpDef:
    op_def = register_op(
        f"{name}{_label(rank)}",
        inputs="input: Tcomplex",
        outputs="output: Tcomplex",
        attrs=_COMPLEX,
    )
    op_def.shape(unchanged)
    axes = tuple(range(-rank, 0))

    @op_def.kernel
    def _(xp, x):
        _require_rank(x, rank)
        transform = xp.fft.fftn if name == "FFT" else xp.fft.ifftn
        return transform(x, axes=axes).astype(x.dtype)

    return op_def


def _count(x: Tensor, rank: int) -> Any:
    """How many elements a transform covers, as a number of the type of ``x``."""
    return cast(reduce_prod(shape_of(x)[-rank:]), x.dtype.real_dtype)


def _adjoint(forward: OpDef, backward: OpDef, rank: int) -> None:
    @forward.gradient
    def _(op, grad):
        size = cast(_count(grad, rank), grad.dtype)
        return backward(grad) * size

    @backward.gradient
    def _(op, grad):
        size = cast(_count(grad, rank), grad.dtype)
        return forward(grad) / size


def _static_lengths(length: Tensor, rank: int) -> list[int | None]:
    known = constant_value(length)
    return [None] * rank if known is None else known.tolist()


def _real_op(name: str, rank: int) -> OpDef:
    is_inverse = name == "IRFFT"
    op_def = register_op(
        f"{name}{_label(rank)}",
        inputs=f"input: {'Tcomplex' if is_inverse else 'Treal'}, fft_length: int32",
        outputs=f"output: {'Treal' if is_inverse else 'Tcomplex'}",
        attrs=[_REAL, _COMPLEX],
        static_inputs=("fft_length",),
    )

    @op_def.shape
    def _(x, fft_length):
        if x.dims is None:
            return None
        if len(x.dims) < rank:
            raise ValueError(f"input must have rank {rank} or more, not {format_dims(x.dims)}")
        lengths = _static_lengths(fft_length, rank)
        last = lengths[-1]
        if not is_inverse and last is not None:
            lengths[-1] = last // 2 + 1 if last else 0
        return (*x.dims[:-rank], *lengths)

    axes = tuple(range(-rank, 0))

    @op_def.kernel
    def _(xp, x, fft_length, *, Tcomplex, Treal):  # noqa: N803 (TensorFlow's names)
        _require_rank(x, rank)
        lengths = fft_length.tolist()
        target = Treal.np_dtype if is_inverse else Tcomplex.np_dtype
        needed = [*lengths[:-1], lengths[-1] // 2 + 1 if is_inverse else lengths[-1]]
        if x.size and any(size < need for size, need in zip(x.shape[-rank:], needed, strict=True)):
            raise InvalidArgumentError(
                None,
                None,
                f"input of shape {list(x.shape)} is too small for fft_length {lengths}: it needs "
                f"at least {needed}",
            )
        if 0 in lengths or 0 in x.shape:
            tail = lengths if is_inverse else [*lengths[:-1], lengths[-1] // 2 + 1]
            tail = [0 if not lengths[-1] else size for size in tail] if not is_inverse else tail
            return xp.zeros((*x.shape[:-rank], *tail), target)
        transform = xp.fft.irfftn if is_inverse else xp.fft.rfftn
        return transform(x, s=lengths, axes=axes).astype(target)

    return op_def


_TRANSFORMS: dict[str, OpDef] = {}
for _rank in (1, 2, 3):
    for _name in ("FFT", "IFFT"):
        _TRANSFORMS[f"{_name}{_label(_rank)}"] = _complex_op(_name, _rank)
    for _name in ("RFFT", "IRFFT"):
        _TRANSFORMS[f"{_name}{_label(_rank)}"] = _real_op(_name, _rank)
    _adjoint(_TRANSFORMS[f"FFT{_label(_rank)}"], _TRANSFORMS[f"IFFT{_label(_rank)}"], _rank)


# Gradients of the real transforms ----------------------------------------------------------------


def _real_gradient(rank: int) -> None:
    label = _label(rank)
    forward, backward = _TRANSFORMS[f"RFFT{label}"], _TRANSFORMS[f"IRFFT{label}"]

    @forward.gradient
    def _(op, grad):
        """The transform is linear: the real part of the adjoint of the complex one."""
        x, length = op.inputs
        sizes = shape_of(x)[-rank:]
        whole = _padded_last(grad, length[-1] - shape_of(grad)[-1], rank)
        adjoint: Any = real(_TRANSFORMS[f"IFFT{label}"](whole))
        scaled = adjoint * cast(reduce_prod(length), adjoint.dtype)
        return [_fitted(scaled, sizes, length, rank), None]

    @backward.gradient
    def _(op, grad):
        """Each kept frequency stands for itself and, but for the ends, for its mirror image."""
        x, length = op.inputs
        spectrum = forward(grad, length, Tcomplex=x.dtype.base_dtype)
        last = length[-1]
        half = last // 2 + 1
        places = sequence(half)
        ends = cast((places > 0) & (places * 2 < last), grad.dtype)
        weights = (1 + ends) / cast(reduce_prod(length), grad.dtype)
        weighted = spectrum * cast(weights, spectrum.dtype)
        target = concat([length[:-1], reshape(half, [1])], 0)
        return [_fitted(weighted, shape_of(x)[-rank:], target, rank), None]


def _padded_last(x: Tensor, missing: Any, rank: int) -> Tensor:
    """``x`` with zeros behind the last dimension."""
    dims = len(x.dims or ())
    after = concat([[0] * (dims - 1), reshape(missing, [1])], 0)
    return pad(x, reshape(concat([[[0]] * dims, reshape(after, [-1, 1])], 1), [dims, 2]))


def _fitted(x: Tensor, sizes: Tensor, have: Tensor, rank: int) -> Tensor:
    """``x`` with zeros for what the transform had cut off its input."""
    dims = len(x.dims or ())
    lead = [0] * (dims - rank)
    after = concat([lead, sizes - have], 0) if lead else sizes - have
    return pad(x, concat([[[0]] * dims, reshape(after, [-1, 1])], 1))


for _rank in (1, 2, 3):
    _real_gradient(_rank)


# Functions ---------------------------------------------------------------------------------------


def _of_complex(name: str, x: Any, given: str | None) -> Tensor:
    tensor = convert_to_tensor(x, dtype_hint=dtypes.complex64)
    return _TRANSFORMS[name](tensor, name=given)


def fft(input: Any, name: str | None = None) -> Tensor:  # noqa: A002 (TensorFlow's name)
    """The Fourier transform of the last dimension."""
    return _of_complex("FFT", input, name)


def ifft(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The inverse of :func:`fft`."""
    return _of_complex("IFFT", input, name)


def fft2d(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The Fourier transform of the last two dimensions."""
    return _of_complex("FFT2D", input, name)


def ifft2d(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The inverse of :func:`fft2d`."""
    return _of_complex("IFFT2D", input, name)


def fft3d(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The Fourier transform of the last three dimensions."""
    return _of_complex("FFT3D", input, name)


def ifft3d(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The inverse of :func:`fft3d`."""
    return _of_complex("IFFT3D", input, name)


def _forward(x: Any, length: Any, rank: int, name: str | None) -> Tensor:
    with name_scope(name, f"rfft{_label(rank).lower()}", [x, length]) as scope:
        x = convert_to_tensor(x, dtypes.float32 if not isinstance(x, Tensor) else None)
        length = _lengths(x, length, rank)
        x = _resized(x, length, rank)
        wide = x.dtype.base_dtype is dtypes.float64
        kind = dtypes.complex128 if wide else dtypes.complex64
        return _TRANSFORMS[f"RFFT{_label(rank)}"](x, length, Tcomplex=kind, name=scope)


def _inverse(x: Any, length: Any, rank: int, name: str | None) -> Tensor:
    with name_scope(name, f"irfft{_label(rank).lower()}", [x, length]) as scope:
        x = convert_to_tensor(x, dtype_hint=dtypes.complex64)
        length = _lengths(x, length, rank, halved=True)
        half = concat([length[:-1], length[-1:] // 2 + 1], 0)
        x = _resized(x, half, rank)
        wide = x.dtype.base_dtype is dtypes.complex128
        kind = dtypes.float64 if wide else dtypes.float32
        return _TRANSFORMS[f"IRFFT{_label(rank)}"](x, length, Treal=kind, name=scope)


def _lengths(x: Tensor, length: Any, rank: int, halved: bool = False) -> Tensor:
    if length is not None:
        return convert_to_tensor(length, dtypes.int32)
    sizes = shape_of(x)[-rank:]
    if halved:  # an even number of samples, unless told
        last = sizes[-1:] - 1
        return concat([sizes[:-1], 2 * last * cast(last > 0, dtypes.int32)], 0)
    return sizes


def _resized(x: Tensor, length: Tensor, rank: int) -> Tensor:
    """``x`` cut, or with zeros added, to ``length`` in the last dimensions."""
    if x.dims is None:
        raise ValueError("The rank of what is transformed must be known")
    dims = len(x.dims)
    lead = dims - rank
    wanted, sizes = _static_lengths(length, rank), x.dims[lead:]
    if None not in wanted and tuple(wanted) == sizes:
        return x
    have = shape_of(x)
    kept = concat([have[:lead], minimum(have[lead:], length)], 0) if lead else minimum(have, length)
    cut = slice_of(x, [0] * dims, kept)
    missing = maximum(length - have[lead:], 0)
    after = concat([[0] * lead, missing], 0) if lead else missing
    made = pad(cut, concat([[[0]] * dims, reshape(after, [-1, 1])], 1))
    made.set_shape([*x.dims[:lead], *wanted])
    return made


def rfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The Fourier transform of real numbers: the half of it that is not a mirror image."""
    return _forward(input_tensor, fft_length, 1, name)


def rfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """:func:`rfft` of the last two dimensions."""
    return _forward(input_tensor, fft_length, 2, name)


def rfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """:func:`rfft` of the last three dimensions."""
    return _forward(input_tensor, fft_length, 3, name)


def irfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The inverse of :func:`rfft`."""
    return _inverse(input_tensor, fft_length, 1, name)


def irfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The inverse of :func:`rfft2d`."""
    return _inverse(input_tensor, fft_length, 2, name)


def irfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The inverse of :func:`rfft3d`."""
    return _inverse(input_tensor, fft_length, 3, name)


def _shift_axes(x: Tensor, axes: Any) -> list[int]:
    if axes is None:
        return list(range(len(x.dims or ())))
    return [int(a) for a in np.atleast_1d(axes)]


def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """``x`` with the frequency 0 moved to the middle."""
    with name_scope(name, "fftshift", [x]):
        x = convert_to_tensor(x)
        places = _shift_axes(x, axes)
        return roll(x, [shape_of(x)[a] // 2 for a in places], places)


def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """The inverse of :func:`fftshift`."""
    with name_scope(name, "ifftshift", [x]):
        x = convert_to_tensor(x)
        places = _shift_axes(x, axes)
        return roll(x, [-(shape_of(x)[a] // 2) for a in places], places)
