"""The file of a SavedModel: its graphs, each with tags, in a protocol buffer."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from runnel.checkpoint.whole_file import write_whole
from runnel.graph.message_types import INT64, MESSAGE, MessageTypes, many, one
from runnel.graph.serialized_message import FEWER_CONSTANTS, serialized_message
from runnel.saved_model.constants import SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT

_TYPES = MessageTypes(
    "saved_model",
    {
        "SavedModel": [
            one("saved_model_schema_version", 1, INT64),
            many("meta_graphs", 2, MESSAGE, ".tensorboard.MetaGraphDef"),
        ]
    },
    uses=["meta_graph_pb2"],
)


@cache
def saved_model_type() -> Any:
    """The class of ``SavedModel`` messages."""
    return _TYPES["SavedModel"]


def contains_saved_model(export_dir: Any) -> bool:
    """True when a folder has the file of a SavedModel."""
    folder = Path(os.fsdecode(os.fspath(export_dir)))
    names = SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT
    return any((folder / name).is_file() for name in names)


def read_saved_model(folder: Path) -> Any:
    """The ``SavedModel`` of a folder, binary or text."""
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    found = saved_model_type()()
    binary, text = folder / SAVED_MODEL_FILENAME_PB, folder / SAVED_MODEL_FILENAME_PBTXT
    if binary.is_file():
        try:
            found.ParseFromString(binary.read_bytes())
        except DecodeError as error:
            raise OSError(f"{binary} is no SavedModel, or damaged: {error}") from None
    elif text.is_file():
        try:
            text_format.Parse(text.read_bytes().decode(), found)
        except (UnicodeDecodeError, text_format.ParseError) as error:
            raise OSError(f"{text} is no SavedModel, or damaged: {error}") from None
    else:
        raise OSError(
            f"SavedModel file does not exist at: {folder}{os.sep}"
            f"{{{SAVED_MODEL_FILENAME_PBTXT}|{SAVED_MODEL_FILENAME_PB}}}"
        )
    return found


def write_saved_model(folder: Path, saved_model: Any, as_text: bool) -> Path:
    """Writes the ``SavedModel`` of a folder; returns the file, which appears whole."""
    if as_text:
        from google.protobuf import text_format

        path, content = (
            folder / SAVED_MODEL_FILENAME_PBTXT,
            text_format.MessageToString(saved_model),
        )
        write_whole(path, content.encode())
        return path
    path = folder / SAVED_MODEL_FILENAME_PB
    write_whole(path, serialized_message(saved_model, "The SavedModel", FEWER_CONSTANTS))
    return path
