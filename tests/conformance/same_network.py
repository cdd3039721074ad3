"""Builds the same network in runnel and in TensorFlow, gives both the same weights, and compares.

``build(tf, *tensors)`` is called with each library and placeholders for the arrays and returns a
structure of tensors. Compared are the variables (names, shapes, which are trainable), the static
shapes of the outputs, their values in both tiers, and the gradients of a fixed weighting of them
with respect to the floating-point inputs and the trainable variables.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import runnel
from runnel.control_flow.structure import describe, flatten
from tests.both_tiers import COMPILED, INTERPRETED, session


class Network(NamedTuple):
    variables: list[tuple[str, Any]]
    trainable: list[str]
    structure: str
    shapes: list[Any]
    types: list[str]
    values: list[list[np.ndarray]]
    """For each session."""


def compare_network(
    build: Callable[..., Any],
    *arrays: Any,
    shapes: Any = None,
    rtol: float = 1e-4,
    atol: float = 1e-5,
    gradients: bool = True,
) -> None:
    """Asserts that ``build`` gives the same network in both libraries."""
    import tensorflow.compat.v1 as tensorflow

    tensorflow.disable_v2_behavior()
    tensorflow.disable_control_flow_v2()
    given = [np.asarray(a) for a in arrays]
    theirs = _network(
        tensorflow, build, given, shapes, gradients, [lambda graph: tensorflow.Session(graph=graph)]
    )
    ours = _network(
        runnel,
        build,
        given,
        shapes,
        gradients,
        [lambda graph: session(INTERPRETED, graph), lambda graph: session(COMPILED, graph)],
    )
    assert ours[:-1] == theirs[:-1]
    for tier, found in zip(("interpreted", "compiled"), ours.values, strict=True):
        assert len(found) == len(theirs.values[0])
        for position, (a, b) in enumerate(zip(found, theirs.values[0], strict=True)):
            np.testing.assert_allclose(
                a, b, rtol=rtol, atol=atol, err_msg=f"{tier}, value {position}"
            )


def _network(
    tf: Any,
    build: Callable[..., Any],
    arrays: list[np.ndarray],
    shapes: Any,
    gradients: bool,
    sessions: list[Callable[[Any], Any]],
) -> Network:
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(7)
        shapes = shapes or [a.shape for a in arrays]
        inputs = [tf.placeholder(a.dtype, s) for a, s in zip(arrays, shapes, strict=True)]
        result = build(tf, *inputs)
        outputs = [x for x in flatten(result) if x is not None]
        variables = tf.global_variables()
        values = [_value(v) for v in variables]
        loads = [tf.assign(v, x) for v, x in zip(variables, values, strict=True)]
        loads.append(tf.tables_initializer())
        fetches = list(outputs)
        if gradients:
            losses = [
                tf.reduce_sum(tf.sin(y) * (1.0 + i)) for i, y in enumerate(outputs) if _floats(y)
            ]
            sources = [x for x in inputs if _floats(x)] + tf.trainable_variables()
            found = tf.gradients(tf.add_n(losses), sources)
            fetches += [tf.convert_to_tensor(g) for g in found if g is not None]
        results = []
        for make in sessions:
            with make(graph) as sess:
                sess.run(loads)
                results.append(sess.run(fetches, dict(zip(inputs, arrays, strict=True))))
    return Network(
        [(v.name, v.shape.as_list()) for v in variables],
        [v.name for v in tf.trainable_variables()],
        describe(result),
        [y.shape.as_list() if y.shape.rank is not None else None for y in outputs],
        [y.dtype.name for y in outputs],
        results,
    )


def _floats(tensor: Any) -> bool:
    return tensor.dtype.is_floating


def _value(variable: Any) -> np.ndarray:
    rng = np.random.default_rng(zlib.crc32(variable.name.encode()))
    shape = variable.shape.as_list()
    return rng.uniform(-0.7, 0.7, shape).astype(variable.dtype.as_numpy_dtype)
