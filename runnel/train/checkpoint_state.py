"""The file ``checkpoint`` of a folder: which checkpoints there are, and which is the latest."""

from __future__ import annotations

import contextlib
import glob
import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from runnel.checkpoint.bundle import index_file
from runnel.checkpoint.leftovers import sweep
from runnel.checkpoint.protos import message
from runnel.checkpoint.reading import checkpoint_exists as exists
from runnel.checkpoint.streams_file import streams_file
from runnel.checkpoint.whole_file import remove_files, write_whole

logger = logging.getLogger("runnel")


def _text(path: Any) -> str:
    return os.fsdecode(os.fspath(path))


def _relative(path: str, folder: str) -> str:
    return os.path.relpath(path, folder) if os.path.isabs(path) else path


def _state_file(folder: str, latest_filename: str | None) -> Path:
    return Path(folder) / (latest_filename or "checkpoint")


def generate_checkpoint_state_proto(
    save_dir: Any,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> Any:
    """A ``CheckpointState`` for the folder ``save_dir``.

    Paths that are relative are so to ``save_dir`` in it.
    """
    paths = list(all_model_checkpoint_paths or ())
    if not paths or paths[-1] != model_checkpoint_path:
        logger.info("%s is not last of all checkpoints; it is added", model_checkpoint_path)
        paths.append(model_checkpoint_path)
    times = list(all_model_checkpoint_timestamps or ())
    if times and len(times) != len(paths):
        raise ValueError(
            f"There are {len(times)} all_model_checkpoint_timestamps for {len(paths)} paths."
        )
    folder = _text(save_dir)
    if not os.path.isabs(folder):  # else they are what the caller means
        paths = [p if os.path.isabs(p) else os.path.relpath(p, folder) for p in paths]
        if not os.path.isabs(model_checkpoint_path):
            model_checkpoint_path = os.path.relpath(model_checkpoint_path, folder)
    state = message("CheckpointState")(
        model_checkpoint_path=model_checkpoint_path,
        all_model_checkpoint_paths=paths,
        all_model_checkpoint_timestamps=times,
    )
    if last_preserved_timestamp is not None:
        state.last_preserved_timestamp = last_preserved_timestamp
    return state


def update_checkpoint_state(
    save_dir: Any,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
    save_relative_paths: bool = False,
) -> None:
    """Writes the file ``checkpoint`` of ``save_dir``: whole, or the old one stays."""
    folder = _text(save_dir)
    path = _state_file(folder, latest_filename)
    state = generate_checkpoint_state_proto(
        folder,
        model_checkpoint_path,
        all_model_checkpoint_paths,
        all_model_checkpoint_timestamps,
        last_preserved_timestamp,
    )
    if save_relative_paths:
        state.model_checkpoint_path = _relative(state.model_checkpoint_path, folder)
        paths = [_relative(p, folder) for p in state.all_model_checkpoint_paths]
        state.all_model_checkpoint_paths[:] = paths
    if str(path) == model_checkpoint_path:
        raise RuntimeError(
            f"The checkpoint {model_checkpoint_path!r} has the name of the file that tells which "
            "is the latest; save it under another name, or give latest_filename."
        )
    from google.protobuf import text_format

    write_whole(path, text_format.MessageToString(state).encode())


def get_checkpoint_state(checkpoint_dir: Any, latest_filename: str | None = None) -> Any:
    """The ``CheckpointState`` of a folder, with paths that can be used from here; None if none.

    Example:
        >>> state = tf.train.get_checkpoint_state("/tmp/model")
        >>> if state:
        ...     saver.restore(sess, state.model_checkpoint_path)
    """
    from google.protobuf import text_format

    folder = _text(checkpoint_dir)
    path = _state_file(folder, latest_filename)
    try:
        content = path.read_text()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        logger.warning("%s cannot be read: %s", path, error)
        return None
    state = message("CheckpointState")()
    try:
        text_format.Parse(content, state)
    except text_format.ParseError as error:
        logger.warning("%s is damaged: %s", path, error)
        return None
    if not state.model_checkpoint_path:
        logger.warning("%s does not say which checkpoint is the latest", path)
    else:
        state.model_checkpoint_path = os.path.join(folder, state.model_checkpoint_path)
    paths = [os.path.join(folder, p) for p in state.all_model_checkpoint_paths]
    state.all_model_checkpoint_paths[:] = paths
    return state


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """The newest checkpoint of a folder, or None.

    Example:
        >>> saver.restore(sess, tf.train.latest_checkpoint("/tmp/model"))
    """
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None or not state.model_checkpoint_path:
        return None
    if exists(state.model_checkpoint_path):
        return state.model_checkpoint_path
    logger.error("The checkpoint %s is not there any more", state.model_checkpoint_path)
    return None


def checkpoint_exists(checkpoint_prefix: Any) -> bool:
    """True when there is a checkpoint, of either format, of that name."""
    return exists(_text(checkpoint_prefix))


def get_checkpoint_mtimes(checkpoint_prefixes: Iterable[Any]) -> list[float]:
    """When the checkpoints that exist were written, in seconds since 1970."""
    found = []
    for prefix in map(_text, checkpoint_prefixes):
        files = [index_file(prefix)] if os.path.exists(index_file(prefix)) else glob.glob(prefix)
        if files:
            found.append(max(map(os.path.getmtime, files)))
    return found


def meta_graph_filename(checkpoint_filename: str, meta_graph_suffix: str = "meta") -> str:
    """The file of the graph beside a checkpoint; a sharded one has it once."""
    basename, _, _ = checkpoint_filename.partition("-?????-of-")
    return f"{basename}.{meta_graph_suffix}"


def remove_checkpoint(
    checkpoint_prefix: Any, checkpoint_format_version: int = 2, meta_graph_suffix: str = "meta"
) -> None:
    """Removes the files of a checkpoint; one that is not there, or has to stay, is no error."""
    prefix = _text(checkpoint_prefix)
    escaped = glob.escape(prefix)
    # The index goes first: a checkpoint that is half removed is none.
    if checkpoint_format_version == 2:
        files = [index_file(prefix), *glob.glob(f"{escaped}.data-?????-of-?????")]
    else:
        files = glob.glob(prefix)
    files += [meta_graph_filename(prefix, meta_graph_suffix), streams_file(prefix)]
    remove_files(files)


@contextlib.contextmanager
def new_checkpoint(
    prefix: str, version: int, latest_filename: str | None, meta_graph_suffix: str
) -> Iterator[None]:
    """Saves a checkpoint in the block; one that fails leaves nothing of its own behind.

    A checkpoint of that name that was there before stays, and so does one that the folder's state
    names already.
    """
    sweep(os.path.dirname(prefix))
    escaped, shards = glob.escape(prefix), "-?????-of-"
    existed = exists(prefix) or bool(glob.glob(f"{escaped}{shards}?????"))
    try:
        yield
    except BaseException:
        for folder in glob.glob(f"{escaped}_temp_*/"):  # shards that were to be merged
            shutil.rmtree(folder, ignore_errors=True)
        state = get_checkpoint_state(os.path.dirname(prefix), latest_filename)
        named = [] if state is None else state.all_model_checkpoint_paths
        own = [path for path in named if path.partition(shards)[0] == prefix]
        if not existed and not own:
            remove_checkpoint(prefix, version, meta_graph_suffix)
            remove_files(glob.glob(f"{escaped}{shards}?????"))
        raise
