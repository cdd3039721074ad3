"""Building one small graph in runnel and in TensorFlow, and running each in the other.

An example is a function of a ``Builder``: it adds operations by type, with the same names in
both systems, and returns steps to run in one session, each a list of names to fetch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as reference
from tensorflow.python.framework import op_def_library, op_def_registry

import runnel

Steps = list[list[str]]
Example = Callable[["Builder"], Steps]


class Builder:
    """Adds operations by type; ``op`` returns the names of the outputs (or of the operation)."""

    def __init__(self) -> None:
        self.count = 0
        self.elements: dict[str, Any] = {}

    def op(self, op_type: str, *inputs: Any, **attrs: Any) -> list[str]:
        """Adds an operation on ``inputs``: names, values that become constants, or ``Inputs``."""
        taken = [self._take(value) for value in inputs]
        self.count += 1
        made = self.add(op_type, taken, attrs, f"n{self.count}_{op_type}")
        self.elements |= {element.name: element for element in made}
        return [element.name for element in made]

    def one(self, op_type: str, *inputs: Any, **attrs: Any) -> str:
        """Adds an operation and returns the name of its first output (or its own)."""
        return self.op(op_type, *inputs, **attrs)[0]

    def _take(self, value: Any) -> Any:
        if isinstance(value, Inputs):
            return [self._take(item) for item in value]
        if isinstance(value, str) and value in self.elements:
            return self.elements[value]
        self.count += 1
        made = self.constant(as_array(value), f"n{self.count}_Const")
        self.elements[made.name] = made
        return made

    def add(self, op_type: str, inputs: list[Any], attrs: dict[str, Any], name: str) -> list[Any]:
        raise NotImplementedError

    def constant(self, value: np.ndarray, name: str) -> Any:
        raise NotImplementedError


class Inputs(list):
    """A list of tensors for one argument."""


def as_array(value: Any) -> np.ndarray:
    """Python numbers as float32 and int32; arrays as they are."""
    array = np.asarray(value)
    if not isinstance(value, np.ndarray | np.generic):
        if array.dtype == np.float64:
            return array.astype(np.float32)
        if array.dtype == np.int64:
            return array.astype(np.int32)
        if array.dtype.kind in "SU":
            return np.array(value, object)
    return array


class RunnelBuilder(Builder):
    """Builds in runnel's default graph."""

    def add(self, op_type: str, inputs: list[Any], attrs: dict[str, Any], name: str) -> list[Any]:
        made = runnel.get_op_def(op_type)(*inputs, name=name, **attrs)
        op = made if isinstance(made, runnel.Operation) else _first(made).op
        return list(op.outputs) or [op]

    def constant(self, value: np.ndarray, name: str) -> Any:
        return runnel.constant(value, name=name)


class ReferenceBuilder(Builder):
    """Builds in TensorFlow's default graph."""

    def add(self, op_type: str, inputs: list[Any], attrs: dict[str, Any], name: str) -> list[Any]:
        op_def = op_def_registry.get(op_type)
        named = dict(zip([a.name for a in op_def.input_arg], inputs, strict=True))
        complete = _defaults(op_def) | attrs
        made = op_def_library.apply_op(op_type, name=name, **named, **complete)
        op = made if isinstance(made, reference.Operation) else _first(made).op
        return list(op.outputs) or [op]

    def constant(self, value: np.ndarray, name: str) -> Any:
        return reference.constant(value, name=name)


def _defaults(op_def: Any) -> dict[str, Any]:
    """The defaults of the attributes that do not follow from the inputs."""
    arguments = op_def.input_arg
    inferred = {n for a in arguments for n in (a.type_attr, a.number_attr, a.type_list_attr)}
    return {
        a.name: _plain(a.default_value, a.type)
        for a in op_def.attr
        if a.HasField("default_value") and a.name not in inferred
    }


def _plain(value: Any, kind: str) -> Any:
    if kind.startswith("list("):
        return list(getattr(value.list, _FIELDS.get(kind[5:-1], kind[5:-1])))
    return getattr(value, _FIELDS.get(kind, kind))


_FIELDS = {"string": "s", "int": "i", "float": "f", "bool": "b"}


def _first(made: Any) -> Any:
    while isinstance(made, list | tuple):
        made = made[0]
    return made


