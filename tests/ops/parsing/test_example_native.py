"""Examples are read by native code as by Python and by protobuf, whatever their bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runnel.graph import dtypes
from runnel.graph.errors import InvalidArgumentError
from runnel.native import input_library
from runnel.ops.parsing.example_bytes import AnotherType
from runnel.ops.parsing.example_native import NativeExamples
from runnel.ops.parsing.example_values import Examples
from runnel.records.example_protos import Example

pytestmark = pytest.mark.skipif(
    input_library.input_library() is None, reason="needs a C++ compiler"
)
FIELDS = {"float_list": dtypes.float32, "int64_list": dtypes.int64, "bytes_list": dtypes.string}
KEYS = ["a", "b", "c", "a longer key", "é", ""]
WANTED = ["a", "b", "é", "", "none has it"]
VALUES = {
    "float_list": st.lists(st.floats(width=32, allow_nan=False), max_size=40),
    "int64_list": st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 300), max_size=40),
    "bytes_list": st.lists(st.binary(max_size=140), max_size=4),
    None: st.none(),
}


@st.composite
def messages(draw):
    """Serialized examples, with features of any kind in any order."""
    made = Example()
    for key in draw(st.lists(st.sampled_from(KEYS), unique=True)):
        field = draw(st.sampled_from(sorted(VALUES, key=str)))
        feature = made.features.feature[key]
        if field is not None:
            getattr(feature, field).SetInParent()
            getattr(feature, field).value.extend(draw(VALUES[field]))
    return made.SerializeToString()


@st.composite
def damaged(draw):
    """Such a message with some bytes changed, cut, put in or taken out."""
    content = bytearray(draw(messages()))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(content)))
        how = draw(st.sampled_from(["cut", "change", "insert", "remove"]))
        if how == "cut":
            del content[place:]
        elif how == "change":
            content[place : place + 1] = bytes([draw(st.integers(0, 255))])
        elif how == "insert":
            content[place:place] = draw(st.binary(min_size=1, max_size=12))
        else:
            del content[place : place + draw(st.integers(1, 12))]
    return bytes(content)


def read(contents, key, dtype):
    """The values of a feature and how many each message has, or what was wrong."""
    names = [f"number {i}" for i in range(len(contents))]
    try:
        column = Examples(Example, contents, names, WANTED).column(key, dtype)
    except InvalidArgumentError as error:
        # Who reads one by one calls the types by their fields' names.
        return error.message.split("but the feature")[0]
    return column.flat.tolist(), column.counts.tolist()


def expected(contents, key, dtype):
    """The same by protobuf, one message after the other."""
    values, counts = [], []
    for i, content in enumerate(contents):
        features = Example.FromString(content).features.feature
        field = features[key].WhichOneof("kind") if key in features else None
        if field is not None and FIELDS[field] is not dtype:
            wrong = f"Data types don't match. Expected type: {dtype.name}, "
            return f"Name: number {i}, Key: {key}.  {wrong}"
        found = [] if field is None else list(getattr(features[key], field).value)
        values += found
        counts.append(-1 if field is None else len(found))
    return values, counts


@given(st.lists(messages(), min_size=1, max_size=12))
@settings(deadline=None, max_examples=50)
def test_messages_as_protobuf_writes_them_are_read_by_native_code(contents):
    library = input_library.input_library()
    assert NativeExamples(library, contents, WANTED).usual.all()
    for key in WANTED:
        for dtype in FIELDS.values():
            assert read(contents, key, dtype) == expected(contents, key, dtype)


@given(st.lists(messages() | damaged(), min_size=1, max_size=10))
@settings(deadline=None, max_examples=100)
def test_damaged_messages_are_read_or_refused_as_by_python(contents):
    for key in WANTED:
        for dtype in FIELDS.values():
            native = read(contents, key, dtype)
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv(input_library.VARIABLE, "0")
                assert read(contents, key, dtype) == native


@given(st.binary(max_size=60) | damaged())
@settings(deadline=None, max_examples=200)
def test_what_native_code_reads_protobuf_reads_to_the_same_values(content):
    found = NativeExamples(input_library.input_library(), [content], WANTED)
    if not found.usual[0]:
        return
    features = Example.FromString(content).features.feature
    for key in WANTED:
        field = features[key].WhichOneof("kind") if key in features else None
        for kind, dtype in FIELDS.items():
            if field not in (None, kind):
                with pytest.raises(AnotherType):
                    found.column(key, dtype)
                continue
            values, counts = found.column(key, dtype)
            assert counts.tolist() == [
                -1 if field is None else len(features[key].__getattribute__(kind).value)
            ]
            assert np.array_equal(
                np.asarray(values, dtype.np_dtype),
                np.array(
                    [] if field is None else list(getattr(features[key], kind).value),
                    dtype.np_dtype,
                ),
                equal_nan=dtype is dtypes.float32,
            )


def test_every_way_to_write_a_message_gives_the_same_values():
    """The format allows more than writers use: those messages go to the general parser."""
    entry = bytes.fromhex("0a016112051a030a0105")  # a: the integer 5
    whole = b"\x0a" + bytes([len(entry) + 2]) + b"\x0a" + bytes([len(entry)]) + entry
    ways = {
        "as usual": whole,
        "not packed": bytes.fromhex("0a0b0a090a016112041a020805"),
        "a key twice": b"\x0a\x18" + (b"\x0a\x0a" + entry) * 2,
        "the features in two parts": whole * 2,
        "a field that nobody knows": whole + b"\x7a\x01x",
        "a length of more bytes": b"\x0a\x8c\x00" + whole[2:],
        "the value before the key": bytes.fromhex("0a0c0a0a12051a030a01050a0161"),
    }
    for content in ways.values():
        assert read([content], "a", dtypes.int64) == ([5], [1])
    together = list(ways.values())
    assert read(together, "a", dtypes.int64) == ([5] * len(ways), [1] * len(ways))
    found = NativeExamples(input_library.input_library(), together, ["a"])
    assert dict(zip(ways, found.usual.tolist(), strict=True)) == {
        way: way in ("as usual", "a length of more bytes") for way in ways
    }
