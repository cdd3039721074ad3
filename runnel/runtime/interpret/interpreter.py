"""The interpreted tier: runs instructions with NumPy, at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from runnel.graph import errors
from runnel.graph.operation import Operation
from runnel.graph.shapes import format_dims
from runnel.ops.block_value import BlockValue
from runnel.ops.row_update import RowUpdate
from runnel.passes.program.kernel_call import CheckFailed
from runnel.passes.program.program import Node
from runnel.runtime.state.step_context import NodeWaiter, StepContext

if TYPE_CHECKING:
    from runnel.runtime.interpret.code import Instruction


def interpret(instructions: list[Instruction], slots: list[Any]) -> None:
    """Runs ``instructions`` over ``slots``; an error names the operation that failed."""
    take = slots.__getitem__
    node: Node | None = None
    args: tuple[int, ...] = ()
    try:
        for call, args, out, node in instructions:  # noqa: B007 (for the handler)
            if type(out) is int:
                slots[out] = call(*map(take, args))
            else:
                for slot, value in zip(out, call(*map(take, args)), strict=True):
                    slots[slot] = value
    except Exception as error:
        assert node is not None
        raise as_op_error(error, node, [slots[slot] for slot in args]) from error


def interpret_watched(
    instructions: list[Instruction], slots: list[Any], context: StepContext
) -> None:
    """Like :func:`interpret`, looking at the step and telling its observer at each instruction."""
    observer = context.observer
    for instruction in instructions:
        context.require_time(instruction.node)
        start = time.perf_counter_ns()
        interpret([instruction], slots)
        if observer is not None:
            end = time.perf_counter_ns()
            found = [slots[slot] for slot in instruction.outs]
            if any(isinstance(value, RowUpdate | BlockValue) for value in found):
                found = []  # of a variable in a mapped file: nobody sees it whole
            observer.operation(instruction.node, start, end, found)
    try:  # the last of them may have taken too long
        context.look()
    except errors.OpError as error:
        raise as_op_error(error, instructions[-1].node, ()) from None


def as_op_error(error: Exception, node: Node, inputs: Sequence[Any]) -> Exception:
    """``error`` as the OpError of ``node`` that says what its inputs were."""
    op = node.op
    if isinstance(error, errors.OpError):
        if error.op is not None:
            return error
        if isinstance(error, errors.CancelledError | errors.DeadlineExceededError):
            return type(error)(None, op, f"{op.name!r} was stopped. {error.message}")
        return type(error)(None, op, error.message)
    if isinstance(error, CheckFailed):
        return errors.InvalidArgumentError(None, op, str(error))
    if isinstance(error, MemoryError):
        return errors.ResourceExhaustedError(None, op, f"Out of memory: {error}")
    if isinstance(error, OSError):
        kind = errors.exception_type_from_os_error(error)
        return kind(None, op, f"{node.op_def.name} failed: {error}")
    if isinstance(error, ImportError) and error.name:
        module = error.name.partition(".")[0]
        package = {"PIL": "pillow"}.get(module, module)
        message = f"{node.op_def.name} needs the package {package}: pip install {package}"
        return errors.UnimplementedError(None, op, f"{message} ({error})")
    given = " and ".join(_describe(value) for value in inputs) or "none"
    if isinstance(error, ValueError) and str(error).startswith(_TOO_BIG):
        message = (
            f"{node.op_def.name} of {given} would make an array larger than any machine can "
            "address. Check the values that its shape comes from"
        )
        return errors.InvalidArgumentError(None, op, message)
    if isinstance(error, ValueError | TypeError | IndexError | ZeroDivisionError):
        message = f"{node.op_def.name} cannot take these inputs, {given}: {error}"
        return errors.InvalidArgumentError(None, op, message)
    message = f"{node.op_def.name} of {given} failed: {type(error).__name__}: {error}"
    return errors.UnknownError(None, op, message)


def arrived(waiter: NodeWaiter) -> Any:
    """The results that ``waiter`` has been told of, or the error."""
    if waiter.error is not None:
        raise as_op_error(waiter.error, waiter.node, ()) from waiter.error
    assert waiter.made is not None
    return waiter.made()


# How NumPy's errors begin when the size of an array does not fit 64 bits.
_TOO_BIG = ("array is too big", "Maximum allowed dimension exceeded", "Maximum allowed size")


def _describe(value: Any) -> str:
    """The type and shape of an array of either tier; a few integers with their values."""
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return type(value).__name__
    dtype = value.dtype
    described = f"{'string' if dtype == object else dtype} {format_dims(np.shape(value))}"
    if isinstance(value, np.ndarray | np.generic) and dtype.kind == "i" and value.size <= 8:
        return f"{described} {value.tolist()}"
    return described


def missing_variable(variable: Operation, node: Node) -> errors.FailedPreconditionError:
    """The error for a node that reads a variable that nothing has initialised."""
    return uninitialized(variable, f"{node.op.name!r} reads it")


def uninitialized(variable: Operation, use: str) -> errors.FailedPreconditionError:
    """The error for using a variable that nothing has initialised."""
    return errors.FailedPreconditionError(
        None,
        variable,
        f"Attempting to use uninitialized value {variable.name}: {use}. "
        "Run its initializer first, e.g. session.run(tf.global_variables_initializer())",
    )
