"""Element types: names, numbers, NumPy counterparts."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import runnel as tf


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("float", "float32"),
        ("double", "float64"),
        ("half", "float16"),
        (float, "float32"),
        (int, "int32"),
        (bool, "bool"),
        (str, "string"),
        (np.int64, "int64"),
        (np.dtype("float16"), "float16"),
        (ml_dtypes.bfloat16, "bfloat16"),
        ("S5", "string"),
        (1, "float32"),
        (101, "float32_ref"),
    ],
)
def test_as_dtype(given, expected):
    assert tf.as_dtype(given).name == expected


@pytest.mark.parametrize("bad", [None, "floaty", object(), 12345])
def test_an_unknown_type_is_an_error(bad):
    with pytest.raises(TypeError, match="element type"):
        tf.as_dtype(bad)


def test_references():
    assert tf.float32.as_ref.name == "float32_ref"
    assert tf.float32.as_ref.base_dtype is tf.float32
    assert tf.float32.is_compatible_with(tf.float32.as_ref)
    assert not tf.float32.as_ref.is_compatible_with(tf.float32)
    assert tf.float32 != tf.float32.as_ref


def test_kinds_and_limits():
    assert tf.float16.is_floating and tf.bfloat16.is_floating and not tf.int32.is_floating
    assert tf.complex64.is_complex and tf.complex64.real_dtype is tf.float32
    assert tf.uint8.is_unsigned and tf.uint8.is_integer
    assert (tf.int8.min, tf.int8.max) == (-128, 127)
    assert tf.float32.max == np.finfo(np.float32).max
    assert tf.bfloat16.size == 2 and tf.int64.size == 8
    with pytest.raises(TypeError):
        _ = tf.string.min


def test_types_compare_with_names_and_numpy_types():
    assert tf.float32 == "float32"
    assert tf.int64 == np.int64
    assert tf.float32 != tf.float64
    assert {tf.float32: 1}[tf.as_dtype("float")] == 1
