"""Models and their variables in HDF5 files, as Keras writes them; needs h5py."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from runnel import logging
from runnel.keras.backend_state import batch_get_value, batch_set_value

_LIMIT = 64512
"""HDF5 takes no larger attribute."""


def opened(path: str, mode: str) -> Any:
    """The file, for a ``with`` block."""
    try:
        import h5py
    except ImportError as error:
        raise ImportError(
            "HDF5 files need the package h5py: pip install h5py. Without it, "
            "model.save_weights('path') writes a checkpoint of TensorFlow, and model.to_json() the "
            "layers"
        ) from error
    if mode == "r" and not os.path.exists(path):
        raise OSError(f"Unable to open file {path}: there is neither such a file nor a checkpoint")
    return h5py.File(path, mode)


# Attributes ---------------------------------------------------------------------------------


def _write_names(group: Any, name: str, values: list[str]) -> None:
    data = [value.encode("utf8") for value in values]
    if any(len(one) > _LIMIT for one in data):
        raise RuntimeError(f"A name is too long for an attribute of HDF5: {values}")
    array = np.asarray(data)
    parts = 1
    while parts and any(part.nbytes > _LIMIT for part in np.array_split(array, parts)):
        parts += 1
    if parts == 1:
        group.attrs[name] = data
        return
    for number, part in enumerate(np.array_split(array, parts)):
        group.attrs[f"{name}{number}"] = part


def _read_names(group: Any, name: str) -> list[str]:
    if name in group.attrs:
        found = list(group.attrs[name])
    else:
        found, number = [], 0
        while f"{name}{number}" in group.attrs:
            found += list(group.attrs[f"{name}{number}"])
            number += 1
    return [one.decode("utf8") if isinstance(one, bytes) else str(one) for one in found]


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


# Variables ----------------------------------------------------------------------------------


def _weights_of(layer: Any) -> list[Any]:
    return [*layer.trainable_weights, *layer.non_trainable_weights]


def write_weights(group: Any, layers: list[Any]) -> None:
    """Writes the variables of layers, a group for each layer."""
    _write_names(group, "layer_names", [layer.name for layer in layers])
    group.attrs["backend"] = b"tensorflow"
    group.attrs["keras_version"] = b"2.2.4-tf"
    for layer in layers:
        weights = _weights_of(layer)
        inner = group.create_group(layer.name)
        _write_names(inner, "weight_names", [weight.name for weight in weights])
        for weight, value in zip(weights, batch_get_value(weights), strict=True):
            inner.create_dataset(weight.name, data=value)


def read_weights(group: Any, layers: list[Any]) -> None:
    """Sets the variables of layers to those of a file, layer by layer in order."""
    own = [layer for layer in layers if _weights_of(layer)]
    names = [n for n in _read_names(group, "layer_names") if _read_names(group[n], "weight_names")]
    if len(names) != len(own):
        raise ValueError(
            f"You are trying to load a weight file containing {len(names)} layers into a model "
            f"with {len(own)} layers."
        )
    pairs: list[Any] = []
    for layer, name in zip(own, names, strict=True):
        pairs += _pairs(layer, group[name], name)
    batch_set_value(pairs)


def read_weights_by_name(group: Any, layers: list[Any]) -> None:
    """Sets the variables of those layers that have the name of one in the file."""
    by_name: dict[str, list[Any]] = {}
    for layer in layers:
        by_name.setdefault(layer.name, []).append(layer)
    pairs: list[Any] = []
    for name in _read_names(group, "layer_names"):
        for layer in by_name.get(name, ()):
            pairs += _pairs(layer, group[name], name)
    batch_set_value(pairs)


def _pairs(layer: Any, group: Any, name: str) -> list[tuple[Any, Any]]:
    weights, names = _weights_of(layer), _read_names(group, "weight_names")
    if len(weights) != len(names):
        raise ValueError(
            f"Layer {layer.name!r} (named {name!r} in the file) expects {len(weights)} weights, "
            f"but the saved weights have {len(names)} elements."
        )
    found = [(weight, np.asarray(group[n])) for weight, n in zip(weights, names, strict=True)]
    for weight, value in found:
        if tuple(weight.shape.as_list()) != value.shape:
            raise ValueError(
                f"Layer {layer.name!r}, weight {weight.name} has shape {weight.shape}, but the "
                f"saved weight has shape {value.shape}."
            )
    return found


# Models -------------------------------------------------------------------------------------


def save_model(model: Any, path: str, overwrite: bool, include_optimizer: bool) -> None:
    """Writes a model whole: layers, variables, what it was compiled with, the optimizer."""
    from runnel.keras.saved_models import _plain, described

    if not overwrite and os.path.exists(path):
        raise FileExistsError(f"{path} exists already; overwrite=True replaces it")
    whole = described(model)
    if not model.weights:
        raise ValueError(f"The model {model.name!r} has no variables yet: build it first")
    with opened(path, "w") as file:
        file.attrs["keras_version"] = whole.pop("keras_version").encode()
        file.attrs["backend"] = whole.pop("backend").encode()
        file.attrs["model_config"] = json.dumps(whole, default=_plain).encode("utf8")
        write_weights(file.create_group("model_weights"), model.layers)
        asked = model.__dict__.get("_asked")
        if not include_optimizer or asked is None:
            return
        from runnel.keras.optimizer import Optimizer

        if not isinstance(model.optimizer, Optimizer):
            logging.warning("An optimizer of tf.train is not saved with the model; compile again")
            return
        training = json.dumps(_training_config(model, asked), default=_plain)
        file.attrs["training_config"] = training.encode("utf8")
        weights = model.optimizer.weights
        if weights:
            group = file.create_group("optimizer_weights")
            _write_names(group, "weight_names", [weight.name for weight in weights])
            for weight, value in zip(weights, batch_get_value(weights), strict=True):
                group.create_dataset(weight.name, data=value)


def _training_config(model: Any, asked: dict[str, Any]) -> dict[str, Any]:
    from runnel.keras.custom_objects import serialize_keras_object

    def plain(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [plain(part) for part in value]
        if isinstance(value, dict):
            return {name: plain(part) for name, part in value.items()}
        return serialize_keras_object(value)

    optimizer = model.optimizer
    return {
        "optimizer_config": {
            "class_name": type(optimizer).__name__,
            "config": optimizer.get_config(),
        },
        "loss": plain(asked["loss"]),
        "metrics": plain(asked["metrics"]),
        "weighted_metrics": plain(asked["weighted_metrics"]),
        "sample_weight_mode": asked["sample_weight_mode"],
        "loss_weights": asked["loss_weights"],
    }


def load_model(path: str, compiled: bool) -> Any:
    """The model of a file."""
    from runnel.keras.saved_models import model_from_config

    with opened(path, "r") as file:
        config = file.attrs.get("model_config")
        if config is None:
            raise ValueError(
                f"No model found in {path}: it holds weights alone. Make the model, and call its "
                "load_weights"
            )
        model = model_from_config(json.loads(_text(config)))
        read_weights(file["model_weights"], model.layers)
        training = file.attrs.get("training_config")
        if not compiled or training is None:
            return model
        asked = json.loads(_text(training))
        model.compile(**_compile_arguments(asked))
        if "optimizer_weights" in file:
            model._require_compiled().make_train_op()
            group = file["optimizer_weights"]
            names = _read_names(group, "weight_names")
            model.optimizer.set_weights([np.asarray(group[name]) for name in names])
    return model


def _compile_arguments(asked: dict[str, Any]) -> dict[str, Any]:
    from runnel.keras import losses, metrics, optimizers

    def found(value: Any, module: Any) -> Any:
        if isinstance(value, list):
            return [found(part, module) for part in value]
        if isinstance(value, dict) and "class_name" in value:
            return module.get(value)
        if isinstance(value, dict):
            return {name: found(part, module) for name, part in value.items()}
        if isinstance(value, str) and value not in ("accuracy", "acc", "crossentropy", "ce"):
            return module.get(value)
        return value

    return {
        "optimizer": optimizers.deserialize(asked["optimizer_config"]),
        "loss": found(asked["loss"], losses),
        "metrics": found(asked.get("metrics"), metrics),
        "weighted_metrics": found(asked.get("weighted_metrics"), metrics),
        "sample_weight_mode": asked.get("sample_weight_mode"),
        "loss_weights": asked.get("loss_weights"),
    }
