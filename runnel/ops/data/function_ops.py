"""Datasets that functions make of the elements of others.

A function is part of the graph: some placeholders, and what is computed of them. The operation
names it; what it takes from outside of itself are inputs of the operation (``other_arguments``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import register_op
from runnel.ops.data.dataset_ops import METADATA, TYPES, dataset_op, number, pipeline_of
from runnel.ops.data.declared_types import of_types
from runnel.pipelines.choosing import GroupByWindow, Scan, TakeWhile
from runnel.pipelines.flattening import FlatMap, Interleave
from runnel.pipelines.mapping import Filter, Map, ParallelMap, reduced
from runnel.pipelines.pipeline import Element, Function, Pipeline, PipelineRun
from runnel.pipelines.sources import Generated, scalar
from runnel.threads import usable_cores


@dataclass(frozen=True, slots=True)
class GraphFunction:
    """A part of a graph as a function: of its arguments, then of what it captures."""

    arguments: tuple[Tensor, ...]
    captures: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


class GraphFunctions(dict[str, GraphFunction]):
    """The functions of a graph, by name."""


class PythonGenerators(dict[str, Callable[..., Callable[[], Any]]]):
    """The Python generators of a graph, by name; each gives what draws elements."""


def described(name: str, function: GraphFunction) -> Any:
    """The value of an attribute that names a function, and says which tensors it is made of."""
    from tensorboard.compat.proto.attr_value_pb2 import NameAttrList

    made = NameAttrList(name=name)
    for part in _PARTS:
        names = [tensor.name.encode() for tensor in getattr(function, part)]
        made.attr[part].list.s.extend(names)
    return made


_PARTS = ("arguments", "captures", "outputs")


def function_named(operation: Operation, name: Any) -> GraphFunction:
    """The function that an attribute of ``operation`` names; in a graph that was read, again."""
    functions = operation.graph.attached(GraphFunctions)
    key = f"{operation.name}:{name.name}"
    found = functions.get(name.name) or functions.get(key)
    if found is None:
        found = functions[key] = _found_again(operation, name)
    return found


def functions_of(operation: Operation) -> list[GraphFunction]:
    """The functions that the attributes of ``operation`` name."""
    named = [value for value in operation.attrs.values() if type(value).__name__ == "NameAttrList"]
    return [function_named(operation, value) for value in named]


def _found_again(operation: Operation, name: Any) -> GraphFunction:
    """The function whose tensors the attribute has; a graph may have been read into a scope."""
    scopes = operation.name.split("/")
    for depth in range(len(scopes)):
        prefix = "".join(f"{scope}/" for scope in scopes[:depth])
        try:
            parts = [
                tuple(
                    operation.graph.get_tensor_by_name(prefix + text.decode())
                    for text in name.attr[part].list.s
                )
                for part in _PARTS
            ]
        except (KeyError, ValueError):
            continue
        if parts[2]:
            return GraphFunction(*parts)
    raise InvalidArgumentError(
        None,
        None,
        f"The graph has no function {name.name!r}: TensorFlow's functions of datasets are not "
        "read from a GraphDef.",
    )


class BoundFunction:
    """A function of the graph with the values of what it captures, ready to be called."""

    def __init__(self, waiter: Any, function: GraphFunction, captured: Sequence[Any]) -> None:
        self._function, self._captured = function, list(captured)
        self._call = waiter.subgraph(function.outputs, (*function.arguments, *function.captures))
        self._texts = [i for i, out in enumerate(function.outputs) if out.dtype.name == "string"]

    def __call__(self, element: Sequence[Any], /) -> Element:
        made = self._call([*element, *self._captured])
        for place in self._texts:
            if not isinstance(made[place], np.ndarray):  # a kernel may give a string alone
                made[place] = scalar(made[place])
        return made

    @property
    def has_rows(self) -> bool:
        return self._call.has_rows

    def rows(self, columns: Sequence[Any], count: int, /) -> list[Any]:
        return self._call.rows(columns, self._captured, count)

    @property
    def name(self) -> str:
        scope = self._function.outputs[0].op.name.split("/")[0]
        return re.sub(r"^Dataset_[a-z_]*?_(?=[^_]*)", "", scope) if "Dataset_" in scope else scope

    @property
    def pipelines(self) -> list[Pipeline]:
        captures = zip(self._function.captures, self._captured, strict=True)
        return [pipeline_of(value) for tensor, value in captures if _is_dataset(tensor)]

    @property
    def state(self) -> str | None:
        """The operation that makes what it gives depend on more than what it is given."""
        seen: set[Operation] = set()
        known = {tensor.op for tensor in (*self._function.arguments, *self._function.captures)}
        left = [tensor.op for tensor in self._function.outputs]
        while left:
            op = left.pop()
            if op in seen or op in known:
                continue
            seen.add(op)
            if _keeps_state(op):
                return f"{op.name!r} ({op.type})"
            left += [tensor.op for tensor in op.inputs]
            left += op.control_inputs
        return None


def _is_dataset(tensor: Tensor) -> bool:
    return tensor.dtype.name == "variant" and tensor.op.type.endswith(("Dataset", "DatasetV2"))


def _keeps_state(op: Operation) -> bool:
    kind = op.op_def
    if kind.name.startswith(("LookupTable", "HashTable")) or any(map(_is_dataset, op.outputs)):
        return False
    changes = bool(kind.variable or kind.updates or kind.overwrites or kind.random)
    return changes or kind.blocking or kind.name in _PYTHON


_PYTHON = {"PyFunc", "PyFuncStateless", "EagerPyFunc"}


def bound_function(
    waiter: Any, operation: Operation, name: Any, captured: Sequence[Any]
) -> Function:
    """The function that an attribute of ``operation`` names, with what it captures."""
    return BoundFunction(waiter, function_named(operation, name), captured)


_AUTOTUNE = -1
_INPUT = "input_dataset: variant, other_arguments: Targuments"
_ATTRS = ["f: func", "Targuments: list(type) >= 0", *TYPES]

map_op = dataset_op(
    "MapDataset",
    _INPUT,
    [
        *_ATTRS,
        "use_inter_op_parallelism: bool = true",
        "preserve_cardinality: bool = false",
        "force_synchronous: bool = false",
        METADATA,
    ],
    blocking=True,
)
parallel_map_op = dataset_op(
    "ParallelMapDataset",
    f"{_INPUT}, num_parallel_calls: int32",
    [
        *_ATTRS,
        "use_inter_op_parallelism: bool = true",
        "sloppy: bool = false",
        "preserve_cardinality: bool = false",
        METADATA,
    ],
    blocking=True,
)
flat_map_op = dataset_op("FlatMapDataset", _INPUT, [*_ATTRS, METADATA], blocking=True)
_TURNS = f"{_INPUT}, cycle_length: int64, block_length: int64"
interleave_op = dataset_op("InterleaveDataset", _TURNS, [*_ATTRS, METADATA], blocking=True)
parallel_interleave_v2_op = dataset_op(
    "ParallelInterleaveDatasetV2",
    f"{_TURNS}, num_parallel_calls: int64",
    [*_ATTRS, "sloppy: bool = false", METADATA],
    blocking=True,
)
parallel_interleave_op = dataset_op(
    "ParallelInterleaveDataset",
    f"{_TURNS}, sloppy: bool, buffer_output_elements: int64, prefetch_input_elements: int64",
    [*_ATTRS, METADATA],
    blocking=True,
)
filter_op = dataset_op(
    "FilterDataset",
    _INPUT,
    ["predicate: func", "Targuments: list(type) >= 0", *TYPES, METADATA],
    blocking=True,
)
reduce_op = register_op(
    "ReduceDataset",
    inputs="input_dataset: variant, initial_state: Tstate, other_arguments: Targuments",
    outputs="components: output_types",
    attrs=[
        "f: func",
        "Tstate: list(type) >= 1",
        "Targuments: list(type) >= 0",
        *TYPES,
        "use_inter_op_parallelism: bool = true",
        METADATA,
    ],
    blocking=True,
    holds_thread=True,
    differentiable=False,
)
generator_op = dataset_op(
    "PythonGeneratorDataset", "args: Targs", ["token: string", "Targs: list(type) >= 0", *TYPES]
)


@map_op.kernel
def _(xp, source, captured, *, waiter, operation, f):
    return (scalar(Map(pipeline_of(source), bound_function(waiter, operation, f, captured))),)


@parallel_map_op.kernel
def _(xp, source, captured, calls, *, waiter, operation, f):
    function = bound_function(waiter, operation, f, captured)
    return (scalar(ParallelMap(pipeline_of(source), function, most_parallel(number(calls)))),)


@flat_map_op.kernel
def _(xp, source, captured, *, waiter, operation, f):
    return (scalar(FlatMap(pipeline_of(source), bound_function(waiter, operation, f, captured))),)


@interleave_op.kernel
def _(xp, source, captured, cycle, block, *, waiter, operation, f):
    function = bound_function(waiter, operation, f, captured)
    turns = (most_parallel(number(cycle)), number(block))
    return (scalar(Interleave(pipeline_of(source), function, *turns)),)


@parallel_interleave_v2_op.kernel
def _(xp, source, captured, cycle, block, calls, *, waiter, operation, f, sloppy):
    function = bound_function(waiter, operation, f, captured)
    turns = (most_parallel(number(cycle)), number(block))
    # What is left to us is no more than can be open.
    chosen = number(calls) if number(calls) != _AUTOTUNE else min(usable_cores(), turns[0])
    if chosen > turns[0]:
        raise InvalidArgumentError(
            None, None, "num_parallel_calls must less than or equal to cycle_length."
        )
    made = Interleave(pipeline_of(source), function, *turns, (chosen, turns[1]), sloppy)
    return (scalar(made),)


@parallel_interleave_op.kernel
def _(xp, source, captured, cycle, block, sloppy, buffered, opened, *, waiter, operation, f):
    function = bound_function(waiter, operation, f, captured)
    turns = (number(cycle), number(block))
    ahead = (turns[0], max(1, number(buffered)))
    made = Interleave(pipeline_of(source), function, *turns, ahead, bool(sloppy))
    return (scalar(made),)


def most_parallel(calls: int) -> int:
    """How many there are at the same time: as asked, or as many as there are cores."""
    return usable_cores() if calls == _AUTOTUNE else calls


@filter_op.kernel
def _(xp, source, captured, *, waiter, operation, predicate):
    function = bound_function(waiter, operation, predicate, captured)
    return (scalar(Filter(pipeline_of(source), function, operation.name)),)


@reduce_op.shape
def _(source, state, captured, *, output_shapes):
    return [shape._dims for shape in output_shapes]


@reduce_op.kernel
def _(xp, source, state, captured, *, waiter, operation, f, output_types):
    function = bound_function(waiter, operation, f, captured)
    run = PipelineRun(waiter.require_time)
    return of_types(reduced(pipeline_of(source), list(state), function, run), output_types)


@generator_op.kernel
def _(xp, args, *, operation, token):
    begin = operation.graph.attached(PythonGenerators).get(token)
    if begin is None:
        raise InvalidArgumentError(
            None,
            None,
            f"No Python generator is registered as {token!r} in this process. A dataset of a "
            "generator can only be used in the process that made it.",
        )
    values = list(args)
    return scalar(Generated(lambda: begin(*values)))


# Elements that depend on others before them -------------------------------------------------------

take_while_op = dataset_op(
    "TakeWhileDataset",
    _INPUT,
    ["predicate: func", "Targuments: list(type) >= 0", *TYPES, METADATA],
    blocking=True,
)
scan_op = dataset_op(
    "ScanDataset",
    "input_dataset: variant, initial_state: Tstate, other_arguments: Targuments",
    [
        "f: func",
        "Tstate: list(type) >= 1",
        "Targuments: list(type) >= 0",
        *TYPES,
        "preserve_cardinality: bool = false",
        "use_default_device: bool = true",
        METADATA,
    ],
    blocking=True,
)
_WINDOW_FUNCTIONS = ("key_func", "reduce_func", "window_size_func")
group_by_window_op = dataset_op(
    "GroupByWindowDataset",
    ", ".join(
        [
            "input_dataset: variant",
            *[f"{name}_other_arguments: T{name}_other_arguments" for name in _WINDOW_FUNCTIONS],
        ]
    ),
    [
        *[f"{name}: func" for name in _WINDOW_FUNCTIONS],
        *[f"T{name}_other_arguments: list(type) >= 0" for name in _WINDOW_FUNCTIONS],
        *TYPES,
        METADATA,
    ],
    blocking=True,
)


@take_while_op.kernel
def _(xp, source, captured, *, waiter, operation, predicate):
    function = bound_function(waiter, operation, predicate, captured)
    return (scalar(TakeWhile(pipeline_of(source), function)),)


@scan_op.kernel
def _(xp, source, state, captured, *, waiter, operation, f):
    function = bound_function(waiter, operation, f, captured)
    return (scalar(Scan(pipeline_of(source), list(state), function)),)


@group_by_window_op.kernel
def _(
    xp,
    source,
    of_key,
    of_reduce,
    of_size,
    *,
    waiter,
    operation,
    key_func,
    reduce_func,
    window_size_func,
):
    functions = [
        bound_function(waiter, operation, name, captured)
        for name, captured in (
            (key_func, of_key),
            (reduce_func, of_reduce),
            (window_size_func, of_size),
        )
    ]
    return (scalar(GroupByWindow(pipeline_of(source), *functions)),)
