"""Regular expressions: how long they take, what is refused, and that the engines agree."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import runnel as tf
from runnel.ops.strings import linear_matching
from runnel.ops.strings.plain_patterns import plain_pattern
from runnel.ops.strings.re2_syntax import SyntaxFault
from runnel.ops.strings.unicode_scripts import characters_of_script
from tests.pattern_engines import EXPRESSIONS, TEXTS_OF_BYTES
from tests.pattern_engines import engine as engine  # a fixture


def run(fetch):
    with tf.Session() as sess:
        return sess.run(fetch)


@pytest.mark.parametrize(
    "pattern",
    [
        *("(a+)+b", "(a*)*b", "(a|a)+b", "(.*)(.*)(.*)(.*)[^a]", "(a?){30}a{30}b"),
        *("a+b", "(a|aa)b", "[^b]+(a?)b", "a{1000}b", "(a)+?b", "a{0,900}b"),
        *("(?:a|aa)+(?:a?){99}b", "((a{10}){10}){10}b", "(?i)(\\pL*|a)*1", "(x|a|b|(a+)*)+$^"),
    ],
)
def test_time_is_proportional_to_the_text(engine, pattern):
    # An engine that tries one way after the other takes longer than any test may.
    text = "a" * 20_000
    assert not run(tf.strings.regex_full_match(text, pattern))
    assert run(tf.strings.regex_replace(text, pattern, "")) == text.encode()


def test_states_that_are_too_many_to_be_kept_are_made_again(engine, monkeypatch):
    monkeypatch.setattr(linear_matching, "KEPT_THREADS", 50)
    linear_matching.compiled.cache_clear()
    text = bytes(97 + (i * i // 7) % 2 for i in range(3000)) + b"a" + b"b" * 12
    assert run(tf.strings.regex_full_match(text, "(a|b)*a(a|b){12}"))
    assert not run(tf.strings.regex_full_match(text, "(a|b)*a(a|b){13}a"))


def test_a_pattern_that_is_no_utf_8_is_refused(engine):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\\xff, error: invalid UTF-8"):
        run(tf.strings.regex_full_match("a", b"\xff"))


@pytest.mark.parametrize(
    ("rewrite", "reason"), [("\\2", "names group 2, but the pattern has 1"), ("\\q", "a digit")]
)
def test_a_rewrite_that_cannot_be_made_is_refused(engine, rewrite, reason):
    with pytest.raises(tf.errors.InvalidArgumentError, match=reason):
        run(tf.strings.regex_replace("ab", "(a)", rewrite))


@pytest.mark.parametrize("pattern", ["(?:(?:\\pL{30}){30}x)" * 60, "(" * 5000 + ")" * 5000])
def test_patterns_that_are_too_large_are_refused(pattern):
    with pytest.raises(SyntaxFault, match="too large|too deeply"):
        linear_matching.Pattern(pattern.encode())


REASONS = [
    *(
        "(",
        ")",
        "[",
        "[a",
        "[]",
        "a**",
        "a*{2}",
        "x???",
        "{1}",
        "(|*)",
        "|*",
        "*",
        "a{3}{4}",
        "(?:",
    ),
    *("a{1001}", "x{2,1}", "(?:a{1000}){1000}", "((a{10}){10}){11}", "(a*){1001}", "a{99999999}"),
    *(
        r"[b-a]",
        r"[a-\d]",
        r"[\b]",
        r"[\z]",
        "[[:foo:]]",
        "[[:alpha:]",
        r"\x1",
        r"\8",
        r"\1",
        r"\18",
    ),
    *(
        "a\\",
        "[a\\",
        "\\ä",
        r"\Z",
        "(?=a)",
        "(?<=a)",
        "(?z)a",
        "(?i-)a",
        "(?--i)",
        "(?P=a)",
        "(?",
        "(?i",
    ),
    *(r"\E", r"\Qa\E\E", r"\p{L", r"[\p{Greek", r"\p{}", r"\p{greek}", "{1001}", "*{2,1}", "{1}?"),
    *("(?P<²>a)", "(?P<a\u200d>a)", "(?<=", "(?<!"),
    *("(?P<a>b", "(?P<>a)", "(?P<a", "(?P<a b>c)", "(?<a>b", "(?<!a)", "(?>a)", "(?#a)"),
]


@pytest.mark.parametrize("pattern", REASONS)
def test_what_re2_refuses_is_refused_for_the_same_reason(pattern):
    re2 = pytest.importorskip("re2")
    options = re2.Options()
    options.log_errors = False
    with pytest.raises(re2.error) as theirs:
        re2.compile(pattern.encode(), options)
    with pytest.raises(SyntaxFault) as ours:
        linear_matching.Pattern(pattern.encode())
    assert str(ours.value) == theirs.value.args[0].decode()


@pytest.mark.parametrize("script", ["Greek", "Thai", "Hebrew", "Georgian", "Old_Italic", "Lisu"])
def test_scripts_have_re2_s_characters(script):
    re2 = pytest.importorskip("re2")
    text = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)])).encode()
    theirs = re2.compile(rf"\p{{{script}}}+".encode())
    ours = linear_matching.Pattern(rf"\p{{{script}}}+".encode())
    begin, end = theirs.search(text).span()
    assert ours.search(text, begin - 4).span() == (begin, end)
    known = characters_of_script(script)
    found = [match.group().decode() for match in theirs.finditer(text)]
    assert [(ord(part[0]), ord(part[-1])) for part in found] == known


def _outcome(compiled, refusal, pattern, texts):
    try:
        expression = compiled(pattern.encode())
    except refusal:
        return "refused"
    found = []
    for text in texts:
        places = []
        for match in [expression.search(text, place) for place in range(len(text) + 1)]:
            places.append(match and [match.span(group) for group in range(expression.groups + 1)])
        found.append((places, expression.fullmatch(text) is not None))
    return found


@settings(max_examples=300, deadline=None)
@given(EXPRESSIONS, TEXTS_OF_BYTES)
@example("(?i)[^k]", "k\u212aK".encode())
@example("[^a]*", b"\xe0\x80\x80\xf4\x90\x80\x80\xed\xa0\x80\xff")
@example("(|a)*(a|ab)(c|bcd)?", b"abcd")
def test_both_engines_find_the_same_groups_at_the_same_places(pattern, text):
    re2 = pytest.importorskip("re2")
    options = re2.Options()
    options.log_errors = False
    theirs = _outcome(lambda given: re2.compile(given, options), re2.error, pattern, [text])
    assert _outcome(linear_matching.Pattern, SyntaxFault, pattern, [text]) == theirs


_SIMPLE_PIECES = r"""
    a b ab k [^a] [a-c] \w \s \W . \. (?i:k) (a) ([ab]+) (b*) (?:a|ab) (b|bc|a)
    a+ a* b? [ab]+? [^a]* \d{2} .{1,3} a{2,} ^ $ \b \B \A \z [[:punct:]] \x{41}
