"""WAV files, as far as they are right, and what is wrong with others."""

import io
import struct
import wave

import numpy as np
import pytest

import runnel as tf


def _file(channels, width, frames):
    written = io.BytesIO()
    with wave.open(written, "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(width)
        out.setframerate(22050)
        out.writeframes(frames)
    return written.getvalue()


def test_files_of_the_standard_library_are_read():
    numbers = np.arange(-6, 6, dtype="<i2") * 3000
    audio, rate = tf.audio.decode_wav(_file(2, 2, numbers.tobytes()))
    with tf.Session() as sess:
        values, per_second = sess.run([audio, rate])
    np.testing.assert_array_equal(values, numbers.reshape(6, 2) / np.float32(32768))
    assert per_second == 22050


def test_the_standard_library_reads_what_is_written():
    audio = np.linspace(-1, 1, 21, dtype=np.float32)[:, None]
    with tf.Session() as sess:
        content = sess.run(tf.audio.encode_wav(audio, 8000))
    with wave.open(io.BytesIO(content)) as file:
        assert (file.getnchannels(), file.getframerate(), file.getsampwidth()) == (1, 8000, 2)
        numbers = np.frombuffer(file.readframes(100), "<i2")
    np.testing.assert_allclose(numbers, audio[:, 0] * 32768, atol=1)


def test_chunks_that_nobody_knows_are_passed_over():
    file = _file(1, 2, struct.pack("<3h", 1, 2, 3))
    other = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    with tf.Session() as sess:
        audio = sess.run(tf.audio.decode_wav(file[:12] + other + file[12:])[0])
    np.testing.assert_array_equal(audio[:, 0] * 32768, [1, 2, 3])


@pytest.mark.parametrize(
    "content, why",
    [
        (b"RIFF", "too short"),
        (b"RIFX" + bytes(40), "RIFF"),
        (_file(1, 1, bytes(4)), "8 bits"),
        (_file(1, 2, b"")[:36], "no data"),
        (_file(1, 2, b"")[:12] + b"data" + bytes(8), "before its data"),
    ],
)
def test_what_is_wrong_with_a_file(content, why):
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=why):
        sess.run(tf.audio.decode_wav(content))
