"""Builders of a Saver's graph: operations that save, one for each file, and that restore.

A program that wants other operations gives ``tf.train.Saver`` a builder of its own: a subclass that
makes them in ``save_op``, ``restore_op`` or ``bulk_restore``.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from runnel.checkpoint import saveable_object
from runnel.graph.dtypes import int32, string
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import shape as shape_of
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
from runnel.train.saveable import VariableSaveable, all_saveables

V1, V2 = 1, 2
"""The formats of checkpoints, as a ``SaverDef`` numbers them."""

Saveables = Sequence[saveable_object.SaveableObject]


class BaseSaverBuilder:
    """Adds the operations that save and restore; each object is restored by its own.

    Subclasses override :meth:`save_op`, :meth:`restore_op`, :meth:`bulk_restore` or
    :meth:`sharded_filename`. Names of tensors in a checkpoint, their slices and the tensors
    themselves are the ``specs`` of the objects.

    Example:
        >>> class Announcing(BulkSaverBuilder):
        ...     def save_op(self, filename_tensor, saveables):
        ...         with tf.control_dependencies([tf.print("saving to", filename_tensor)]):
        ...             return super().save_op(filename_tensor, saveables)
        >>> saver = tf.train.Saver(builder=Announcing())
    """

    SaveSpec = saveable_object.SaveSpec
    SaveableObject = saveable_object.SaveableObject
    VariableSaveable = VariableSaveable
    ResourceVariableSaveable = VariableSaveable

    def __init__(self, write_version: int = V2) -> None:
        self._write_version = write_version

    # What subclasses override --------------------------------------------------------------

    def save_op(self, filename_tensor: Tensor, saveables: Saveables) -> Operation:
        """An operation that writes the tensors of ``saveables`` into one file."""
        specs = [spec for saveable in saveables for spec in saveable.specs]
        op = save_v2_op if self._write_version == V2 else save_slices_op
        slices = "shape_and_slices" if self._write_version == V2 else "shapes_and_slices"
        return op(
            filename_tensor,
            constant([spec.name for spec in specs], string, name=f"{op.name}/tensor_names"),
            constant([spec.slice_spec for spec in specs], string, name=f"{op.name}/{slices}"),
            [spec.tensor for spec in specs],
            name=op.name,
        )

    def bulk_restore(
        self,
        filename_tensor: Tensor,
        saveables: Saveables,
        preferred_shard: int,
        restore_sequentially: bool,
    ) -> list[Tensor]:
        """The tensors of all ``saveables``, in their order, as a checkpoint has them."""
        found: list[Tensor] = []
        for saveable in saveables:
            with get_default_graph().device(saveable.device or None):
                found += self.restore_op(filename_tensor, saveable, preferred_shard)
        return found

    def restore_op(
        self,
        filename_tensor: Tensor,
        saveable: saveable_object.SaveableObject,
        preferred_shard: int,
    ) -> list[Tensor]:
        """The tensors of one object, as a checkpoint has them."""
        return [value for spec in saveable.specs for value in _read(filename_tensor, [spec])]

    def sharded_filename(self, filename_tensor: Tensor, shard: int, num_shards: Tensor) -> Tensor:
        """The name of a shard's file."""
        number = constant(shard, int32, name="ShardedFilename/shard")
        return sharded_filename_op(filename_tensor, number, num_shards, name="ShardedFilename")

    # The graph -----------------------------------------------------------------------------

    def build(
        self,
        names_to_saveables: Any,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        filename: str | None = "model",
    ) -> Any:
        """Adds the operations to the default graph; the ``SaverDef`` tells which they are.

        ``names_to_saveables`` is what ``tf.train.Saver`` takes: a list, or a dictionary from names.
        """
        from tensorboard.compat.proto.saver_pb2 import SaverDef

        saveables = all_saveables(names_to_saveables)
        graph = get_default_graph()
        with graph.name_scope(name or "save"), graph.control_dependencies(None):
            given = constant(filename or "model", name="filename/input")
            given = placeholder_with_default(given, shape=(), name="filename")
            prefix = placeholder_with_default(given, shape=(), name="Const")
            if sharded:
                shards = _by_device(saveables)
                saved = self._save_shards(prefix, shards)
                restored = self._restore_shards(prefix, shards, restore_sequentially, reshape)
            else:
                saved = self._save(prefix, saveables)
                restored = self._restore(
                    prefix, saveables, restore_sequentially, reshape, -1, "restore_all"
                )
        return SaverDef(
            filename_tensor_name=prefix.name,
            save_tensor_name=saved.name,
            restore_op_name=restored.name,
            max_to_keep=max_to_keep or 0,
            sharded=sharded,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            version=self._write_version,
        )

    def _save(self, filename: Tensor, saveables: Saveables) -> Tensor:
        """The file's name, once ``saveables`` are in it."""
        with get_default_graph().control_dependencies([self.save_op(filename, saveables)]):
            return identity(filename, name="control_dependency")

    def _save_shards(self, prefix: Tensor, shards: dict[str, Saveables]) -> Tensor:
        graph = get_default_graph()
        count = constant(len(shards), name="num_shards")
        base = prefix
        if self._write_version == V2:
            suffix = constant(f"_temp_{uuid.uuid4().hex}/part", name="StringJoin/inputs_1")
            base = string_join([prefix, suffix])
        names, done = [], []
        for shard, (device, saveables) in enumerate(shards.items()):
            with graph.device(device):
                names.append(self.sharded_filename(base, shard, count))
                done.append(self._save(names[-1], saveables).op)
        with graph.control_dependencies(done):
            if self._write_version == V1:
                return sharded_filespec_op(prefix, count, name="ShardedFilespec")
            prefixes = stack(names, name="MergeV2Checkpoints/checkpoint_prefixes")
            merged = merge_op(prefixes, prefix, delete_old_dirs=True, name="MergeV2Checkpoints")
        with graph.control_dependencies([merged, *done]):
            return identity(prefix, name="Identity")

    def _restore_shards(
        self, prefix: Tensor, shards: dict[str, Saveables], sequentially: bool, reshape: bool
    ) -> Operation:
        done = []
        for shard, (device, saveables) in enumerate(shards.items()):
            with get_default_graph().device(device):
                done.append(
                    self._restore(prefix, saveables, sequentially, reshape, shard, "restore_shard")
                )
        return group(*done, name="restore_all")

    def _restore(
        self,
        filename: Tensor,
        saveables: Saveables,
        sequentially: bool,
        reshape: bool,
        shard: int,
        name: str,
    ) -> Operation:
        graph = get_default_graph()
        values = iter(self.bulk_restore(filename, saveables, shard, sequentially))
        done: list[Any] = []
        for saveable in saveables:
            after = done[-1:] if sequentially else []
            with graph.control_dependencies(after) if after else nullcontext():
                restored = [next(values) for _ in saveable.specs]
                shapes = _shapes_for(saveable) if reshape else None
                done.append(saveable.restore(restored, shapes))
        return group(*done, name=name)


