"""Values of the tensors of a step in files, laid out as TensorFlow's debugger does.

A folder for each device has a file for each value: ``SCOPE/NODE_SLOT_DebugIdentity_MICROSECONDS``,
an ``Event`` with the tensor. TensorFlow's ``DebugDumpDir`` reads them, and so does the one here.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from runnel.graph.operation import Tensor
from runnel.graph.tensor_proto import make_ndarray
from runnel.runtime.session.backend import Plan

_DEVICE = "_tfdbg_device_"
_OP = "DebugIdentity"


class StepDump:
    """Writes the values of one step into a folder of its own."""

    def __init__(self, folder: Path, fetches: Any, feeds: Any, plan: Plan) -> None:
        from tensorboard.compat.proto.config_pb2 import RunMetadata
        from tensorboard.compat.proto.event_pb2 import Event

        self.folder = folder
        self._device_of = plan.device_of
        self._last = 0
        folder.mkdir(parents=True)
        for name, text in (("fetches_info_", repr(fetches)), ("feed_keys_info_", repr(feeds))):
            event = Event()
            event.log_message.message = text
            (folder / f"_tfdbg_{name}").write_bytes(event.SerializeToString())
        graphs = RunMetadata()
        plan.add_partition_graphs(graphs)
        for graph in graphs.partition_graphs:
            device = next((node.device for node in graph.node if node.device), None)
            if device is not None:
                place = folder / _device_folder(device)
                place.mkdir()
                event = Event(graph_def=graph.SerializeToString())
                (place / "_tfdbg_graph_0").write_bytes(event.SerializeToString())

    def write(self, tensor: Tensor, value: Any) -> None:
        """Writes a value; what is no array, such as a queue, is left out."""
        from tensorboard.compat.proto.event_pb2 import Event

        array = np.asarray(value)
        if tensor.dtype.base_dtype.name in ("resource", "variant"):
            return
        # One value of a tensor and the next have different times: a loop gives it many.
        moment = self._last = max(time.time_ns() // 1000, self._last + 1)
        event = Event(wall_time=moment / 1e6)
        proto = event.summary.value.add(node_name=f"{tensor.name}:{_OP}").tensor
        proto.dtype = tensor.dtype.base_dtype.as_datatype_enum
        for size in array.shape:
            proto.tensor_shape.dim.add(size=size)
        if array.dtype == object or array.dtype.kind in "SU":
            texts = (x.encode() if isinstance(x, str) else bytes(x) for x in array.ravel().tolist())
            proto.string_val.extend(texts)
        else:
            proto.tensor_content = array.tobytes()
        *scopes, node = tensor.op.name.split("/")
        place = self.folder / _device_folder(self._device_of(tensor.op).name) / Path(*scopes)
        place.mkdir(parents=True, exist_ok=True)
        name = f"{node}_{tensor.value_index}_{_OP}_{moment}"
        (place / name).write_bytes(event.SerializeToString())


def _device_folder(device: str) -> str:
    return _DEVICE + ",".join(part.replace(":", "_") for part in device.split("/"))


class DebugTensorDatum:
    """A value in a file: of which tensor it is, and when it was made."""

    def __init__(self, dump_root: Any, debug_dump_rel_path: str) -> None:
        folder, *scopes, name = Path(debug_dump_rel_path).parts
        node, slot, self.debug_op, moment = name.rsplit("_", 3)
        self.device_name = "/".join(
            part.replace("_", ":", 1) if "device" not in part else part.replace("_", ":")
            for part in folder.removeprefix(_DEVICE).split(",")
        )
        self.node_name = "/".join([*scopes, node])
        self.output_slot = int(slot)
        self.timestamp = int(moment.partition("-")[0])
        self.file_path = os.path.join(os.fspath(dump_root), debug_dump_rel_path)

    @property
    def tensor_name(self) -> str:
        """The name of the tensor."""
        return f"{self.node_name}:{self.output_slot}"

    @property
    def watch_key(self) -> str:
        """The name of the tensor, and of what was watched of it."""
        return f"{self.tensor_name}:{self.debug_op}"

    @property
    def dump_size_bytes(self) -> int:
        """The size of the file."""
        return os.path.getsize(self.file_path)

    def get_tensor(self) -> Any:
        """The value."""
        from tensorboard.compat.proto.event_pb2 import Event

        event = Event.FromString(Path(self.file_path).read_bytes())
        return make_ndarray(event.summary.value[0].tensor)

    def __repr__(self) -> str:
        return f"{{DebugTensorDatum ({self.device_name}) {self.watch_key} @ {self.timestamp}}}"


class DebugDumpDir:
    """The values of one step that a debugger has written.

    Example:
        >>> dump = tf.debug.DebugDumpDir("/tmp/dumps/run_1700000000000000_0")
        >>> dump.find(tf.debug.has_inf_or_nan)[0].tensor_name
    """

    def __init__(self, dump_root: Any, partition_graphs: Any = None, validate: bool = True) -> None:
        root = Path(os.fsdecode(os.fspath(dump_root)))
        if not root.is_dir():
            raise OSError(f"There is no folder of dumps {str(root)!r}")
        files = (f for d in root.glob(f"{_DEVICE}*") for f in d.rglob(f"*_{_OP}_*") if f.is_file())
        found = [DebugTensorDatum(root, str(file.relative_to(root))) for file in files]
        self.dumped_tensor_data = sorted(found, key=lambda datum: datum.timestamp)
        """All values, in the order of their making."""
        self.core_metadata = None

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.dumped_tensor_data)

    def devices(self) -> list[str]:
        """The devices that made them."""
        return list(dict.fromkeys(datum.device_name for datum in self.dumped_tensor_data))

    def nodes(self) -> list[str]:
        """The operations of which there are values."""
        return list(dict.fromkeys(datum.node_name for datum in self.dumped_tensor_data))

    def find(
        self,
        predicate: Callable[[Any, Any], bool],
        first_n: int = 0,
        device_name: str | None = None,
        exclude_node_names: str | None = None,
    ) -> list[DebugTensorDatum]:
        """The values for which ``predicate(datum, value)`` is true, or the first ``first_n``."""
        left_out = None if exclude_node_names is None else re.compile(exclude_node_names)
        fitting = (
            datum
            for datum in self.dumped_tensor_data
            if device_name in (None, datum.device_name)
            and not (left_out and left_out.match(datum.node_name))
            and predicate(datum, datum.get_tensor())
        )
        return list(itertools.islice(fitting, first_n or None))

    def watch_key_to_data(
        self, debug_watch_key: str, device_name: str | None = None
    ) -> list[DebugTensorDatum]:
        """The values of a watch key, such as ``layer/MatMul:0:DebugIdentity``."""
        return [
            datum
            for datum in self.dumped_tensor_data
            if datum.watch_key == debug_watch_key and device_name in (None, datum.device_name)
        ]

    def get_tensors(
        self, node_name: str, output_slot: int, debug_op: str, device_name: str | None = None
    ) -> list[Any]:
        """The values of one tensor, in the order of their making."""
        data = self.watch_key_to_data(f"{node_name}:{output_slot}:{debug_op}", device_name)
        if not data:
            raise KeyError(f"There is no value of {node_name}:{output_slot}; see nodes()")
        return [datum.get_tensor() for datum in data]
