"""Tensors of more than 2 GiB are written and read; messages of that size are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import runnel as tf
from runnel.checkpoint.safetensors import SafetensorsReader, write_safetensors
from runnel.checkpoint.v1 import V1Writer
from runnel.graph.serialized_message import require_size, serialized_message
from runnel.saved_model.model_file import saved_model_type, write_saved_model
from tests.machine_room import GIB, needs_room

SIZE = (1 << 31) + (1 << 20)


def zeros_on_demand() -> np.ndarray:
    """More than 2 GiB that take no memory until they are written."""
    return np.zeros(SIZE, np.uint8)


@pytest.mark.timeout(300)
@needs_room(memory=8 * GIB, disk=8 * GIB)
def test_safetensors_of_more_than_two_gib(tmp_path):
    path = tmp_path / "large.safetensors"
    value = zeros_on_demand()
    value[-1] = 7
    after = np.arange(5, dtype=np.uint8)
    try:
        write_safetensors(
            str(path), {"large": (tf.uint8, value), "small": (tf.uint8, after)}, metadata={}
        )
        with open(path, "rb") as file:  # by the format's own description
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
            begin, end = header["large"]["data_offsets"]
            file.seek(8 + length + end - 1)
            assert end - begin == SIZE and file.read(1) == b"\x07"
        reader = SafetensorsReader(str(path))
        found = reader.tensor("large")
        assert found.shape == (SIZE,) and found[-1] == 7 and not found[:-1].any()
        np.testing.assert_array_equal(reader.tensor("small"), after)
    finally:
        path.unlink(missing_ok=True)


def test_a_message_is_measured_by_what_was_written():
    """Also where this version of protocol buffers writes messages that none can read."""

    class Large:
        def SerializeToString(self, deterministic: bool) -> bytes:  # noqa: N802
            return memoryview(np.broadcast_to(np.uint8(0), (SIZE,)))  # of that length

    with pytest.raises(ValueError, match=f"The graph would have {SIZE} bytes.*Feed them"):
        serialized_message(Large(), "The graph", "Feed them")


def test_a_message_that_is_refused_tells_its_size():
    from google.protobuf.message import EncodeError

    class Refused:
        def SerializeToString(self, deterministic: bool) -> bytes:  # noqa: N802
            raise EncodeError("Failed to serialize proto")

        def ByteSize(self) -> int:  # noqa: N802
            return SIZE

    with pytest.raises(ValueError, match="cannot be larger than 2 GiB"):
        serialized_message(Refused(), "The graph", "Feed them")


def test_the_limit_is_that_of_protocol_buffers():
    require_size((1 << 31) - 1, "This", "Nothing")
    with pytest.raises(ValueError, match="2147483648 bytes"):
        require_size(1 << 31, "This", "Nothing")


@pytest.mark.timeout(300)
@needs_room(memory=12 * GIB)
def test_graphs_of_more_than_two_gib_are_refused_by_every_writer(tmp_path):
    """Two graphs, each of which a protocol buffer can hold, make a SavedModel that none can."""
    half = bytes(SIZE // 2)
    model = saved_model_type()()
    for _ in range(2):
        model.meta_graphs.add().graph_def.node.add(name="c").attr["value"].s = half
    with pytest.raises(ValueError, match="The SavedModel would .*larger than 2 GiB.*variables"):
        write_saved_model(tmp_path, model, as_text=False)
    assert not list(tmp_path.iterdir())


def test_constants_of_more_than_two_gib_are_refused_before_any_is_copied(tmp_path):
    with tf.Graph().as_default() as graph:
        for name in ("a", "b"):
            value = np.zeros(SIZE // 2, np.uint8)
            value[0] = 1
            tf.constant(value, name=name)
        for write in (
            lambda: tf.train.write_graph(graph, tmp_path, "g.pb", as_text=False),
            lambda: tf.train.export_meta_graph(tmp_path / "g.meta"),
        ):
            with pytest.raises(ValueError, match=r"(?s)larger than 2 GiB.*'a'.*test_large.py:\d+"):
                write()
    assert not list(tmp_path.iterdir())


def test_the_first_format_refuses_a_large_tensor(tmp_path):
    with (
        pytest.raises(ValueError, match="'v'.*larger than 2 GiB.*SaverDef.V2"),
        V1Writer(str(tmp_path / "m")) as writer,
    ):
        writer.add("v", zeros_on_demand(), tf.uint8)
    assert not list(tmp_path.iterdir())


def test_frozen_variables_of_more_than_two_gib_are_refused():
    class Session:
        """Gives the values at once: a real one would compute them."""

        def __init__(self, graph: tf.Graph) -> None:
            self.graph = graph

        def run(self, tensors: list[tf.Tensor]) -> list[np.ndarray]:
            return [np.broadcast_to(np.uint8(1), (SIZE,)) for _ in tensors]

    with tf.Graph().as_default() as graph:
        tf.identity(tf.get_variable("v", [2, SIZE // 2], tf.uint8, use_resource=False), name="y")
        with pytest.raises(ValueError, match="larger than 2 GiB.*variable_names_blacklist"):
            tf.graph_util.convert_variables_to_constants(
                Session(graph), graph.as_graph_def(), ["y"]
            )
