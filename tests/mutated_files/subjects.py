"""Files of each kind: how they are made, damaged and read."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import runnel as tf
from runnel.checkpoint.bundle import BundleWriter
from runnel.checkpoint.protos import message
from runnel.checkpoint.reading import open_checkpoint
from runnel.checkpoint.safetensors import write_safetensors
from runnel.checkpoint.table import TableReader, TableWriter
from runnel.checkpoint.tensor_slice import TensorSlice
from runnel.checkpoint.v1 import V1Writer
from runnel.graph import dtypes
from runnel.records.framing import framed
from runnel.records.record_reader import RecordReader
from runnel.saved_model.model_file import read_saved_model, write_saved_model
from tests.mutated_files.input_subjects import INPUT_SUBJECTS
from tests.mutated_files.library_subjects import LIBRARY_SUBJECTS, OF_GRAPHS, session
from tests.mutated_files.mutations import mutate_message, mutated_bytes, mutated_json
from tests.mutated_files.subject import Subject

# Checkpoints ------------------------------------------------------------------------------------

_STRINGS = np.array([b"a", b"", b"\xff" * 300, b"text"], object)


def _tensors(writer: Any, strings: bool = True) -> None:
    with writer:
        writer.add("a", np.arange(60.0).reshape(3, 4, 5), dtypes.float64)
        writer.add("b/half", np.arange(7).astype(dtypes.bfloat16.np_dtype), dtypes.bfloat16)
        writer.add("empty", np.zeros((0, 3), np.int32), dtypes.int32)
        writer.add("flags", np.array([True, False]), dtypes.bool_)
        if strings:
            writer.add("strings", _STRINGS.reshape(2, 2), dtypes.string)
        for start in (0, 3):
            part = TensorSlice.parse(f"{start},3:-")
            rows = np.arange(12).reshape(6, 2)[start : start + 3]
            writer.add_slice("v", (6, 2), part, rows, dtypes.int64)


def _read_checkpoint(prefix: str) -> dict[str, Any]:
    reader = open_checkpoint(prefix)
    found = {}
    for name in reader.names():
        dtype, shape = reader.type_and_shape(name)
        array = reader.tensor(name)
        assert array.shape == shape and array.dtype == dtype.np_dtype
        found[name] = array.tolist()
        reader.slice(name, TensorSlice(tuple((0, min(1, size)) for size in shape)))
    return found


def _rewrite_table(path: Path, kind_of: Callable[[bytes], str], chance: random.Random) -> None:
    """Changes a message of a table, and makes its checksums fit."""
    with path.open("rb") as file:
        entries = dict(TableReader(file, str(path)))
    key = chance.choice(sorted(entries))
    if chance.random() < 0.1:
        value = entries.pop(key)
        entries[mutated_bytes(key, chance)] = value
    else:
        parsed = message(kind_of(key))()
        parsed.ParseFromString(entries[key])
        mutate_message(parsed, chance)
        entries[key] = parsed.SerializeToString()
    with path.open("wb") as file:
        table = TableWriter(file)
        for key in sorted(entries):
            table.add(key, entries[key])
        table.finish()


def _damage_bytes(paths: Iterator[Path], chance: random.Random) -> None:
    path = chance.choice(sorted(paths))
    path.write_bytes(mutated_bytes(path.read_bytes(), chance))


def _damage_bundle(folder: Path, chance: random.Random) -> bool:
    if chance.random() < 0.5:
        _damage_bytes(folder.glob("m.*"), chance)
        return False
    kind = lambda key: "BundleEntryProto" if key else "BundleHeaderProto"  # noqa: E731
    _rewrite_table(folder / "m.index", kind, chance)
    return True


def _damage_v1(folder: Path, chance: random.Random) -> bool:
    if chance.random() < 0.5:
        _damage_bytes(folder.glob("m"), chance)
        return False
    _rewrite_table(folder / "m", lambda key: "SavedTensorSlices", chance)
    return True


def _make_safetensors(folder: Path) -> None:
    tensors = {
        "a": (dtypes.float32, np.ones((2, 3), np.float32)),
        "b": (dtypes.bool_, np.ones(5, bool)),
    }
    write_safetensors(str(folder / "m.safetensors"), tensors, {"note": "x"})


def _damage_safetensors(folder: Path, chance: random.Random) -> bool:
    path = folder / "m.safetensors"
    if chance.random() < 0.5:
        _damage_bytes(folder.glob("m.*"), chance)
        return True  # the format has no checksums
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.dumps(mutated_json(json.loads(content[8 : 8 + size]), chance)).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + size :])
    return True


# Events -----------------------------------------------------------------------------------------


def _make_events(folder: Path) -> None:
    from tensorboard.compat.proto.event_pb2 import Event

    events = [Event(wall_time=1.0, file_version="brain.Event:2")]
    for step in range(4):
        event = Event(wall_time=2.0 + step, step=step)
        event.summary.value.add(tag=f"loss_{step}", simple_value=step)
        event.summary.value.add(tag="h").histo.bucket.extend([1.0, 2.0])
        events.append(event)
    (folder / "events").write_bytes(b"".join(framed(e.SerializeToString()) for e in events))


def _damage_events(folder: Path, chance: random.Random) -> bool:
    from tensorboard.compat.proto.event_pb2 import Event

    return _damage_messages(folder / "events", Event, chance)


def _damage_messages(path: Path, kind: Any, chance: random.Random) -> bool:
    """Changes bytes of a record file, or a message in it, and makes its checksums fit."""
    if chance.random() < 0.5:
        _damage_bytes(iter([path]), chance)
        return False
    with RecordReader(path) as reader:
        records = list(reader)
    place = chance.randrange(len(records))
    if chance.random() < 0.5:
        records[place] = mutated_bytes(records[place], chance)
    else:
        parsed = kind.FromString(records[place])
        mutate_message(parsed, chance)
        records[place] = parsed.SerializeToString()
    path.write_bytes(b"".join(map(framed, records)))
    return True


def _read_events(folder: Path) -> list[bytes]:
    """Those before the damage: what a reader has returned by then is right."""
    return [event.SerializeToString() for event in tf.train.summary_iterator(folder / "events")]


# Examples ---------------------------------------------------------------------------------------


def _make_examples(folder: Path) -> None:
    examples = []
    for n in range(5):
        example = tf.train.Example()
        feature = example.features.feature
        feature["n"].int64_list.value.append(n)
        feature["f"].float_list.value.extend([0.5, n])
        feature["s"].bytes_list.value.extend([b"text"] * n)
        examples.append(example.SerializeToString())
    (folder / "examples").write_bytes(b"".join(map(framed, examples)))


@functools.cache
def _pipeline() -> tuple[tf.Session, Any, Any, Any]:
    """A session, and where the path of a file goes, what begins with it, and what it has."""
    with tf.Graph().as_default():
        path = tf.placeholder(tf.string, [])
        features = {
            "n": tf.FixedLenFeature([], tf.int64),
            "f": tf.FixedLenFeature([2], tf.float32, [1.0, 2.0]),
            "s": tf.VarLenFeature(tf.string),
        }

        def parsed(text: Any) -> Any:
            found = tf.parse_single_example(text, features)
            return found["n"], found["f"], tf.sparse.to_dense(found["s"], default_value="")

        examples = tf.data.TFRecordDataset(path).map(parsed, num_parallel_calls=2).prefetch(2)
        iterator = examples.make_initializable_iterator()
        element = iterator.get_next()
        return tf.Session(), path, iterator.initializer, element


def _read_examples(folder: Path) -> list[Any]:
    """What a step gets of a file, through a pipeline with threads."""
    sess, path, begin, element = _pipeline()
    sess.run(begin, {path: str(folder / "examples")})
    found = []
    while True:
        try:
            n, f, s = sess.run(element)
        except tf.errors.OutOfRangeError:
            return found
        found.append((int(n), f.tolist(), s.tolist()))


# Graphs -----------------------------------------------------------------------------------------


def _network() -> tuple[Any, Any]:
    """Variables, a loop, a branch, a queue runner, a Saver, collections, an optimizer."""
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    w = tf.get_variable("w", initializer=np.arange(6.0, dtype=np.float32).reshape(3, 2))
    r = tf.get_variable("r", initializer=[1.0, 2.0], use_resource=True)
    y = tf.matmul(x, w) + r
    y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 0.5), [0, y])[1]
    y = tf.cond(tf.reduce_sum(y) > 0.0, lambda: y * 2.0, lambda: y - 1.0)
    y = tf.identity(y, name="y")
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y), name="train")
    queue = tf.FIFOQueue(3, tf.float32, name="queue")
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(1.0)]))
    tf.add_to_collection("outputs", y)
    return x, y


_FED = np.ones((2, 3), np.float32)


def _make_meta_graph(folder: Path) -> None:
    with tf.Graph().as_default():
        _network()
        tf.train.Saver()
        tf.train.export_meta_graph(str(folder / "m.meta"))


def _damage_meta_graph(folder: Path, chance: random.Random) -> bool:
    path = folder / "m.meta"
    if chance.random() < 0.5:
        path.write_bytes(mutated_bytes(path.read_bytes(), chance))
    else:
        found = tf.MetaGraphDef.FromString(path.read_bytes())
        for _ in range(chance.choice([1, 1, 2, 4])):
            mutate_message(found, chance)
        path.write_bytes(found.SerializeToString())
    return True


def _read_meta_graph(folder: Path) -> None:
    with tf.Graph().as_default() as graph, session() as sess:
        tf.train.import_meta_graph(str(folder / "m.meta"))
        sess.run(tf.global_variables_initializer())
        sess.run("y:0", {"x:0": _FED})
        sess.run("train", {"x:0": _FED})
        graph.as_graph_def()


def _make_saved_model(folder: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        x, y = _network()
        words = folder / "words.txt"
        words.write_text("a\nb\n")
        name = tf.constant(str(words), name="words")
        tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, name)
        sess.run(tf.global_variables_initializer())
        builder = tf.saved_model.Builder(str(folder / "model"))
        builder.add_meta_graph_and_variables(
            sess,
            ["serve"],
            {"serving_default": tf.saved_model.predict_signature_def({"x": x}, {"y": y})},
            assets_collection=[name],
            main_op=tf.group(tf.identity(name)),
        )
        builder.save()


def _damage_saved_model(folder: Path, chance: random.Random) -> bool:
    model = folder / "model"
    how = chance.random()
    if how < 0.4:
        _damage_bytes(model.glob("saved_model.pb"), chance)
    elif how < 0.9:
        found = read_saved_model(model)
        for _ in range(chance.choice([1, 1, 2, 4])):
            mutate_message(found, chance)
        write_saved_model(model, found, as_text=False)
    else:
        _damage_bytes(model.glob("variables/*"), chance)
    return True


def _read_saved_model(folder: Path) -> None:
    with tf.Graph().as_default(), session() as sess:
        found = tf.saved_model.load(sess, ["serve"], str(folder / "model"))
        signature = found.signature_def["serving_default"]
        sess.run(signature.outputs["y"].name, {signature.inputs["x"].name: _FED})


SUBJECTS = {
    "checkpoint": Subject(
        lambda folder: _tensors(BundleWriter(str(folder / "m"))),
        _damage_bundle,
        lambda folder: _read_checkpoint(str(folder / "m")),
    ),
    "v1": Subject(
        lambda folder: _tensors(V1Writer(str(folder / "m")), strings=False),
        _damage_v1,
        lambda folder: _read_checkpoint(str(folder / "m")),
    ),
    "safetensors": Subject(
        _make_safetensors,
        _damage_safetensors,
        lambda folder: _read_checkpoint(str(folder / "m.safetensors")),
    ),
    "events": Subject(_make_events, _damage_events, _read_events),
    "examples": Subject(
        _make_examples,
        lambda folder, chance: _damage_messages(folder / "examples", tf.train.Example, chance),
        _read_examples,
    ),
    "meta_graph": Subject(_make_meta_graph, _damage_meta_graph, _read_meta_graph, OF_GRAPHS),
    "saved_model": Subject(_make_saved_model, _damage_saved_model, _read_saved_model, OF_GRAPHS),
    **LIBRARY_SUBJECTS,
    **INPUT_SUBJECTS,
}
