"""Operations by their types: the names of what they take, and what they give."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow

import runnel
from runnel.raw_ops import generated_name
from tests.conformance.side_by_side import compare

SHARED = sorted(
    name for name in dir(runnel.raw_ops) if hasattr(tensorflow.raw_ops, name) and name != "Any"
)
# TensorFlow's functions do not take types that follow from those of the inputs.
FOLLOW = {"Tcomplex", "Treal"}


@pytest.mark.parametrize("op_type", SHARED)
def test_inputs_and_attributes_have_the_names_of_tensorflow(op_type):
    ours, theirs = (
        set(inspect.signature(getattr(tf.raw_ops, op_type)).parameters)
        for tf in (runnel, tensorflow)
    )
    assert ours - FOLLOW == theirs - FOLLOW


def test_generated_functions_have_the_names_of_tensorflow():
    from tensorflow.python.ops import gen_array_ops, gen_image_ops, gen_math_ops, gen_nn_ops

    modules = (gen_array_ops, gen_image_ops, gen_math_ops, gen_nn_ops)
    types = [name for name in SHARED if any(hasattr(module, name) for module in modules)]
    assert len(types) > 250
    # Those that TensorFlow wraps itself have an underscore before their names.
    unknown = [
        n
        for n in types
        if not any(hasattr(m, before + generated_name(n)) for m in modules for before in ("", "_"))
    ]
    assert unknown == []


def random(*shape):
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


PROGRAMS = {
    "relu_grad": (
        lambda tf, dy, x: tf.raw_ops.ReluGrad(gradients=dy, features=x),
        random(3, 4),
        random(3, 4)[::-1],
    ),
    "any": (lambda tf, x: tf.raw_ops.Any(input=x > 0, axis=[1]), random(3, 4)),
    "select": (
        lambda tf, x, y: tf.raw_ops.Select(condition=x > 0, x=x, y=y),
        random(3, 4),
        random(3, 4)[::-1],
    ),
    "split": (lambda tf, x: tf.raw_ops.Split(axis=1, value=x, num_split=2), random(3, 4)),
    "several outputs": (
        lambda tf, x: tf.raw_ops.Unique(x=tf.cast(x, tf.int32), out_idx=tf.int64).idx,
        random(9),
    ),
    "a default": (
        lambda tf, x: tf.raw_ops.MaxPool(
            input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"
        ),
        random(1, 4, 4, 2),
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_operations_by_their_types_give_what_tensorflow_gives(program):
    build, *arrays = PROGRAMS[program]
    compare(build, *arrays)
