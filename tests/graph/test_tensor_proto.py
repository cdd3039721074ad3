"""Arrays to TensorProto and back; what contradicts itself is refused."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tensorboard.compat.proto.tensor_pb2 import TensorProto

import runnel as tf

NUMERIC = [
    *(tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128, tf.bool),
    *(tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64),
    *(tf.qint8, tf.quint8, tf.qint16, tf.quint16, tf.qint32),
]
# The repeated field of each type, as tensor.proto documents it.
FIELDS = {
    "float16": "half_val",
    "bfloat16": "half_val",
    "float32": "float_val",
    "float64": "double_val",
    "complex64": "scomplex_val",
    "complex128": "dcomplex_val",
    "bool": "bool_val",
    "int64": "int64_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
}


def proto_of(dtype, shape, **fields):
    proto = TensorProto(dtype=tf.as_dtype(dtype).as_datatype_enum, **fields)
    for size in shape:
        proto.tensor_shape.dim.add(size=size)
    return proto


@st.composite
def arrays(draw):
    """An array of any numeric type, of arbitrary bits, with its element type."""
    dtype = draw(st.sampled_from(NUMERIC))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    if dtype is tf.bool:
        return draw(hnp.arrays(np.bool_, shape)), dtype
    size = int(np.prod(shape)) * dtype.np_dtype.itemsize
    bits = draw(st.binary(min_size=size, max_size=size))
    return np.frombuffer(bits, dtype.np_dtype).reshape(shape), dtype


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@given(arrays())
@settings(max_examples=200, deadline=None)
def test_round_trip_keeps_every_bit(case):
    array, dtype = case
    proto = tf.make_tensor_proto(array, dtype)
    again = TensorProto.FromString(proto.SerializeToString())
    assert again.dtype == dtype.as_datatype_enum
    back = tf.make_ndarray(again)
    if array.size == 1 and dtype.np_dtype.kind in "fVc":  # one value, kept as a number
        np.testing.assert_array_equal(back.astype(complex), array.astype(complex))
        assert back.dtype == array.dtype and back.shape == array.shape
    else:
        assert same_bits(back, array)


@given(
    hnp.arrays(object, hnp.array_shapes(min_dims=0, max_dims=2, min_side=0), elements=st.binary())
)
@settings(max_examples=100, deadline=None)
def test_strings_round_trip(array):
    back = tf.make_ndarray(tf.make_tensor_proto(array, tf.string))
    assert back.dtype == object and back.shape == array.shape
    assert back.tolist() == array.tolist()


@pytest.mark.parametrize("dtype", NUMERIC, ids=lambda t: t.name)
def test_repeated_fields_are_read(dtype):
    field = FIELDS.get(dtype.name, "int_val")
    expected = np.array([1, 0, 1], dtype.np_dtype)
    if field == "half_val":
        values = expected.view(np.uint16).tolist()
    elif dtype.is_complex:
        expected = np.array([1 + 2j, 0, -3j], dtype.np_dtype)
        values = expected.view(dtype.real_dtype.np_dtype).tolist()
    else:
        values = expected.tolist()
    array = tf.make_ndarray(proto_of(dtype, [3], **{field: values}))
    assert array.dtype == dtype.np_dtype
    np.testing.assert_array_equal(array, expected)


def test_the_last_value_fills_the_rest():
    proto = proto_of("float32", [2, 3], float_val=[1, 2])
    np.testing.assert_array_equal(tf.make_ndarray(proto), [[1, 2, 2], [2, 2, 2]])
    proto = proto_of("string", [3], string_val=[b"a", b"b"])
    assert tf.make_ndarray(proto).tolist() == [b"a", b"b", b"b"]
    proto = proto_of("complex64", [2], scomplex_val=[1, 2])
    assert tf.make_ndarray(proto).tolist() == [1 + 2j, 1 + 2j]


def test_no_values_mean_zeros():
    np.testing.assert_array_equal(tf.make_ndarray(proto_of("int16", [2, 2])), np.zeros((2, 2)))
    assert tf.make_ndarray(proto_of("string", [2])).tolist() == [b"", b""]
    assert tf.make_ndarray(proto_of("bool", [])).tolist() is False
    assert tf.make_ndarray(proto_of("float32", [0, 3])).shape == (0, 3)


def test_results_can_be_written_to():
    for proto in (
        proto_of("float32", [4], float_val=[1]),
        proto_of("float32", [1], tensor_content=b"\0\0\0\0"),
    ):
        array = tf.make_ndarray(proto)
        array[0] = 7
        assert array[0] == 7 and (array[1:] != 7).all()


def test_strings_in_raw_content():
    # Lengths as varints, then the characters.
    content = bytes([1, 0, 0x81, 0x01]) + b"a" + b"x" * 129
    assert tf.make_ndarray(proto_of("string", [3], tensor_content=content)).tolist() == [
        b"a",
        b"",
        b"x" * 129,
    ]


def test_make_tensor_proto_shapes():
    proto = tf.make_tensor_proto([1, 2], shape=[2, 2])
    assert list(proto.int_val) == [1, 2]
    np.testing.assert_array_equal(tf.make_ndarray(proto), [[1, 2], [2, 2]])
    assert tf.make_ndarray(tf.make_tensor_proto([1, 2], shape=[2, 1])).shape == (2, 1)
    with pytest.raises(ValueError, match="Too many elements"):
        tf.make_tensor_proto([1, 2, 3], shape=[2])
    with pytest.raises(ValueError, match="No value"):
        tf.make_tensor_proto([], shape=[2])
    with pytest.raises(TypeError, match="Expected the shape"):
        tf.make_tensor_proto([1, 2], shape=[2, 1], verify_shape=True)
    with pytest.raises(TypeError, match="broadcast"):
        tf.make_tensor_proto([1, 2], shape=[4], allow_broadcast=True)
    assert tf.make_ndarray(tf.make_tensor_proto(7, shape=[2], allow_broadcast=True)).tolist() == [
        7,
        7,
    ]
    with pytest.raises(ValueError, match="fully known"):
        tf.make_tensor_proto([1], shape=[None])


def test_make_tensor_proto_types():
    assert tf.make_tensor_proto(1.5).dtype == tf.float32.as_datatype_enum
    assert tf.make_tensor_proto(["a", b"\xff\0"]).string_val == [b"a", b"\xff\0"]
    assert tf.make_tensor_proto([], tf.string).dtype == tf.string.as_datatype_enum
    assert tf.make_tensor_proto([True]).bool_val == [True]
    proto = tf.make_tensor_proto(3)
    assert tf.make_tensor_proto(proto) is proto
    with pytest.raises(TypeError):
        tf.make_tensor_proto("a", tf.float32)
    with pytest.raises(TypeError, match="resource"):
        tf.make_tensor_proto(np.array([None], object), tf.resource)


def test_a_repeated_value_stays_small():
    proto = tf.make_tensor_proto(np.broadcast_to(np.float32(3), (1000, 1000)))
    assert proto.ByteSize() < 100
    assert (tf.make_ndarray(proto) == 3).all()


def test_a_scalar_has_a_present_shape():
    assert tf.make_tensor_proto(1.0).HasField("tensor_shape")


def unknown_rank():
    proto = TensorProto(dtype=1)
    proto.tensor_shape.unknown_rank = True
    return proto


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (proto_of("float32", [-1]), "negative"),
        (proto_of("float32", [2**62, 2**62], tensor_content=b"abcd"), "tensor_content has 4"),
        (proto_of("float32", [2**40], float_val=[1]), "2 GiB"),
        (proto_of("string", [2**40], string_val=[b""]), "2 GiB"),
        (proto_of("float32", [2**40]), "2 GiB"),
        (proto_of("float32", [3], tensor_content=b"\0" * 8), "takes 12 bytes"),
        (proto_of("float32", [2], tensor_content=b"\0" * 9), "takes 8 bytes"),
        (proto_of("float32", [0], tensor_content=b"\0" * 4), "takes 0 bytes"),
        (proto_of("float32", [1], float_val=[1, 2]), "2 are given"),
        (proto_of("float32", [0], float_val=[1]), "1 are given"),
        (proto_of("complex64", [1], scomplex_val=[1, 2, 3]), "odd number"),
        (proto_of("int8", [1], int_val=[128]), "outside the range"),
        (proto_of("uint8", [2], int_val=[1, -1]), "outside the range"),
        (proto_of("float16", [1], half_val=[70000]), "outside the range"),
        (proto_of("bool", [2], tensor_content=b"\0\2"), "neither 0 nor 1"),
        (proto_of("float32", [1] * 300), "254 dimensions"),
        (proto_of("float32", [1] * 100), "64 at most"),
        (proto_of("string", [3], tensor_content=b"\1a"), "does not fit"),
        (proto_of("string", [2], tensor_content=b"\1\xff"), "cut off or malformed"),
        (proto_of("string", [1], tensor_content=b"\1ab"), "takes 2 bytes"),
        (proto_of("resource", [1]), "resource"),
        (TensorProto(dtype=0), "0 is not the number"),
        (TensorProto(dtype=99), "99 is not the number"),
        (TensorProto(dtype=101), "reference"),
        (unknown_rank(), "unknown"),
    ],
)
def test_contradictions_are_refused(proto, message):
    with pytest.raises(ValueError, match=message):
        tf.make_ndarray(proto)


def test_make_ndarray_wants_a_proto():
    with pytest.raises(TypeError, match="TensorProto"):
        tf.make_ndarray(b"")


@given(st.binary(max_size=60))
@settings(max_examples=200, deadline=None)
def test_arbitrary_bytes_never_break_the_reader(data):
    try:
        proto = TensorProto.FromString(data)
    except Exception:
        return
    try:
        size = 1
        for d in proto.tensor_shape.dim:
            size *= max(d.size, 0)
        if size < 10**6:
            tf.make_ndarray(proto)
    except ValueError:
        pass


def test_bfloat16_values():
    array = tf.make_ndarray(tf.make_tensor_proto([1.0, -2.5], tf.bfloat16))
    assert array.dtype == ml_dtypes.bfloat16
    assert array.astype(np.float32).tolist() == [1.0, -2.5]
