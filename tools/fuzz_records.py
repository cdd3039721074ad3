"""Reads mutated record files: each must give the records before the damage, or an error of ours.

`python tools/fuzz_records.py 100000` makes so many files, each from a seed, and reads them: plain
and compressed, one record at a time and in blocks. It stops at the first that does anything else,
and names its seed.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from runnel.graph.errors import DataLossError
from runnel.records.record_reader import RecordReader
from runnel.records.record_writer import TFRecordWriter

KINDS = ("", "GZIP", "ZLIB")


def mutated(content: bytes, draw: random.Random) -> bytes:
    """``content`` with a few changes: bytes, runs of bytes, lengths, its end."""
    changed = bytearray(content)
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(changed) + 1)
        match draw.randrange(6):
            case 0:
                changed[place : place + 1] = bytes([draw.randrange(256)])
            case 1 if place < len(changed):
                changed[place] ^= 1 << draw.randrange(8)
            case 2:
                del changed[place:]
            case 3:
                del changed[place : place + draw.randint(1, 20)]
            case 4:
                changed[place:place] = draw.randbytes(draw.randint(1, 20))
            case 5:
                changed[place : place + 8] = draw.choice((b"\xff" * 8, b"\0" * 8))
    return bytes(changed)


def check(seed: int, folder: Path) -> str:
    """Makes and reads the file of a seed; how its reading ended."""
    draw = random.Random(seed)
    records = [draw.randbytes(draw.choice((0, 1, 7, 40, 400))) for _ in range(draw.randint(0, 6))]
    kind = draw.choice(KINDS)
    path = folder / "records"
    with TFRecordWriter(path, kind) as writer:
        for record in records:
            writer.write(record)
    path.write_bytes(mutated(path.read_bytes(), draw))
    found: list[bytes] = []
    ended = "end"
    most = draw.choice((1, 3, 100))
    try:
        with RecordReader(path, kind) as reader:
            while block := reader.block(most):
                found += block
    except DataLossError:
        ended = "error"
    # A change may join records, or repeat one: what is given was written, and in that order.
    if found[: len(records)] != records[: len(found)] and any(r not in records for r in found):
        raise AssertionError(f"seed {seed}: records came back that were never written")
    return ended


def main(count: int) -> None:
    """Checks the files of the seeds below ``count``."""
    ends = {"end": 0, "error": 0}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(count):
            try:
                ends[check(seed, Path(folder))] += 1
            except BaseException:
                print(f"seed {seed} failed", file=sys.stderr)
                raise
    print(f"{count} files: {ends['error']} ended with an error, {ends['end']} without")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
