"""Files that belong to a model: copied into its folder, found there when it is loaded."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from runnel.checkpoint.whole_file import copy_whole
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Tensor
from runnel.saved_model.constants import ASSETS_DIRECTORY, ASSETS_KEY
from runnel.saved_model.tensor_info import build_tensor_info
from runnel.variables.proto_names import add_scope

_TYPE_URL = "type.googleapis.com/tensorflow.AssetFileDef"


def add_assets(tensors: Iterable[Any], folder: Path) -> None:
    """Copies the files that constant ``tensors`` name, and notes them in the default graph."""
    from google.protobuf.any_pb2 import Any as AnyProto
    from tensorboard.compat.proto.meta_graph_pb2 import AssetFileDef

    names: dict[str, str] = {}
    for tensor in tensors:
        source = _path_in(tensor)
        name = _free_name(source, names)
        names[name] = source
        described = AssetFileDef(filename=name, tensor_info=build_tensor_info(tensor))
        noted = AnyProto(type_url=_TYPE_URL, value=described.SerializeToString())
        get_default_graph().add_to_collection(ASSETS_KEY, noted)
    for name, source in names.items():
        copy_whole(source, folder / ASSETS_DIRECTORY / name)


def _path_in(tensor: Any) -> str:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"An asset is a tensor with the path of a file, not {tensor!r}")
    value = tensor.op.attrs.get("value") if tensor.op.type == "Const" else None
    if value is None or tensor.dtype.name != "string" or value.size != 1:
        raise TypeError(f"The asset {tensor.name} must be a constant string, the path of a file")
    path = os.fsdecode(value.reshape(-1)[0])
    if not os.path.isfile(path):
        raise ValueError(
            f"Asset filepath tensor {tensor.name} is invalid: there is no file {path!r}"
        )
    return path


def _free_name(source: str, names: dict[str, str]) -> str:
    """The name of a copy: that of the file, unless another file has it."""
    base = os.path.basename(source)
    name, number = base, 1
    while name in names and not filecmp.cmp(names[name], source, shallow=False):
        name, number = f"{base}_{number}", number + 1
    return name


def assets_of(meta_graph_def: Any, folder: Path, import_scope: str | None) -> dict[str, str]:
    """The paths of a model's files by the names of the tensors that hold them."""
    found: dict[str, str] = {}
    for described in _described(meta_graph_def):
        path = PurePosixPath(described.filename)
        if path.is_absolute() or ".." in path.parts or not path.name or "\0" in str(path):
            raise InvalidArgumentError(
                None,
                None,
                f"The SavedModel in {folder} names the asset {described.filename!r}, which lies "
                "outside of its folder: it is damaged, or not to be trusted",
            )
        name = add_scope(described.tensor_info.name, import_scope)
        found[name] = str(folder / ASSETS_DIRECTORY / path)
    return found


def _described(meta_graph_def: Any) -> list[Any]:
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.meta_graph_pb2 import AssetFileDef

    if meta_graph_def.asset_file_def:
        return list(meta_graph_def.asset_file_def)
    if ASSETS_KEY not in meta_graph_def.collection_def:
        return []
    try:
        noted = meta_graph_def.collection_def[ASSETS_KEY].any_list.value
        return [AssetFileDef.FromString(one.value) for one in noted]
    except DecodeError as error:
        raise InvalidArgumentError(
            None, None, f"The list of a SavedModel's assets is damaged: {error}"
        ) from None
