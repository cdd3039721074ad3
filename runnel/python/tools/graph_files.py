"""Reads graphs from files, in the text or the binary form."""

from __future__ import annotations

from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError
from tensorboard.compat.proto.graph_pb2 import GraphDef

from runnel import gfile


def require_file(path: str, what: str) -> None:
    """Refuses a path without a file, as ``what``."""
    if not gfile.Exists(path):
        raise ValueError(f"{what} file '{path}' does not exist!")


def read_message(path: str, binary: bool, message: Any, what: str) -> Any:
    """``message``, filled from a file."""
    require_file(path, what)
    with gfile.GFile(path, "rb") as file:
        content = file.read()
    try:
        if binary:
            message.ParseFromString(content)
        else:
            text_format.Parse(content.decode("utf-8"), message)
    except (DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        form = "binary" if binary else "text"
        raise ValueError(
            f"{what} file '{path}' is no {type(message).__name__} in {form} form: {error}. "
            "If it has the other form, say so by `input_binary`."
        ) from error
    return message


def read_graph(path: str, binary: bool) -> Any:
    """The GraphDef in a file."""
    return read_message(path, binary, GraphDef(), "Input graph")