def call(*inputs: Any, **attrs: Any) -> Callable[[str], Example]:
    """The common example: one operation on constants, all outputs fetched."""

    def example_for(op_type: str) -> Example:
        return lambda builder: [builder.op(op_type, *inputs, **attrs)]

    return example_for


# Running ------------------------------------------------------------------------------------------


class Outcome:
    """What a graph gave: the values of every step, and the static shapes of what was fetched."""

    def __init__(self, values: list[list[Any]], shapes: dict[str, list[Any] | None]) -> None:
        self.values = values
        self.shapes = shapes


def _run(sess: Any, graph: Any, steps: Steps) -> Outcome:
    values = []
    shapes: dict[str, list[Any] | None] = {}
    for step in steps:
        elements = [graph.as_graph_element(name) for name in step]
        values.append(sess.run(elements))
        for element in elements:
            if ":" in element.name:
                shape = element.get_shape()
                shapes[element.name] = None if shape.ndims is None else shape.as_list()
    return Outcome(values, shapes)


def run_in_runnel(serialized: bytes, steps: Steps) -> Outcome:
    """Imports a serialized GraphDef into runnel and runs the steps."""
    with runnel.Graph().as_default() as graph:
        runnel.import_graph_def(runnel.GraphDef.FromString(serialized), name="")
        with runnel.Session() as sess:
            return _run(sess, graph, steps)


def run_in_reference(serialized: bytes, steps: Steps) -> Outcome:
    """Imports a serialized GraphDef into TensorFlow and runs the steps."""
    with reference.Graph().as_default() as graph:
        reference.import_graph_def(reference.GraphDef.FromString(serialized), name="")
        with reference.Session() as sess:
            return _run(sess, graph, steps)


def build_in_runnel(example: Example) -> tuple[bytes, Steps, Outcome]:
    """The example's GraphDef as runnel writes it, its steps, and what runnel computes."""
    with runnel.Graph().as_default() as graph:
        steps = example(RunnelBuilder())
        serialized = graph.as_graph_def().SerializeToString()
        with runnel.Session() as sess:
            return serialized, steps, _run(sess, graph, steps)


def build_in_reference(example: Example) -> tuple[bytes, Steps, Outcome]:
    """The example's GraphDef as TensorFlow writes it, its steps, and what TensorFlow computes."""
    with reference.Graph().as_default() as graph:
        steps = example(ReferenceBuilder())
        serialized = graph.as_graph_def().SerializeToString()
        with reference.Session() as sess:
            return serialized, steps, _run(sess, graph, steps)


TOLERANCES = {"float16": 2e-2, "bfloat16": 6e-2, "float32": 2e-5, "complex64": 2e-5}


def assert_same_outcome(
    ours: Outcome,
    theirs: Outcome,
    values: bool = True,
    meaning: Callable[[bytes], Any] | None = None,
) -> None:
    """Types, shapes and (unless random) values agree; static shapes do not contradict.

    ``meaning`` is what has to agree of strings that may be written in several ways.
    """
    for a_step, b_step in zip(ours.values, theirs.values, strict=True):
        for a, b in zip(a_step, b_step, strict=True):
            if meaning is not None:
                assert meaning(a) == meaning(b)
            else:
                _assert_same_value(a, b, values)
    for name, shape in ours.shapes.items():
        other = reference.TensorShape(theirs.shapes[name])
        assert other.is_compatible_with(shape), (name, shape, other)


def _assert_same_value(a: Any, b: Any, values: bool) -> None:
    if a is None or b is None:
        assert a is None and b is None
        return
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind in "OSU" or b.dtype.kind in "OSU":
        assert a.shape == b.shape and a.tolist() == b.tolist()
        return
    assert a.dtype == b.dtype, (a.dtype, b.dtype)
    assert a.shape == b.shape, (a.shape, b.shape)
    if not values:
        return
    if a.dtype.kind in "biu":
        np.testing.assert_array_equal(a, b)
        return
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    tolerance = TOLERANCES.get(a.dtype.name, 1e-9)
    np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=tolerance, atol=tolerance)


def names_of(steps: Sequence[Sequence[str]]) -> list[str]:
    """All names that the steps fetch."""
    return [name for step in steps for name in step]
