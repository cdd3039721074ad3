"""Names of ``metrics_impl`` and ``confusion_matrix`` that are not public: parts of metrics."""

from __future__ import annotations

from typing import Any

from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.metrics import classes, gathering
from runnel.ops.zero_safe import div_no_nan

__all__ = ["metric_variable", "remove_squeezable_dimensions"]


def metric_variable(shape: Any, dtype: Any, validate_shape: bool = True, name: Any = None) -> Any:
    """A local variable that begins with zeros, among ``tf.GraphKeys.METRIC_VARIABLES``."""
    return gathering.metric_variable(shape, dtype, name, validate_shape)


def remove_squeezable_dimensions(
    labels: Any, predictions: Any, expected_rank_diff: int = 0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Labels and predictions; the one with a rank too many loses a last dimension of 1."""
    with name_scope(name, "remove_squeezable_dimensions", [labels, predictions]):
        predictions, labels = gathering.without_needless_rank(
            predictions, labels, expected_rank_diff
        )
        return labels, predictions


_remove_squeezable_dimensions = gathering.matched
_streaming_confusion_matrix = classes.gathered_confusion_matrix


def _safe_scalar_div(numerator: Any, denominator: Any, name: str) -> Tensor:
    """The quotient; zero where the denominator is zero."""
    return div_no_nan(numerator, denominator, name)
