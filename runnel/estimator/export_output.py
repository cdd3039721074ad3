"""What an exported model gives: predictions, classes, numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel.graph.dtypes import string
from runnel.graph.operation import Tensor
from runnel.saved_model.signature_def_utils import (
    classification_signature_def,
    predict_signature_def,
    regression_signature_def,
)


class ExportOutput:
    """A signature that an exported model has; the outputs of subclasses differ."""

    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> Any:
        """The ``SignatureDef`` for a model that takes ``receiver_tensors``."""
        raise NotImplementedError


def _examples(receiver_tensors: Mapping[str, Tensor], what: str) -> Tensor:
    if len(receiver_tensors) != 1:
        raise ValueError(
            f"{what} input must be a single string Tensor; got {', '.join(receiver_tensors)}"
        )
    [examples] = receiver_tensors.values()
    if examples.dtype.base_dtype is not string:
        raise ValueError(f"{what} input must be a single string Tensor; got {examples}")
    return examples


class PredictOutput(ExportOutput):
    """Named outputs: a tensor, or a dictionary of them.

    Example:
        >>> tf.estimator.export.PredictOutput({"probabilities": p})
    """

    def __init__(self, outputs: Any) -> None:
        self.outputs = dict(outputs) if isinstance(outputs, Mapping) else {"output": outputs}
        for name, tensor in self.outputs.items():
            if not isinstance(name, str) or not isinstance(tensor, Tensor):
                raise ValueError(
                    f"Prediction outputs are tensors by name, not {name!r}: {tensor!r}"
                )

    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> Any:
        return predict_signature_def(receiver_tensors, self.outputs)


class ClassificationOutput(ExportOutput):
    """Classes, scores, or both, for serialized examples."""

    def __init__(self, scores: Tensor | None = None, classes: Tensor | None = None) -> None:
        if scores is None and classes is None:
            raise ValueError("Cannot create a ClassificationOutput with empty arguments.")
        if scores is not None and not scores.dtype.is_floating:
            raise ValueError(f"Classification scores must be float32; got {scores}")
        if classes is not None and classes.dtype.base_dtype is not string:
            raise ValueError(f"Classification classes must be strings; got {classes}")
        self.scores = scores
        self.classes = classes

    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> Any:
        examples = _examples(receiver_tensors, "Classification")
        return classification_signature_def(examples, self.classes, self.scores)


class RegressionOutput(ExportOutput):
    """A number for each serialized example."""

    def __init__(self, value: Tensor) -> None:
        if not value.dtype.is_floating:
            raise ValueError(f"Regression output value must be a float32 Tensor; got {value}")
        self.value = value

    def as_signature_def(self, receiver_tensors: Mapping[str, Tensor]) -> Any:
        return regression_signature_def(_examples(receiver_tensors, "Regression"), self.value)
