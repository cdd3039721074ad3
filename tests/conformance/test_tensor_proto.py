"""TensorProtos are exchanged with TensorFlow, in both directions and in every form."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as reference
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorflow.core.framework import tensor_pb2

import runnel

TYPES = [
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool", "string"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
]
QUANTIZED = ["qint8", "quint8", "qint16", "quint16", "qint32"]
SHAPES = [(), (1,), (3,), (2, 2), (0,), (2, 0)]


def values_of(dtype, shape):
    size = int(np.prod(shape))
    if dtype == "string":
        flat = np.array([b"a\0", "\u00e9".encode(), b"\xff", b""][:size] or [], object)
    elif dtype == "bool":
        flat = np.arange(size) % 2 == 0
    else:
        storage = runnel.as_dtype(dtype).np_dtype
        flat = (np.arange(size) * 3 + 1).astype(storage)
    return flat.reshape(shape)


def theirs_from(proto):
    return tensor_pb2.TensorProto.FromString(proto.SerializeToString())


def ours_from(proto):
    return TensorProto.FromString(proto.SerializeToString())


def assert_equal(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    if a.dtype == object:
        assert a.tolist() == b.tolist()
    else:
        assert a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_each_reads_what_the_other_writes(dtype, shape):
    array = values_of(dtype, shape)
    ours = runnel.make_tensor_proto(array, runnel.as_dtype(dtype))
    theirs = reference.make_tensor_proto(array, reference.as_dtype(dtype))
    assert ours.dtype == theirs.dtype
    assert_equal(reference.make_ndarray(theirs_from(ours)), array)
    assert_equal(runnel.make_ndarray(ours_from(theirs)), array)


@pytest.mark.parametrize("dtype", QUANTIZED)
def test_quantized_types(dtype):
    ours = runnel.make_tensor_proto([1, 2, 3], runnel.as_dtype(dtype))
    read = reference.make_ndarray(theirs_from(ours))
    assert read.astype(np.int32).tolist() == [1, 2, 3]
    theirs = reference.make_tensor_proto(np.array([1, 2, 3], read.dtype), reference.as_dtype(dtype))
    assert runnel.make_ndarray(ours_from(theirs)).tolist() == [1, 2, 3]


@pytest.mark.parametrize("dtype", TYPES)
def test_fewer_values_than_elements(dtype):
    array = values_of(dtype, (2,))
    ours = runnel.make_tensor_proto(array, runnel.as_dtype(dtype), shape=[5])
    theirs = reference.make_tensor_proto(array, reference.as_dtype(dtype), shape=[5])
    expected = array[[0, 1, 1, 1, 1]]
    for proto in (ours, ours_from(theirs)):
        assert_equal(runnel.make_ndarray(proto), expected)
    assert_equal(reference.make_ndarray(theirs_from(ours)), expected)


@pytest.mark.parametrize("dtype", TYPES)
def test_tensorflows_runtime_reads_our_constants(dtype):
    array = values_of(dtype, (2, 2))
    with runnel.Graph().as_default() as graph:
        runnel.constant(array, runnel.as_dtype(dtype), name="full")
        runnel.constant(array.ravel()[0], runnel.as_dtype(dtype), shape=[3], name="filled")
    with reference.Graph().as_default():
        serialized = graph.as_graph_def().SerializeToString()
        reference.import_graph_def(reference.GraphDef.FromString(serialized), name="")
        with reference.Session() as sess:
            full, filled = sess.run(["full:0", "filled:0"])
    assert_equal(full, array)
    assert_equal(filled, array.ravel()[[0, 0, 0]])
