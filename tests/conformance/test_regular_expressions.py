"""Patterns in RE2's syntax match what TensorFlow's match, and are refused where those are."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import runnel
from tests.pattern_engines import EXPRESSIONS, TEXTS_OF_BYTES
from tests.pattern_engines import engine as engine  # a fixture

reference = pytest.importorskip("tensorflow").compat.v1
reference.disable_v2_behavior()

pytestmark = pytest.mark.usefixtures("engine")

TEXTS = [
    *("", "a", "A", "abc", "ABC", "a1_", " ", "\t", "\v", "a b", "x\ny", "line\n", "[a]", "a-b"),
    *("ä", "Öl", "ΑΒΓ", "αβγ", "Привет", "日本語", "٣", "½", "€5", "a.b,c!", "é́", "aaab", "{1}"),
    *("a{,2}", "\x7f", "~", "a|b", "&&", "++", "\\d", "a\\", "x=1;y=2", "aXbX", "foo\nbar\n"),
]

PATTERNS = [
    *(r"\pL+", r"\p{L}+", r"\PL+", r"\p{^L}+", r"\P{^L}+", r"\p{Lu}.*", r"\p{Nd}", r"\pN", r"\pP"),
    *(
        r"[\pL\d]+",
        r"[^\pL]+",
        r"[\PL]+",
        r"[\p{Lu}\p{Ll}]+",
        r"\p{Any}*",
        r"\pS\d",
        r"\pZ",
        r"\pM",
    ),
    *(r"[[:^alpha:]]+", r"[[:alpha:]]+", r"[^[:^alpha:]]+", r"[[:word:]-]+", r"[[:^space:]]*"),
    *(r"[[:space:]]", r"\s", r"\S+", r"[\s]", r"[^\s]+", r"[\S]+", r"[\D]+", r"[^\W]+", r"\w*"),
    *(r"(?i)ABC", r"a(?i)BC", r"(a(?i)B)c", r"(?i:A)bc", r"(?i)a(?-i)bc", r"x(?s).y", r"x.y"),
    *(
        r"(?s)x.y",
        r"a|(?i)b|C",
        r"x(?i)y|ABC",
        r"(x(?i)y|ABC)",
        r"(?m)^bar$",
        r"(?m:line$)\n",
        r"line$",
        r"foo\nbar\n",
        r"(?U)a+",
    ),
    *(r"\x{61}", r"\x61bc", r"[\x{3b1}-\x{3c9}]+", r"\141", r"\Qa.b\E,c!", r"\Q[a]", r"\[a\]"),
    *(r"[]a[]+", r"[^]a]+", r"[a\]]+", r"[a-c]+", r"[-a]+", r"[a-]+", r"a{2,3}b", r"a{,2}"),
    *(r"[&|~]+", r"[a|b]+", r"[+\-*]+", r"(?P<x>a)(b)c", r"a*?b*", r"a+?", r"a??", r"\Aabc\z"),
    *(r"\babc\b", r"a\b.*", r"(a|b)*c", r"()", r"a||b", r"(|a)+", r".*", r"(?:)", r"[\w.]+\W.*"),
    *(r"\\d", r"a\\", r"\.", r"[.]", r"\-", r"\t", r"[\t\v]", r"\v", r"\a", r"(?i)[a-z]+"),
]

REFUSED = [
    *(
        r"{1}",
        r"(",
        r")",
        r"[",
        r"a**",
        r"a++",
        r"a?+",
        r"*",
        r"(?=a)",
        r"(?!a)",
        r"(?<=a)b",
        r"(a)\1",
    ),
    *(r"(?>a)", r"\pX", r"\p{Foo}", r"[[:foo:]]", r"\y", r"\8", "a\\", r"[a", r"[b-a]", r"x{2,1}"),
    *(r"\x{110000}", r"(?z)a", r"a{3}{4}", r"[[:alpha:]"),
]


def matched(tf, pattern):
    with tf.Graph().as_default(), tf.Session() as sess:
        return sess.run(tf.strings.regex_full_match(TEXTS, pattern)).tolist()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_texts_match(pattern):
    ours, theirs = matched(runnel, pattern), matched(reference, pattern)
    differ = [text for text, a, b in zip(TEXTS, ours, theirs, strict=True) if a != b]
    assert not differ


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_is_replaced(pattern):
    found = []
    for tf in (runnel, reference):
        with tf.Graph().as_default(), tf.Session() as sess:
            every = tf.strings.regex_replace(TEXTS, pattern, "<\\0>")
            first = tf.strings.regex_replace(TEXTS, pattern, "_", replace_global=False)
            found.append([part.tolist() for part in sess.run([every, first])])
    assert found[0] == found[1]


@pytest.mark.parametrize("pattern", REFUSED)
def test_both_refuse(pattern):
    for tf in (runnel, reference):
        with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
            matched(tf, pattern)


_REWRITES = st.lists(st.sampled_from(["<", ">", r"\0", r"\1", r"\\", "ä"]), max_size=3).map("".join)


def _outcome(tf, texts, pattern, rewrite):
    """What comes of a pattern: which texts match, and what they become; or that it is refused."""
    with tf.Graph().as_default(), tf.Session() as sess:
        texts, pattern = tf.constant(texts), tf.constant(pattern)
        fetches = [
            tf.strings.regex_full_match(texts, pattern),
            tf.strings.regex_replace(texts, pattern, rewrite),
            tf.strings.regex_replace(texts, pattern, rewrite, replace_global=False),
        ]
        try:
            return [found.tolist() for found in sess.run(fetches)]
        except tf.errors.InvalidArgumentError:
            return "refused"
        except ValueError as error:
            # TensorFlow takes parts of the pattern in its own message for names of tensors.
            assert isinstance(error.__context__, tf.errors.InvalidArgumentError)
            return "refused"


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # it holds for all examples
)
@given(st.lists(TEXTS_OF_BYTES, min_size=1, max_size=6), EXPRESSIONS, _REWRITES)
def test_whatever_is_written_means_the_same(engine, texts, pattern, rewrite):
    # Every pattern has a group for the rewrite to name: without one TensorFlow changes nothing.
    pattern = f"(){pattern}"
    assert _outcome(runnel, texts, pattern, rewrite) == _outcome(reference, texts, pattern, rewrite)


@pytest.mark.parametrize("pattern", ["(", r"\p{Foo}", "a{1001}", "(?:a{1000}){1000}", "a**"])
def test_a_refusal_gives_the_same_reason(pattern):
    reasons = []
    for tf in (runnel, reference):
        with pytest.raises(tf.errors.InvalidArgumentError) as refused:
            matched(tf, pattern)
        reasons.append(refused.value.message)
    reason = reasons[1].partition("error: ")[2].splitlines()[0].partition(" [")[0]
    assert f"Invalid pattern: {pattern}, error: {reason}" in reasons[0]
