"""Metrics that count right and wrong predictions at thresholds."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import bool_ as boolean
from runnel.graph.dtypes import float32
from runnel.graph.graph import get_default_graph
from runnel.keras.metric import Metric
from runnel.keras.weighting import fitting, matched
from runnel.ops.arg_extrema import argmin
from runnel.ops.arithmetic import maximum, minimum, multiply, subtract
from runnel.ops.array_shape import reshape
from runnel.ops.assertions import assert_greater_equal, assert_less_equal
from runnel.ops.casting import cast
from runnel.ops.comparison import greater, logical_and, logical_not
from runnel.ops.constants import constant
from runnel.ops.control import group, identity
from runnel.ops.elementwise import abs as absolute
from runnel.ops.elementwise import log
from runnel.ops.fill import ones_like
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.selection import where
from runnel.ops.top_k import top_k as largest
from runnel.ops.zero_safe import div_no_nan

_NEG_INF = -1e10
_EPSILON = 1e-7
_KINDS = {
    "true_positives": (True, True),
    "false_negatives": (True, False),
    "false_positives": (False, True),
    "true_negatives": (False, False),
}
"""For each count: the label, and the side of the threshold that the prediction is on."""


class _Counts(Metric):
    """Counts at ``thresholds``, in variables that have the names of what they count."""

    counted: tuple[str, ...] = tuple(_KINDS)

    def __init__(self, thresholds: list[float], name: str | None, dtype: Any) -> None:
        super().__init__(name=name, dtype=dtype)
        self.thresholds = thresholds
        for kind in self.counted:
            setattr(self, kind, self.add_weight(kind, [len(thresholds)]))

    def _prepared(self, true: Any, predicted: Any) -> tuple[Any, Any]:
        """Labels and predictions, as far as they count."""
        return true, predicted

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Adds a batch of labels (0 and 1) and predictions between 0 and 1."""
        predicted = cast(convert_to_tensor(y_pred), self._dtype)
        true = cast(convert_to_tensor(y_true), self._dtype)
        within = [
            assert_greater_equal(predicted, 0.0, message="predictions must be >= 0"),
            assert_less_equal(predicted, 1.0, message="predictions must be <= 1"),
        ]
        with get_default_graph().control_dependencies([op for op in within if op is not None]):
            predicted, true = matched(identity(predicted), true)
        weights: Any = None
        if sample_weight is not None:
            weights = fitting(cast(convert_to_tensor(sample_weight), float32), predicted)
        true, predicted = self._prepared(true, predicted)
        if weights is not None:
            weights = reshape(multiply(weights, ones_like(predicted)), [1, -1])
        labels = reshape(cast(true, boolean), [1, -1])
        limits = constant(self.thresholds, float32, [len(self.thresholds), 1])
        above = greater(reshape(predicted, [1, -1]), limits)
        updates = []
        for kind in self.counted:
            label, side = _KINDS[kind]
            both = logical_and(
                labels if label else logical_not(labels), above if side else logical_not(above)
            )
            found = cast(both, float32)
            found = found if weights is None else multiply(found, weights)
            variable = getattr(self, kind)
            updates.append(variable.assign_add(reduce_sum(found, axis=1), read_value=False))
        return group(*updates)

    def _value(self, kind: str) -> Any:
        return identity(getattr(self, kind))


def _listed(thresholds: Any, default: float) -> list[float]:
    """Thresholds as a list, each between 0 and 1 (or the one that stands for none)."""
    given = default if thresholds is None else thresholds
    found = [float(t) for t in (given if isinstance(given, list | tuple) else [given])]
    if thresholds is not None and any(not 0 <= t <= 1 for t in found):
        raise ValueError(f"Threshold values must be in [0, 1]. Invalid values: {thresholds}")
    return found


class _OneCount(_Counts):
    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(_listed(thresholds, 0.5), name, dtype)

    def result(self) -> Any:
        """The count so far, at each threshold."""
        found = self._value(self.counted[0])
        return found[0] if len(self.thresholds) == 1 else found


class FalsePositives(_OneCount):
    """The number of labels 0 with a prediction above the threshold."""

    counted = ("false_positives",)


class FalseNegatives(_OneCount):
    """The number of labels 1 with a prediction that is not above the threshold."""

    counted = ("false_negatives",)


class TrueNegatives(_OneCount):
    """The number of labels 0 with a prediction that is not above the threshold."""

    counted = ("true_negatives",)


class TruePositives(_OneCount):
    """The number of labels 1 with a prediction above the threshold."""

    counted = ("true_positives",)


