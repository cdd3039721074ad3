"""Examples of operations on checkpoints: each writes one, and reads it back."""

import atexit
import shutil
import tempfile

import numpy as np

from tests.conformance.exchange import Builder, Example, Inputs, Steps

TENSORS = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([b"a", b"\x00"], object)]
TYPES = [1, 7]
NAMES = ["x", "y"]


def new_folder() -> str:
    """A folder that goes with the process: what an example is built in outlives its building."""
    folder = tempfile.mkdtemp(prefix="runnel-example-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def place() -> str:
    """The name of a checkpoint that is not there."""
    return f"{new_folder()}/model"


def texts(*values: str) -> np.ndarray:
    return np.array(values, object)


def saved(b: Builder) -> Steps:
    path = place()
    save = b.op("SaveV2", path, texts(*NAMES), texts("", ""), Inputs(TENSORS))
    return [save, b.op("RestoreV2", path, texts(*NAMES), texts("", ""), dtypes=TYPES)]


def saved_in_slices(b: Builder) -> Steps:
    path = place()
    parts = Inputs([TENSORS[0][:1], TENSORS[0][1:]])
    specs = texts("2 3 0,1:-", "2 3 1,1:0,3")
    save = b.op("SaveV2", path, texts("x", "x"), specs, parts)
    return [save, b.op("RestoreV2", path, texts("x", "x"), texts("", "2 3 -:1,2"), dtypes=[1, 1])]


def merged(b: Builder) -> Steps:
    path, parts = place(), [place(), place()]
    steps = [
        b.op("SaveV2", part, texts(name), texts(""), Inputs([tensor]))
        for part, name, tensor in zip(parts, NAMES, TENSORS, strict=True)
    ]
    steps.append(b.op("MergeV2Checkpoints", texts(*parts), path))
    return [*steps, b.op("RestoreV2", path, texts(*NAMES), texts("", ""), dtypes=TYPES)]


def saved_as_before(b: Builder) -> Steps:
    path = place()
    save = b.op("Save", path, texts(*NAMES), Inputs(TENSORS))
    restored = [b.op("Restore", path, name, dt=kind) for name, kind in zip(NAMES, TYPES)]
    return [save, *restored]


def saved_in_slices_as_before(b: Builder) -> Steps:
    path = place()
    parts = Inputs([TENSORS[0][:1], TENSORS[0][1:]])
    specs = texts("2 3 0,1:-", "2 3 1,1:0,3")
    save = b.op("SaveSlices", path, texts("x", "x"), specs, parts)
    return [save, b.op("RestoreSlice", path, "x", "2 3 -:1,2", dt=1)]


def named(b: Builder) -> Steps:
    one = b.op("ShardedFilename", "/tmp/model", 2, 10)
    return [one, b.op("ShardedFilespec", "/tmp/model", 10)]


def joined(b: Builder) -> Steps:
    inputs = Inputs([np.array(b"a", object), texts("x", "y")])
    return [b.op("StringJoin", inputs, separator="-")]


def _always(example: Example):
    return lambda _: example


EXAMPLES = {
    "SaveV2": [_always(saved), _always(saved_in_slices)],
    "RestoreV2": _always(saved),
    "MergeV2Checkpoints": _always(merged),
    "Save": _always(saved_as_before),
    "Restore": _always(saved_as_before),
    "SaveSlices": _always(saved_in_slices_as_before),
    "RestoreSlice": _always(saved_in_slices_as_before),
    "ShardedFilename": _always(named),
    "ShardedFilespec": _always(named),
    "StringJoin": _always(joined),
}
