"""Graphs with functions, and models of TensorFlow 2, as TensorFlow wrote them: damaged and run."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

import runnel as tf
from runnel.saved_model.model_file import read_saved_model, write_saved_model
from tests.mutated_files.mutations import mutate_message, mutated_bytes
from tests.mutated_files.subject import Subject

_FILES = Path(__file__).parents[1] / "recorded" / "files"
_FED = np.array([[1.0, -2.0], [0.5, 0.25]], np.float32)
_MOST = 50
"""So many elements at most are taken of a dataset, which may have become endless."""
OF_GRAPHS = (tf.errors.OpError, OSError, ValueError, TypeError, KeyError, RuntimeError)


def session() -> tf.Session:
    """One whose steps end, whatever they have become."""
    return tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=3000))


def _copies(pattern: str, folder: Path) -> None:
    for path in sorted(_FILES.glob(pattern)):
        if path.suffix == ".npz":
            continue
        name = f"{path.parents[1].name}-{path.name}"
        if path.is_dir():
            shutil.copytree(path, folder / name)
        else:
            shutil.copy(path, folder / name)


def _chosen(folder: Path, chance: random.Random) -> Path:
    """One of what is in ``folder``; the others are removed."""
    paths = sorted(folder.iterdir())
    kept = paths.pop(chance.randrange(len(paths)))
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return kept


def _mutate(message: Any, chance: random.Random) -> None:
    for _ in range(chance.choice([1, 1, 2, 4])):
        mutate_message(message, chance)


def _damage_functions(folder: Path, chance: random.Random) -> bool:
    path = _chosen(folder, chance)
    content = path.read_bytes()
    if chance.random() < 0.3:
        path.write_bytes(mutated_bytes(content, chance))
    else:
        found = tf.GraphDef.FromString(content)
        _mutate(found.library if chance.random() < 0.6 else found, chance)
        path.write_bytes(found.SerializeToString())
    return True


def _read_functions(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        try:
            given = tf.GraphDef.FromString(path.read_bytes())
        except DecodeError:  # the program sees it before anything of ours does
            continue
        with tf.Graph().as_default(), session() as sess:
            if "elements" in path.name:
                tensors = tf.import_graph_def(given, return_elements=["a:0", "b:0"])
                _take(sess, tensors)
                continue
            x, y = tf.import_graph_def(given, return_elements=["x:0", "y:0"])
            sess.run(y, {x: _FED})
            sess.run(tf.gradients(y, x), {x: _FED})


def _take(sess: tf.Session, tensors: Any) -> None:
    for _ in range(_MOST):
        try:
            sess.run(tensors)
        except tf.errors.OutOfRangeError:
            return


def _damage_model(folder: Path, chance: random.Random) -> bool:
    model = _chosen(folder, chance)
    path = model / "saved_model.pb"
    if chance.random() < 0.3:
        path.write_bytes(mutated_bytes(path.read_bytes(), chance))
    else:
        found = read_saved_model(model)
        parts = [m.graph_def.library for m in found.meta_graphs] + list(found.meta_graphs)
        _mutate(chance.choice(parts), chance)
        write_saved_model(model, found, as_text=False)
    return True


def _read_models(folder: Path) -> None:
    for model in sorted(folder.iterdir()):
        recorded = _FILES / "tensorflow-2.21" / "second_models"
        values = np.load(recorded / f"{model.name.removeprefix('tensorflow-2.21-')}.npz")
        with tf.Graph().as_default(), session() as sess:
            found = tf.saved_model.load(sess, ["serve"], str(model))
            signature = found.signature_def["serving_default"]
            feeds = {info.name: values[f"in_{name}"] for name, info in signature.inputs.items()}
            sess.run([info.name for info in signature.outputs.values()], feeds)


LIBRARY_SUBJECTS = {
    "functions": Subject(
        lambda folder: _copies("tensorflow-*/functions/*.pb", folder),
        _damage_functions,
        _read_functions,
        OF_GRAPHS,
    ),
    "second_models": Subject(
        lambda folder: _copies("tensorflow-2.21/second_models/*", folder),
        _damage_model,
        _read_models,
        OF_GRAPHS,
    ),
}
