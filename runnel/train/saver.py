"""``tf.train.Saver``: variables into checkpoints and back."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from runnel.checkpoint.reading import checkpoint_exists
from runnel.checkpoint.streams_file import read_streams, write_streams
from runnel.graph import errors
from runnel.graph.operation import Operation, Tensor
from runnel.runtime.state.random_streams import RandomStreams
from runnel.train.background_save import BackgroundSave, snapshot
from runnel.train.checkpoint_difference import difference_to
from runnel.train.checkpoint_state import (
    get_checkpoint_mtimes,
    meta_graph_filename,
    new_checkpoint,
    remove_checkpoint,
    update_checkpoint_state,
)
from runnel.train.described_graph import DescribedGraph
from runnel.train.queue_checkpoints import input_at_rest
from runnel.train.restored_tensors import RestoredTensor, restored_by, restored_within
from runnel.train.saveable import all_saveables, default_saveables
from runnel.train.saver_builder import V1, V2, BaseSaverBuilder, BulkSaverBuilder, saves_by_itself

logger = logging.getLogger("runnel")


class Saver:
    """Saves variables to checkpoints, and restores them.

    ``var_list`` is a list of variables, which are saved under their names, or a dictionary from
    names in the checkpoint to variables; by default all global variables and whatever else can be
    saved. ``reshape`` restores a tensor of another shape with as many elements. ``sharded`` writes
    a file for each device. The newest ``max_to_keep`` checkpoints are kept (0 or None: all), and
    one every ``keep_checkpoint_every_n_hours`` for ever. ``restore_sequentially`` restores one
    variable after the other. ``saver_def`` makes a Saver for operations that are in the graph
    already. ``builder`` makes them, where a program wants others than these (a subclass of
    ``BaseSaverBuilder``). With ``defer_build`` they are added when :meth:`build` is called.
    ``allow_empty`` makes a graph without variables no error. ``pad_step_number`` writes steps with
    eight digits; ``save_relative_paths`` lets a folder of checkpoints be moved.

    Example:
        >>> saver = tf.train.Saver(max_to_keep=3)
        >>> path = saver.save(sess, "/tmp/model/ckpt", global_step=step)
        >>> saver.restore(sess, tf.train.latest_checkpoint("/tmp/model"))
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: BaseSaverBuilder | None = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        if defer_build and var_list is not None:
            raise ValueError("With defer_build=True the variables are those of build(), not a list")
        if write_version not in (V1, V2):
            raise ValueError(
                f"write_version must be SaverDef.V1 or SaverDef.V2, not {write_version}"
            )
        self._var_list = var_list
        self._reshape = reshape
        self._sharded = sharded
        self._max_to_keep = max_to_keep or 0
        self._every_n_hours = keep_checkpoint_every_n_hours
        self._name = name
        self._sequentially = restore_sequentially
        self._allow_empty = allow_empty
        self._write_version = write_version
        self._pad_step_number = pad_step_number
        self._save_relative_paths = save_relative_paths
        self._filename = filename
        self._builder = BulkSaverBuilder(write_version) if builder is None else builder
        self._values: dict[str, Any] | list[Any] | None = None
        self._is_empty = False
        self._last: list[tuple[str, float]] = []
        self._background: BackgroundSave | None = None
        self._last_described: DescribedGraph | None = None
        self._next_time = time.time() + keep_checkpoint_every_n_hours * 3600
        self.saver_def = saver_def
        if saver_def is not None:
            self._read_saver_def()
        elif not defer_build:
            self.build()

    # The graph ------------------------------------------------------------------------------

    def build(self) -> None:
        """Adds the operations that save and restore, unless they are there."""
        if self.saver_def is not None or self._is_empty:
            return
        values = default_saveables() if self._var_list is None else self._var_list
        if not values:
            if not self._allow_empty:
                raise ValueError("There are no variables to save; allow_empty=True makes that fine")
            self._is_empty = True
            return
        self._values = dict(values) if isinstance(values, Mapping) else list(values)
        self.saver_def = self._builder.build(
            self._values,
            reshape=self._reshape,
            sharded=self._sharded,
            max_to_keep=self._max_to_keep,
            keep_checkpoint_every_n_hours=self._every_n_hours,
            name=self._name,
            restore_sequentially=self._sequentially,
            filename=self._filename,
        )
        self._write_version = self.saver_def.version

    def _read_saver_def(self) -> None:
        given = self.saver_def
        self._max_to_keep = given.max_to_keep
        self._every_n_hours = given.keep_checkpoint_every_n_hours or 10000.0
        self._sharded = given.sharded
        self._write_version = given.version or V1
        self._next_time = time.time() + self._every_n_hours * 3600

    def as_saver_def(self) -> Any:
        """The ``SaverDef``: which tensors and operations of the graph save and restore."""
        return self.saver_def

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The ``SaverDef``, with names inside of ``export_scope``; None if it lies outside."""
        return _scoped(self.saver_def, export_scope, strip=True)

    @staticmethod
    def from_proto(saver_def: Any, import_scope: str | None = None) -> Saver:
        """A Saver of the operations that ``saver_def`` names."""
        return Saver(saver_def=_scoped(saver_def, import_scope, strip=False))

    # Saving ---------------------------------------------------------------------------------

    def save(
        self,
        sess: Any,
        save_path: Any,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
        random_streams: bool = False,
    ) -> str | None:
        """Saves a checkpoint ``save_path-STEP``; returns its name, to be given to :meth:`restore`.

        ``global_step`` is a number, or a tensor or variable that has one. The graph is written
        beside it, unless ``write_meta_graph`` is false. The file ``checkpoint`` of the folder then
        tells that this is the latest (``write_state``), and checkpoints that are no longer to be
        kept are removed. With ``random_streams`` a file beside it says which random numbers come
        next, where ``sess`` is a session of this process alone; see :meth:`restore`. It is always
        there where :func:`checkpoint_input_queues` was called.
        """
        path = self._begin(sess, save_path, global_step, latest_filename)
        if path is None:
            return None
        saver_def, graph = self.saver_def, sess.graph
        saved = graph.get_tensor_by_name(saver_def.save_tensor_name)
        given = graph.get_tensor_by_name(saver_def.filename_tensor_name)
        with (
            input_at_rest(sess) as with_input,
            new_checkpoint(path, self._write_version, latest_filename, meta_graph_suffix),
        ):
            found = sess.run(saved, {given: path})
            saved_path = found.decode() if isinstance(found, bytes) else str(found)
            if random_streams or with_input:
                write_streams(path, _random_streams(sess).positions())
            if write_meta_graph:
                described = self._described(graph, strip_default_attrs)
                described.write(meta_graph_filename(saved_path, meta_graph_suffix))
            if write_state:
                self._note(saved_path, latest_filename, meta_graph_suffix)
        return saved_path

    def save_in_background(
        self,
        sess: Any,
        save_path: Any,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        random_streams: bool = False,
    ) -> BackgroundSave:
        """Like :meth:`save`, but a thread writes: this only takes the values, in one step.

        Steps that follow do not change what is written. ``wait()`` of what is returned waits until
        it is complete, and raises what went wrong; the next save does the same, if nobody did.
        A ``builder`` whose operations save in a way of their own has them run at once.

        Example:
            >>> saving = saver.save_in_background(sess, "/tmp/model/ckpt", global_step=step)
            >>> sess.run(train_op)
            >>> path = saving.wait()
        """
        if saves_by_itself(self._builder):
            saved = self.save(
                sess,
                save_path,
                global_step,
                latest_filename,
                meta_graph_suffix,
                write_meta_graph,
                write_state,
                random_streams=random_streams,
            )
            return BackgroundSave(lambda: saved)
        path = self._begin(sess, save_path, global_step, latest_filename)
        if path is None:
            return BackgroundSave(lambda: None)
        with input_at_rest(sess) as with_input:
            write = snapshot(sess, self.saver_def.save_tensor_name)
            streams = _random_streams(sess) if random_streams or with_input else None
            positions = None if streams is None else streams.positions()
        described = self._described(sess.graph) if write_meta_graph else None

        def finish() -> str:
            with new_checkpoint(path, self._write_version, latest_filename, meta_graph_suffix):
                write(path)
                if positions is not None:
                    write_streams(path, positions)
                if described is not None:
                    described.write(meta_graph_filename(path, meta_graph_suffix))
                if write_state:
                    self._note(path, latest_filename, meta_graph_suffix)
            return path

        self._background = BackgroundSave(finish)
        return self._background

    def _described(self, graph: Any, strip_default_attrs: bool = False) -> DescribedGraph:
        """The graph as it is now; one that is final is described once for all checkpoints."""
        known = self._last_described
        if known is None or not known.still_describes(graph, strip_default_attrs):
            known = DescribedGraph(graph, self.saver_def, strip_default_attrs)
            self._last_described = known
        return known

    def _begin(
        self, sess: Any, save_path: Any, global_step: Any, latest_filename: str | None
    ) -> str | None:
        """The name of the checkpoint that is to be saved; None if there is nothing to save."""
        self._require_built()
        if self._background is not None:
            earlier, self._background = self._background, None
            earlier.make_way()
        if latest_filename is not None and os.path.split(latest_filename)[0]:
            raise ValueError(f"latest_filename is a name in the folder, not {latest_filename!r}")
        path = os.fsdecode(os.fspath(save_path))
        if global_step is not None:
            path = f"{path}-{self._step(sess, global_step)}"
            if self._pad_step_number:
                base, _, step = path.rpartition("-")
                path = f"{base}-{int(step):08d}"
        if os.path.basename(path) == (latest_filename or "checkpoint"):
            raise ValueError(
                f"{path!r} is the name of the file that tells which checkpoint is the latest; "
                "save under another name"
            )
        return None if self._is_empty else path

    def _step(self, sess: Any, global_step: Any) -> int:
        if isinstance(global_step, int):
            return global_step
        as_element = getattr(global_step, "_as_graph_element", None)
        if as_element is not None or isinstance(global_step, Tensor):
            return int(sess.run(global_step))
        return int(global_step)

    def _note(self, path: str, latest_filename: str | None, suffix: str) -> None:
        """Tells that ``path`` is the latest, and removes what is no longer kept."""
        last = [(p, t) for p, t in self._last if p != path]
        last.append((path, time.time()))
        removed: list[tuple[str, float]] = []
        if self._max_to_keep and len(last) > self._max_to_keep:
            removed = [last.pop(0)]
        update_checkpoint_state(
            os.path.dirname(path),
            path,
            [kept for kept, _ in last],
            latest_filename,
            save_relative_paths=self._save_relative_paths,
        )
        self._last = last  # not before: one that could not be named is not kept
        for old, written in removed:
            if written > self._next_time:
                self._next_time += self._every_n_hours * 3600
                continue  # one of those that stay
            remove_checkpoint(old, self._write_version, suffix)

    @property
    def last_checkpoints(self) -> list[str]:
        """The checkpoints that are kept, the oldest first."""
        return [path for path, _ in self._last]

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Tells of checkpoints that an earlier process has written, the oldest first."""
        if not isinstance(last_checkpoints, list):
            raise TypeError(f"last_checkpoints must be a list, not {last_checkpoints!r}")
        self._last = [(path, float("inf")) for path in last_checkpoints]

    def set_last_checkpoints_with_time(
        self, last_checkpoints_with_time: Sequence[tuple[str, float]]
    ) -> None:
        """Tells of checkpoints that an earlier process has written, and when."""
        if not isinstance(last_checkpoints_with_time, list):
            raise TypeError("last_checkpoints_with_time must be a list of pairs")
        self._last = [(path, float(written)) for path, written in last_checkpoints_with_time]

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """Tells of checkpoints that an earlier process has written; those that are gone are not."""
        there = [path for path in checkpoint_paths if checkpoint_exists(path)]
        times = get_checkpoint_mtimes(there)
        self._last = list(zip(there, times, strict=True))

    # Restoring ------------------------------------------------------------------------------

    def restore(self, sess: Any, save_path: Any, random_streams: bool = False) -> None:
        """Gives the variables the values that the checkpoint ``save_path`` has.

        What it restores need not be initialised. When the checkpoint does not fit the graph, the
        error shows how they differ. With ``random_streams`` random operations go on with the
        numbers that came next when it was saved, if that was saved.
        """
        self._require_built()
        if self._is_empty:
            return
        if save_path is None:
            raise ValueError(
                "There is no checkpoint to restore: save_path is None "
                "(tf.train.latest_checkpoint returns None where it finds none)"
            )
        path = os.fsdecode(os.fspath(save_path))
        if not checkpoint_exists(path):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {path}")
        saver_def, graph = self.saver_def, sess.graph
        given = graph.get_tensor_by_name(saver_def.filename_tensor_name)
        restored = graph.get_operation_by_name(saver_def.restore_op_name)
        logger.info("Restoring variables from %s", path)
        with input_at_rest(sess) as with_input:
            try:
                sess.run(restored, {given: path})
            except (errors.NotFoundError, errors.InvalidArgumentError) as error:
                difference = difference_to(path, self._restored(restored))
                if difference:
                    raise type(error)(error.node_def, error.op, difference) from error
                raise
            if random_streams or with_input:
                _random_streams(sess).move_to(read_streams(path))

    def _restored(self, restore: Operation) -> Iterable[RestoredTensor]:
        if self._values is not None:
            return restored_by(all_saveables(self._values), self._reshape)
        return restored_within(restore)  # made from a SaverDef: the graph alone knows

    def export_meta_graph(self, filename: Any = None, **options: Any) -> Any:
        """The graph, its collections and this as a ``MetaGraphDef``, also written to a file."""
        from runnel.train.meta_graph import export_meta_graph

        return export_meta_graph(filename, saver_def=self.saver_def, **options)

    def _require_built(self) -> None:
        if self.saver_def is None and not self._is_empty:
            raise RuntimeError("The Saver was made with defer_build=True: call build() first")


def _random_streams(sess: Any) -> RandomStreams:
    """Those of a session's own task, in this process; of one whose task is elsewhere, none."""
    backend = getattr(sess, "_backend", None)
    return RandomStreams() if backend is None else backend.streams


def _scoped(saver_def: Any, scope: str | None, strip: bool) -> Any:
    """``saver_def`` with names inside of ``scope`` (``strip``), or put into it."""
    if not scope or saver_def is None:
        return saver_def
    found = type(saver_def)()
    found.CopyFrom(saver_def)
    for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
        name = getattr(found, field)
        if strip and not name.startswith(f"{scope}/"):
            return None
        setattr(found, field, name[len(scope) + 1 :] if strip else f"{scope}/{name}")
    return found
