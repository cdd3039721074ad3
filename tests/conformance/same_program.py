"""Runs a program under TensorFlow and under runnel, and compares the graphs that it builds.

A program is a function of the library (``tf``); it returns the fetches of one or more steps.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tensorflow

import runnel
from tests.both_tiers import COMPILED, INTERPRETED, assert_same, session

tensorflow.disable_v2_behavior()

Program = Callable[[Any], Any]


def colocation(op: Any) -> list[bytes]:
    """The places beside which an operation must be."""
    try:
        return sorted(op.get_attr("_class"))
    except ValueError:
        return []


def describe(graph: Any) -> list[tuple[Any, ...]]:
    """What each operation is: name, type, inputs, control inputs, device, colocation.

    Control inputs that other inputs imply are left out: TensorFlow leaves out some of them.
    """
    ancestors: dict[str, set[str]] = {}
    described = []
    for op in graph.get_operations():
        data = {t.op.name for t in op.inputs}
        control = {c.name for c in op.control_inputs}
        implied = set().union(*(ancestors[name] for name in data | control))
        ancestors[op.name] = implied | data | control
        waits = sorted(control - implied - data)
        inputs = [t.name for t in op.inputs]
        described.append((op.name, op.type, inputs, waits, op.device, colocation(op)))
    return described


def collections_of(graph: Any) -> dict[str, list[str]]:
    """The names of the members of each collection."""
    return {
        key: [member.name for member in graph.get_collection(key)]
        for key in sorted(graph.get_all_collection_keys())
    }


def compare_graphs(program: Program) -> None:
    """Asserts that the program builds the same operations and collections in both."""
    found = []
    for tf in (runnel, tensorflow):
        with tf.Graph().as_default() as graph:
            program(tf)
            found.append((describe(graph), collections_of(graph)))
    ours, theirs = found
    assert ours == theirs, _difference(ours, theirs)


def _difference(ours: Any, theirs: Any) -> str:
    lines = [
        [*map(str, ops), *map(str, collections.items())] for ops, collections in (ours, theirs)
    ]
    difference = difflib.unified_diff(*lines, "runnel", "tensorflow", n=0, lineterm="")
    return "the graphs differ:\n" + "\n".join(difference)


def compare_values(program: Program, rtol: float = 1e-6, atol: float = 1e-6) -> None:
    """Asserts that the steps that the program returns, run in order, give the same in both.

    ``program(tf)`` returns a list of steps, each a structure of fetches; the variables are
    initialised first.
    """
    results = []
    for tf, open_session in (
        (tensorflow, lambda graph: tensorflow.Session(graph=graph)),
        (runnel, lambda graph: session(INTERPRETED, graph)),
        (runnel, lambda graph: session(COMPILED, graph)),
    ):
        with tf.Graph().as_default() as graph:
            steps = program(tf)
            init = [tf.global_variables_initializer(), tf.local_variables_initializer()]
            with open_session(graph) as sess:
                sess.run(init)
                results.append([_values(sess, step) for step in steps])
    for ours in results[1:]:
        assert_same(results[0], ours, rtol, atol)


def _values(sess: Any, step: Any) -> Any:
    values = sess.run(step)
    return (
        [None if v is None else np.asarray(v) for v in values]
        if isinstance(values, list)
        else values
    )
