"""The primitives of dynamic control flow, from which conditionals and loops are made.

A tensor in a step may be *dead*: it lies on a branch that was not taken. ``Switch`` makes one of
its outputs dead; an operation with a dead input does not run, and its outputs are dead; ``Merge``
passes on whichever input is alive. ``Enter`` brings a tensor into a *frame*, in which a loop runs;
``NextIteration`` hands it to the next iteration, and ``Exit`` out of the frame. What runs them is
``runnel.runtime.dynamic.region``; they have no kernels.
"""

from __future__ import annotations

import numpy as np

from runnel.graph.errors import AbortedError
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shape_inference import unchanged
from runnel.graph.shapes import Dims, format_dims

_FRAME = [
    "T: type",
    "frame_name: string",
    "is_constant: bool = false",
    "parallel_iterations: int = 10",
]


def _by_value_and_by_reference(
    name: str, inputs: str, outputs: str, attrs: str | list[str]
) -> tuple[OpDef, OpDef]:
    """An op on values (where ``&T`` stands for ``T``), and its like on references to variables."""
    made = [
        register_op(
            prefix + name,
            inputs=inputs.replace("&T", data).replace("&N * T", many),
            outputs=outputs.replace("&T", data),
            attrs=attrs,
            host=True,
        )
        for prefix, data, many in (("", "T", "N * T"), ("Ref", "Ref(T)", "N * Ref(T)"))
    ]
    return made[0], made[1]


switch_op, ref_switch_op = _by_value_and_by_reference(
    "Switch", "data: &T, pred: bool", "output_false: &T, output_true: &T", "T: type"
)
merge_op, ref_merge_op = _by_value_and_by_reference(
    "Merge", "inputs: &N * T", "output: &T, value_index: int32", ["T: type", "N: int >= 1"]
)
enter_op, ref_enter_op = _by_value_and_by_reference("Enter", "data: &T", "output: &T", _FRAME)
exit_op, ref_exit_op = _by_value_and_by_reference("Exit", "data: &T", "output: &T", "T: type")
next_iteration_op, ref_next_iteration_op = _by_value_and_by_reference(
    "NextIteration", "data: &T", "output: &T", "T: type"
)
loop_cond_op = register_op(
    "LoopCond", inputs="input: bool", outputs="output: bool", host=True, differentiable=False
)
loop_cond_op.shape(unchanged)
to_bool_op = register_op(
    "ToBool", inputs="input: T", outputs="output: bool", attrs="T: type", differentiable=False
)
control_trigger_op = register_op("ControlTrigger", host=True, differentiable=False)
abort_op = register_op(
    "Abort",
    attrs=["error_msg: string = ''", "exit_without_error: bool = false"],
    host=True,
    stateful=True,
    differentiable=False,
)


@to_bool_op.shape
def _(value):
    return ()


@to_bool_op.kernel
def _(xp, value):
    """Whether a scalar is not zero or empty; another tensor is true if it has elements."""
    if xp.ndim(value):
        return xp.asarray(value.size > 0)
    if xp is np and np.asarray(value).dtype == object:
        return np.asarray(len(np.asarray(value).item()) > 0)
    return value != 0


@abort_op.kernel
def _(xp, *, error_msg, exit_without_error):
    # TensorFlow's ends the process; a step that fails is enough.
    if not exit_without_error:
        raise AbortedError(None, None, error_msg or "Abort was run")
    return ()


for _op in (switch_op, ref_switch_op):

    @_op.shape
    def _(data, pred):
        if pred.dims not in ((), None):
            raise ValueError(f"pred must be a scalar, but has shape {format_dims(pred.dims)}")
        return [data.dims, data.dims]


for _op in (exit_op, ref_exit_op, next_iteration_op, ref_next_iteration_op):
    _op.shape(unchanged)


for _op in (enter_op, ref_enter_op):

    @_op.shape
    def _(data, *, is_constant):
        # A loop variable may change its shape from one iteration to the next.
        return data.dims if is_constant else None


for _op in (merge_op, ref_merge_op):

    @_op.shape
    def _(tensors):
        # A loop's second input is made later and may change its shape: the loop's invariants
        # say what holds in every iteration (``runnel.control_flow.while_context``).
        return [_common(tensors), ()]


def _common(tensors: list[Tensor]) -> Dims:
    """What holds of the shape of every one of ``tensors``."""
    common = tensors[0].dims
    for tensor in tensors[1:]:
        if common is None or tensor.dims is None or len(common) != len(tensor.dims):
            return None
        pairs = zip(common, tensor.dims, strict=True)
        common = tuple([a if a == b else None for a, b in pairs])
    return common


# Ops on frames and branches, by type: what the executor treats in its own way.
SWITCHES = frozenset({"Switch", "RefSwitch"})
MERGES = frozenset({"Merge", "RefMerge"})
ENTERS = frozenset({"Enter", "RefEnter"})
EXITS = frozenset({"Exit", "RefExit"})
NEXT_ITERATIONS = frozenset({"NextIteration", "RefNextIteration"})
CONTROL_FLOW = SWITCHES | MERGES | ENTERS | EXITS | NEXT_ITERATIONS | {"LoopCond", "ControlTrigger"}


def is_switch(op: Operation) -> bool:
    """True for Switch and RefSwitch."""
    return op.op_def.name in SWITCHES


def is_loop_merge(op: Operation) -> bool:
    """True for the Merge at the start of a loop's iterations."""
    return op.op_def.name in MERGES and any(t.op.op_def.name in NEXT_ITERATIONS for t in op.inputs)


def switch(data: Tensor, pred: Tensor, name: str = "Switch") -> list[Tensor]:
    """``[when false, when true]``: ``data``, alive in the one that ``pred`` selects."""
    by_reference = data.dtype.is_ref_dtype
    return (ref_switch_op if by_reference else switch_op)(data, pred, name=name)


def merge(inputs: list[Tensor], name: str = "Merge") -> list[Tensor]:
    """The input that is alive, and its index."""
    by_reference = all(t.dtype.is_ref_dtype for t in inputs)
    return (ref_merge_op if by_reference else merge_op)(inputs, name=name)


def enter(
    data: Tensor,
    frame_name: str,
    is_constant: bool = False,
    parallel_iterations: int = 10,
    use_ref: bool = False,
    use_input_shape: bool = True,
    name: str = "Enter",
) -> Tensor:
    """``data`` in the frame; a constant one is there in every iteration."""
    entered = (ref_enter_op if use_ref and data.dtype.is_ref_dtype else enter_op)(
        data,
        frame_name=frame_name,
        is_constant=is_constant,
        parallel_iterations=parallel_iterations,
        name=name,
    )
    if use_input_shape:
        entered.set_shape(data.dims)
    return entered


def exit(data: Tensor, name: str = "Exit") -> Tensor:  # noqa: A001 (TensorFlow's name)
    """``data`` of the last iteration, outside its frame."""
    return (ref_exit_op if data.dtype.is_ref_dtype else exit_op)(data, name=name)


def next_iteration(data: Tensor, name: str = "NextIteration") -> Tensor:
    """``data`` in the next iteration."""
    by_reference = data.dtype.is_ref_dtype
    return (ref_next_iteration_op if by_reference else next_iteration_op)(data, name=name)


def loop_cond(pred: Tensor, name: str | None = None) -> Tensor:
    """``pred`` as the condition that decides whether a loop goes on."""
    return loop_cond_op(pred, name=name)
