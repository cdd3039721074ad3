"""Models as text, in HDF5 files, and copied."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from runnel.keras.custom_objects import known_too
from runnel.keras.inputs import InputLayer

_VERSION = "2.2.4-tf"


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(value, "name"):
        return value.name
    raise TypeError(f"{value!r} cannot be part of a configuration: it is no value of JSON")


def described(model: Any) -> dict[str, Any]:
    """The class and the configuration of a model, with the version of Keras."""
    return {
        "class_name": type(model).__name__,
        "config": model.get_config(),
        "keras_version": _VERSION,
        "backend": "tensorflow",
    }


def to_json(model: Any, **kwargs: Any) -> str:
    """A model's layers and how they are connected, as JSON."""
    return json.dumps(described(model), default=_plain, **kwargs)


def model_from_config(config: Any, custom_objects: Any = None) -> Any:
    """The model that a dict of class and configuration describes, with new variables."""
    from runnel.keras.layers import deserialize

    if isinstance(config, list):
        raise TypeError(
            "`model_from_config` expects a dictionary, not a list: Sequential.from_config"
        )
    return deserialize(config, custom_objects=custom_objects)


def model_from_json(json_string: str, custom_objects: Any = None) -> Any:
    """The model that JSON describes, with new variables.

    Example:
        >>> other = tf.keras.models.model_from_json(model.to_json())
        >>> other.set_weights(model.get_weights())
    """
    return model_from_config(json.loads(json_string), custom_objects)


def model_from_yaml(yaml_string: str, custom_objects: Any = None) -> Any:
    """Refused: models are written as JSON here."""
    raise NotImplementedError("Models are read from JSON here: tf.keras.models.model_from_json")


def clone_model(model: Any, input_tensors: Any = None, clone_function: Any = None) -> Any:
    """A model of new layers, with new variables, that are connected in the same way.

    ``clone_function(layer)`` makes the new layers, unless ``from_config`` is right.
    """
    from runnel.keras.sequential import Sequential

    make = clone_function or (lambda layer: type(layer).from_config(layer.get_config()))
    if isinstance(model, Sequential):
        layers = [make(layer) for layer in model.layers]
        first = model._stack[0] if model._stack else None
        if input_tensors is not None:
            given = input_tensors if isinstance(input_tensors, list | tuple) else [input_tensors]
            layers.insert(0, InputLayer(input_tensor=given[0], name=f"{first.name}_clone"))  # type: ignore[union-attr]
        elif isinstance(first, InputLayer):
            layers.insert(0, InputLayer.from_config(first.get_config()))
        return Sequential(layers, name=model.name)
    if not model._is_graph_network:
        raise ValueError(
            "Expected a model of inputs and outputs to clone, but a subclass computes in its own "
            "`call`: make another one by its constructor"
        )
    return _cloned(model, input_tensors, make)


def _cloned(model: Any, input_tensors: Any, make: Any) -> Any:
    from runnel.control_flow.structure import flatten, map_leaves, pack_as

    made: dict[int, Any] = {}
    given = flatten(input_tensors) if input_tensors is not None else [None] * len(model.inputs)
    layers: dict[int, Any] = {}
    for tensor, start in zip(model.inputs, given, strict=True):
        own = tensor._keras_history.layer
        if start is None:
            layer = InputLayer.from_config(own.get_config())
        else:
            layer = InputLayer(input_tensor=start, name=f"{own.name}_clone")
        made[id(tensor)] = layer.output
    for node in model._nodes_in_order:
        if all(id(y) in made for y in node.output_tensors):
            continue
        if id(node.layer) not in layers:
            layers[id(node.layer)] = make(node.layer)
        inputs = map_leaves(lambda x: made.get(id(x), x), node.inputs)
        arguments = map_leaves(lambda x: made.get(id(x), x), node.arguments)
        outputs = layers[id(node.layer)](inputs, **arguments)
        made.update(
            {id(old): new for old, new in zip(node.output_tensors, flatten(outputs), strict=True)}
        )
    outputs = pack_as(model._outputs, [made[id(y)] for y in model.outputs])
    inputs = pack_as(model._inputs, [made[id(x)] for x in model.inputs])
    return type(model)(inputs=inputs, outputs=outputs, name=model.name)


def _is_hdf5(filepath: str, save_format: Any) -> bool:
    if save_format in ("h5", "hdf5", "keras") or filepath.endswith((".h5", ".hdf5", ".keras")):
        return True
    return save_format is None  # TensorFlow 1.15's default


def save_model(
    model: Any,
    filepath: Any,
    overwrite: bool = True,
    include_optimizer: bool = True,
    save_format: Any = None,
) -> None:
    """Writes the layers, the variables and the optimizer to one HDF5 file, which needs h5py."""
    if not isinstance(filepath, str | Path) or not _is_hdf5(str(filepath), save_format):
        raise NotImplementedError(
            "Models are saved to HDF5 files: give a path that ends with .h5. "
            "tf.saved_model.simple_save exports a model for serving, and model.save_weights with "
            "model.to_json keeps it without h5py"
        )
    from runnel.keras import hdf5_format

    hdf5_format.save_model(model, str(filepath), overwrite, include_optimizer)


def load_model(filepath: Any, custom_objects: Any = None, compile: bool = True) -> Any:  # noqa: A002
    """The model of an HDF5 file, compiled as it was when it was saved.

    Example:
        >>> model.save("model.h5")
        >>> same = tf.keras.models.load_model("model.h5")
    """
    if not isinstance(filepath, str | Path) or Path(str(filepath)).is_dir():
        raise NotImplementedError(
            "load_model reads HDF5 files; tf.saved_model.loader.load reads a SavedModel's folder"
        )
    from runnel.keras import hdf5_format

    with known_too(custom_objects):
        return hdf5_format.load_model(str(filepath), compile)
