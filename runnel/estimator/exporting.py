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
from runnel.estimator.mode_keys import ModeKeys
from runnel.estimator.serving_input import named_tensors
from runnel.graph.collections import GraphKeys
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Tensor
from runnel.runtime.session.session import Session
from runnel.saved_model.builder import SavedModelBuilder
from runnel.saved_model.signature_def_utils import build_signature_def, is_valid_signature
from runnel.saved_model.tag_constants import SERVING, TRAINING
from runnel.saved_model.tensor_info import build_tensor_info
from runnel.train.saver import Saver
from runnel.train.scaffold import Scaffold

logger = logging.getLogger("runnel")

_ASSETS_EXTRA = "assets.extra"
TAGS = {ModeKeys.TRAIN: TRAINING, ModeKeys.EVAL: "eval", ModeKeys.PREDICT: SERVING}
"""The tag of each mode's graph, in the order in which they are written."""
_SUPERVISED = {
    ModeKeys.TRAIN: "tensorflow/supervised/training",
    ModeKeys.EVAL: "tensorflow/supervised/eval",
}
"""Modes whose signature has labels, and what it says that it does."""


def signatures_of(receiver: Any, spec: EstimatorSpec, mode: str) -> dict[str, Any]:
    """The signatures of a model that is fed as ``receiver`` says.

    One that trains or is evaluated has a single one, named after that. Of others, those that do
    not fit (a classification needs one string tensor) are left out.
    """
    found: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    tensors = named_tensors(receiver.receiver_tensors, "input")
    if mode in _SUPERVISED:
        return {mode: _supervised_signature(tensors, spec, mode)}
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


def _supervised_signature(tensors: Mapping[str, Any], spec: EstimatorSpec, mode: str) -> Any:
    """The signature of training or evaluation: the loss, predictions and metrics of the inputs."""
    found: dict[str, Any] = {} if spec.loss is None else {"loss": spec.loss}
    predictions = spec.predictions
    if predictions is not None and not isinstance(predictions, Mapping):
        predictions = {"": predictions}
    for name, tensor in (predictions or {}).items():
        found[f"predictions/{name}" if name else "predictions"] = tensor
    for name, (value, update) in (spec.eval_metric_ops or {}).items():
        found[f"metrics/{name}/value"] = value
        found[f"metrics/{name}/update_op"] = update
    tensors_out = {name: tensor for name, tensor in found.items() if isinstance(tensor, Tensor)}
    return build_signature_def(
        {name: build_tensor_info(tensor) for name, tensor in tensors.items()},
        {name: build_tensor_info(tensor) for name, tensor in tensors_out.items()},
        _SUPERVISED[mode],
    )


def add_graph(
    builder: SavedModelBuilder,
    tag: str,
    spec: EstimatorSpec,
    signatures: Mapping[str, Any],
    checkpoint: str,
    session_config: Any,
    strip_default_attrs: bool,
) -> None:
    """Adds the default graph to a SavedModel; the first one with the values of ``checkpoint``."""
    graph = get_default_graph()
    local_init_op = spec.scaffold.local_init_op
    if local_init_op is None:
        local_init_op = Scaffold.default_local_init_op()
    saver = spec.scaffold.saver or Saver(sharded=True)
    saver.build()
    options: dict[str, Any] = {
        "assets_collection": graph.get_collection(GraphKeys.ASSET_FILEPATHS),
        "main_op": local_init_op,
        "saver": saver,
        "strip_default_attrs": strip_default_attrs,
    }
    if builder._has_variables:
        builder.add_meta_graph([tag], signatures, **options)
        return
    with Session(config=session_config) as sess:
        saver.restore(sess, checkpoint)
        builder.add_meta_graph_and_variables(sess, [tag], signatures, **options)


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
