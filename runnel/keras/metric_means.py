"""Metrics that are means over batches of a function of labels and predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import float64
from runnel.keras import accuracy as shares
from runnel.keras import loss_functions as of
from runnel.keras.metric import Mean, MeanMetricWrapper, Metric
from runnel.keras.weighting import matched
from runnel.ops.arithmetic import subtract
from runnel.ops.array_shape import reshape
from runnel.ops.band import diag_part
from runnel.ops.casting import cast
from runnel.ops.comparison import not_equal
from runnel.ops.control import identity
from runnel.ops.elementwise import abs as absolute
from runnel.ops.elementwise import sqrt, square
from runnel.ops.histogram import confusion_matrix
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.zero_safe import div_no_nan


def _class(cls: str, fn: Callable[..., Any], default: str) -> type[MeanMetricWrapper]:
    def __init__(self: Any, name: str = default, dtype: Any = None) -> None:
        MeanMetricWrapper.__init__(self, fn, name, dtype)

    members = {"__init__": __init__, "__module__": __name__, "__doc__": fn.__doc__}
    return type(cls, (MeanMetricWrapper,), members)


Accuracy = _class("Accuracy", shares.accuracy, "accuracy")
CategoricalAccuracy = _class(
    "CategoricalAccuracy", shares.categorical_accuracy, "categorical_accuracy"
)
SparseCategoricalAccuracy = _class(
    "SparseCategoricalAccuracy", shares.sparse_categorical_accuracy, "sparse_categorical_accuracy"
)
MeanSquaredError = _class("MeanSquaredError", of.mean_squared_error, "mean_squared_error")
MeanAbsoluteError = _class("MeanAbsoluteError", of.mean_absolute_error, "mean_absolute_error")
MeanAbsolutePercentageError = _class(
    "MeanAbsolutePercentageError",
    of.mean_absolute_percentage_error,
    "mean_absolute_percentage_error",
)
MeanSquaredLogarithmicError = _class(
    "MeanSquaredLogarithmicError",
    of.mean_squared_logarithmic_error,
    "mean_squared_logarithmic_error",
)
Hinge = _class("Hinge", of.hinge, "hinge")
SquaredHinge = _class("SquaredHinge", of.squared_hinge, "squared_hinge")
CategoricalHinge = _class("CategoricalHinge", of.categorical_hinge, "categorical_hinge")
Poisson = _class("Poisson", of.poisson, "poisson")
LogCoshError = _class("LogCoshError", of.logcosh, "logcosh")
KLDivergence = _class("KLDivergence", of.kullback_leibler_divergence, "kullback_leibler_divergence")


class BinaryAccuracy(MeanMetricWrapper):
    """The share of predictions on the right side of ``threshold``."""

    def __init__(
        self, name: str = "binary_accuracy", dtype: Any = None, threshold: float = 0.5
    ) -> None:
        super().__init__(shares.binary_accuracy, name, dtype, threshold=threshold)


class TopKCategoricalAccuracy(MeanMetricWrapper):
    """How often the one-hot label is among the ``k`` largest predictions."""

    def __init__(
        self, k: int = 5, name: str = "top_k_categorical_accuracy", dtype: Any = None
    ) -> None:
        super().__init__(shares.top_k_categorical_accuracy, name, dtype, k=k)


class SparseTopKCategoricalAccuracy(MeanMetricWrapper):
    """How often the label, the number of a class, is among the ``k`` largest predictions."""

    def __init__(
        self, k: int = 5, name: str = "sparse_top_k_categorical_accuracy", dtype: Any = None
    ) -> None:
        super().__init__(shares.sparse_top_k_categorical_accuracy, name, dtype, k=k)


class BinaryCrossentropy(MeanMetricWrapper):
    """The mean cross entropy of probabilities (or logits), each of two classes."""

    def __init__(
        self,
        name: str = "binary_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0,
    ) -> None:
        arguments = {"from_logits": from_logits, "label_smoothing": label_smoothing}
        super().__init__(of.binary_crossentropy, name, dtype, **arguments)


class CategoricalCrossentropy(MeanMetricWrapper):
    """The mean cross entropy of probabilities (or logits) with one-hot labels."""

    def __init__(
        self,
        name: str = "categorical_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0,
    ) -> None:
        arguments = {"from_logits": from_logits, "label_smoothing": label_smoothing}
        super().__init__(of.categorical_crossentropy, name, dtype, **arguments)


class SparseCategoricalCrossentropy(MeanMetricWrapper):
    """The mean cross entropy of probabilities (or logits) with the numbers of classes."""

    def __init__(
        self,
        name: str = "sparse_categorical_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        axis: int = -1,
    ) -> None:
        arguments = {"from_logits": from_logits, "axis": axis}
        super().__init__(of.sparse_categorical_crossentropy, name, dtype, **arguments)


class CosineSimilarity(MeanMetricWrapper):
    """The mean cosine of the angle between labels and predictions."""

    def __init__(self, name: str = "cosine_similarity", dtype: Any = None, axis: int = -1) -> None:
        super().__init__(of.cosine_similarity, name, dtype, axis=axis)


class MeanRelativeError(Mean):
    """The mean of absolute differences over ``normalizer``."""

    def __init__(self, normalizer: Any, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name=name or "mean_relative_error", dtype=dtype)
        self.normalizer = cast(convert_to_tensor(normalizer), self._dtype)

    def update_state(  # type: ignore[override]
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> Any:
        """Adds a batch of labels and predictions."""
        true, predicted = (cast(convert_to_tensor(x), self._dtype) for x in (y_true, y_pred))
        predicted, true = matched(predicted, true)
        relative = div_no_nan(absolute(subtract(true, predicted)), self.normalizer)
        return self._gather(relative, sample_weight)


class RootMeanSquaredError(Mean):
    """The root of the mean of squared differences."""

    def __init__(self, name: str = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def update_state(  # type: ignore[override]
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> Any:
        """Adds a batch of labels and predictions."""
        true, predicted = (cast(convert_to_tensor(x), self._dtype) for x in (y_true, y_pred))
        predicted, true = matched(predicted, true)
        squares = square(subtract(predicted, true))
        return self._gather(squares, sample_weight)

    def result(self) -> Any:
        """The root so far."""
        return sqrt(div_no_nan(self.total.value(), self.count.value()))


class MeanIoU(Metric):
    """The mean over classes of the intersection over the union of labels and predictions."""

    def __init__(self, num_classes: int, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.num_classes = num_classes
        self.total_cm = self.add_weight(
            "total_confusion_matrix", [num_classes, num_classes], dtype=float64
        )

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Adds a batch of labels and predictions, both numbers of classes."""
        true, predicted = (reshape(cast(x, "int64"), [-1]) for x in (y_true, y_pred))
        weights = None if sample_weight is None else reshape(sample_weight, [-1])
        counted = confusion_matrix(
            true, predicted, self.num_classes, weights=weights, dtype=float64
        )
        return self.total_cm.assign_add(counted)

    def result(self) -> Any:
        """The mean so far, of the classes that were seen."""
        whole = identity(self.total_cm)
        both, across, down = (
            cast(x, self._dtype)
            for x in (diag_part(whole), reduce_sum(whole, axis=0), reduce_sum(whole, axis=1))
        )
        union = across + down - both
        seen = reduce_sum(cast(not_equal(union, 0.0), self._dtype))
        return div_no_nan(reduce_sum(div_no_nan(both, union)), seen)
