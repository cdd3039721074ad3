"""Losses as objects: a function of labels and predictions, and how it is reduced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.keras import loss_functions as of
from runnel.keras.weighting import Reduction, matched, reduced


class Loss:
    """A loss; subclasses define ``call(y_true, y_pred)``, the loss of each example.

    Example:
        >>> class Distance(tf.keras.losses.Loss):
        ...     def call(self, y_true, y_pred):
        ...         return tf.reduce_mean(tf.abs(y_true - y_pred), axis=-1)
    """

    def __init__(self, reduction: str = Reduction.AUTO, name: str | None = None) -> None:
        Reduction.validate(reduction)
        self.reduction, self.name = reduction, name

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """The loss of each example."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        weights = None if sample_weight is None else convert_to_tensor(sample_weight)
        with name_scope(self.name or type(self).__name__):
            losses = self.call(convert_to_tensor(y_true), convert_to_tensor(y_pred))
            return reduced(losses, weights, self._chosen())

    def _chosen(self) -> str:
        return Reduction.SUM_OVER_BATCH_SIZE if self.reduction == Reduction.AUTO else self.reduction

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another of its kind."""
        return {"reduction": self.reduction, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A loss with the configuration that :meth:`get_config` returned."""
        return cls(**config)


class LossFunctionWrapper(Loss):
    """A function of labels and predictions, with its further arguments, as a loss."""

    def __init__(
        self,
        fn: Callable[..., Any],
        reduction: str = Reduction.AUTO,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(reduction, name)
        self.fn, self._arguments = fn, kwargs

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """The loss of each example."""
        if isinstance(y_true, Tensor) and isinstance(y_pred, Tensor):
            y_pred, y_true = matched(y_pred, y_true)
        return self.fn(y_true, y_pred, **self._arguments)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another of its kind."""
        return {**super().get_config(), **self._arguments}


def _class(name: str, fn: Callable[..., Any], default: str) -> type[LossFunctionWrapper]:
    def __init__(self: Any, reduction: str = Reduction.AUTO, name: str = default) -> None:
        LossFunctionWrapper.__init__(self, fn, reduction, name)

    members = {"__init__": __init__, "__module__": __name__, "__doc__": fn.__doc__}
    return type(name, (LossFunctionWrapper,), members)


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
LogCosh = _class("LogCosh", of.logcosh, "logcosh")
KLDivergence = _class("KLDivergence", of.kullback_leibler_divergence, "kullback_leibler_divergence")


class BinaryCrossentropy(LossFunctionWrapper):
    """The cross entropy of probabilities (or logits), each of two classes."""

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0,
        reduction: str = Reduction.AUTO,
        name: str = "binary_crossentropy",
    ) -> None:
        super().__init__(
            *(of.binary_crossentropy, reduction, name),
            from_logits=from_logits,
            label_smoothing=label_smoothing,
        )
        self.from_logits = from_logits


class CategoricalCrossentropy(LossFunctionWrapper):
    """The cross entropy of probabilities (or logits) with labels that are one-hot.

    Example:
        >>> model.compile("adam", tf.keras.losses.CategoricalCrossentropy(from_logits=True))
    """

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0,
        reduction: str = Reduction.AUTO,
        name: str = "categorical_crossentropy",
    ) -> None:
        super().__init__(
            *(of.categorical_crossentropy, reduction, name),
            from_logits=from_logits,
            label_smoothing=label_smoothing,
        )


class SparseCategoricalCrossentropy(LossFunctionWrapper):
    """The cross entropy of probabilities (or logits) with labels that are numbers of classes."""

    def __init__(
        self,
        from_logits: bool = False,
        reduction: str = Reduction.AUTO,
        name: str = "sparse_categorical_crossentropy",
    ) -> None:
        super().__init__(
            of.sparse_categorical_crossentropy, reduction, name, from_logits=from_logits
        )


class Huber(LossFunctionWrapper):
    """Half the square of small differences, and ``delta`` times large ones."""

    def __init__(
        self, delta: float = 1.0, reduction: str = Reduction.AUTO, name: str = "huber_loss"
    ) -> None:
        super().__init__(of.huber_loss, reduction, name, delta=delta)


class CosineSimilarity(LossFunctionWrapper):
    """The cosine of the angle between labels and predictions: 1.15 does not negate it."""

    def __init__(
        self, axis: int = -1, reduction: str = Reduction.AUTO, name: str = "cosine_similarity"
    ) -> None:
        super().__init__(of.cosine_proximity, reduction, name, axis=axis)


__all__ = [
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "CategoricalHinge",
    "CosineSimilarity",
    "Hinge",
    "Huber",
    "KLDivergence",
    "LogCosh",
    "Loss",
    "LossFunctionWrapper",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "Poisson",
    "Reduction",
    "SparseCategoricalCrossentropy",
    "SquaredHinge",
]