""".split()  # noqa: SIM905 (it is easier to read)
_SIMPLE = st.lists(st.sampled_from(_SIMPLE_PIECES), max_size=4).map("".join)


@settings(max_examples=500, deadline=None)
@given(EXPRESSIONS | _SIMPLE, st.text("aabbckA .7_\n\0*", max_size=12))
@example(".+$", "ab\n")
@example("a*b", "aab")
def test_plain_patterns_match_as_others_do(pattern, text):
    plain = plain_pattern(pattern.encode())
    if plain is None:
        return
    content = text.encode()
    assert plain.takes(content)
    expected = linear_matching.Pattern(pattern.encode())
    groups = range(expected.groups + 1)
    for place in range(len(content) + 1):
        ours, theirs = plain.expression.search(content, place), expected.search(content, place)
        spans = [match and [match.span(group) for group in groups] for match in (ours, theirs)]
        assert spans[0] == spans[1]
    assert (plain.expression.fullmatch(content) is None) == (expected.fullmatch(content) is None)


@pytest.mark.parametrize(
    "pattern", ["o", "[^a-z ]+", r"(\w+) (\w+)", "<[^>]*>", r"^\s+", "[ab]{2,5}"]
)
def test_common_patterns_are_plain(pattern):
    assert plain_pattern(pattern.encode()) is not None


@pytest.mark.parametrize(
    "pattern", ["", "a*", "(a+)+b", "a+a+a+", "ä", "(", r"\C", "(a|b)*", "a**"]
)
def test_patterns_with_too_many_ways_are_not(pattern):
    assert plain_pattern(pattern.encode()) is None
