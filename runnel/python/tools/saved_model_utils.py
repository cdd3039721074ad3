"""Reads SavedModels without loading them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from runnel.saved_model import model_file
from runnel.saved_model.loader import with_tags

__all__ = ["get_meta_graph_def", "get_saved_model_tag_sets", "read_saved_model"]


def read_saved_model(saved_model_dir: Any) -> Any:
    """The ``SavedModel`` message of a folder."""
    return model_file.read_saved_model(_folder(saved_model_dir))


def get_saved_model_tag_sets(saved_model_dir: Any) -> list[list[str]]:
    """The tags of each graph of a SavedModel."""
    graphs = read_saved_model(saved_model_dir).meta_graphs
    return sorted(list(graph.meta_info_def.tags) for graph in graphs)


def get_meta_graph_def(saved_model_dir: Any, tag_set: str) -> Any:
    """The ``MetaGraphDef`` that has just the tags of ``tag_set``, with commas between them."""
    folder = _folder(saved_model_dir)
    tags = [tag for tag in tag_set.split(",") if tag]
    return with_tags(model_file.read_saved_model(folder), tags, folder)


def _folder(path: Any) -> Path:
    return Path(os.fsdecode(os.fspath(path)))
