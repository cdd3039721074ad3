"""The generator against its authors' published vectors, and the arithmetic of positions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runnel.native.input_library import VARIABLE, carried_library
from runnel.ops.sampling.philox import PhiloxStream, philox4x32, reserved_for_outputs, words_at

# "philox4x32 10" in the known-answer file of Random123, the authors' own library:
# counter, key, result.
KNOWN_ANSWERS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]  # fmt: skip


def words_of(column):
    """The vectors' hexadecimal words, transposed: one array for each place."""
    rows = [[int(word, 16) for word in row[column].split()] for row in KNOWN_ANSWERS]
    return tuple(np.array(rows, np.uint32).T)


def known_streams():
    """The vectors' inputs as streams, and the results, one row each."""
    answers = np.stack(words_of(2), axis=-1)
    rows = np.concatenate([np.stack(words_of(1), -1), np.stack(words_of(0), -1)], axis=-1)
    return rows, answers


def traced_words_at(stream, offsets):
    with jax.enable_x64(True):
        return jax.jit(lambda s, o: words_at(jnp, s, o))(stream, offsets)


def test_numpy_gives_the_published_vectors():
    counter, key, answers = (words_of(i) for i in range(3))
    for key_row in range(3):  # the key is one for all counters
        one_key = tuple(word[key_row : key_row + 1] for word in key)
        got = philox4x32(np, one_key, counter)
        assert [hex(w[key_row]) for w in got] == [hex(a[key_row]) for a in answers]
        assert all(word.dtype == np.uint32 for word in got)


def test_traced_gives_the_published_vectors():
    counter, key, answers = (words_of(i) for i in range(3))
    with jax.enable_x64(True):
        got = jax.jit(lambda k, c: philox4x32(jnp, k, c))(key, counter)
    np.testing.assert_array_equal(np.stack(got), np.stack(answers))
    assert all(word.dtype == np.uint32 for word in got)


WORDS = st.sampled_from([0, 1, 2**31, 2**32 - 2, 2**32 - 1]) | st.integers(0, 2**32 - 1)


@pytest.mark.skipif(carried_library() is None, reason="the package carries no native code")
@given(
    st.lists(WORDS, min_size=6, max_size=6),
    st.lists(st.integers(0, 2**64 - 1), min_size=13, max_size=150),
    st.booleans(),
)
def test_native_code_gives_the_words_that_numpy_gives(stream, offsets, is_reversed):
    stream, offsets = np.array(stream, np.uint32), np.array(offsets, np.uint64)
    offsets = offsets[::-1] if is_reversed else offsets
    native = words_at(np, stream, offsets)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "0")
        interpreted = words_at(np, stream, offsets)
    np.testing.assert_array_equal(native, interpreted)


@pytest.mark.parametrize("offsets", [1, 50], ids=["few", "many"])
def test_a_stream_begins_at_its_own_counter(offsets):
    for stream, answer in zip(*known_streams()):
        got = words_at(np, stream, np.arange(offsets, dtype=np.uint64))
        np.testing.assert_array_equal([word[0] for word in got], answer)


@pytest.mark.parametrize("bits", [32, 64, 96, 128])
def test_positions_carry_from_word_to_word(bits):
    """Offsets that cross a word's end give what a stream that starts there gives."""
    stream = PhiloxStream(key=(9 << 32) + 5, counter=(1 << bits) - 20)
    offsets = np.arange(40, dtype=np.uint64)
    expected = np.array(
        [[w[0] for w in words_at(np, stream.skip(i).words(), offsets[:1])] for i in range(40)]
    ).T
    np.testing.assert_array_equal(words_at(np, stream.words(), offsets), expected)
    np.testing.assert_array_equal(words_at(np, stream.words(), offsets[15:25]), expected[:, 15:25])
    np.testing.assert_array_equal(traced_words_at(stream.words(), offsets), expected)


def test_offsets_beyond_32_bits():
    stream = PhiloxStream(key=1, counter=(1 << 32) - 3)
    offsets = np.arange(20, dtype=np.uint64) * np.uint64(1 << 33)
    expected = [words_at(np, stream.skip(i << 33).words(), offsets[:1]) for i in range(20)]
    expected = np.concatenate(expected, axis=1)
    np.testing.assert_array_equal(words_at(np, stream.words(), offsets), expected)
    np.testing.assert_array_equal(traced_words_at(stream.words(), offsets), expected)


def test_seeds_are_the_key_and_the_high_half_of_the_counter():
    stream = PhiloxStream.from_seeds(seed=(1 << 32) + 2, seed2=(3 << 32) + 4)
    assert stream.words().tolist() == [2, 1, 0, 0, 4, 3]
    assert stream.words().dtype == np.uint32


def test_negative_seeds_count_in_two_s_complement():
    assert PhiloxStream.from_seeds(-1, -2).words().tolist() == [
        *(0xFFFFFFFF, 0xFFFFFFFF, 0, 0, 0xFFFFFFFE, 0xFFFFFFFF)
    ]


def test_skip_leaves_the_stream_and_wraps_at_128_bits():
    stream = PhiloxStream(key=7, counter=(1 << 128) - 1)
    assert stream.skip(reserved_for_outputs(2)) == PhiloxStream(key=7, counter=511)
    assert stream.counter == (1 << 128) - 1


def test_a_new_position_does_not_compile_again():
    traces = []

    @jax.jit
    def first_word(stream):
        traces.append(stream)
        return words_at(jnp, stream, jnp.arange(2, dtype=np.uint64))[0]

    stream = PhiloxStream.from_seeds(1, 2)
    with jax.enable_x64(True):
        results = [first_word(s.words()) for s in (stream, stream.skip(1))]
    assert len(traces) == 1
    assert results[0][1] == results[1][0]
