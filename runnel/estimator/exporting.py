"""Exporting a model: a SavedModel in a folder of its own, named after the time."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from runnel.checkpoint.whole_file import copy_whole, sync_folder
from runnel.estimator.estimator_spec import EstimatorSpec
from runnel.estimator.serving_input import named_tensors
from runnel.graph.collections import GraphKeys
from runnel.graph.graph import get_default_graph
from runnel.runtime.session.session import Session
from runnel.saved_model.builder import SavedModelBuilder
from runnel.saved_model.signature_def_utils import is_valid_signature
from runnel.saved_model.tag_constants import SERVING
from runnel.train.saver import Saver
from runnel.train.scaffold import Scaffold

logger = logging.getLogger("runnel")

_ASSETS_EXTRA = "assets.extra"


def signatures_of(receiver: Any, spec: EstimatorSpec) -> dict[str, Any]:
    """The signatures of a model that is fed as ``receiver`` says.

    Those that do not fit (a classification needs one string tensor) are left out.
    """
    found: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    tensors = named_tensors(receiver.receiver_tensors, "input")
    feeds: dict[str, dict[str, Any]] = {"": tensors}
    for name, other in (receiver.receiver_tensors_alternatives or {}).items():
        feeds[f"{name}:"] = named_tensors(other, "input")
    for prefix, given in feeds.items():
        for name, output in (spec.export_outputs or {}).items():
            key = f"{prefix}{name}"
            try:
                signature = output.as_signature_def(given)
            except ValueError as error:
                left_out[key] = str(error)
                continue
            if is_valid_signature(signature):
                found[key] = signature
    if left_out:
        logger.info("Signatures that the receiver tensors do not fit: %s", left_out)
    if not found:
        raise ValueError(f"The model has no signature that its receiver tensors fit: {left_out}")
    return found


def write_model(
    folder: Path,
    spec: EstimatorSpec,
    signatures: Mapping[str, Any],
    checkpoint: str,
    session_config: Any,
    as_text: bool,
    strip_default_attrs: bool,
) -> None:
    """Writes the default graph, with the values of ``checkpoint``, as a SavedModel."""
    graph = get_default_graph()
    with Session(config=session_config) as sess:
        local_init_op = spec.scaffold.local_init_op
        if local_init_op is None:
            local_init_op = Scaffold.default_local_init_op()
        saver = spec.scaffold.saver or Saver(sharded=True)
        saver.build()
        saver.restore(sess, checkpoint)
        builder = SavedModelBuilder(folder)
        builder.add_meta_graph_and_variables(
            sess,
            [SERVING],
            signatures,
            assets_collection=graph.get_collection(GraphKeys.ASSET_FILEPATHS),
            main_op=local_init_op,
            saver=saver,
            strip_default_attrs=strip_default_attrs,
        )
        builder.save(as_text)


def copy_extra_assets(folder: Path, assets_extra: Mapping[str, Any] | None) -> None:
    """Copies files into ``assets.extra``, each to its place there."""
    for name, source in (assets_extra or {}).items():
        place = PurePath(name)
        if place.is_absolute() or ".." in place.parts:
            raise ValueError(f"assets_extra names places in the model's folder, not {name!r}")
        target = folder / _ASSETS_EXTRA / place
        copy_whole(source, target)


def timestamped(base: Path) -> Path:
    """A folder in ``base``, named after the time in seconds, later than those that are there."""
    second = int(time.time())
    while (base / str(second)).exists():
        second += 1
    return base / str(second)


def finished(temporary: Path, folder: Path) -> bytes:
    """Gives the folder its name; returns it, as TensorFlow does, as bytes."""
    os.replace(temporary, folder)
    sync_folder(folder.parent)
    return os.fsencode(folder)
