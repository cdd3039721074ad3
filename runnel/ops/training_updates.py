"""The operations of TensorFlow's own optimizers, for training graphs that it has written.

Optimizers here are graph code (``runnel.train``). What TensorFlow's add instead is registered from
one formula each: ``ApplyX`` on references, ``ResourceApplyX`` on handles, and, where a gradient may
be rows of a variable, ``SparseApplyX`` and ``ResourceSparseApplyX``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import merge_dims
from runnel.ops.row_update import RowUpdate
from runnel.ops.state import handle_dims

_NUMBER = (
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, bfloat16, uint16, complex128, "
    "half, uint32, uint64}"
)

Formula = Callable[..., tuple[Any, ...]]
"""From ``xp``, attributes, the variable, its slots and the other inputs to their new values."""


def _register(
    name: str, states: str, others: str, formula: Formula, *attrs: str, kinds: str = "rd"
) -> None:
    """Registers the operations of ``formula``.

    ``states`` are the variable and its slots, ``others`` the inputs after them, in TensorFlow's
    order. ``kinds`` has an "r" for references, a "d" for dense gradients and an "s" for sparse.
    """
    kept, given = states.split(), others.split()
    for prefix in ("", "Resource") if "r" in kinds else ("Resource",):
        for sparse in [False] * ("d" in kinds) + [True] * ("s" in kinds):
            _add(f"{prefix}{'Sparse' * sparse}Apply{name}", kept, given, formula, attrs, sparse)


def _add(
    name: str,
    states: list[str],
    others: list[str],
    formula: Formula,
    attrs: tuple[str, ...],
    sparse: bool,
) -> None:
    by_handle = name.startswith("Resource")
    inputs = [f"{state}: resource" if by_handle else f"{state}: Ref(T)" for state in states]
    for other in others:
        inputs.append("global_step: int64" if other == "global_step" else f"{other}: T")
        if sparse and other in ("grad", "delta"):
            inputs[-1] = "grad: T"
            inputs.append("indices: Tindices")
    op_def = register_op(
        name,
        inputs=", ".join(inputs),
        outputs="" if by_handle else "out: Ref(T)",
        attrs=[
            _NUMBER,
            *(["Tindices: {int32, int64}"] if sparse else []),
            "use_locking: bool = false",
            *attrs,
        ],
        updates=tuple(states),
        stateful=True,
        host=sparse,
        differentiable=False,
    )
    op_def.shape(_shape_of(op_def, len(states), others, sparse))
    names = [attr.partition(":")[0] for attr in attrs]
    kernel, op_def.row_kernel = _kernels(formula, len(states), others, sparse, names)
    op_def.kernel(kernel)


def _shape_of(op_def: OpDef, count: int, others: list[str], sparse: bool) -> Callable[..., Any]:
    gradient = next(i for i, other in enumerate(others) if other in ("grad", "delta"))

    def shape(*inputs: Any) -> Any:
        dims = [handle_dims(x) if x.dtype.name == "resource" else x.dims for x in inputs[:count]]
        whole = dims[0]
        for other in dims[1:]:
            whole = merge_dims(whole, other)
        if not sparse:
            merge_dims(whole, inputs[count + gradient].dims)
        return [whole] if op_def.outputs else []

    return shape


def _kernels(
    formula: Formula, count: int, others: list[str], sparse: bool, attrs: list[str]
) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    """The kernel, and that of an update of rows."""

    def dense(xp: Any, *inputs: Any, operation: Any) -> Any:
        chosen = {name: operation.attrs[name] for name in attrs}
        found = formula(xp, chosen, *inputs)
        return found[0] if count == 1 else found

    position = 0
    if sparse:
        position = count + 1 + next(i for i, o in enumerate(others) if o in ("grad", "delta"))

    def rows(*inputs: Any, operation: Any) -> Any:
        chosen = {name: operation.attrs[name] for name in attrs}
        indices = np.asarray(inputs[position]).reshape(-1)
        rest = list(inputs[count:position]) + list(inputs[position + 1 :])
        gradient = position - 1 - count
        _check(indices, inputs[:count], rest[gradient])
        grad = np.asarray(rest[gradient]).reshape(len(indices), *inputs[0].shape[1:])
        places, indices = np.unique(indices, return_inverse=True)
        states = [state[places] for state in inputs[:count]]
        # Rows that come several times are updated several times, one after the other.
        for chosen_rows in _once_each(indices):
            where = indices[chosen_rows]
            rest[gradient] = grad[chosen_rows]
            new = formula(np, chosen, *(state[where] for state in states), *rest)
            for state, value in zip(states, new, strict=True):
                state[where] = value
        found = [RowUpdate(*each) for each in zip(inputs, repeat(places), states, strict=False)]
        return found[0] if count == 1 else tuple(found)

    def whole(xp: Any, *inputs: Any, operation: Any) -> Any:
        found = rows(*inputs, operation=operation)
        return found.whole() if count == 1 else tuple(update.whole() for update in found)

    return (whole, rows) if sparse else (dense, None)


def _check(indices: np.ndarray, states: Sequence[np.ndarray], grad: Any) -> None:
    shape = states[0].shape
    if np.shape(grad) != (*np.shape(indices), *shape[1:]):
        raise ValueError(
            f"The gradient {np.shape(grad)} must have a row of {shape[1:]} for each of "
            f"{len(indices)} indices"
        )
    if any(state.shape != shape for state in states):
        raise ValueError(f"The slots must have the variable's shape, {shape}")
    bad = (indices < 0) | (indices >= shape[0])
    if bad.any():
        raise ValueError(f"The index {indices[bad][0]} is not in [0, {shape[0]})")


def _once_each(indices: np.ndarray) -> list[np.ndarray]:
    """Positions in ``indices``, in turns in each of which no index comes twice."""
    order = np.argsort(indices, kind="stable")
    sorted_indices = indices[order]
    starts = np.flatnonzero(np.r_[True, sorted_indices[1:] != sorted_indices[:-1]])
    turn = np.arange(len(indices)) - np.repeat(starts, np.diff(np.r_[starts, len(indices)]))
    return [np.sort(order[turn == n]) for n in range(int(turn.max(initial=-1)) + 1)]


# Formulas ---------------------------------------------------------------------------------------


def _shrunk(xp, prox, rate, l1, l2):
    """The proximal step of l1 and l2."""
    shrunk = xp.sign(prox) * xp.maximum(xp.abs(prox) - rate * l1, 0)
    return xp.where(l1 > 0, shrunk, prox) / (1 + l2 * rate)


def _gradient_descent(xp, attrs, var, alpha, delta):
    return (var - alpha * delta,)


def _proximal_gradient_descent(xp, attrs, var, alpha, l1, l2, delta):
    return (_shrunk(xp, var - alpha * delta, alpha, l1, l2),)


def _adadelta(xp, attrs, var, accum, accum_update, lr, rho, epsilon, grad):
    accum = accum * rho + grad * grad * (1 - rho)
    update = xp.sqrt(accum_update + epsilon) / xp.sqrt(accum + epsilon) * grad
    return var - update * lr, accum, accum_update * rho + update * update * (1 - rho)


def _adagrad(xp, attrs, var, accum, lr, grad):
    accum = accum + grad * grad if attrs["update_slots"] else accum
    return var - grad * lr / xp.sqrt(accum), accum


def _adagrad_v2(xp, attrs, var, accum, lr, epsilon, grad):
    accum = accum + grad * grad if attrs["update_slots"] else accum
    return var - grad * lr / (xp.sqrt(accum) + epsilon), accum


def _proximal_adagrad(xp, attrs, var, accum, lr, l1, l2, grad):
    accum = accum + grad * grad
    rate = lr / xp.sqrt(accum)
    return _shrunk(xp, var - grad * rate, rate, l1, l2), accum


def _adagrad_da(xp, attrs, var, total, squares, grad, lr, l1, l2, global_step):
    steps = xp.asarray(global_step).astype(var.dtype)
    total, squares = total + grad, squares + grad * grad
    shrunk = xp.sign(total) * xp.maximum(xp.abs(total) - l1 * steps, 0)
    shrunk = xp.where(l1 > 0, shrunk, total)
    return -lr * shrunk / (l2 * steps * lr + xp.sqrt(squares)), total, squares


def _ftrl(xp, attrs, var, accum, linear, grad, lr, l1, l2, lr_power):
    return _ftrl_v2(xp, attrs, var, accum, linear, grad, lr, l1, l2, l2 * 0, lr_power)


def _ftrl_v2(xp, attrs, var, accum, linear, grad, lr, l1, l2, l2_shrinkage, lr_power):
    new = accum + grad * grad
    root, old_root = new**-lr_power, accum**-lr_power
    shrunk = grad + 2 * l2_shrinkage * var
    if attrs["multiply_linear_by_lr"]:
        linear = linear + shrunk * lr - (root - old_root) * var
        bound, quadratic = l1 * lr, root + 2 * l2 * lr
    else:
        linear = linear + shrunk - (root - old_root) / lr * var
        bound, quadratic = l1, root / lr + 2 * l2
    found = (bound * xp.sign(linear) - linear) / quadratic
    return xp.where(xp.abs(linear) > bound, found, xp.zeros_like(found)), new, linear


def _momentum(xp, attrs, var, accum, lr, grad, momentum):
    accum = accum * momentum + grad
    if attrs["use_nesterov"]:
        return var - (grad * lr + accum * momentum * lr), accum
    return var - accum * lr, accum


def _keras_momentum(xp, attrs, var, accum, lr, grad, momentum):
    accum = accum * momentum - grad * lr
    if attrs["use_nesterov"]:
        return var + accum * momentum - grad * lr, accum
    return var + accum, accum


def _moments(m, v, beta1, beta2, grad):
    return m + (grad - m) * (1 - beta1), v + (grad * grad - v) * (1 - beta2)


def _adam(xp, attrs, var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad):
    rate = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m, v = _moments(m, v, beta1, beta2, grad)
    step = grad * (1 - beta1) + beta1 * m if attrs["use_nesterov"] else m
    return var - step * rate / (xp.sqrt(v) + epsilon), m, v


def _amsgrad(xp, attrs, var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad):
    rate = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m, v = _moments(m, v, beta1, beta2, grad)
    vhat = xp.maximum(vhat, v)
    return var - m * rate / (xp.sqrt(vhat) + epsilon), m, v, vhat


def _ada_max(xp, attrs, var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad):
    m = m + (grad - m) * (1 - beta1)
    v = xp.maximum(beta2 * v, xp.abs(grad))
    return var - lr / (1 - beta1_power) * (m / (v + epsilon)), m, v


def _rms_prop(xp, attrs, var, ms, mom, lr, rho, momentum, epsilon, grad):
    ms = ms + (grad * grad - ms) * (1 - rho)
    mom = mom * momentum + grad * lr / xp.sqrt(ms + epsilon)
    return var - mom, ms, mom


def _centered_rms_prop(xp, attrs, var, mg, ms, mom, lr, rho, momentum, epsilon, grad):
    ms = ms + (grad * grad - ms) * (1 - rho)
    mg = mg + (grad - mg) * (1 - rho)
    mom = mom * momentum + grad * lr / xp.sqrt(ms - mg * mg + epsilon)
    return var - mom, mg, ms, mom


def _add_sign(xp, attrs, var, m, lr, alpha, sign_decay, beta, grad):
    m = m * beta + grad * (1 - beta)
    agree = xp.sign(grad) * xp.sign(m)
    return var - lr * (alpha + sign_decay * agree) * grad, m


def _power_sign(xp, attrs, var, m, lr, logbase, sign_decay, beta, grad):
    m = m * beta + grad * (1 - beta)
    agree = xp.sign(grad) * xp.sign(m)
    return var - lr * xp.exp(logbase * sign_decay * agree) * grad, m


_SLOTS = "update_slots: bool = true"
_NESTEROV = "use_nesterov: bool = false"
_LINEAR = "multiply_linear_by_lr: bool = false"

_register("GradientDescent", "var", "alpha delta", _gradient_descent)
_register(
    "ProximalGradientDescent", "var", "alpha l1 l2 delta", _proximal_gradient_descent, kinds="rds"
)
_register("Adadelta", "var accum accum_update", "lr rho epsilon grad", _adadelta, kinds="rds")
_register("Adagrad", "var accum", "lr grad", _adagrad, _SLOTS, kinds="rds")
_register("AdagradV2", "var accum", "lr epsilon grad", _adagrad_v2, _SLOTS, kinds="rds")
_register("ProximalAdagrad", "var accum", "lr l1 l2 grad", _proximal_adagrad, kinds="rds")
_register(
    *("AdagradDA", "var gradient_accumulator gradient_squared_accumulator"),
    *("grad lr l1 l2 global_step", _adagrad_da),
    kinds="rds",
)
_register("Ftrl", "var accum linear", "grad lr l1 l2 lr_power", _ftrl, _LINEAR, kinds="rds")
_register(
    *("FtrlV2", "var accum linear", "grad lr l1 l2 l2_shrinkage lr_power", _ftrl_v2, _LINEAR),
    kinds="rds",
)
_register("Momentum", "var accum", "lr grad momentum", _momentum, _NESTEROV, kinds="rds")
_register("KerasMomentum", "var accum", "lr grad momentum", _keras_momentum, _NESTEROV, kinds="ds")
_ADAM = "beta1_power beta2_power lr beta1 beta2 epsilon grad"
_register("Adam", "var m v", _ADAM, _adam, _NESTEROV)
_register("AdamWithAmsgrad", "var m v vhat", _ADAM, _amsgrad, kinds="d")
_register("AdaMax", "var m v", "beta1_power lr beta1 beta2 epsilon grad", _ada_max)
_RMS = "lr rho momentum epsilon grad"
_register("RMSProp", "var ms mom", _RMS, _rms_prop, kinds="rds")
_register("CenteredRMSProp", "var mg ms mom", _RMS, _centered_rms_prop, kinds="rds")
_register("AddSign", "var m", "lr alpha sign_decay beta grad", _add_sign)
_register("PowerSign", "var m", "lr logbase sign_decay beta grad", _power_sign)
