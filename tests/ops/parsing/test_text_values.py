"""Numbers and lines of values are read alike by native code, by Python at once and one by one."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runnel.graph import dtypes
from runnel.graph.errors import InvalidArgumentError
from runnel.native.input_library import carried_library
from runnel.ops.parsing import decode_csv, numerals

TYPES = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
NUMBERS = (
    st.integers(-(2**64), 2**64).map(str)
    | st.integers(-(2**31) - 2, 2**31 + 2).map(str)
    | st.floats().map(repr)
    | st.floats(-1e6, 1e6).map("{:.6g}".format)
    | st.tuples(st.integers(0, 2**54), st.integers(-30, 30)).map(lambda p: f"{p[0]}e{p[1]}")
    | st.tuples(st.integers(0, 10**17), st.integers(0, 10**17)).map(lambda p: f"{p[0]}.{p[1]}")
)
TEXTS = st.text("0123456789+-.eE_ \t\nxinfa\0", max_size=8)
BLANKS = st.sampled_from(["", " ", "\t\v", "\n"])
NUMERALS = st.tuples(BLANKS, NUMBERS, BLANKS).map("".join).map(str.encode)
MANY = st.lists(NUMERALS, max_size=20) | st.lists(NUMERALS | TEXTS.map(str.encode), max_size=12)


@pytest.fixture(params=["native", "python"])
def reader(request, monkeypatch):
    """By which code texts are read, however few there are."""
    if request.param == "python":
        for module in (numerals, decode_csv):
            monkeypatch.setattr(module, "carried_library", lambda: None)
    elif carried_library() is None:
        pytest.skip("the package carries no native code")
    for module in (numerals, decode_csv):
        monkeypatch.setattr(module, "FEWEST", 1)
    return request.param


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.name)
def test_numbers_read_together_are_those_read_one_by_one(reader, dtype):
    @settings(deadline=None, max_examples=150)
    @given(MANY)
    @example([b"9007199254740993", b"-0", b"1e22", b"1e23", b"0.3", b"+.5e-3"])
    @example([b"1" * 18, b"9" * 19, b"0" * 30 + b"5"])
    def check(texts):
        together = numerals.numbers_of(texts, dtype)
        one_by_one = [numerals.number_of(text, dtype) for text in texts]
        if together is None:
            return
        assert None not in one_by_one
        assert together.dtype == dtype.np_dtype
        np.testing.assert_array_equal(together, np.array(one_by_one, dtype.np_dtype))
        np.testing.assert_array_equal(np.signbit(together), np.signbit(one_by_one))

    check()


def test_plain_numbers_are_read_together(reader):
    for dtype in TYPES:
        found = numerals.numbers_of([b"12", b" -7\n", b"+0"] * 5, dtype)
        assert found is not None and found.tolist() == [12, -7, 0] * 5
    found = numerals.numbers_of([b"inf", b"1.25", b"1e300"], dtypes.float32)
    assert found is not None and found.tolist() == [np.inf, 1.25, np.inf]


INTEGER = re.compile(rb"\s*[+-]?\d+\s*")
REAL = re.compile(
    rb"\s*[+-]?(\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|infinity|nan)\s*",
    re.IGNORECASE,
)


@given(NUMERALS | TEXTS.map(str.encode) | st.binary(max_size=6))
@example(b"1_0")
@example(b"1\x00")
@example(b" +" + b"0" * 5000 + b"12 ")
@example(b"9" * 5000)
@example(b"")
def test_numbers_are_what_the_formats_are(text):
    for dtype in TYPES:
        form = INTEGER if dtype.is_integer else REAL
        found = numerals.number_of(text, dtype)
        if form.fullmatch(text) is None:
            assert found is None
        elif not dtype.is_integer:
            assert found is not None and found.dtype == dtype.np_dtype
        elif found is None:
            low, high = dtype.limits
            digits = text.strip().lstrip(b"+-0") or b"0"
            assert len(digits) > 20 or not low <= int(text) <= high
        else:
            assert found == int(text.strip().replace(b"0" * 5000, b""))


FIELDS = st.sampled_from(
    [
        "1",
        "-2",
        "3.5",
        "",
        "NA",
        "x",
        '"q"',
        '"a,b"',
        '"a""b"',
        '"',
        'a"b',
        '"a\n"',
        "\r",
        "\n",
        "é",
    ]
)
LINES = st.lists(FIELDS, max_size=5).map(",".join) | st.lists(FIELDS, min_size=3, max_size=3).map(
    ",".join
)
EVEN = st.lists(st.sampled_from(["1", "-2", "", "NA", '"7"', '""']), min_size=3, max_size=3)
DEFAULTS = st.sampled_from(
    [
        [np.array(1, np.int32), np.array(b"none", object), np.array(0.5, np.float32)],
        [np.array([], np.int32), np.array([b"none"], object), np.array([], np.float32)],
        [np.array(b"", object), np.array([], object), np.array(b"z", object)],
    ]
)


def decoded(lines, defaults, quotes, missing, chosen):
    """The columns, or the mistake."""
    types = [dtypes.as_dtype(default.dtype) for default in defaults[: len(chosen) or None]]
    how = (b",", quotes, missing, chosen)
    try:
        columns = decode_csv.decoded_columns(lines, defaults, types, *how)
    except InvalidArgumentError as error:
        return error.message
    return [(column.dtype, column.tolist()) for column in columns]


def field_by_field(lines, defaults, quotes, missing, chosen, monkeypatch):
    """The same with nothing read together."""
    with monkeypatch.context() as without:
        without.setattr(decode_csv, "carried_library", lambda: None)
        without.setattr(decode_csv, "_plain_columns", lambda *arguments: None)
        without.setattr(decode_csv, "numbers_of", lambda *arguments: None)
        return decoded(lines, defaults, quotes, missing, chosen)


def test_lines_read_together_are_those_read_field_by_field(reader, monkeypatch):
    @settings(deadline=None, max_examples=400)
    @given(
        st.lists(LINES | EVEN.map(",".join), max_size=8) | st.lists(EVEN.map(",".join), max_size=8),
        DEFAULTS,
        st.booleans(),
        st.sampled_from([b"", b"NA", b"7"]),
        st.sampled_from([[], [], [0, 2]]),
    )
    def check(lines, defaults, quotes, missing, chosen):
        texts = [line.encode() for line in lines]
        how = (texts, defaults, quotes, missing, chosen)
        assert decoded(*how) == field_by_field(*how, monkeypatch)

    check()
