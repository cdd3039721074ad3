"""Passing values on and ordering effects: identity, group, tuple, no_op, stop_gradient."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Any

import numpy

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shape_inference import unchanged


def _passes_on(name: str, attrs: str | list[str] = "T: type", **how: Any) -> OpDef:
    """An op whose output is its input."""
    op_def = register_op(name, inputs="input: T", outputs="output: T", attrs=attrs, **how)
    op_def.shape(unchanged)

    @op_def.kernel
    def _(xp, x):
        return x

    return op_def


identity_op = _passes_on("Identity")
stop_gradient_op = _passes_on("StopGradient", differentiable=False)
prevent_gradient_op = _passes_on("PreventGradient", attrs=["T: type", "message: string = ''"])
snapshot_op = _passes_on("Snapshot")
# Only TensorFlow's compiler for TPUs makes use of the promise.
guarantee_const_op = _passes_on("GuaranteeConst", stateful=True)


@identity_op.gradient
def _(op, grad):
    return grad


@snapshot_op.gradient
def _(op, grad):
    return grad


@prevent_gradient_op.gradient
def _(op, grad):
    raise LookupError(
        f"Gradients do not flow through {op.name!r} (PreventGradient): {op.attrs['message']}"
    )


identity_n_op = register_op(
    "IdentityN", inputs="input: T", outputs="output: T", attrs="T: list(type) >= 1"
)


@identity_n_op.shape
def _(tensors):
    return [t.dims for t in tensors]


@identity_n_op.kernel
def _(xp, values):
    return builtins.tuple(values)


@identity_n_op.gradient
def _(op, *grads):
    return list(grads)


barrier_op = register_op(
    "ComputationBarrier", inputs="input: T", outputs="output: T", attrs="T: list(type) >= 1"
)


@barrier_op.shape
def _(tensors):
    return [t.dims for t in tensors]


@barrier_op.kernel
def _(xp, values):
    if xp is numpy:
        return builtins.tuple(values)
    from jax import lax

    # XLA would see that what comes after has been computed before, and keep that.
    return builtins.tuple(lax.optimization_barrier(list(values)))


@barrier_op.gradient
def _(op, *grads):
    return list(grads)


no_op_op = register_op("NoOp", stateful=True)


@no_op_op.kernel
def _(xp):
    return ()


def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing; control dependencies give it meaning."""
    return no_op_op(name=name)


def identity(input: Any, name: str | None = None) -> Any:  # noqa: A002
    """A tensor with the value of ``input``."""
    if isinstance(input, IndexedSlices):
        return IndexedSlices(identity(input.values), identity(input.indices), input.dense_shape)
    return identity_op(input, name=name)


def guarantee_const(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """``input``, of which the program promises that it never changes. There is no gradient.

    Example:
        >>> weights = tf.guarantee_const(tf.get_variable("weights", [3]))
    """
    return guarantee_const_op(input, name=name)


def identity_n(input: list[Any], name: str | None = None) -> list[Tensor]:  # noqa: A002
    """Tensors with the values of the inputs; all are computed before any is passed on."""
    return identity_n_op([convert_to_tensor(v) for v in input], name=name)


def stop_gradient(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The value of ``input``, as a constant for differentiation."""
    return stop_gradient_op(input, name=name)


def _flatten(values: Iterable[Any]) -> list[Any]:
    flat: list[Any] = []
    for value in values:
        if isinstance(value, list | builtins.tuple) and not hasattr(value, "dense_shape"):
            flat += _flatten(value)
        elif isinstance(value, dict):
            flat += _flatten(value.values())
        elif value is not None:
            flat.append(value)
    return flat


def group(*inputs: Any, name: str | None = None) -> Operation:
    """An operation that runs after all of ``inputs`` (operations, tensors, nested lists).

    Example:
        >>> step = tf.group(update_a, update_b)
    """
    graph = get_default_graph()
    on_device: dict[str, list[Any]] = {}
    for value in _flatten(inputs):
        on_device.setdefault(getattr(value, "device", None) or "", []).append(value)
    with name_scope(name, "group_deps") as scope:
        gates: list[Any] = []
        for place, waits in sorted(on_device.items()):
            # Where they run: only its end has to be told elsewhere, not that of each.
            with graph.device(place), graph.control_dependencies(waits):
                gates.append(no_op_op(name=scope if len(on_device) == 1 else None))
        if len(gates) == 1:
            return gates[0]
        with graph.control_dependencies(gates):
            return no_op_op(name=scope)


def tuple(  # noqa: A001 (TensorFlow's name)
    tensors: list[Any], name: str | None = None, control_inputs: list[Any] | None = None
) -> list[Any]:
    """Tensors with the values of ``tensors``, available only when all of them are computed."""
    with name_scope(name, "tuple", [t for t in tensors if isinstance(t, Tensor)]) as scope:
        waits = [t for t in tensors if t is not None] + list(control_inputs or ())
        if not any(t is not None for t in tensors):
            raise ValueError("tuple must have at least one Tensor or Operation")
        gate = group(*waits)
        out: list[Any] = []
        with get_default_graph().control_dependencies([gate]):
            for value in tensors:
                if value is None or isinstance(value, Operation):
                    out.append(gate if value is not None else None)
                else:
                    out.append(identity(value, name="control_dependency"))
        del scope
        return out


def with_dependencies(
    dependencies: list[Any], output_tensor: Any, name: str | None = None
) -> Tensor:
    """``output_tensor``, available only after ``dependencies`` have run."""
    with name_scope(name, "control_dependency", [output_tensor]) as scope:  # noqa: SIM117
        with get_default_graph().control_dependencies(dependencies):
            return identity(output_tensor, name=scope)
