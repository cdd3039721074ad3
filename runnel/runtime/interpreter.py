"""The interpreted tier: runs instructions with NumPy, at once."""

from __future__ import annotations

import time
from typing import Any

from runnel.graph import errors
from runnel.graph.operation import Operation
from runnel.passes.kernel_call import CheckFailed
from runnel.passes.program import Node
from runnel.runtime.code import Instruction


def interpret(instructions: list[Instruction], slots: list[Any]) -> None:
    """Runs ``instructions`` over ``slots``; an error names the operation that failed."""
    take = slots.__getitem__
    node: Node | None = None
    try:
        for call, args, out, node in instructions:  # noqa: B007 (for the handler)
            if type(out) is int:
                slots[out] = call(*map(take, args))
            else:
                for slot, value in zip(out, call(*map(take, args)), strict=True):
                    slots[slot] = value
    except Exception as error:
        assert node is not None
        raise as_op_error(error, node, slots) from error


def interpret_until(
    instructions: list[Instruction], slots: list[Any], deadline: float, observe: Any = None
) -> None:
    """Like :func:`interpret`, with a deadline (``time.monotonic``) and an observer.

    ``observe(node, start_ns, end_ns, outputs)`` is called after each instruction.
    """
    for instruction in instructions:
        if time.monotonic() > deadline:
            raise errors.DeadlineExceededError(
                None,
                instruction.node.op,
                "The step ran out of time (RunOptions.timeout_in_ms) before this operation",
            )
        start = time.perf_counter_ns()
        interpret([instruction], slots)
        if observe is not None:
            out = instruction.out if type(instruction.out) is tuple else (instruction.out,)
            end = time.perf_counter_ns()
            observe(instruction.node, start, end, [slots[slot] for slot in out])


def as_op_error(error: Exception, node: Node, slots: list[Any] | None = None) -> Exception:
    """``error`` as the OpError of ``node`` that says what its inputs were."""
    op = node.op
    if isinstance(error, errors.OpError):
        if error.op is None:
            return type(error)(None, op, error.message)
        return error
    if isinstance(error, CheckFailed):
        return errors.InvalidArgumentError(None, op, str(error))
    if isinstance(error, MemoryError):
        return errors.ResourceExhaustedError(None, op, f"Out of memory: {error}")
    kind: type[errors.OpError] = errors.InvalidArgumentError
    if not isinstance(error, ValueError | TypeError | IndexError | ZeroDivisionError):
        kind = errors.UnknownError
    return kind(None, op, f"{type(error).__name__}: {error}")


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
