"""Files of recorded values: ``tests/recorded/<table>.npz``.

A file holds the version of TensorFlow, the bytes of all values one after the other, and an index
in JSON that says which values they are. Nothing in it is pickled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tests.programs.running import Steps

FOLDER = Path(__file__).resolve().parent.parent / "recorded"
_NOTHING = "nothing"


def path_of(table: str) -> Path:
    """The file with the recorded values of a table."""
    return FOLDER / f"{table}.npz"


def save(table: str, results: Mapping[str, Steps], version: str) -> None:
    """Writes what the programs of a table gave under TensorFlow ``version``.

    A file that holds just that is left alone: a new one would have another time in it.
    """
    index: dict[str, list[list[Any]]] = {}
    parts: list[bytes] = []
    for program, steps in results.items():
        index[program] = [[_describe(value, parts) for value in step] for step in steps]
    arrays: dict[str, Any] = {
        "tensorflow": np.array(version.encode()),
        "index": np.frombuffer(json.dumps(index, separators=(",", ":")).encode(), np.uint8),
        "data": np.frombuffer(b"".join(parts), np.uint8),
    }
    path = path_of(table)
    if path.exists():
        with np.load(path, allow_pickle=False) as old:
            if all(np.array_equal(old[key], array) for key, array in arrays.items()):
                return
    FOLDER.mkdir(exist_ok=True)
    np.savez_compressed(path, **arrays)


def _describe(value: Any, parts: list[bytes]) -> list[Any]:
    if value is None:
        return [_NOTHING]
    if value.dtype == object:
        value = value.astype(bytes)
    parts.append(np.ascontiguousarray(value).tobytes())
    name = value.dtype.str if value.dtype.kind == "S" else value.dtype.name
    return [name, list(value.shape)]


def load(table: str) -> tuple[dict[str, Steps], str]:
    """The recorded values of a table, and the version of TensorFlow that gave them."""
    with np.load(path_of(table), allow_pickle=False) as file:
        index = json.loads(file["index"].tobytes())
        data = file["data"].tobytes()
        version = file["tensorflow"].item().decode()
    position = 0
    results: dict[str, Steps] = {}
    for program, steps in index.items():
        results[program] = []
        for step in steps:
            values: list[Any] = []
            for kind, *shape in step:
                if kind == _NOTHING:
                    values.append(None)
                    continue
                dtype = np.dtype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
                count = int(np.prod(shape[0], dtype=np.int64))
                array = np.frombuffer(data, dtype, count, position).reshape(shape[0])
                position += count * dtype.itemsize
                values.append(array.astype(object) if dtype.kind == "S" else array)
            results[program].append(values)
    return results, version
