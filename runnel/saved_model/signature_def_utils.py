"""``tf.saved_model.signature_def_utils``: signatures, what a model takes and gives by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel.graph.dtypes import as_dtype, float32, string
from runnel.graph.operation import Tensor
from runnel.saved_model.signature_constants import (
    CLASSIFY_INPUTS,
    CLASSIFY_METHOD_NAME,
    CLASSIFY_OUTPUT_CLASSES,
    CLASSIFY_OUTPUT_SCORES,
    PREDICT_METHOD_NAME,
    REGRESS_INPUTS,
    REGRESS_METHOD_NAME,
    REGRESS_OUTPUTS,
)
from runnel.saved_model.tensor_info import build_tensor_info

__all__ = [
    "build_signature_def",
    "classification_signature_def",
    "is_valid_signature",
    "predict_signature_def",
    "regression_signature_def",
]


def __dir__() -> list[str]:
    return __all__


def build_signature_def(
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    method_name: str | None = None,
) -> Any:
    """A ``SignatureDef`` of inputs and outputs, each a ``TensorInfo`` by its name."""
    from tensorboard.compat.proto.meta_graph_pb2 import SignatureDef

    made = SignatureDef(method_name=method_name or "")
    for name, info in (inputs or {}).items():
        made.inputs[name].CopyFrom(info)
    for name, info in (outputs or {}).items():
        made.outputs[name].CopyFrom(info)
    return made


def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """The signature of a model that gives ``outputs`` for ``inputs``, tensors by name.

    Example:
        >>> signature = tf.saved_model.predict_signature_def({"x": x}, {"y": y})
    """
    if not inputs:
        raise ValueError("Prediction inputs cannot be None or empty.")
    if not outputs:
        raise ValueError("Prediction outputs cannot be None or empty.")
    return build_signature_def(
        {name: build_tensor_info(tensor) for name, tensor in inputs.items()},
        {name: build_tensor_info(tensor) for name, tensor in outputs.items()},
        PREDICT_METHOD_NAME,
    )


def _require(what: str, tensor: Any, dtype: Any) -> Any:
    """The ``TensorInfo`` of a tensor that must have a type."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"{what} must be a tensor, not {type(tensor).__name__}")
    if tensor.dtype.base_dtype is not dtype:
        raise ValueError(
            f"{what} tensors must be of type {dtype.name}. Found tensors of type "
            f"{tensor.dtype.name} ({tensor.name})"
        )
    return build_tensor_info(tensor)


def regression_signature_def(examples: Any, predictions: Any) -> Any:
    """The signature of a model that predicts a number for each serialized example."""
    if examples is None:
        raise ValueError("Regression examples cannot be None.")
    if predictions is None:
        raise ValueError("Regression predictions cannot be None.")
    return build_signature_def(
        {REGRESS_INPUTS: _require("Regression input", examples, string)},
        {REGRESS_OUTPUTS: _require("Regression output", predictions, float32)},
        REGRESS_METHOD_NAME,
    )


def classification_signature_def(examples: Any, classes: Any, scores: Any) -> Any:
    """The signature of a model that gives classes, scores or both for serialized examples."""
    if examples is None:
        raise ValueError("Classification examples cannot be None.")
    if classes is None and scores is None:
        raise ValueError("Classification classes and scores cannot both be None.")
    outputs = {}
    if classes is not None:
        outputs[CLASSIFY_OUTPUT_CLASSES] = _require("Classification classes", classes, string)
    if scores is not None:
        outputs[CLASSIFY_OUTPUT_SCORES] = _require("Classification scores", scores, float32)
    inputs = {CLASSIFY_INPUTS: _require("Classification input", examples, string)}
    return build_signature_def(inputs, outputs, CLASSIFY_METHOD_NAME)


def is_valid_signature(signature_def: Any) -> bool:
    """True when a signature is one that a server of TensorFlow models can serve."""
    if signature_def is None:
        return False
    method = signature_def.method_name
    inputs, outputs = signature_def.inputs, signature_def.outputs
    if method == PREDICT_METHOD_NAME:
        return bool(inputs) and bool(outputs)
    if method == REGRESS_METHOD_NAME:
        return _are(inputs, {REGRESS_INPUTS: string}) and _are(outputs, {REGRESS_OUTPUTS: float32})
    if method == CLASSIFY_METHOD_NAME:
        kinds = {CLASSIFY_OUTPUT_CLASSES: string, CLASSIFY_OUTPUT_SCORES: float32}
        wanted = {name: kind for name, kind in kinds.items() if name in outputs}
        given = _are(inputs, {CLASSIFY_INPUTS: string})
        return given and bool(wanted) and _are(outputs, wanted)
    return False


def _are(infos: Any, kinds: Mapping[str, Any]) -> bool:
    if set(infos) != set(kinds):
        return False
    return all(infos[name].dtype == as_dtype(kinds[name]).as_datatype_enum for name in kinds)
