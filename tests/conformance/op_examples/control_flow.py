"""Examples of the control flow primitives, and of what loops keep their values in."""

import numpy as np

from tests.conformance.exchange import Builder, Example, Inputs, Steps
from tests.conformance.op_examples.state import by_reference

TRUE = np.array(True)
FRAME = "frame"


def of_value(build):
    """An example that builds its fetches from a builder and the op's type."""

    def example_for(op_type: str) -> Example:
        return lambda b: [build(b, op_type)]

    return example_for


def of_reference(build):
    """An example on a variable, which is initialised first and read through the result."""

    def example_for(op_type: str) -> Example:
        def example(b: Builder) -> Steps:
            v, init = by_reference(b)
            return [init, b.op("Identity", build(b, op_type, v))]

        return example

    return example_for


def merged(b, op_type):
    one = b.op("Switch", [1.0, 2.0], TRUE)
    return b.op(op_type, Inputs([one[0], b.one("Neg", one[1])]))


def merged_references(b, op_type, v):
    return b.one(op_type, Inputs(b.op("RefSwitch", v, TRUE)))


def through_a_frame(*path):
    """A value that goes through ops of a frame, and out of it."""

    def build(b, op_type):
        value = b.one("Enter", [1.0, 2.0], frame_name=FRAME)
        for op in path:
            value = b.one(op, value)
        return b.op("Exit", value)

    return build


def references_through_a_frame(*path):
    def build(b, op_type, v):
        value = b.one("RefEnter", v, frame_name=FRAME)
        for op in path:
            value = b.one(op, value)
        return b.one("RefExit", value)

    return build


def pushed(b):
    """A stack and, as a bool that is true, the push of an element."""
    stack = b.one("StackV2", 10, elem_type=1, stack_name="s")
    push = b.one("StackPushV2", stack, 3.0)
    after = b.op("Switch", stack, b.one("Greater", push, 0.0))[1]
    return after, push


ROWS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def array(b, **attrs):
    """A TensorArray's handle, and the flow after three rows were written."""
    handle, flow = b.op("TensorArrayV3", 3, dtype=1, tensor_array_name="a", **attrs)
    return handle, b.one("TensorArrayScatterV3", handle, [2, 0, 1], ROWS, flow)


def in_middle(pair, argument):
    """The handle, an argument and the flow."""
    return pair[0], argument, pair[1]


def split_by_default(b, op_type):
    return split(b, "TensorArraySplitV3")


def written(b, op_type):
    handle, flow = b.op("TensorArrayV3", 2, dtype=1, tensor_array_name="w")
    flow = b.one(op_type, handle, 1, [1.0, 2.0], flow)
    return b.op("TensorArrayReadV3", handle, 1, flow, dtype=1)


def split(b, op_type):
    handle, flow = b.op("TensorArrayV3", 2, dtype=1, tensor_array_name="s")
    flow = b.one(op_type, handle, ROWS, np.array([1, 2]), flow)
    return b.op("TensorArrayConcatV3", handle, flow, dtype=1)


def gradients(b, op_type):
    """Two writes to one place of an array of gradients add up; an unwritten one is zero."""
    handle, flow = array(b)
    grad, flow = b.op(op_type, handle, flow, source="gradients")
    for _ in range(2):
        flow = b.one("TensorArrayWriteV3", grad, 1, [1.0, 2.0], flow)
    return b.op("TensorArrayGatherV3", grad, [0, 1], flow, dtype=1)


def gradients_with_shape(b, op_type):
    """Gradients with an axis in front of those of the elements."""
    handle, flow = array(b)
    grad, flow = b.op(op_type, handle, flow, [4], source="gradients")
    flow = b.one("TensorArrayWriteV3", grad, 1, np.ones([4, 2], np.float32), flow)
    return b.op("TensorArrayGatherV3", grad, [0, 1], flow, dtype=1)


EXAMPLES = {
    "TensorArrayGradWithShape": of_value(gradients_with_shape),
    "TensorArrayV3": of_value(
        lambda b, op: b.op("TensorArrayGatherV3", *in_middle(array(b), [1, 2]), dtype=1)
    ),
    "TensorArrayScatterV3": of_value(
        lambda b, op: b.op("TensorArrayGatherV3", *in_middle(array(b), [0, 1, 2]), dtype=1)
    ),
    "TensorArrayWriteV3": of_value(written),
    "TensorArrayReadV3": of_value(lambda b, op: b.op(op, *in_middle(array(b), 2), dtype=1)),
    "TensorArraySizeV3": of_value(lambda b, op: b.op(op, *array(b))),
    "TensorArrayGatherV3": of_value(lambda b, op: b.op(op, *in_middle(array(b), [2]), dtype=1)),
    "TensorArraySplitV3": of_value(split),
    "TensorArrayConcatV3": of_value(split_by_default),
    "TensorArrayGradV3": of_value(gradients),
    "TensorArrayCloseV3": of_value(lambda b, op: b.op(op, array(b)[0])),
    "Switch": of_value(lambda b, op: b.op(op, [1.0, 2.0], TRUE)[1:]),
    "RefSwitch": of_reference(lambda b, op, v: b.op(op, v, TRUE)[1]),
    "Merge": of_value(merged),
    "RefMerge": of_reference(merged_references),
    "Enter": of_value(through_a_frame()),
    "Exit": of_value(through_a_frame("Neg")),
    "NextIteration": of_value(through_a_frame("NextIteration", "NextIteration")),
    "RefEnter": of_reference(references_through_a_frame()),
    "RefExit": of_reference(references_through_a_frame()),
    "RefNextIteration": of_reference(references_through_a_frame("RefNextIteration")),
    "LoopCond": of_value(lambda b, op: b.op(op, TRUE)),
    "ToBool": [
        of_value(lambda b, op, x=x: b.op(op, x))
        for x in (0.0, 2.5, -1, False, "", "a", np.zeros(2, np.float32), np.zeros([0], np.float32))
    ],
    "ControlTrigger": of_value(lambda b, op: b.op(op)),
    "StackV2": of_value(lambda b, op: [pushed(b)[1]]),
    "StackPushV2": of_value(lambda b, op: [pushed(b)[1]]),
    "StackPopV2": of_value(lambda b, op: b.op(op, pushed(b)[0], elem_type=1)),
    "StackCloseV2": of_value(lambda b, op: b.op(op, pushed(b)[0])),
}
