"""Image files: read back, refused when damaged or huge, decoded while other threads run."""

from __future__ import annotations

import io
import struct
import threading
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import runnel as tf

RNG = np.random.default_rng(0)
PICTURE = np.clip(
    np.add.outer(np.arange(40) * 3, np.arange(50) * 2)[..., None] + RNG.normal(0, 5, (40, 50, 3)),
    0,
    255,
).astype(np.uint8)


def written(image: np.ndarray, kind: str, **how: object) -> bytes:
    out = io.BytesIO()
    Image.fromarray(image).save(out, kind, **how)
    return out.getvalue()


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_png_keeps_every_sample(channels, kind):
    image = RNG.integers(0, np.iinfo(kind).max + 1, (7, 9, channels)).astype(kind)
    with tf.Session() as sess:
        back = tf.image.decode_png(tf.image.encode_png(image), dtype=image.dtype)
        np.testing.assert_array_equal(sess.run(back), image)


def filtered(image: np.ndarray, filters: list[int], interlaced: bool) -> bytes:
    """A 16-bit PNG file whose rows have the given filters in turn (RFC 2083, section 6)."""
    passes = [(0, 0, 1, 1)]
    if interlaced:
        passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2)]
        passes += [(0, 1, 2, 2), (1, 0, 2, 1)]
    size = 2 * image.shape[-1]
    out = bytearray()
    for y, x, dy, dx in passes:
        part = image[y::dy, x::dx]
        if 0 in part.shape:
            continue
        rows = np.ascontiguousarray(part.astype(">u2")).view(np.uint8).reshape(len(part), -1)
        above = [0] * rows.shape[1]
        for number, row in enumerate(rows.tolist()):
            kind = filters[number % len(filters)]
            out.append(kind)
            for i, byte in enumerate(row):
                left = row[i - size] if i >= size else 0
                corner = above[i - size] if i >= size else 0
                guesses = [left + above[i] - corner - v for v in (left, above[i], corner)]
                nearest = [left, above[i], corner][int(np.argmin(np.abs(guesses)))]
                guess = [0, left, above[i], (left + above[i]) // 2, nearest][kind]
                out.append((byte - guess) % 256)
            above = row
    height, width, channels = image.shape
    kind = {1: 0, 3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", width, height, 16, kind, 0, 0, int(interlaced))
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(out))), (b"IEND", b"")]
    return png_file(chunks)


def png_file(chunks: list[tuple[bytes, bytes]]) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_every_filter_of_a_deep_png_file_is_undone(interlaced, channels):
    image = RNG.integers(0, 65536, (11, 13, channels)).astype(np.uint16)
    content = filtered(image, [4, 3, 2, 1, 0, 4, 4, 3], interlaced)
    with tf.Session() as sess:
        found = sess.run(tf.image.decode_png(content, dtype=tf.uint16))
    np.testing.assert_array_equal(found, image)


def test_a_jpeg_file_is_almost_what_was_written():
    with tf.Session() as sess:
        content = sess.run(tf.image.encode_jpeg(PICTURE, quality=100, chroma_downsampling=False))
        assert sess.run(tf.image.is_jpeg(content))
        assert sess.run(tf.image.extract_jpeg_shape(content)).tolist() == [40, 50, 3]
        back = sess.run(tf.image.decode_jpeg(content))
        small = sess.run(tf.image.decode_jpeg(content, ratio=8, channels=1))
    assert np.abs(back.astype(int) - PICTURE).mean() < 3
    assert small.shape == (5, 7, 1)


def test_a_file_that_was_cut_is_recovered_if_asked():
    content = written(PICTURE, "JPEG", quality=95)
    cut = content[: len(content) * 4 // 5]
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="cut off or damaged"):
            sess.run(tf.image.decode_jpeg(cut))
        whole = sess.run(tf.image.decode_jpeg(content))
        found = sess.run(tf.image.decode_jpeg(cut, try_recover_truncated=True))
    np.testing.assert_array_equal(found[:8], whole[:8])


def test_the_error_over_damaged_bytes_names_the_operation():
    image = tf.image.decode_png(written(PICTURE, "PNG")[:60], name="broken")
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        sess.run(image)
    assert caught.value.op is image.op
    assert "'broken'" in str(caught.value) and __file__ in str(caught.value)


def huge_png() -> bytes:
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 16, 2, 0, 0, 0)
    return png_file([(b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b"")])


def huge_bmp() -> bytes:
    return b"BM" + struct.pack("<IIIIiiHH", 0, 0, 54, 40, 60_000, 60_000, 1, 24) + bytes(30)


def huge_jpeg() -> bytes:
    content = bytearray(written(PICTURE, "JPEG"))
    at = content.index(b"\xff\xc0") + 5
    content[at : at + 4] = struct.pack(">HH", 60_000, 60_000)
    return bytes(content)


@pytest.mark.parametrize(
    "content", [huge_png(), huge_bmp(), huge_jpeg()], ids=["png", "bmp", "jpeg"]
)
def test_a_small_file_that_claims_to_be_huge_is_refused(content):
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
        sess.run(tf.image.decode_image(content))


FILES = [
    written(PICTURE, "JPEG"),
    written(PICTURE, "PNG"),
    written(PICTURE, "GIF"),
    filtered(RNG.integers(0, 65536, (5, 6, 3)).astype(np.uint16), [1, 2, 3, 4], True),
    b"BM" + struct.pack("<IIIIiiHHIIIIII", 0, 0, 54, 40, 5, 4, 1, 24, *[0] * 6) + bytes(16 * 4),
]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(FILES), st.data())
def test_mutated_files_give_an_image_or_our_error(content, data):
    mutated = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(mutated)))
    kernel = tf.get_op_def("DecodeImage").kernels[0].function
    held = np.empty((), object)
    held[()] = bytes(mutated[:end])
    try:
        found = kernel(np, held, channels=0, dtype=tf.uint8, expand_animations=False)
    except tf.errors.InvalidArgumentError:
        return
    assert found.dtype == np.uint8 and found.ndim == 3


def test_other_threads_run_while_a_file_is_decoded():
    """A decoder that held the interpreter's lock would let this thread count nothing."""
    large = np.repeat(np.repeat(PICTURE, 60, axis=0), 60, axis=1)
    content = written(large, "JPEG")
    counts: list[int] = []
    done = threading.Event()

    def decode() -> None:
        from runnel.ops.image.jpeg import read_jpeg

        read_jpeg(content)
        done.set()

    thread = threading.Thread(target=decode)
    thread.start()
    while not done.is_set():
        counts.append(1)
    thread.join()
    assert len(counts) > 1000
