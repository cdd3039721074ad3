"""Casts and bitcasts against TensorFlow."""

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.conformance.side_by_side import compare

TYPES = ["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64"]
TYPES += ["uint8", "uint16", "uint32", "uint64", "bool"]


def kind_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


@pytest.mark.parametrize("source", TYPES)
def test_every_pair_of_types(source):
    values = np.array([0, 1, 2.75, 3.5, 100, 127], np.float64).astype(kind_of(source))
    compare(
        lambda tf, x: [tf.cast(x, target) for target in TYPES if target != source],
        values,
        order=0,
    )
    if kind_of(source).kind not in "ub":
        # To unsigned types it depends on the processor.
        signed = [t for t in TYPES if t != source and not t.startswith("u")]
        compare(lambda tf, x: [tf.cast(x, target) for target in signed], -values, order=0)


@pytest.mark.parametrize("source", ["float32", "float64"])
def test_floats_that_do_not_fit_into_integers(source):
    values = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 1e20, -1e20, 300.7, -300.7])
    compare(
        lambda tf, x: [tf.cast(x, t) for t in ("int32", "int64", "bool")],
        values.astype(source),
        order=0,
    )
    modest = np.array([300.7, -300.7, 70000.0, -1.0, -2.5, 255.9])
    compare(
        lambda tf, x: [tf.cast(x, t) for t in ("int8", "uint8", "int16", "uint16")],
        modest.astype(source),
        order=0,
    )


@pytest.mark.parametrize("source", ["float64", "float32", "int64", "int32", "uint32", "uint64"])
def test_halves_of_many_values(source):
    """Rounding to float32 first puts one in 17,000 on the other side."""
    chance = np.random.default_rng(0)
    values = chance.uniform(-2, 2, 100_000)
    if kind_of(source).kind != "f":
        limit = min(np.iinfo(source).max, 2**62)
        values = chance.integers(0, limit, 100_000) >> chance.integers(0, 40, 100_000)
    compare(
        lambda tf, x: [tf.cast(tf.cast(x, t), tf.float32) for t in ("float16", "bfloat16")],
        values.astype(source),
        order=0,
        rtol=0,
        atol=0,
    )


def test_integers_wrap():
    values = np.array([-1, 255, 256, 300, 70000, -70000, 2**31 - 1, -(2**31)], np.int64)
    targets = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64", "bool")
    compare(lambda tf, x: [tf.cast(x, t) for t in targets], values, order=0)


def test_complex():
    def build(tf, a, b):
        z = tf.complex(a, b)
        back = [tf.cast(z, t) for t in ("float32", "float64", "int32", "int64")]
        wide = tf.cast(a, tf.complex128)
        return [*back, tf.real(wide), tf.imag(wide), tf.cast(z, tf.bool)]

    x = np.array([1.5, -2.5, 0.0, 0.0])
    compare(build, x, x[::-1].copy())


@pytest.mark.parametrize("target", ["float16", "bfloat16"])
def test_truncation(target):
    x = np.random.default_rng(0).normal(size=50).astype(np.float32)

    def build(tf, x):
        if hasattr(tf, "raw_ops"):
            return tf.raw_ops.Cast(x=x, DstT=tf.as_dtype(target), Truncate=True)
        return tf.get_op_def("Cast")(x, DstT=tf.as_dtype(target), Truncate=True)

    compare(build, x, order=0, rtol=0, atol=0)


def test_gradients():
    x = np.random.default_rng(0).normal(size=4).astype(np.float32)
    compare(lambda tf, a: [tf.cast(a, tf.float64), tf.cast(a, tf.int32)], x)


@pytest.mark.parametrize("source", ["float32", "float64", "int32", "int64"])
def test_saturating(source):
    values = np.array([-1e10, -300, -1, 0, 1, 300, 70000, 1e10])
    if source == "int32":
        values = np.clip(values, -(2**31), 2**31 - 1)
    targets = ["int8", "uint8", "int16", "uint16", "int32"]
    if source.startswith("float"):
        targets.append("float16")
    compare(lambda tf, x: [tf.saturate_cast(x, t) for t in targets], values.astype(source), order=0)


@pytest.mark.parametrize(
    ("source", "target", "shape"),
    [
        ("float32", "int32", (2, 3)),
        ("float32", "uint8", (2,)),
        ("float64", "float32", ()),
        ("int64", "int16", (3,)),
        ("uint8", "float32", (2, 4)),
        ("int16", "float64", (4,)),
        ("float16", "uint16", (3,)),
        ("bfloat16", "int16", (3,)),
    ],
)
def test_bitcast(source, target, shape):
    size = kind_of(source).itemsize * int(np.prod(shape))
    data = np.random.default_rng(1).integers(0, 60, size, np.uint8)
    array = data.view(kind_of(source)).reshape(shape)
    compare(lambda tf, x: tf.bitcast(x, target), array, order=0, rtol=0, atol=0)


def test_shorthands():
    compare(
        lambda tf, x: [
            *(tf.to_float(x), tf.to_double(x), tf.to_int32(x), tf.to_int64(x), tf.to_bfloat16(x)),
            *(tf.real(tf.to_complex64(x)), tf.real(tf.to_complex128(x))),
        ],
        np.array([1.5, -2.5]),
        order=0,
    )