class BulkSaverBuilder(BaseSaverBuilder):
    """A builder that restores all objects of a device by one operation; a Saver's own."""

    def bulk_restore(
        self,
        filename_tensor: Tensor,
        saveables: Saveables,
        preferred_shard: int,
        restore_sequentially: bool,
    ) -> list[Tensor]:
        """The tensors of all ``saveables``, in their order, as a checkpoint has them."""
        return _read(filename_tensor, [spec for saveable in saveables for spec in saveable.specs])


def saves_by_itself(builder: BaseSaverBuilder) -> bool:
    """True where what is saved is not all in the operations of this file."""
    return any(
        getattr(type(builder), method, None) is not getattr(BaseSaverBuilder, method)
        for method in ("save_op", "sharded_filename", "build")
    )


def _read(filename: Tensor, specs: Sequence[saveable_object.SaveSpec]) -> list[Tensor]:
    return list(
        restore_v2_op(
            filename,
            constant([spec.name for spec in specs], string, name="RestoreV2/tensor_names"),
            constant([s.slice_spec for s in specs], string, name="RestoreV2/shape_and_slices"),
            dtypes=[spec.dtype for spec in specs],
            name="RestoreV2",
        )
    )


def _by_device(saveables: Saveables) -> dict[str, Saveables]:
    found: dict[str, list[saveable_object.SaveableObject]] = {}
    for saveable in sorted(saveables, key=lambda s: s.device):
        if len({spec.device for spec in saveable.specs}) > 1:
            raise ValueError(
                f"All tensors of a saveable object must be on the same device: {saveable.name}"
            )
        found.setdefault(saveable.device, []).append(saveable)
    return dict(found)


def _shapes_for(saveable: saveable_object.SaveableObject) -> list[TensorShape | Tensor]:
    """The shapes that an object's tensors have in the graph; those that only run time tells too."""
    if saveable.shape is not None and saveable.shape.is_fully_defined():
        return [saveable.shape]
    tensors = [spec.tensor for spec in saveable.specs]
    return [t.shape if t.shape.is_fully_defined() else shape_of(t) for t in tensors]
