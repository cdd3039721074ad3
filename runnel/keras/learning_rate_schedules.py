"""``tf.keras.optimizers.schedules``: learning rates that depend on the number of updates."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.keras.custom_objects import deserialize_keras_object, serialize_keras_object
from runnel.train import learning_rate_decay


class LearningRateSchedule:
    """A function of the number of updates; subclasses define ``__call__`` and ``get_config``."""

    def __call__(self, step: Any) -> Any:
        raise NotImplementedError("Learning rate schedule must override __call__")

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another of its kind."""
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A schedule with the configuration that :meth:`get_config` returned."""
        return cls(**config)


class ExponentialDecay(LearningRateSchedule):
    """``initial_learning_rate * decay_rate ** (step / decay_steps)``.

    Example:
        >>> rate = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 1000, 0.9)
        >>> model.compile(tf.keras.optimizers.SGD(rate), "mse")
    """

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        decay_rate: Any,
        staircase: bool = False,
        name: str | None = None,
    ) -> None:
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.decay_rate, self.staircase, self.name = decay_rate, staircase, name

    def __call__(self, step: Any) -> Any:
        return learning_rate_decay.exponential_decay(
            self.initial_learning_rate, step, self.decay_steps, self.decay_rate, self.staircase
        )


class InverseTimeDecay(ExponentialDecay):
    """``initial_learning_rate / (1 + decay_rate * step / decay_steps)``."""

    def __call__(self, step: Any) -> Any:
        return learning_rate_decay.inverse_time_decay(
            self.initial_learning_rate, step, self.decay_steps, self.decay_rate, self.staircase
        )


class PiecewiseConstantDecay(LearningRateSchedule):
    """``values[i]`` up to and including the step ``boundaries[i]``, then the next."""

    def __init__(self, boundaries: Any, values: Any, name: str | None = None) -> None:
        if len(boundaries) != len(values) - 1:
            raise ValueError(
                "The length of boundaries should be 1 less than the length of values, but they are "
                f"{len(boundaries)} and {len(values)}"
            )
        self.boundaries, self.values, self.name = boundaries, values, name

    def __call__(self, step: Any) -> Any:
        step = convert_to_tensor(step)
        boundaries = [convert_to_tensor(b, step.dtype.base_dtype) for b in self.boundaries]
        return learning_rate_decay.piecewise_constant(step, boundaries, list(self.values))


class PolynomialDecay(LearningRateSchedule):
    """From ``initial_learning_rate`` down to ``end_learning_rate`` in ``decay_steps`` steps."""

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        end_learning_rate: Any = 0.0001,
        power: Any = 1.0,
        cycle: bool = False,
        name: str | None = None,
    ) -> None:
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.end_learning_rate, self.power = end_learning_rate, power
        self.cycle, self.name = cycle, name

    def __call__(self, step: Any) -> Any:
        return learning_rate_decay.polynomial_decay(
            self.initial_learning_rate,
            step,
            self.decay_steps,
            self.end_learning_rate,
            self.power,
            self.cycle,
        )


__all__ = [
    "ExponentialDecay",
    "InverseTimeDecay",
    "LearningRateSchedule",
    "PiecewiseConstantDecay",
    "PolynomialDecay",
    "deserialize",
    "serialize",
]


def serialize(learning_rate_schedule: Any) -> Any:
    """The configuration of a schedule."""
    return serialize_keras_object(learning_rate_schedule)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The schedule that a configuration describes."""
    table = {name: globals()[name] for name in __all__[:5]}
    return deserialize_keras_object(config, table, custom_objects, "decay")


def __dir__() -> list[str]:
    return __all__
