"""Regular expressions: how long they take, and what they need."""

import sys

import pytest

import runnel as tf
from runnel.ops.strings import regular_expressions


def run(fetch):
    with tf.Session() as sess:
        return sess.run(fetch)


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "(a*)*b", "(a|a)+b", "(.*)(.*)(.*)(.*)[^a]", "(a?){30}a{30}b"]
)
def test_time_is_proportional_to_the_text(pattern):
    # An engine that tries one way after the other takes longer than any test may.
    text = "a" * 20_000
    assert not run(tf.strings.regex_full_match(text, pattern))
    assert run(tf.strings.regex_replace(text, pattern, "")) == text.encode()


@pytest.fixture
def without_re2(monkeypatch):
    monkeypatch.setitem(sys.modules, "re2", None)
    regular_expressions._engine.cache_clear()
    yield
    regular_expressions._engine.cache_clear()


def test_without_the_package_the_error_says_what_to_install(without_re2):
    with pytest.raises(tf.errors.UnimplementedError, match="pip install google-re2"):
        run(tf.strings.regex_full_match("a", "a"))


def test_a_pattern_that_is_no_utf_8_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\\xff, error: invalid UTF-8"):
        run(tf.strings.regex_full_match("a", b"\xff"))


@pytest.mark.parametrize(
    ("rewrite", "reason"), [("\\2", "names group 2, but the pattern has 1"), ("\\q", "a digit")]
)
def test_a_rewrite_that_cannot_be_made_is_refused(rewrite, reason):
    with pytest.raises(tf.errors.InvalidArgumentError, match=reason):
        run(tf.strings.regex_replace("ab", "(a)", rewrite))
