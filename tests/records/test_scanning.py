"""Finding records in pieces of files: by native code and by Python, the same ones."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runnel as tf
from runnel.checkpoint.checksum import extend
from runnel.native import input_library
from runnel.records import scanning
from runnel.records.framing import framed
from runnel.records.record_reader import RecordReader

needs_native = pytest.mark.skipif(
    input_library.input_library() is None, reason="needs a C++ compiler"
)
SIZES = [0, 1, 300, 65_535, 65_536, 100_000, 262_144, 262_130, 400_000]
"""Of records that end before, at and behind the places where a reader reads on."""


@pytest.fixture(scope="module", params=["native", "python"])
def reader_kind(request):
    """Reads by native code, or by Python."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "python":
            patch.setenv(input_library.VARIABLE, "0")
        elif input_library.input_library() is None:
            pytest.skip("needs a C++ compiler")
        yield request.param


def mutated(data, content: bytes) -> bytes:
    """``content`` with some bytes changed, cut, put in or taken out."""
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, max(len(changed) - 1, 0)))
        how = data.draw(st.sampled_from(["cut", "flip", "insert", "remove"]))
        if how == "cut":
            del changed[place:]
        elif how == "flip" and changed:
            changed[place] ^= data.draw(st.integers(1, 255))
        elif how == "insert":
            changed[place:place] = data.draw(st.binary(max_size=20))
        else:
            del changed[place : place + data.draw(st.integers(1, 20))]
    return bytes(changed)


@needs_native
@given(st.data())
@settings(deadline=None, max_examples=200)
def test_native_code_finds_the_records_that_python_finds(data):
    records = data.draw(st.lists(st.binary(max_size=60), max_size=6))
    content = mutated(data, b"".join(map(framed, records)))
    at = data.draw(st.integers(0, len(content)))
    library = input_library._load()[0]
    assert scanning._native(library, content, at) == scanning._scanned(content, at)
    assert scanning._native(library, content, 0) == scanning._scanned(content, 0)


@needs_native
def test_a_length_that_the_piece_does_not_have_is_not_read():
    library = input_library._load()[0]
    for length in (1, 17, 2**31, 2**62, 2**63 - 1, 2**63, 2**64 - 12, 2**64 - 1):
        header = struct.pack("<Q", length)
        checksum = framed(b"")[8:12] if not length else struct.pack("<I", 0)
        content = header + checksum + b"\0" * 4
        assert scanning._native(library, content, 0) == ([], [])


@needs_native
def test_the_checksum_is_right_for_every_length_and_alignment():
    content = np.random.default_rng(0).bytes(40_000)
    lengths = [*range(40), 100, 959, 960, 961, 1919, 1920, 5000, 12_287, 12_288, 12_289, 30_000]
    library = input_library.input_library()
    assert library is not None
    for length in lengths:
        for begin in (0, 1, 7, 8):
            part = content[begin : begin + length]
            right = extend(0, part)
            assert library.runnel_crc32c(part, length) == right, (begin, length)
            assert library.runnel_crc32c_by_tables(part, length) == right, (begin, length)


def written(records: list[bytes]) -> tuple[bytes, list[int]]:
    """The file of ``records``, and where each begins."""
    pieces = [framed(record) for record in records]
    starts = np.cumsum([0, *map(len, pieces)]).tolist()
    return b"".join(pieces), starts


@pytest.mark.usefixtures("reader_kind")
@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_records_of_any_size_come_back_in_blocks_and_one_by_one(tmp_path, compression):
    random = np.random.default_rng(1)
    records = [random.bytes(int(size)) for size in random.choice(SIZES, 40)]
    content, starts = written(records)
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(content, 1) if compression else content)
    with RecordReader(path, compression) as reader:
        assert list(reader) == records
        assert reader.offset == len(content)
        reader.seek(starts[7])
        found = []
        while block := reader.block(3):
            assert len(block) <= 3
            found += block
            assert reader.offset == starts[7 + len(found)]
        assert found == records[7:]


@pytest.mark.usefixtures("reader_kind")
def test_damage_in_records_of_any_size_is_reported_with_its_place(tmp_path):
    random = np.random.default_rng(2)
    path = tmp_path / "file"
    for _ in range(40):
        records = [random.bytes(int(size)) for size in random.choice(SIZES, 6)]
        content, starts = written(records)
        number = int(random.integers(6))
        begin, end = starts[number : number + 2]
        edges = [begin, begin + 8, begin + 11, end - 4, end - 1]
        place = int(random.choice([*edges, int(random.integers(begin, end))]))
        cut = bool(random.integers(2))
        changed = bytearray(content)
        if cut:
            del changed[place:]
        else:
            changed[place] ^= 1 << int(random.integers(8))
        path.write_bytes(changed)
        found = []
        with RecordReader(path) as reader:
            if cut and place == begin:
                assert list(reader) == records[:number]
                continue
            for _ in range(2):  # asking again reads the same place again
                with pytest.raises(tf.errors.DataLossError) as raised:
                    found.extend(iter(reader.__next__, None))
                how = "truncated" if cut else "corrupted"
                assert f"{path}: {how} record at {begin}" in raised.value.message
            assert found == records[:number]
            assert reader.offset == begin
            path.write_bytes(content)  # it was repaired
            assert list(reader) == records[number:]
