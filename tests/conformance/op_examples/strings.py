"""Examples of operations on strings."""

from __future__ import annotations

import numpy as np

from tests.conformance.exchange import call


def texts(*values: bytes) -> np.ndarray:
    made = np.empty(len(values), object)
    made[:] = values
    return made


WORDS = texts(b"", b"a", b" Some words\t", b"\xc3\xa4\xc3\x96 x", b"a,b,,c")
GRID = texts(b"a", b"b", b"c", b"d").reshape(2, 2)
FLOATS = np.array([1.5, -2.25, 1e10, 3.14159265], np.float32)
RNG = np.random.default_rng(0)
HASHED = texts(*[RNG.bytes(n) for n in [*range(70), 100, 128, 129, 200, 1000] for _ in range(2)])
BUCKETS = 2**62 - 57
PATHS = texts(b"/tmp/model", b"s3://bucket/model")

EXAMPLES = {
    "Fingerprint": [call(HASHED, b"farmhash64"), call(FLOATS, b"farmhash64")],
    "StringStrip": call(WORDS),
    "StringLower": [call(WORDS), call(WORDS, encoding="utf-8")],
    "StringUpper": [call(WORDS), call(WORDS, encoding="utf-8")],
    "StringLength": [call(WORDS), call(WORDS, unit="UTF8_CHAR")],
    "Substr": [
        call(WORDS[2:], 1, 3),
        call(WORDS[2:], [0, -1, 2], [2, 5, 1]),
        call(np.array(b"hello", object), [1, 2, -3], [2, 9, 1]),
        call(WORDS[3:4], [1], [2], unit="UTF8_CHAR"),
    ],
    "StringSplit": [
        call(WORDS, b" ,"),
        call(WORDS, b""),
        call(WORDS, b",", skip_empty=False),
    ],
    "StringNGrams": call(
        texts(b"a", b"b", b"c", b"d"),
        np.array([0, 3, 3, 4], np.int64),
        separator="-",
        ngram_widths=[2, 1],
        left_pad="<",
        right_pad=">",
        pad_width=1,
        preserve_short_sequences=False,
    ),
    "StringSplitV2": [
        call(WORDS, b""),
        call(WORDS, b","),
        call(WORDS, b",", maxsplit=1),
        call(texts(b" a  b c "), b"", maxsplit=1),
    ],
    "ReduceJoin": [
        call(GRID, [0]),
        call(GRID, [1, 0], separator="-"),
        call(GRID, [0, 1], keep_dims=True),
        call(GRID, -1),
    ],
    "UnsortedSegmentJoin": [
        call(WORDS, [2, 0, 2, 0, 0], 4, separator=":"),
        call(GRID, [1, 0], 2),
    ],
    "RegexReplace": [
        call(WORDS, b"[a-z]+", b"<\\0>"),
        call(WORDS, b"(\\w)(.)", b"\\2\\1\\\\", replace_global=False),
    ],
    "StaticRegexReplace": [
        call(WORDS, pattern="[[:alpha:]]|\\Q,\\E", rewrite="."),
        call(WORDS, pattern="^", rewrite="> "),
    ],
    "RegexFullMatch": [call(WORDS, b".*[^a]$"), call(PATHS, b"(/tmp)?.*[a-z]?")],
    "StaticRegexFullMatch": [
        call(WORDS, pattern="\\w*"),
        call(PATHS, pattern="^s3://.*"),
        call(texts(b"a\n", b"a", b"\xc3\xa4"), pattern=".$"),
    ],
    "StringToNumber": [
        call(texts(b"1.5", b"-2e3", b" 7 ", b"inf", b".5")),
        call(texts(b"12", b"-7", b"+3"), out_type=3),
        call(texts(b"9223372036854775807"), out_type=9),
        call(texts(b"0.1"), out_type=2),
    ],
    "AsString": [
        call(FLOATS),
        call(FLOATS, precision=2, width=12, fill="0"),
        call(FLOATS, scientific=True),
        call(FLOATS, shortest=True),
        call(np.array([1, -2], np.int64), width=5),
        call(np.array([True, False])),
        call(np.array([1 + 2j], np.complex64)),
        call(np.array([7], np.uint8), width=4, fill="-"),
        call(WORDS),
    ],
    "StringToHashBucket": call(HASHED, num_buckets=BUCKETS),
    "StringToHashBucketFast": call(HASHED, num_buckets=BUCKETS),
    "StringToHashBucketStrong": call(HASHED, num_buckets=BUCKETS, key=[12345678901234, -7]),
    "EncodeBase64": [call(HASHED[:12]), call(HASHED[:12], pad=True)],
    "DecodeBase64": call(texts(b"", b"YQ", b"YQ==", b"-_8")),
    "UnicodeTranscode": [
        call(WORDS, input_encoding="UTF-8", output_encoding="UTF-16-BE"),
        call(texts(b"a\xffb"), input_encoding="UTF-8", output_encoding="UTF-8"),
        call(
            texts(b"a\xff\x01b"),
            input_encoding="UTF-8",
            output_encoding="UTF-8",
            errors="ignore",
            replace_control_characters=True,
        ),
        call(
            texts(b"a\xff\x01b"),
            input_encoding="UTF-8",
            output_encoding="UTF-32-BE",
            replacement_char=63,
            replace_control_characters=True,
        ),
    ],
}
MIXED = texts("aä€😀\n".encode(), b"", b"x\xffy\xc3")
NUMBERS = np.array([97, 228, 0x1F600, 98, 0x110000], np.int32)
EXAMPLES |= {
    "UnicodeDecode": [
        call(MIXED, input_encoding="UTF-8"),
        call(MIXED, input_encoding="UTF-8", errors="ignore", replace_control_characters=True),
        call(texts("aä😀".encode("utf-16-be")), input_encoding="UTF-16-BE"),
    ],
    "UnicodeDecodeWithOffsets": [
        call(MIXED, input_encoding="UTF-8"),
        call(MIXED, input_encoding="UTF-8", replacement_char=63, replace_control_characters=True),
    ],
    "UnicodeScript": call(np.array([ord("a"), ord("\u03b1"), ord("\u3042"), -1], np.int32)),
    "UnicodeEncode": [
        call(NUMBERS, np.array([0, 2, 2, 5], np.int64), output_encoding="UTF-8"),
        call(NUMBERS, np.array([0, 5], np.int64), output_encoding="UTF-16-BE", errors="ignore"),
    ],
}
