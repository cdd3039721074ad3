"""Keras' optimizers, each one formula over a variable, its slots and a gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.graph.graph import get_default_graph
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.keras.optimizer import Optimizer
from runnel.ops.arithmetic import maximum
from runnel.ops.arithmetic import pow as power
from runnel.ops.assign import SCATTER_ADD
from runnel.ops.comparison import greater
from runnel.ops.elementwise import abs as absolute
from runnel.ops.elementwise import negative, sign, sqrt, square
from runnel.ops.fill import zeros_like
from runnel.ops.gather import gather
from runnel.ops.selection import where
from runnel.train.formula import SlotSpec
from runnel.variables.initializers import Constant, Ones

Typed = Callable[[Any], Tensor]
_EPSILON = 1e-7


def _needed(hyper: Any) -> bool:
    """Whether a momentum is there: it is unless it is the number 0."""
    return not isinstance(hyper, int | float) or hyper > 0


class SGD(Optimizer):
    """Steps against the gradient, with momentum if asked for.

    Example:
        >>> model.compile(tf.keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True), "mse")
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: Any = 0.0,
        nesterov: bool = False,
        name: str = "SGD",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        if isinstance(momentum, int | float) and not 0 <= momentum <= 1:
            raise ValueError("`momentum` must be between [0, 1].")
        self._momentum = _needed(momentum)
        self._set_hyper("momentum", momentum)
        self.nesterov = nesterov

    def _slot_specs(self) -> list[SlotSpec]:
        return [("momentum", self._name, None)] if self._momentum else []

    def _coefficients(self, typed: Typed) -> tuple[Tensor, Tensor]:
        return self._learning_rate(typed), typed(self._get_hyper("momentum"))

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        rate, momentum = coefficients
        if not slots:
            return var - grad * rate, []
        moved = slots[0] * momentum - grad * rate
        step = moved * momentum - grad * rate if self.nesterov else moved
        return var + step, [moved]

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        if self._momentum:
            return super()._apply_sparse_duplicate_indices(grad, var)
        rate, _ = self._coefficients_for(var.dtype.base_dtype)
        return self._scatter(var, SCATTER_ADD, grad.indices, negative(grad.values) * rate)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another optimizer like this one."""
        return {
            **super().get_config(),
            **{
                n: self._serialize_hyperparameter(n) for n in ("learning_rate", "decay", "momentum")
            },
            "nesterov": self.nesterov,
        }


class RMSprop(Optimizer):
    """Divides the gradient by the root of its mean square, with momentum if asked for."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: float = _EPSILON,
        centered: bool = False,
        name: str = "RMSprop",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("rho", rho)
        if isinstance(momentum, int | float) and not 0 <= momentum <= 1:
            raise ValueError("`momentum` must be between [0, 1].")
        self._momentum = _needed(momentum)
        self._set_hyper("momentum", momentum)
        self.epsilon, self.centered = epsilon or _EPSILON, centered

    def _slot_specs(self) -> list[SlotSpec]:
        names = ["rms", *["momentum"] * self._momentum, *["mg"] * self.centered]
        return [(name, self._name, None) for name in names]

    def _coefficients(self, typed: Typed) -> tuple[Tensor, ...]:
        rho, momentum = typed(self._get_hyper("rho")), typed(self._get_hyper("momentum"))
        return self._learning_rate(typed), rho, 1.0 - rho, momentum, typed(self.epsilon)

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        rate, rho, rest, momentum, epsilon = coefficients
        squares = slots[0] * rho + square(grad) * rest
        spread, new = squares, [squares]
        if self.centered:
            mean = slots[-1] * rho + grad * rest
            spread = squares - square(mean)
        if self._momentum:
            moved = slots[1] * momentum + grad * rate / sqrt(spread + epsilon)
            new.append(moved)
        else:
            moved = grad * rate / (sqrt(spread) + epsilon)
        return var - moved, [*new, mean] if self.centered else new

    def _apply_rows(self, grad: IndexedSlices, var: Any) -> Operation:
        if self._momentum:
            return super()._apply_rows(grad, var)
        # Without momentum the averages of all rows decay, also of those left alone.
        rate, rho, rest, _, epsilon = self._coefficients_for(var.dtype.base_dtype)
        slots = self._slots_of(var)
        spread, moved = self._decay_and_move(
            slots[0], rho, square(grad.values) * rest, grad.indices
        )
        done = [moved]
        if self.centered:
            mean, moved = self._decay_and_move(slots[1], rho, grad.values * rest, grad.indices)
            spread, done = spread - square(mean), [*done, moved]
        with get_default_graph().control_dependencies(done):
            step = negative(grad.values * rate / (sqrt(spread) + epsilon))
            return _added_rows(self, grad, var, step)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another optimizer like this one."""
        names = ("learning_rate", "decay", "rho", "momentum")
        return {
            **super().get_config(),
            **{name: self._serialize_hyperparameter(name) for name in names},
            "epsilon": self.epsilon,
            "centered": self.centered,
        }


def _added_rows(optimizer: Optimizer, grad: IndexedSlices, var: Any, step: Tensor) -> Operation:
    """Adds ``step`` to the rows of ``grad``, in which equal rows hold their total already."""
    from runnel.ops.assign import SCATTER_UPDATE

    return optimizer._scatter(var, SCATTER_UPDATE, grad.indices, gather(var, grad.indices) + step)


class _Adaptive(Optimizer):
    """An optimizer with a learning rate, some more hyper-parameters, and an epsilon."""

    _hypers: tuple[str, ...] = ()

    def __init__(
        self, name: str, learning_rate: Any, epsilon: Any, hypers: dict[str, Any], kwargs: Any
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        for hyper, value in hypers.items():
            self._set_hyper(hyper, value)
        self._hypers = tuple(hypers)
        self.epsilon = epsilon or _EPSILON

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another optimizer like this one."""
        names = ("learning_rate", "decay", *self._hypers)
        hypers = {name: self._serialize_hyperparameter(name) for name in names}
        return {**super().get_config(), **hypers, "epsilon": self.epsilon}


