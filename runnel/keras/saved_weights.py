"""The variables of a model in a checkpoint of TensorFlow, or in an HDF5 file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from runnel import gfile
from runnel.checkpoint.bundle import BundleWriter
from runnel.checkpoint.reading import checkpoint_exists, open_checkpoint
from runnel.graph.dtypes import string
from runnel.keras.backend_state import batch_set_value, get_session
from runnel.keras.object_graph import GRAPH_KEY, matched, written
from runnel.train.checkpoint_state import update_checkpoint_state

_HDF5_ENDINGS = (".h5", ".hdf5", ".keras")


def _is_hdf5(path: str, save_format: Any) -> bool:
    if save_format is None:
        return path.endswith(_HDF5_ENDINGS)
    if save_format in ("h5", "hdf5", "keras"):
        return True
    if save_format in ("tf", "tensorflow"):
        if path.endswith(_HDF5_ENDINGS):
            raise ValueError(
                f'save_weights got save_format="tf", but the filepath ("{path}") looks like an '
                'HDF5 file. Omit the ".h5" when saving in TensorFlow format.'
            )
        return False
    raise ValueError(f'Unknown format "{save_format}". Was expected one of {{"tf", "h5"}}.')


def exists(path: str) -> bool:
    """Whether weights were saved at ``path``."""
    return gfile.Exists(path) or checkpoint_exists(path)


def save(model: Any, path: str, overwrite: bool, save_format: Any) -> None:
    """Writes the variables of ``model``."""
    hdf5 = _is_hdf5(path, save_format)
    if not overwrite and exists(path if hdf5 else f"{path}.index"):
        raise FileExistsError(f"{path} exists already; overwrite=True replaces it")
    if not model.built:
        raise ValueError(
            f"Unable to save weights: the model {model.name!r} has not created its variables yet. "
            "Call it on some inputs, build it, or fit it first."
        )
    if hdf5:
        from runnel.keras import hdf5_format

        with hdf5_format.opened(path, "w") as file:
            hdf5_format.write_weights(file, model.layers)
        return
    variables, graph = written(model)
    values = get_session().run(list(variables.values()))
    with BundleWriter(path) as writer:
        for (key, variable), value in sorted(zip(variables.items(), values, strict=True)):
            writer.add(key, value, variable.dtype.base_dtype)
        writer.add(GRAPH_KEY, np.array(graph, object), string)
    folder = os.path.dirname(path)
    update_checkpoint_state(folder, path, [path])


def load(model: Any, path: str, by_name: bool) -> Any:
    """Sets the variables of ``model`` to those of a file."""
    if checkpoint_exists(path) and not path.endswith(_HDF5_ENDINGS):
        if by_name:
            raise NotImplementedError(
                "Weights may only be loaded based on topology into Models when loading "
                "TensorFlow-formatted weights (got by_name=True to load_weights)."
            )
        if not model.built:
            model.__dict__["_waiting_weights"] = path
            return None
        restore(model, path)
        return None
    if not model.built:
        raise ValueError(
            "Unable to load weights saved in HDF5 format into a subclassed Model which has not "
            "created its variables yet. Call the Model first, then load the weights."
        )
    from runnel.keras import hdf5_format

    with hdf5_format.opened(path, "r") as file:
        group = file["model_weights"] if "layer_names" not in file.attrs else file
        read = hdf5_format.read_weights_by_name if by_name else hdf5_format.read_weights
        read(group, model.layers)
    return None


def restore(model: Any, path: str) -> None:
    """Sets the variables, and those of the optimizer, to those of a checkpoint."""
    reader = open_checkpoint(path)
    if not reader.has(GRAPH_KEY):
        raise ValueError(
            f"{path} is a checkpoint of tf.train.Saver, which names variables and not the objects "
            "of a model: restore it with tf.train.Saver in tf.keras.backend.get_session()"
        )
    graph = reader.tensor(GRAPH_KEY).item()
    if model._compiled is not None and model.optimizer is not None:
        from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph

        root = TrackableObjectGraph.FromString(graph).nodes[0]
        if any(child.local_name == "optimizer" for child in root.children):
            model._compiled.make_train_op()  # which makes the optimizer's variables
    found, missing = matched(model, graph)
    own = {variable for variable in model.weights}
    if not any(variable in own for variable in found) and own:
        raise AssertionError(
            f"Nothing in the checkpoint {path} matches the model {model.name!r}: it has none of "
            f"{', '.join(missing[:5])}"
        )
    batch_set_value([(variable, reader.tensor(key)) for variable, key in found.items()])
