"""Cells of recurrent networks as single operations, as graphs of TensorFlow's block cells have.

The gates of an LSTM stand in the order input, new memory, forget, output: ``icfo``. Here the
compiler fuses cells that are built of small operations, so our own cells do not use these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.registry import register_op
from runnel.graph.shapes import Dims
from runnel.ops.arithmetic import multiply
from runnel.ops.half_precision import narrow, widen
from runnel.ops.joining import concat
from runnel.ops.matmul import matmul, multiply_matrices
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.splitting import split

_TYPES = "T: {half, float}"
_FORGET, _CLIP, _PEEPHOLE = (
    "forget_bias: float = 1.0",
    "cell_clip: float = 3.0",
    "use_peephole: bool = false",
)
_WEIGHTS = "w: T, wci: T, wcf: T, wco: T, b: T"
_ACTIVATIONS = "i: T, cs: T, f: T, o: T, ci: T, co: T"

lstm_block_cell_op = register_op(
    "LSTMBlockCell",
    inputs=f"x: T, cs_prev: T, h_prev: T, {_WEIGHTS}",
    outputs=f"{_ACTIVATIONS}, h: T",
    attrs=[_FORGET, _CLIP, _PEEPHOLE, _TYPES],
)
lstm_block_cell_grad_op = register_op(
    "LSTMBlockCellGrad",
    inputs=f"x: T, cs_prev: T, h_prev: T, {_WEIGHTS}, {_ACTIVATIONS}, cs_grad: T, h_grad: T",
    outputs="cs_prev_grad: T, dicfo: T, wci_grad: T, wcf_grad: T, wco_grad: T",
    attrs=["use_peephole: bool", _TYPES],
    differentiable=False,
)
block_lstm_op = register_op(
    "BlockLSTM",
    inputs=f"seq_len_max: int64, x: T, cs_prev: T, h_prev: T, {_WEIGHTS}",
    outputs=f"{_ACTIVATIONS}, h: T",
    attrs=[_FORGET, _CLIP, _PEEPHOLE, _TYPES],
)
block_lstm_grad_op = register_op(
    "BlockLSTMGrad",
    inputs=(
        f"seq_len_max: int64, x: T, cs_prev: T, h_prev: T, {_WEIGHTS}, {_ACTIVATIONS}, h: T, "
        "cs_grad: T, h_grad: T"
    ),
    outputs=(
        "x_grad: T, cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, wcf_grad: T, "
        "wco_grad: T, b_grad: T"
    ),
    attrs=["use_peephole: bool", _TYPES],
    differentiable=False,
)
gru_block_cell_op = register_op(
    "GRUBlockCell",
    inputs="x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T",
    outputs="r: T, u: T, c: T, h: T",
    attrs="T: {float}",
)
gru_block_cell_grad_op = register_op(
    "GRUBlockCellGrad",
    inputs=("x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T, r: T, u: T, c: T, d_h: T"),
    outputs="d_x: T, d_h_prev: T, d_c_bar: T, d_r_bar_u_bar: T",
    attrs="T: {float}",
    differentiable=False,
)


def _logistic(xp: Any, x: Any) -> Any:
    return 1 / (1 + xp.exp(-x))


# One step of an LSTM --------------------------------------------------------------------------


def _lstm_step(
    xp: Any, x: Any, cs_prev: Any, h_prev: Any, weights: Any, bias: float, clip: float, peep: bool
) -> tuple[Any, ...]:
    """The gates, memories and output of one step; everything is wide enough to compute with."""
    w, wci, wcf, wco, b = weights
    i, ci, f, o = xp.split(multiply_matrices(xp, xp.concatenate([x, h_prev], 1), w) + b, 4, 1)
    i = _logistic(xp, i + cs_prev * wci if peep else i)
    f = _logistic(xp, (f + bias) + cs_prev * wcf if peep else f + bias)
    ci = xp.tanh(ci)
    cs = ci * i + cs_prev * f
    if clip > 0:
        cs = xp.clip(cs, -clip, clip)
    o = _logistic(xp, o + cs * wco if peep else o)
    co = xp.tanh(cs)
    return i, cs, f, o, ci, co, o * co


def _lstm_step_gradient(
    xp: Any, cs_prev: Any, weights: Any, made: Any, cs_grad: Any, h_grad: Any, peep: bool
) -> tuple[Any, ...]:
    """What flows to the memory before, to the gates, and to the peepholes, of one step."""
    _, wci, wcf, wco, _ = weights
    i, cs, f, o, ci, co = made
    do = o * (1 - o) * h_grad * co
    dcs = (1 - co * co) * h_grad * o + cs_grad
    if peep:
        dcs = dcs + do * wco
    dci = (1 - ci * ci) * dcs * i
    df = f * (1 - f) * dcs * cs_prev
    di = i * (1 - i) * dcs * ci
    cs_prev_grad = dcs * f
    if not peep:
        none = xp.zeros_like(wci)
        return cs_prev_grad, xp.concatenate([di, dci, df, do], 1), none, none, none
    cs_prev_grad = cs_prev_grad + di * wci + df * wcf
    peepholes = (di * cs_prev).sum(0), (df * cs_prev).sum(0), (do * cs).sum(0)
    return cs_prev_grad, xp.concatenate([di, dci, df, do], 1), *peepholes


@lstm_block_cell_op.shape
def _(x, cs_prev, *_):
    return [cs_prev.dims] * 7


@lstm_block_cell_op.kernel
def _(xp, x, cs_prev, h_prev, w, wci, wcf, wco, b, *, forget_bias, cell_clip, use_peephole):
    x, *wide = map(widen, (given := (x, cs_prev, h_prev, w, wci, wcf, wco, b)))
    cs_prev, h_prev, *weights = wide
    made = _lstm_step(xp, x, cs_prev, h_prev, weights, forget_bias, cell_clip, use_peephole)
    return tuple(narrow(value, given[0].dtype) for value in made)


@lstm_block_cell_grad_op.shape
def _(x, cs_prev, h_prev, w, wci, wcf, wco, *_):
    dims = cs_prev.dims
    wide = None if dims is None else (dims[0], None if dims[1] is None else 4 * dims[1])
    return [dims, wide, wci.dims, wcf.dims, wco.dims]


@lstm_block_cell_grad_op.kernel
def _(
    xp,
    x,
    cs_prev,
    h_prev,
    w,
    wci,
    wcf,
    wco,
    b,
    i,
    cs,
    f,
    o,
    ci,
    co,
    cs_grad,
    h_grad,
    *,
    use_peephole,
):  # noqa: E501
    wide = [widen(value) for value in (w, wci, wcf, wco, b, i, cs, f, o, ci, co, cs_grad, h_grad)]
    weights, made, (cs_grad, h_grad) = wide[:5], wide[5:11], wide[11:]
    found = _lstm_step_gradient(xp, widen(cs_prev), weights, made, cs_grad, h_grad, use_peephole)
    return tuple(narrow(value, x.dtype) for value in found)


@lstm_block_cell_op.gradient
def _(op, *grads):
    x, cs_prev, h_prev, w, wci, wcf, wco, b = op.inputs
    i, cs, f, o, ci, co, _ = op.outputs
    cs_prev_grad, dicfo, *peepholes = lstm_block_cell_grad_op(
        *op.inputs, i, cs, f, o, ci, co, grads[1], grads[6], use_peephole=op.attrs["use_peephole"]
    )
    size = x.shape.as_list()[1]
    if size is None:
        raise ValueError(f"The depth of the input of {op.name!r} (LSTMBlockCell) must be known")
    x_grad, h_prev_grad = split(matmul(dicfo, w, transpose_b=True), [size, _units(h_prev)], 1)
    w_grad = matmul(concat([x, h_prev], 1), dicfo, transpose_a=True)
    return [x_grad, cs_prev_grad, h_prev_grad, w_grad, *peepholes, reduce_sum(dicfo, 0)]


def _units(state: Any) -> int:
    units = state.shape.as_list()[1]
    if units is None:
        raise ValueError(f"The number of units of {state.op.name!r} must be known")
    return int(units)


# An LSTM along a sequence ---------------------------------------------------------------------


def _scan(xp: Any, step: Callable[..., Any], first: Any, along: Any, backwards: bool) -> Any:
    """``step(carry, rows)`` for each time, as ``lax.scan`` does it; in a Python loop for NumPy."""
    if xp is not np:
        from jax import lax

        return lax.scan(step, first, along, reverse=backwards)
    times = range(len(along[0]))
    carry, made = first, []
    for time in reversed(times) if backwards else times:
        carry, out = step(carry, tuple(rows[time] for rows in along))
        made.append(out)
    if backwards:
        made.reverse()
    return carry, tuple(np.stack(rows) for rows in zip(*made))


def _sequence_dims(x: Any, cs_prev: Any) -> Dims:
    if x.dims is None or cs_prev.dims is None:
        return None
    return (*x.dims[:2], cs_prev.dims[1])


@block_lstm_op.shape
def _(seq_len_max, x, cs_prev, *_):
    return [_sequence_dims(x, cs_prev)] * 7


@block_lstm_op.kernel
def _(
    xp,
    seq_len_max,
    x,
    cs_prev,
    h_prev,
    w,
    wci,
    wcf,
    wco,
    b,
    *,
    forget_bias,
    cell_clip,
    use_peephole,
):  # noqa: E501
    dtype = x.dtype
    x, cs_prev, h_prev, *weights = map(widen, (x, cs_prev, h_prev, w, wci, wcf, wco, b))
    if x.shape[0] == 0:
        empty = xp.zeros((0, *cs_prev.shape), dtype)
        return (empty,) * 7

    def step(carry: Any, rows: Any) -> Any:
        (row, is_inside), (cs, h) = rows, carry
        made = _lstm_step(xp, row, cs, h, weights, forget_bias, cell_clip, use_peephole)
        made = tuple(xp.where(is_inside, value, xp.zeros_like(value)) for value in made)
        return (made[1], made[6]), made

    inside = xp.arange(x.shape[0]) < seq_len_max
    _, made = _scan(xp, step, (cs_prev, h_prev), (x, inside), backwards=False)
    return tuple(narrow(value, dtype) for value in made)


@block_lstm_grad_op.shape
def _(seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b, *_):
    return [t.dims for t in (x, cs_prev, h_prev, w, wci, wcf, wco, b)]


@block_lstm_grad_op.kernel
def _(
    xp,
    seq_len_max,
    x,
    cs_prev,
    h_prev,
    w,
    wci,
    wcf,
    wco,
    b,
    i,
    cs,
    f,
    o,
    ci,
    co,
    h,
    cs_grad,
    h_grad,
    *,
    use_peephole,
):  # noqa: E501
    dtype = x.dtype
    x, cs_prev, h_prev, *weights = map(widen, (x, cs_prev, h_prev, w, wci, wcf, wco, b))
    along = [widen(value) for value in (i, cs, f, o, ci, co, cs_grad, h_grad)]
    size = x.shape[2]
    totals = tuple(xp.zeros_like(weight) for weight in weights)
    if x.shape[0] == 0:
        none = x, xp.zeros_like(cs_prev), xp.zeros_like(h_prev), *totals
        return tuple(narrow(value, dtype) for value in none)
    before = [
        xp.concatenate([first[None], rows[:-1]])
        for first, rows in ((cs_prev, along[1]), (h_prev, widen(h)))
    ]

    def step(carry: Any, rows: Any) -> Any:
        cs_later, h_later, sums = carry
        row, is_inside, cs_before, h_before, *made, cs_now, h_now = rows
        cs_total, h_total = cs_now + cs_later, h_now + h_later
        found = _lstm_step_gradient(xp, cs_before, weights, made, cs_total, h_total, use_peephole)
        cs_back, dicfo, *peepholes = (
            xp.where(is_inside, value, xp.zeros_like(value)) for value in found
        )
        back = multiply_matrices(xp, dicfo, weights[0].T)
        w_part = multiply_matrices(xp, xp.concatenate([row, h_before], 1).T, dicfo)
        parts = (w_part, *peepholes, dicfo.sum(0))
        sums = tuple(total + part for total, part in zip(sums, parts))
        return (cs_back, back[:, size:], sums), (back[:, :size],)

    inside = xp.arange(x.shape[0]) < seq_len_max
    zero = xp.zeros_like(cs_prev)
    carry, (x_grad,) = _scan(
        xp, step, (zero, zero, totals), (x, inside, *before, *along), backwards=True
    )
    cs_back, h_back, sums = carry
    return tuple(narrow(value, dtype) for value in (x_grad, cs_back, h_back, *sums))


@block_lstm_op.gradient
def _(op, *grads):
    found = block_lstm_grad_op(
        *op.inputs, *op.outputs, grads[1], grads[6], use_peephole=op.attrs["use_peephole"]
    )
    return [None, *found]


# A GRU ----------------------------------------------------------------------------------------


@gru_block_cell_op.shape
def _(x, h_prev, *_):
    return [h_prev.dims] * 4


@gru_block_cell_op.kernel
def _(xp, x, h_prev, w_ru, w_c, b_ru, b_c):
    gates = _logistic(xp, multiply_matrices(xp, xp.concatenate([x, h_prev], 1), w_ru) + b_ru)
    r, u = xp.split(gates, 2, 1)
    c = xp.tanh(multiply_matrices(xp, xp.concatenate([x, r * h_prev], 1), w_c) + b_c)
    return r, u, c, u * h_prev + (1 - u) * c


@gru_block_cell_grad_op.shape
def _(x, h_prev, *_):
    dims = h_prev.dims
    wide = None if dims is None else (dims[0], None if dims[1] is None else 2 * dims[1])
    return [x.dims, dims, dims, wide]


@gru_block_cell_grad_op.kernel
def _(xp, x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, d_h):
    size = x.shape[1]
    d_c_bar = d_h * (1 - u) * (1 - c * c)
    d_u_bar = d_h * (h_prev - c) * u * (1 - u)
    of_c = multiply_matrices(xp, d_c_bar, w_c.T)
    d_hr = of_c[:, size:]
    d_gates = xp.concatenate([d_hr * h_prev * r * (1 - r), d_u_bar], 1)
    of_gates = multiply_matrices(xp, d_gates, w_ru.T)
    d_x = of_gates[:, :size] + of_c[:, :size]
    return d_x, of_gates[:, size:] + d_hr * r + d_h * u, d_c_bar, d_gates


@gru_block_cell_op.gradient
def _(op, *grads):
    x, h_prev, *_ = op.inputs
    r, u, c, _ = op.outputs
    d_x, d_h_prev, d_c, d_gates = gru_block_cell_grad_op(*op.inputs, r, u, c, grads[3])
    w_ru = matmul(concat([x, h_prev], 1), d_gates, transpose_a=True)
    w_c = matmul(concat([x, multiply(h_prev, r)], 1), d_c, transpose_a=True)
    return [d_x, d_h_prev, w_ru, w_c, reduce_sum(d_gates, 0), reduce_sum(d_c, 0)]
