"""Checks that run in the graph: assertions, and the search for NaN and infinity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shape_inference import unchanged
from runnel.ops.control import group, with_dependencies
from runnel.ops.reduce_functions import one_of
from runnel.ops.tensor_summary import summarize as summary

assert_op = register_op(
    "Assert",
    inputs="condition: bool, data: T",
    attrs=["T: list(type) >= 1", "summarize: int = 3"],
    stateful=True,
    differentiable=False,
)


@assert_op.kernel
def _(xp, condition, data, *, summarize, check):
    def explain() -> str:
        return "assertion failed: " + " ".join(summary(value, summarize) for value in data)

    check(condition.all(), explain)
    return ()


def _register_check(name: str, describe: Any) -> OpDef:
    op_def = register_op(
        name,
        inputs="tensor: T",
        outputs="output: T",
        attrs=["T: {float, double, half, bfloat16}", "message: string"],
        stateful=True,
    )
    op_def.shape(unchanged)

    @op_def.kernel
    def _(xp, x, *, message, check):
        check(
            xp.isfinite(x).all(), lambda: f"{message} : Tensor had {describe(x)} values{_where(x)}"
        )
        return x

    @op_def.gradient
    def _(op, grad):
        message = (
            "Not a number (NaN) or infinity (Inf) values detected in gradient. "
            f"{op.attrs['message']}"
        )
        return op_def(grad, message=message)

    return op_def


def _where(x: Any) -> str:
    """Where the first bad element is, and how many there are."""
    bad = np.argwhere(~np.isfinite(np.asarray(x, np.float64)))
    if not np.ndim(x):
        return ""
    at = ", ".join(map(str, bad[0]))
    return f" ({len(bad)} of {np.size(x)} elements, the first at [{at}])"


def _kinds(x: Any) -> str:
    found = [name for name, test in (("Inf", np.isinf), ("NaN", np.isnan)) if test(x).any()]
    return " and ".join(found)


def _signed_kinds(x: Any) -> str:
    wide = np.asarray(x, np.float64)
    tests = (("-Inf", wide == -np.inf), ("+Inf", wide == np.inf), ("NaN", np.isnan(wide)))
    found = [name for name, where in tests if where.any()]
    return found[0] if len(found) == 1 else ", ".join(found[:-1]) + " and " + found[-1]


check_numerics_op = _register_check("CheckNumerics", _kinds)
check_numerics_v2_op = _register_check("CheckNumericsV2", _signed_kinds)


# Functions ------------------------------------------------------------------------------------


def Assert(  # noqa: N802 (TensorFlow's name)
    condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None
) -> Operation:
    """An operation that fails the step, printing ``data``, unless ``condition`` holds everywhere.

    Example:
        >>> with tf.control_dependencies([tf.Assert(x > 0, [x])]):
        ...     y = tf.log(x)
    """
    if not isinstance(data, list | tuple) or not data:
        raise ValueError("data must be a list of at least one value to print")
    with name_scope(name, "Assert", [condition]):
        tensors = [convert_to_tensor(value) for value in data]
        limit = 3 if summarize is None else summarize
        return assert_op(convert_to_tensor(condition, "bool"), tensors, summarize=limit)


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """``tensor``; the step fails with ``message`` when it holds NaN or infinity.

    Example:
        >>> loss = tf.check_numerics(loss, "the loss")
    """
    return check_numerics_op(tensor, message=message, name=name)


def verify_tensor_all_finite(
    t: Any = None,
    msg: str | None = None,
    name: str | None = None,
    x: Any = None,
    message: str | None = None,
) -> Tensor:
    """``x`` (or ``t``); the step fails with ``message`` when it holds NaN or infinity."""
    value = one_of("x", x, "t", t)
    text = one_of("message", message, "msg", msg)
    with name_scope(name, "VerifyFinite", [value]):
        tensor = convert_to_tensor(value, name="x")
        return with_dependencies([check_numerics(tensor, text or "")], tensor)


def add_check_numerics_ops() -> Operation:
    """An operation that checks every floating point tensor now in the graph, in order."""
    checks: list[Any] = []
    graph = get_default_graph()
    for op in graph.get_operations():
        for index, output in enumerate(op.outputs):
            if not output.dtype.base_dtype.is_floating:
                continue
            if op.control_flow_context is not None:
                raise ValueError(
                    "add_check_numerics_ops cannot check tensors inside tf.cond or "
                    f"tf.while_loop, such as {output.name}; use tf.check_numerics there"
                )
            with graph.control_dependencies(checks):
                checks = [check_numerics(output, f"{op.name}:{index}")]
    return group(*checks)