class Adagrad(_Adaptive):
    """Divides the gradient by the root of the sum of its squares."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = _EPSILON,
        name: str = "Adagrad",
        **kwargs: Any,
    ) -> None:
        if initial_accumulator_value < 0.0:
            raise ValueError(
                f"initial_accumulator_value must be non-negative: {initial_accumulator_value}"
            )
        super().__init__(name, learning_rate, epsilon, {}, kwargs)
        self._initial_accumulator_value = initial_accumulator_value

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """The optimizer of a configuration, whose accumulator begins with 0 unless it says so."""
        return super().from_config({"initial_accumulator_value": 0.0, **config}, custom_objects)

    def _slot_specs(self) -> list[SlotSpec]:
        return [("accumulator", self._name, Constant(self._initial_accumulator_value))]

    def _coefficients(self, typed: Typed) -> tuple[Tensor, Tensor]:
        return self._learning_rate(typed), typed(self.epsilon)

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        rate, epsilon = coefficients
        total = slots[0] + square(grad)
        return var - grad * rate / (sqrt(total) + epsilon), [total]

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another optimizer like this one."""
        first = self._initial_accumulator_value
        return {**super().get_config(), "initial_accumulator_value": first}


class Adadelta(_Adaptive):
    """Steps as long as recent steps were, over the root of the mean square of the gradient."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: float = _EPSILON,
        name: str = "Adadelta",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, learning_rate, epsilon, {"rho": rho}, kwargs)

    def _slot_specs(self) -> list[SlotSpec]:
        return [("accum_grad", self._name, None), ("accum_var", self._name, None)]

    def _coefficients(self, typed: Typed) -> tuple[Tensor, ...]:
        rho = typed(self._get_hyper("rho"))
        return self._learning_rate(typed), rho, typed(self.epsilon)

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        rate, rho, epsilon = coefficients
        squares = slots[0] * rho + square(grad) * (1 - rho)
        step = sqrt(slots[1] + epsilon) / sqrt(squares + epsilon) * grad
        return var - step * rate, [squares, slots[1] * rho + square(step) * (1 - rho)]


class Adam(_Adaptive):
    """Steps by the mean gradient over the root of the mean square, both corrected for bias.

    Example:
        >>> model.compile(tf.keras.optimizers.Adam(1e-3), "mse")
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = _EPSILON,
        amsgrad: bool = False,
        name: str = "Adam",
        **kwargs: Any,
    ) -> None:
        betas = {"beta_1": beta_1, "beta_2": beta_2}
        super().__init__(name, learning_rate, epsilon, betas, kwargs)
        self.amsgrad = amsgrad

    def _slot_specs(self) -> list[SlotSpec]:
        return [(name, self._name, None) for name in ("m", "v", *["vhat"] * self.amsgrad)]

    def _coefficients(self, typed: Typed) -> tuple[Any, ...]:
        betas = [typed(self._get_hyper(name)) for name in ("beta_1", "beta_2")]
        step = typed(self.iterations + 1)
        first, second = (power(beta, step) for beta in betas)
        rate = self._learning_rate(typed) * (sqrt(1 - second) / (1 - first))
        return rate, betas, [1 - beta for beta in betas], typed(self.epsilon)

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        rate, _, (rest1, rest2), epsilon = coefficients
        mean = slots[0] + (grad - slots[0]) * rest1
        squares = slots[1] + (square(grad) - slots[1]) * rest2
        largest = maximum(slots[2], squares) if self.amsgrad else squares
        new = [mean, squares, *[largest] * self.amsgrad]
        return var - mean * rate / (sqrt(largest) + epsilon), new

    def _apply_rows(self, grad: IndexedSlices, var: Any) -> Operation:
        # The moments of all rows decay, so that sparse and dense gradients agree.
        graph = get_default_graph()
        rate, betas, rests, epsilon = self._coefficients_for(var.dtype.base_dtype)
        slots = self._slots_of(var)
        moments = []
        new_rows = (grad.values, square(grad.values))
        for slot, beta, rest, rows in zip(slots[:2], betas, rests, new_rows, strict=True):
            _, move = self._decay_and_move(slot, beta, rows * rest, grad.indices)
            with graph.control_dependencies([move]):
                moments.append(slot.read_value())
        mean, squares = moments
        if self.amsgrad:
            squares = maximum(slots[2].value(), squares)
            kept = slots[2].assign(squares, read_value=False)
            with graph.control_dependencies([kept]):
                return var.assign_sub(mean * rate / (sqrt(squares) + epsilon), read_value=False)
        return var.assign_sub(mean * rate / (sqrt(squares) + epsilon), read_value=False)

    def set_weights(self, weights: Any) -> None:
        """Sets the weights; those of Keras 2.2's Adam, which has a third slot, fit too."""
        own = len(self.weights)
        if not self.amsgrad and len(weights) == 3 * ((own - 1) // 2) + 1:
            weights = weights[:own]
        super().set_weights(weights)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another optimizer like this one."""
        return {**super().get_config(), "amsgrad": self.amsgrad}


class Adamax(_Adaptive):
    """Adam with the largest recent gradient in place of the mean square."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = _EPSILON,
        name: str = "Adamax",
        **kwargs: Any,
    ) -> None:
        betas = {"beta_1": beta_1, "beta_2": beta_2}
        super().__init__(name, learning_rate, epsilon, betas, kwargs)

    def _slot_specs(self) -> list[SlotSpec]:
        return [("m", self._name, None), ("v", self._name, None)]

    def _coefficients(self, typed: Typed) -> tuple[Tensor, ...]:
        beta1, beta2 = (typed(self._get_hyper(name)) for name in ("beta_1", "beta_2"))
        whole = 1 - power(beta1, typed(self.iterations + 1))
        return self._learning_rate(typed) / whole, beta1, beta2, typed(self.epsilon)

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        rate, beta1, beta2, epsilon = coefficients
        mean = slots[0] + (grad - slots[0]) * (1 - beta1)
        largest = maximum(slots[1] * beta2, absolute(grad))
        return var - rate * (mean / (largest + epsilon)), [mean, largest]


