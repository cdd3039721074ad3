"""Builds the same graph in runnel and in TensorFlow, and compares what they give.

``build(tf, *tensors)`` is called with each library and placeholders for the arrays; it returns a
tensor or a list of them. Compared are types, static shapes, values in both tiers, and the
gradients (of a fixed random weighting of the outputs) to the order asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import runnel
from tests.both_tiers import run_both


def tensorflow() -> Any:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    return tf


def _weights(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape)


def _is_float(tensor: Any) -> bool:
    return tensor.dtype.is_floating


def _build(
    tf: Any,
    build: Callable[..., Any],
    arrays: tuple[np.ndarray, ...],
    shapes: Any,
    order: int,
    values_of: Callable[..., Any],
) -> tuple[list[Any], list[Any]]:
    """The static shapes of the outputs and the values of outputs and gradients, by order."""
    with tf.Graph().as_default():
        shapes = shapes or [a.shape for a in arrays]
        inputs = [tf.placeholder(a.dtype, s) for a, s in zip(arrays, shapes, strict=True)]
        feed = dict(zip(inputs, arrays, strict=True))
        result = build(tf, *inputs)
        outputs = list(result) if isinstance(result, list | tuple) else [result]
        fetches = list(outputs)
        ys = [y for y in outputs if _is_float(y)] if order else []
        if all(y.shape.is_fully_defined() for y in ys):
            concrete = [tuple(y.shape.as_list()) for y in ys]
        else:
            concrete = [np.shape(value) for value in values_of(ys, feed)]
        weights = [
            tf.constant(_weights(s, i), y.dtype.base_dtype)
            for i, (y, s) in enumerate(zip(ys, concrete, strict=True))
        ]
        sources = [x for x in inputs if _is_float(x)]
        for level in range(order):
            grads = tf.gradients(ys, sources, grad_ys=weights)
            present = [tf.convert_to_tensor(g) for g in grads if g is not None]
            fetches += present
            fetches.append(np.array([g is not None for g in grads]))
            ys = present
            weights = [
                tf.cast(tf.constant(_weights(feed[x].shape, 10 + level)), x.dtype)
                for x, g in zip(sources, grads, strict=True)
                if g is not None
            ]
        known = [f for f in fetches if not isinstance(f, np.ndarray)]
        computed = iter(values_of(known, feed))
        values = [f if isinstance(f, np.ndarray) else next(computed) for f in fetches]
        return [y.shape.as_list() if y.shape.rank is not None else None for y in outputs], values


def compare(
    build: Callable[..., Any],
    *arrays: np.ndarray,
    shapes: Any = None,
    order: int = 1,
    rtol: float = 1e-5,
    atol: float = 1e-6,
) -> None:
    """Asserts that ``build`` gives the same in runnel (both tiers) and in TensorFlow.

    ``shapes`` are the placeholders' static shapes (those of the arrays unless given); ``order``
    is the highest order of derivatives to compare.
    """
    tf = tensorflow()

    def run_tensorflow(fetches: Any, feed: Any) -> Any:
        # Without its graph optimizer, which computes some constants in another way.
        config = tf.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.Session(config=config) as session:
            return session.run(fetches, feed)

    def run_runnel(fetches: Any, feed: Any) -> Any:
        return run_both(fetches, feed, rtol=rtol, atol=atol)

    ours_shapes, ours = _build(runnel, build, arrays, shapes, order, run_runnel)
    their_shapes, theirs = _build(tf, build, arrays, shapes, order, run_tensorflow)
    assert ours_shapes == their_shapes
    assert len(ours) == len(theirs)
    for position, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype, (position, a.dtype, b.dtype)
        assert a.shape == b.shape, (position, a.shape, b.shape)
        if a.dtype.kind in "biuO":
            np.testing.assert_array_equal(a, b, err_msg=f"value {position}")
        else:
            wide = np.complex128 if a.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(
                a.astype(wide),
                b.astype(wide),
                rtol=rtol,
                atol=atol,
                err_msg=f"value {position}",
            )


FLOATS = {
    "float16": (np.float16, 2e-3),
    "bfloat16": (ml_dtypes.bfloat16, 2e-2),
    "float32": (np.float32, 1e-5),
    "float64": (np.float64, 1e-10),
}
"""Each floating-point type with the tolerance at which two libraries agree in it."""

EVERY_FLOAT = pytest.mark.parametrize("dtype", FLOATS)


def compare_in(dtype: str, build: Callable[..., Any], *arrays: Any, **options: Any) -> None:
    """``compare`` with floating-point arrays in ``dtype`` and at its tolerance."""
    kind, tolerance = FLOATS[dtype]
    converted = [np.asarray(a) for a in arrays]
    converted = [a.astype(kind) if a.dtype.kind == "f" else a for a in converted]
    compare(build, *converted, **{"rtol": tolerance, "atol": tolerance, **options})


def op_of(tf: Any, name: str) -> Callable[..., Any]:
    """A function of the inputs and attributes of an op, in either library."""
    if tf is runnel:
        return runnel.get_op_def(name)
    from tensorflow.python.framework import op_def_registry

    names = [a.name for a in op_def_registry.get(name).input_arg]

    def call(*inputs: Any, **attrs: Any) -> Any:
        return getattr(tf.raw_ops, name)(**dict(zip(names, inputs, strict=True)), **attrs)

    return call


def compare_names(
    build: Callable[..., Any], *arrays: np.ndarray, types: str, **options: Any
) -> None:
    """Asserts that operations whose type matches the pattern ``types`` have TensorFlow's names."""
    found = []
    for tf in (runnel, tensorflow()):
        with tf.Graph().as_default() as graph:
            shapes = options.get("shapes") or [a.shape for a in arrays]
            build(tf, *(tf.placeholder(a.dtype, s) for a, s in zip(arrays, shapes, strict=True)))
            operations = graph.get_operations()
            found.append({op.name: op.type for op in operations if re.search(types, op.type)})
    assert found[0] == found[1]
