"""Examples of operations on variables: each initialises one, changes it and reads it."""

import numpy as np

from tests.conformance.exchange import Builder, Example, Steps

START = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
ROWS = [2, 0]
UPDATES = np.array([[10, 20], [30, 40]], np.float32)
DENSE = np.array([[2, 2], [2, 2], [2, 2]], np.float32)
POINTS = [[2], [0]]


def by_reference(b: Builder, start: np.ndarray = START) -> tuple[str, list[str]]:
    """A reference variable and what initialises it."""
    v = b.one("VariableV2", shape=list(start.shape), dtype=start.dtype)
    return v, b.op("Assign", v, start)


def by_handle(b: Builder, start: np.ndarray = START) -> tuple[str, list[str]]:
    """A resource variable and what initialises it."""
    v = b.one("VarHandleOp", shape=list(start.shape), dtype=start.dtype, shared_name="v")
    return v, b.op("AssignVariableOp", v, start)


def updates_reference(*inputs, **attrs):
    def example_for(op_type: str) -> Example:
        def example(b: Builder) -> Steps:
            v, init = by_reference(b)
            update = b.op(op_type, v, *inputs, **attrs)
            return [init, update, b.op("Identity", v)]

        return example

    return example_for


def updates_handle(*inputs, **attrs):
    def example_for(op_type: str) -> Example:
        def example(b: Builder) -> Steps:
            v, init = by_handle(b)
            update = b.op(op_type, v, *inputs, **attrs)
            return [init, update, b.op("ReadVariableOp", v, dtype=1)]

        return example

    return example_for


EXAMPLES = {name: updates_reference(DENSE) for name in ("Assign", "AssignAdd", "AssignSub")}
EXAMPLES |= {
    name: updates_handle(DENSE)
    for name in ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
}
for suffix in ("Add", "Div", "Max", "Min", "Mul", "Sub", "Update"):
    EXAMPLES[f"Scatter{suffix}"] = updates_reference(ROWS, UPDATES)
    EXAMPLES[f"ResourceScatter{suffix}"] = updates_handle(ROWS, UPDATES)
    EXAMPLES[f"ScatterNd{suffix}"] = updates_reference(POINTS, UPDATES)
    EXAMPLES[f"ResourceScatterNd{suffix}"] = updates_handle(POINTS, UPDATES)
EXAMPLES["StridedSliceAssign"] = updates_reference([0, 1], [2, 2], [1, 1], [[8.0], [9.0]])
EXAMPLES["ResourceStridedSliceAssign"] = updates_handle([0, 1], [2, 2], [1, 1], [[8.0], [9.0]])


def variable(op_type: str) -> Example:
    def example(b: Builder) -> Steps:
        v = b.one(op_type, shape=[2], dtype=1)
        return [b.op("Assign", v, [1.0, 2.0]), b.op("Identity", v)]

    return example


def handle(_: str) -> Example:
    def example(b: Builder) -> Steps:
        v, init = by_handle(b)
        return [init, b.op("ReadVariableOp", v, dtype=1)]

    return example


def is_initialized(b: Builder) -> Steps:
    v, init = by_reference(b)
    asked = b.op("IsVariableInitialized", v)
    return [asked, init, asked]


def handle_is_initialized(b: Builder) -> Steps:
    v, init = by_handle(b)
    asked = b.op("VarIsInitializedOp", v)
    return [asked, init, asked]


def variable_shape(b: Builder) -> Steps:
    v, init = by_handle(b)
    return [init, b.op("VariableShape", v)]


def gather(b: Builder) -> Steps:
    v, init = by_handle(b)
    return [init, b.op("ResourceGather", v, ROWS, dtype=1)]


def gather_nd(b: Builder) -> Steps:
    v, init = by_handle(b)
    return [init, b.op("ResourceGatherNd", v, [[2, 1]], dtype=1)]


def count_up_to(b: Builder) -> Steps:
    v, init = by_reference(b, np.array(0, np.int32))
    count = b.op("CountUpTo", v, limit=3)
    return [init, count, count]


def count_handle_up_to(b: Builder) -> Steps:
    v, init = by_handle(b, np.array(0, np.int32))
    count = b.op("ResourceCountUpTo", v, limit=3, T=3)
    return [init, count, count]


def destroy(b: Builder) -> Steps:
    v, init = by_handle(b)
    return [init, b.op("DestroyResourceOp", v), b.op("VarIsInitializedOp", v)]


def read_without_copies(b: Builder) -> Steps:
    v, init = by_handle(b)
    return [init, b.op("DisableCopyOnRead", v), b.op("ReadVariableOp", v, dtype=1)]


EXAMPLES |= {
    "DisableCopyOnRead": lambda _: read_without_copies,
    "Variable": variable,
    "VariableV2": variable,
    "VarHandleOp": handle,
    "ReadVariableOp": handle,
    "IsVariableInitialized": lambda _: is_initialized,
    "VarIsInitializedOp": lambda _: handle_is_initialized,
    "VariableShape": lambda _: variable_shape,
    "ResourceGather": lambda _: gather,
    "ResourceGatherNd": lambda _: gather_nd,
    "CountUpTo": lambda _: count_up_to,
    "ResourceCountUpTo": lambda _: count_handle_up_to,
    "DestroyResourceOp": lambda _: destroy,
}
