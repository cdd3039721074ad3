"""The operations of a Saver: one that saves for each file, and one that restores."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

from runnel.checkpoint.saveable_object import SaveableObject
from runnel.graph.dtypes import int32, string
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.ops.checkpoints import (
    merge_op,
    restore_v2_op,
    save_slices_op,
    save_v2_op,
    sharded_filename_op,
    sharded_filespec_op,
)
from runnel.ops.constants import constant, placeholder_with_default
from runnel.ops.control import group, identity
from runnel.ops.joining import stack
from runnel.ops.string_join import string_join

V1, V2 = 1, 2
"""The formats of checkpoints, as a ``SaverDef`` numbers them."""


class SaverGraph:
    """Adds the operations that save and restore ``saveables`` to the default graph."""

    def __init__(
        self,
        saveables: list[SaveableObject],
        sharded: bool,
        reshape: bool,
        sequentially: bool,
        write_version: int,
    ) -> None:
        self._saveables = saveables
        self._sharded = sharded
        self._reshape = reshape
        self._sequentially = sequentially
        self._write_version = write_version

    def add(self, scope: str, filename: str) -> tuple[Tensor, Tensor, Operation]:
        """What is fed the checkpoint's name, what saves and returns it, and what restores."""
        graph = get_default_graph()
        with graph.name_scope(scope), graph.control_dependencies(None):
            given = constant(filename, name="filename/input")
            given = placeholder_with_default(given, shape=(), name="filename")
            prefix = placeholder_with_default(given, shape=(), name="Const")
            return prefix, self._add_save(prefix), self._add_restore(prefix)

    def _add_save(self, prefix: Tensor) -> Tensor:
        graph = get_default_graph()
        if not self._sharded:
            saved = self._save_to(prefix, self._saveables)
            with graph.control_dependencies([saved]):
                return identity(prefix, name="control_dependency")
        by_device = self._by_device()
        count = constant(len(by_device), name="num_shards")
        base = prefix
        if self._write_version == V2:
            suffix = constant(f"_temp_{uuid.uuid4().hex}/part", name="StringJoin/inputs_1")
            base = string_join([prefix, suffix])
        names, done = [], []
        for shard, (device, saveables) in enumerate(by_device.items()):
            with graph.device(device):
                number = constant(shard, int32, name="ShardedFilename/shard")
                name = sharded_filename_op(base, number, count, name="ShardedFilename")
                done.append(self._save_to(name, saveables))
                names.append(name)
        with graph.control_dependencies(done):
            if self._write_version == V1:
                return sharded_filespec_op(prefix, count, name="ShardedFilespec")
            prefixes = stack(names, name="MergeV2Checkpoints/checkpoint_prefixes")
            merged = merge_op(prefixes, prefix, delete_old_dirs=True, name="MergeV2Checkpoints")
        with graph.control_dependencies([merged, *done]):
            return identity(prefix, name="control_dependency")

    def _by_device(self) -> dict[str, list[SaveableObject]]:
        found: dict[str, list[SaveableObject]] = {}
        for saveable in sorted(self._saveables, key=lambda s: s.device):
            found.setdefault(saveable.device, []).append(saveable)
        return found

    def _save_to(self, prefix: Tensor, saveables: Iterable[SaveableObject]) -> Operation:
        specs = [spec for saveable in saveables for spec in saveable.specs]
        op = save_v2_op if self._write_version == V2 else save_slices_op
        slices = "shape_and_slices" if self._write_version == V2 else "shapes_and_slices"
        return op(
            prefix,
            constant([spec.name for spec in specs], string, name=f"{op.name}/tensor_names"),
            constant([spec.slice_spec for spec in specs], string, name=f"{op.name}/{slices}"),
            [spec.tensor for spec in specs],
            name=op.name,
        )

    def _add_restore(self, prefix: Tensor) -> Operation:
        graph = get_default_graph()
        groups: list[list[SaveableObject]] = [self._saveables]
        if self._sharded:
            groups = list(self._by_device().values())
        done: list[Any] = []
        parts: list[Operation] = []
        for saveables in groups:
            with graph.device(saveables[0].device if self._sharded else None):
                specs = [spec for saveable in saveables for spec in saveable.specs]
                names = [spec.name for spec in specs]
                slices = [spec.slice_spec for spec in specs]
                values = iter(
                    restore_v2_op(
                        prefix,
                        constant(names, string, name="RestoreV2/tensor_names"),
                        constant(slices, string, name="RestoreV2/shape_and_slices"),
                        dtypes=[spec.dtype for spec in specs],
                        name="RestoreV2",
                    )
                )
                ends = []
                for saveable in saveables:
                    after = done[-1:] if self._sequentially else []
                    with graph.control_dependencies(after) if after else nullcontext():
                        restored = [next(values) for _ in saveable.specs]
                        shapes = self._shapes_for(saveable)
                        ends.append(saveable.restore(restored, shapes))
                    done += ends[-1:]
                if self._sharded:
                    parts.append(group(*ends, name="restore_shard"))
                else:
                    parts += ends
        return group(*parts, name="restore_all")

    def _shapes_for(self, saveable: SaveableObject) -> list[Any] | None:
        """The shapes that restored tensors are given, where they may have another."""
        if not self._reshape:
            return None
        shape = saveable.shape
        if shape is None or not shape.is_fully_defined():
            return None
        return [shape.as_list()]
