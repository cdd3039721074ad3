"""Reading IDX files, good and bad."""

import gzip
import struct

import numpy as np
import pytest

from runnel.datasets import IdxFormatError
from runnel.datasets.idx import read_idx

IMAGES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
LABELS = np.array([7, 0, 9], np.uint8)


def idx_bytes(array: np.ndarray, element_type: int = 0x08) -> bytes:
    header = bytes([0, 0, element_type, array.ndim])
    return header + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture
def write(tmp_path):
    def write_file(content: bytes):
        path = tmp_path / "some-file"
        path.write_bytes(content)
        return path

    return write_file


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
@pytest.mark.parametrize("array", [IMAGES, LABELS, IMAGES[:0]], ids=["images", "labels", "none"])
def test_reads_what_was_written(write, array, pack):
    read = read_idx(write(pack(idx_bytes(array))), array.ndim)
    assert read.dtype == np.uint8
    np.testing.assert_array_equal(read, array)


def test_a_file_larger_than_one_piece(write):
    array = np.random.default_rng(0).integers(0, 256, (3, 700, 1000), dtype=np.uint8)
    np.testing.assert_array_equal(read_idx(write(gzip.compress(idx_bytes(array), 1)), 3), array)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "ends after 0 bytes"),
        (b"\x00\x00\x08", "ends after 3 bytes"),
        (idx_bytes(IMAGES)[:15], "ends after 15 bytes, inside its header of 16 bytes"),
        (idx_bytes(IMAGES)[:-1], r"2 x 3 x 4 = 24 bytes, but only 23 follow"),
        (idx_bytes(IMAGES) + b"\x00", "but more follow"),
        (idx_bytes(LABELS), "0x00000801.*images starts with 0x00000803.*these are labels"),
        (idx_bytes(IMAGES, element_type=0x0D), "type 0x0d, and only 0x08"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"PK\x03\x04 and so on and on", "is it an IDX file"),
        # A header that asks for 2**96 bytes must not be believed.
        (b"\x00\x00\x08\x03" + b"\xff" * 12, "but only 0 follow"),
    ],
)
def test_a_damaged_file_is_named_and_explained(write, content, message, pack):
    path = write(pack(content))
    with pytest.raises(IdxFormatError, match=message) as caught:
        read_idx(path, 3)
    assert str(path) in str(caught.value)


def test_a_gzip_file_that_was_cut_short(write):
    noise = np.random.default_rng(0).integers(0, 256, (4, 28, 28), dtype=np.uint8)
    packed = gzip.compress(idx_bytes(noise))
    with pytest.raises(IdxFormatError, match="not a complete gzip file.*fetch it again"):
        read_idx(write(packed[: len(packed) // 2]), 3)


def test_a_gzip_file_with_flipped_bits(write):
    packed = bytearray(gzip.compress(idx_bytes(IMAGES)))
    packed[-6] ^= 0xFF  # inside the checksum
    with pytest.raises(IdxFormatError, match="not a complete gzip file"):
        read_idx(write(bytes(packed)), 3)


def test_the_error_is_a_value_error(write):
    with pytest.raises(ValueError):
        read_idx(write(b"no"), 1)
