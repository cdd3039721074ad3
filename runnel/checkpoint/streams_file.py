"""The positions of a session's random streams, in a file beside a checkpoint.

TensorFlow's checkpoints have no place for them: a session that goes on from one draws the numbers
of its first steps again. This file is ours, and a checkpoint is complete without it.
"""

from __future__ import annotations

import json
from pathlib import Path

from runnel.checkpoint.whole_file import write_whole
from runnel.graph.errors import DataLossError

Positions = dict[str, tuple[int, int]]
"""By an op's seeds and name, the key and the counter of its stream."""


def streams_file(prefix: str) -> str:
    """The name of the file beside the checkpoint ``prefix``."""
    return f"{prefix}.streams"


def write_streams(prefix: str, positions: Positions) -> None:
    """Writes the file; it appears whole."""
    write_whole(Path(streams_file(prefix)), json.dumps(positions, indent=0).encode())


def read_streams(prefix: str) -> Positions:
    """What the file says; nothing if there is none."""
    path = Path(streams_file(prefix))
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    try:
        return _checked(json.loads(content))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DataLossError(None, None, f"{path} is damaged: {error}.") from None


def _checked(found: dict[str, list[int]]) -> Positions:
    positions = {}
    for text, (key, counter) in found.items():
        seed, seed2, name = text.split(" ", 2)
        int(seed), int(seed2)
        if not (name and type(key) is int and type(counter) is int):
            raise ValueError(f"{text!r} is at {key!r} {counter!r}")
        if not (0 <= key < 1 << 64 and 0 <= counter < 1 << 128):
            raise ValueError(f"{text!r} is at {key} {counter}")
        positions[text] = key, counter
    return positions