class Precision(_Counts):
    """The share of labels 1 among the predictions above the threshold.

    With ``top_k`` the predictions that count are the ``k`` largest of an example; with
    ``class_id`` only one class counts.

    Example:
        >>> model.compile("adam", "binary_crossentropy", [tf.keras.metrics.Precision()])
    """

    counted: tuple[str, ...] = ("true_positives", "false_positives")

    def __init__(
        self,
        thresholds: Any = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        default = 0.5 if top_k is None else _NEG_INF
        super().__init__(_listed(thresholds, default), name, dtype)
        self.top_k, self.class_id = top_k, class_id

    def _prepared(self, true: Any, predicted: Any) -> tuple[Any, Any]:
        if self.top_k is not None:
            least = largest(predicted, self.top_k, sorted=True)[0][..., -1:]
            outside = greater(least, predicted)
            predicted = where(outside, ones_like(predicted) * _NEG_INF, predicted)
        if self.class_id is not None:
            true, predicted = true[..., self.class_id], predicted[..., self.class_id]
        return true, predicted

    def result(self) -> Any:
        """The share so far, at each threshold."""
        right, wrong = (self._value(kind) for kind in self.counted)
        found = div_no_nan(right, right + wrong)
        return found[0] if len(self.thresholds) == 1 else found


class Recall(Precision):
    """The share of labels 1 that have a prediction above the threshold."""

    counted = ("true_positives", "false_negatives")


def _spread(count: int, margin: float = 0.0) -> list[float]:
    inner = [(i + 1) / (count - 1) for i in range(count - 2)]
    return [0.0 - margin, *inner, 1.0 + margin]


class SensitivityAtSpecificity(_Counts):
    """The share of labels 1 that are found, where the share of labels 0 found is as given."""

    def __init__(
        self,
        specificity: float,
        num_thresholds: int = 200,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        self._check(specificity, num_thresholds)
        super().__init__(self._limits(num_thresholds), name, dtype)
        self.specificity, self.num_thresholds = specificity, num_thresholds

    @staticmethod
    def _check(value: float, num_thresholds: int) -> None:
        if not 0 <= value <= 1:
            raise ValueError(f"The given share must be in the range [0, 1], not {value}")
        if num_thresholds <= 0:
            raise ValueError("`num_thresholds` must be > 0.")

    @staticmethod
    def _limits(count: int) -> list[float]:
        return [0.5] if count == 1 else _spread(count)

    def _shares(self) -> tuple[Any, Any]:
        """Sensitivities and specificities at the thresholds."""
        tp, fn, fp, tn = (self._value(kind) for kind in _KINDS)
        return div_no_nan(tp, tp + fn), div_no_nan(tn, tn + fp)

    def result(self) -> Any:
        """The sensitivity so far."""
        sensitivities, specificities = self._shares()
        return sensitivities[argmin(absolute(subtract(specificities, self.specificity)), 0)]


class SpecificityAtSensitivity(SensitivityAtSpecificity):
    """The share of labels 0 that are found, where the share of labels 1 found is as given."""

    def __init__(
        self,
        sensitivity: float,
        num_thresholds: int = 200,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        self._check(sensitivity, num_thresholds)
        _Counts.__init__(self, self._limits(num_thresholds), name, dtype)
        self.sensitivity, self.num_thresholds = sensitivity, num_thresholds

    def result(self) -> Any:
        """The specificity so far."""
        sensitivities, specificities = self._shares()
        return specificities[argmin(absolute(subtract(sensitivities, self.sensitivity)), 0)]


class AUC(_Counts):
    """The area under the curve of right against wrong positives, or of precision against recall.

    Example:
        >>> model.compile("adam", "binary_crossentropy", [tf.keras.metrics.AUC()])
    """

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        name: str | None = None,
        dtype: Any = None,
        thresholds: Any = None,
    ) -> None:
        if curve not in ("ROC", "PR"):
            raise ValueError(f'Invalid AUC curve value: "{curve}". Valid are "ROC" and "PR".')
        if summation_method not in ("interpolation", "minoring", "majoring"):
            raise ValueError(
                f'Invalid AUC summation method value: "{summation_method}". Valid are '
                '"interpolation", "minoring" and "majoring".'
            )
        if thresholds is not None:
            limits = [-_EPSILON, *sorted(_listed(list(thresholds), 0.5)), 1.0 + _EPSILON]
        elif num_thresholds <= 1:
            raise ValueError("`num_thresholds` must be > 1.")
        else:
            limits = _spread(num_thresholds, _EPSILON)
        super().__init__(limits, name, dtype)
        self.num_thresholds = len(limits)
        self.curve, self.summation_method = curve, summation_method

    def result(self) -> Any:
        """The area so far."""
        tp, fn, fp, tn = (self._value(kind) for kind in _KINDS)
        if self.curve == "PR" and self.summation_method == "interpolation":
            return _interpolated(tp, fn, fp)
        recall = div_no_nan(tp, tp + fn)
        if self.curve == "ROC":
            x, y = div_no_nan(fp, fp + tn), recall
        else:
            x, y = recall, div_no_nan(tp, tp + fp)
        if self.summation_method == "interpolation":
            heights = (y[:-1] + y[1:]) / 2.0
        else:
            choose = minimum if self.summation_method == "minoring" else maximum
            heights = choose(y[:-1], y[1:])
        return reduce_sum(multiply(x[:-1] - x[1:], heights))


def _interpolated(tp: Any, fn: Any, fp: Any) -> Any:
    """The area under precision against recall, whose curve is not straight between points.

    See Davis and Goadrich, "The Relationship Between Precision-Recall and ROC Curves", 2006.
    """
    gained = tp[:-1] - tp[1:]
    positives = tp + fp
    slope = div_no_nan(gained, maximum(positives[:-1] - positives[1:], 0.0))
    intercept = tp[1:] - multiply(slope, positives[1:])
    before, after = positives[:-1], positives[1:]
    ratio = where(
        logical_and(greater(before, 0.0), greater(after, 0.0)),
        div_no_nan(before, maximum(after, 0.0)),
        ones_like(after),
    )
    parts = multiply(slope, gained + multiply(intercept, log(ratio)))
    return reduce_sum(div_no_nan(parts, maximum(tp[1:] + fn[1:], 0.0)))
