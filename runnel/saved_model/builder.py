"""``tf.saved_model.builder``: a SavedModel, put together and written."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from runnel.checkpoint.whole_file import make_folder
from runnel.graph.collections import GraphKeys
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Operation
from runnel.saved_model.assets import add_assets
from runnel.saved_model.constants import (
    LEGACY_INIT_OP_KEY,
    MAIN_OP_KEY,
    SAVED_MODEL_SCHEMA_VERSION,
    VARIABLES_DIRECTORY,
    VARIABLES_FILENAME,
)
from runnel.saved_model.model_file import saved_model_type, write_saved_model
from runnel.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from runnel.saved_model.signature_def_utils import predict_signature_def
from runnel.saved_model.tag_constants import SERVING
from runnel.train.saver import Saver

logger = logging.getLogger("runnel")

__all__ = ["SavedModelBuilder"]

_RESERVED = "__saved_model_init_op", "__saved_model_train_op"


def __dir__() -> list[str]:
    return __all__


class SavedModelBuilder:
    """Puts a SavedModel together: one or more graphs, each with tags, that share variables.

    ``export_dir`` must be empty, or not exist. The folder is a SavedModel only when :meth:`save`
    has returned.

    Example:
        >>> builder = tf.saved_model.Builder("/tmp/model/1")
        >>> signature = tf.saved_model.predict_signature_def({"x": x}, {"y": y})
        >>> builder.add_meta_graph_and_variables(sess, ["serve"], {"serving_default": signature})
        >>> builder.save()
    """

    def __init__(self, export_dir: Any) -> None:
        self._folder = Path(os.fsdecode(os.fspath(export_dir)))
        self._saved_model = saved_model_type()(
            saved_model_schema_version=SAVED_MODEL_SCHEMA_VERSION
        )
        self._has_variables = False
        if self._folder.exists() and (not self._folder.is_dir() or any(self._folder.iterdir())):
            raise AssertionError(
                f"Export directory {self._folder} already exists, and isn't empty. Please choose "
                "a different export directory, or delete all the contents of it."
            )
        make_folder(self._folder)

    def add_meta_graph_and_variables(
        self,
        sess: Any,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Iterable[Any] | None = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Adds the first graph, that of ``sess``, and the values of its variables there.

        ``tags`` say what the graph is for. ``assets_collection`` has constants with the paths of
        files that belong to the model. ``main_op`` runs when the model has been loaded.
        """
        if self._has_variables:
            raise AssertionError(
                "Graph state including variables and assets has already been saved. Please "
                "invoke `add_meta_graph()` instead."
            )
        with sess.graph.as_default():
            self._prepare(signature_def_map, assets_collection, main_op, legacy_init_op)
            saver = saver or _saver()
            path = self._folder / VARIABLES_DIRECTORY
            saver.save(sess, path / VARIABLES_FILENAME, write_meta_graph=False, write_state=False)
            self._add(saver, tags, signature_def_map, clear_devices, strip_default_attrs)
        self._has_variables = True

    def add_meta_graph(
        self,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Iterable[Any] | None = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Adds the default graph, whose variables are some of those that were saved."""
        if not self._has_variables:
            raise AssertionError(
                "Graph state including variables and assets has not been saved yet. Please "
                "invoke `add_meta_graph_and_variables()` first."
            )
        self._prepare(signature_def_map, assets_collection, main_op, legacy_init_op)
        self._add(saver or _saver(), tags, signature_def_map, clear_devices, strip_default_attrs)

    def save(self, as_text: bool = False) -> str:
        """Writes the file that makes the folder a SavedModel; returns its path."""
        path = write_saved_model(self._folder, self._saved_model, as_text)
        logger.info("SavedModel written to: %s", path)
        return str(path)

    def _prepare(
        self,
        signatures: Mapping[str, Any] | None,
        assets: Iterable[Any] | None,
        main_op: Any,
        legacy_init_op: Any,
    ) -> None:
        for name, signature in (signatures or {}).items():
            _check_signature(name, signature)
        add_assets(assets or (), self._folder)
        main_op = legacy_init_op if main_op is None else main_op
        if main_op is None:
            return
        if not isinstance(main_op, Operation):
            raise TypeError(f"main_op must be an Operation, not {main_op!r}")
        graph = get_default_graph()
        for key in (MAIN_OP_KEY, LEGACY_INIT_OP_KEY):
            if graph.get_collection(key):
                raise ValueError(
                    f"Graph already contains one or more main ops under the collection {key}."
                )
        graph.add_to_collection(MAIN_OP_KEY, main_op)

    def _add(
        self,
        saver: Saver,
        tags: Iterable[str],
        signatures: Mapping[str, Any] | None,
        clear_devices: bool,
        strip_default_attrs: bool,
    ) -> None:
        described = saver.export_meta_graph(
            clear_devices=clear_devices, strip_default_attrs=strip_default_attrs
        )
        described.meta_info_def.tags.extend([tags] if isinstance(tags, str) else tags)
        for name, signature in (signatures or {}).items():
            described.signature_def[name].ParseFromString(signature.SerializeToString())
        self._saved_model.meta_graphs.add().CopyFrom(described)


def _saver() -> Saver:
    return Saver(sharded=True, allow_empty=True)


def _check_signature(name: str, signature: Any) -> None:
    """Refuses names that TensorFlow keeps to itself, and tensors without a name or type."""
    if name in _RESERVED:
        raise KeyError(f"The signature {name!r} is reserved: please use another name")
    for infos in (signature.inputs, signature.outputs):
        for key, info in infos.items():
            if info.WhichOneof("encoding") is None or not info.dtype:
                raise AssertionError(
                    f"{key!r} of the signature {name!r} has no name or no dtype: make it with "
                    "tf.saved_model.build_tensor_info"
                )


def simple_save(
    session: Any,
    export_dir: Any,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    legacy_init_op: Any = None,
) -> None:
    """Writes the graph and the variables of a session as a model that gives ``outputs``.

    Example:
        >>> tf.saved_model.simple_save(sess, "/tmp/model/1", {"x": x}, {"y": y})
    """
    builder = SavedModelBuilder(export_dir)
    builder.add_meta_graph_and_variables(
        session,
        [SERVING],
        {DEFAULT_SERVING_SIGNATURE_DEF_KEY: predict_signature_def(inputs, outputs)},
        session.graph.get_collection(GraphKeys.ASSET_FILEPATHS),
        main_op=legacy_init_op,
        clear_devices=True,
    )
    builder.save()