class Nadam(_Adaptive):
    """Adam with Nesterov's momentum, whose strength grows with the steps."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = _EPSILON,
        name: str = "Nadam",
        **kwargs: Any,
    ) -> None:
        from runnel.keras.learning_rate_schedules import LearningRateSchedule

        kwargs["decay"] = kwargs.pop("schedule_decay", kwargs.get("decay", 0.004))
        if isinstance(kwargs.get("lr", learning_rate), LearningRateSchedule):
            raise ValueError(
                "The Nadam optimizer does not support tf.keras.optimizers.LearningRateSchedules "
                "as the learning rate."
            )
        betas = {"beta_1": beta_1, "beta_2": beta_2}
        super().__init__(name, learning_rate, epsilon, betas, kwargs)
        self._m_cache: Any = None

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        if self._m_cache is None:
            kind = var_list[0].dtype.base_dtype
            self._m_cache = self.add_weight("momentum_cache", [], kind, Ones(), False)
            self._weights.append(self._m_cache)
        super()._create_slots(var_list)

    def _slot_specs(self) -> list[SlotSpec]:
        return [("m", self._name, None), ("v", self._name, None)]

    def _prepare_types(self, types: Any) -> None:
        # Read once, before any type's coefficients move it on.
        self._m_cache_read = self._m_cache.read_value()
        super()._prepare_types(types)

    def _coefficients(self, typed: Typed) -> dict[str, Any]:
        beta1, beta2 = (typed(self._get_hyper(name)) for name in ("beta_1", "beta_2"))
        now, after = typed(self.iterations + 1), typed(self.iterations + 2)
        base = typed(0.96)
        momentum, later = (
            beta1 * (1.0 - 0.5 * power(base, self._initial_decay * step)) for step in (now, after)
        )
        schedule = typed(self._m_cache_read) * momentum
        kept = []
        if schedule.dtype.base_dtype is self._m_cache.dtype.base_dtype:
            kept = [self._m_cache.assign(schedule, read_value=False)]
        return {
            "rate": typed(self._get_hyper("learning_rate")),
            "betas": (beta1, beta2),
            "momenta": (momentum, later),
            "schedule": (schedule, schedule * later),
            "second": 1.0 - power(beta2, now),
            "epsilon": typed(self.epsilon),
            "kept": kept,
        }

    def _step(self, grad: Tensor, mean: Tensor, squares: Tensor, known: dict[str, Any]) -> Tensor:
        momentum, later = known["momenta"]
        first, both = known["schedule"]
        moved = (1.0 - momentum) * (grad / (1.0 - first)) + later * (mean / (1.0 - both))
        return known["rate"] * moved / (sqrt(squares / known["second"]) + known["epsilon"])

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        beta1, beta2 = coefficients["betas"]
        mean = slots[0] * beta1 + grad * (1 - beta1)
        squares = slots[1] * beta2 + square(grad) * (1 - beta2)
        return var - self._step(grad, mean, squares, coefficients), [mean, squares]

    def _apply_whole(self, grad: Tensor, var: Any, coefficients: Any) -> Operation:
        with get_default_graph().control_dependencies(coefficients["kept"]):
            return super()._apply_whole(grad, var, coefficients)

    def _apply_rows(self, grad: IndexedSlices, var: Any) -> Operation:
        known = self._coefficients_for(var.dtype.base_dtype)
        rows: list[Tensor] = []
        done = list(known["kept"])
        new_rows = (grad.values, square(grad.values))
        for slot, beta, new in zip(self._slots_of(var), known["betas"], new_rows, strict=True):
            row, moved = self._decay_and_move(slot, beta, new * (1 - beta), grad.indices)
            rows.append(row)
            done.append(moved)
        with get_default_graph().control_dependencies(done):
            step = negative(self._step(grad.values, rows[0], rows[1], known))
            return _added_rows(self, grad, var, step)


class Ftrl(Optimizer):
    """Follows the regularized leader (McMahan et al. 2013)."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        name: str = "Ftrl",
        l2_shrinkage_regularization_strength: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        if learning_rate_power > 0:
            raise ValueError(f"learning_rate_power must be negative or zero: {learning_rate_power}")
        not_negative = {
            "initial_accumulator_value": initial_accumulator_value,
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
            "l2_shrinkage_regularization_strength": l2_shrinkage_regularization_strength,
        }
        for argument, value in not_negative.items():
            if value < 0:
                raise ValueError(f"{argument} must be positive or zero: {value}")
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("learning_rate_power", learning_rate_power)
        self._set_hyper("l1_regularization_strength", l1_regularization_strength)
        self._set_hyper("l2_regularization_strength", l2_regularization_strength)
        self._initial_accumulator_value = initial_accumulator_value
        self._l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self.add_slot(var, "accumulator", Constant(self._initial_accumulator_value))
            self.add_slot(var, "linear")

    def _slot_specs(self) -> list[SlotSpec]:
        return [("accumulator", self._name, None), ("linear", self._name, None)]

    def _coefficients(self, typed: Typed) -> tuple[Tensor, ...]:
        names = ("l1_regularization_strength", "l2_regularization_strength", "learning_rate_power")
        hypers = [typed(self._get_hyper(name)) for name in names]
        shrinkage = typed(self._l2_shrinkage_regularization_strength)
        return self._learning_rate(typed), *hypers, shrinkage

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        rate, l1, l2, exponent, shrinkage = coefficients
        accumulator, linear = slots
        total = accumulator + square(grad)
        root, before = power(total, -exponent), power(accumulator, -exponent)
        linear = linear + grad + 2 * shrinkage * var - (root - before) / rate * var
        found = (l1 * sign(linear) - linear) / (root / rate + 2 * l2)
        return where(greater(absolute(linear), l1), found, zeros_like(found)), [total, linear]

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another optimizer like this one."""
        names = (
            *("learning_rate", "decay", "learning_rate_power"),
            *("l1_regularization_strength", "l2_regularization_strength"),
        )
        return {
            **super().get_config(),
            **{name: self._serialize_hyperparameter(name) for name in names},
            "initial_accumulator_value": self._initial_accumulator_value,
            "l2_shrinkage_regularization_strength": self._l2_shrinkage_regularization_strength,
        }
