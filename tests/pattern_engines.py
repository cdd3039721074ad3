"""Regular expressions: the engines that match them, and random patterns and texts."""

import sys

import pytest
from hypothesis import strategies as st

from runnel.ops.strings import regular_expressions


@pytest.fixture(params=["google-re2", "runnel"])
def engine(request, monkeypatch):
    """The engine that matches in this test; google-re2 is skipped where it is not installed."""
    if request.param == "google-re2":
        pytest.importorskip("re2")
    else:
        monkeypatch.setitem(sys.modules, "re2", None)
    regular_expressions._engine.cache_clear()
    yield request.param
    regular_expressions._engine.cache_clear()


_PIECES = r"""
    a b ab k ä Γ ſ . \C [a-c] [^a] [äb] \d \w \W \s ^ $ \b \B \A \z \p{Lu} \PL \pC
    \P{^Ll} [\pM\p{Nd}] \p{L \E a{02} \p{Greek} \P{Greek} \p{Han} [\p{Cyrillic}\p{Nd}] \x{e4} \07 \n
    [\x{800}-\x{fffff}] [[:^alpha:]] [[:upper:]] [^\pL] \Qa*\E | (?i) (?s) (?m) (?U) (?-i)
""".split()  # noqa: SIM905 (it is easier to read)
EXPRESSIONS = st.recursive(
    st.sampled_from([*_PIECES, ""]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        inner.map("({})".format),
        inner.map("(?:{})".format),
        inner.map("(?i:{})".format),
        inner.map("(?P<name>{})".format),
        st.builds("{}|{}".format, inner, inner),
        st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "*?", "+?", "??"])),
        st.builds(
            "({}){}".format,
            inner,
            st.sampled_from(["{2}", "{1,3}", "{0,}", "{,2}", "{0}", "{2,}?", "{3,2}", "{1001}"]),
        ),
    ),
    max_leaves=8,
)
_PARTS = [
    "a",
    "b",
    "c",
    "k",
    "A",
    "ab",
    " ",
    "\n",
    "7",
    "_",
    "*",
    "\0",
    "ä",
    "Ä",
    "Γ",
    "日",
    "ж",
    "😀",
]
_NO_UTF_8 = [b"\xff", b"\xc3", b"\xe3\x81", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"]
TEXTS_OF_BYTES = st.lists(
    st.sampled_from([part.encode() for part in [*_PARTS, "ſ", "\u212a"]] + _NO_UTF_8), max_size=8
).map(b"".join)
