"""``tf.keras.optimizers.Optimizer``: gradients in, updates out, hyper-parameters in variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.autodiff.gradients import gradients
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, int64
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.keras.learning_rate_schedules import LearningRateSchedule
from runnel.keras.tracking import tracked_variable
from runnel.ops.casting import cast
from runnel.ops.clipping import clip_by_norm, clip_by_value
from runnel.train.formula import FormulaRule
from runnel.train.row_totals import row_totals
from runnel.variables.initializers import Constant, Zeros
from runnel.variables.variable import Variable

_SETTINGS = ("clipnorm", "clipvalue", "lr", "decay")


class Optimizer(FormulaRule):
    """The base of Keras' optimizers.

    Hyper-parameters are attributes (``optimizer.lr``), and variables once the optimizer has made
    updates: setting the attribute sets the variable. A subclass of a program's own defines
    ``_create_slots``, ``_resource_apply_dense`` and ``get_config``.

    Example:
        >>> step = tf.keras.optimizers.Adam(0.01).get_updates(loss, [w, b])
        >>> sess.run(step)
    """

    _hyper: dict[str, Any]

    def __init__(self, name: str, **kwargs: Any) -> None:
        for given in kwargs:
            if given not in _SETTINGS:
                raise TypeError(
                    f"Unexpected keyword argument passed to optimizer: {given}; there are "
                    f"{', '.join(_SETTINGS)}"
                )
            if kwargs[given] < 0:
                raise ValueError(f"Expected {given} >= 0, received: {kwargs[given]}")
        self._use_locking = True
        self._name = name
        self._hyper = {}
        self._slots: dict[Operation, dict[str, Variable]] = {}
        self._slot_names: list[str] = []
        self._weights: list[Variable] = []
        self._iterations: Variable | None = None
        self._hypers_created = False
        self._coefficients_of = {}
        decay = kwargs.get("decay", 0.0)
        if decay < 0.0:
            raise ValueError(f"decay cannot be less than 0: {decay}")
        self._initial_decay = decay
        for setting in ("clipnorm", "clipvalue"):
            if setting in kwargs:
                setattr(self, setting, kwargs[setting])

    # Hyper-parameters -------------------------------------------------------------------------

    def _set_hyper(self, name: str, value: Any) -> None:
        before = self._hyper.get(name)
        if isinstance(before, Variable) and not isinstance(value, LearningRateSchedule):
            from runnel.keras.backend_state import set_value

            set_value(before, value)
        else:
            self._hyper[name] = value

    def _get_hyper(self, name: str, dtype: Any = None) -> Any:
        if not self._hypers_created:
            self._create_hypers()
        value = self._hyper[name]
        if isinstance(value, LearningRateSchedule):
            return value
        if callable(value) and not isinstance(value, Variable):
            value = value()
        return cast(value, dtype) if dtype is not None else value

    def __getattr__(self, name: str) -> Any:
        hyper = self.__dict__.get("_hyper", {})
        key = "learning_rate" if name == "lr" else name
        if key in hyper:
            return self._get_hyper(key)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        key = "learning_rate" if name == "lr" else name
        if key in self.__dict__.get("_hyper", {}):
            self._set_hyper(key, value)
        else:
            super().__setattr__(name, value)

    def _create_hypers(self) -> None:
        if self._hypers_created:
            return
        for name, value in sorted(self._hyper.items()):
            if not isinstance(value, Tensor | Variable) and not callable(value):
                self._hyper[name] = self.add_weight(name, [], initializer=value, trainable=False)
        self._hypers_created = True

    def _serialize_hyperparameter(self, name: str) -> Any:
        from runnel.keras.backend_state import get_value
        from runnel.keras.custom_objects import serialize_keras_object

        value = self._hyper[name]
        if isinstance(value, LearningRateSchedule):
            return serialize_keras_object(value)
        if isinstance(value, Tensor | Variable):
            return get_value(value)
        return value() if callable(value) else value

    # Variables --------------------------------------------------------------------------------

    def add_weight(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = "zeros",
        trainable: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """A variable of the optimizer's own; ``initializer`` may be the value itself."""
        from runnel.keras import initializers

        named = isinstance(initializer, str) or callable(initializer)
        first = initializers.get(initializer) if named else Constant(initializer)
        return tracked_variable(name, shape, dtype or "float32", first, bool(trainable))

    @property
    def iterations(self) -> Any:
        """The variable that counts the updates."""
        if self._iterations is None:
            self._iterations = self.add_weight("iter", [], dtype=int64, trainable=False)
            self._weights.append(self._iterations)
        return self._iterations

    @iterations.setter
    def iterations(self, variable: Any) -> None:
        if self._iterations is not None:
            raise RuntimeError(
                "Cannot set `iterations` to a new Variable after the Optimizer weights have been "
                "created"
            )
        self._iterations = variable
        self._weights.append(variable)

    @property
    def weights(self) -> list[Any]:
        """The count of updates, then the slots, in the order in which they were made."""
        return self._weights

    def variables(self) -> list[Any]:
        """The same as :attr:`weights`."""
        return self._weights

    def get_weights(self) -> list[Any]:
        """The values of :attr:`weights`."""
        from runnel.keras.backend_state import batch_get_value

        return batch_get_value(self.weights)

    def set_weights(self, weights: Any) -> None:
        """Sets :attr:`weights` to arrays."""
        from runnel.keras.backend_state import batch_set_value

        if len(weights) != len(self.weights):
            raise ValueError(
                f"The optimizer {self._name} has {len(self.weights)} weights, but {len(weights)} "
                "were given"
            )
        batch_set_value(list(zip(self.weights, weights, strict=True)))

    def add_slot(self, var: Any, slot_name: str, initializer: Any = "zeros") -> Any:
        """The variable that the optimizer keeps beside ``var`` under ``slot_name``."""
        if slot_name not in self._slot_names:
            self._slot_names.append(slot_name)
        slots = self._slots.setdefault(var.op, {})
        if slot_name not in slots:
            from runnel.keras import initializers

            first = Zeros() if initializer == "zeros" else initializers.get(initializer)
            name = f"{var.op.name}/{slot_name}"
            with get_default_graph().colocate_with(var.op):
                slot = tracked_variable(name, var.shape, var.dtype.base_dtype, first, False)
            slots[slot_name] = slot
            self._weights.append(slot)
        return slots[slot_name]

    def get_slot(self, var: Any, slot_name: str) -> Any:  # type: ignore[override]
        """The variable kept beside ``var`` under ``slot_name``."""
        return self._slots[var.op][slot_name]

    def get_slot_names(self) -> list[str]:
        """The names of the slots."""
        return self._slot_names

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for slot_name, _, initializer in self._slot_specs():
            for var in var_list:
                self.add_slot(var, slot_name, "zeros" if initializer is None else initializer)

    # Updates ----------------------------------------------------------------------------------

    def get_gradients(self, loss: Any, params: Any) -> list[Any]:
        """The gradients of ``loss``, clipped as the optimizer was told."""
        with name_scope(f"{self._name}/gradients"):
            found = gradients(loss, list(params))
            for grad, param in zip(found, params, strict=True):
                if grad is None:
                    raise ValueError(
                        f"Variable {param.name} has `None` for gradient. Please make sure that all "
                        "of your ops have a gradient defined (i.e. are differentiable). Common ops "
                        "without gradient: K.argmax, K.round, K.eval."
                    )
            if "clipnorm" in self.__dict__:
                found = [clip_by_norm(grad, self.clipnorm) for grad in found]
            if "clipvalue" in self.__dict__:
                found = [clip_by_value(grad, -self.clipvalue, self.clipvalue) for grad in found]
        return found

    def get_updates(self, loss: Any, params: Any) -> list[Any]:
        """Operations that make one step against the gradient of ``loss``."""
        return [
            self.apply_gradients(list(zip(self.get_gradients(loss, params), params, strict=True)))
        ]

    def minimize(
        self, loss: Any, var_list: Any, grad_loss: Any = None, name: str | None = None
    ) -> Any:
        """An operation that makes one step; ``loss`` is a tensor or a function that returns it."""
        tensor = loss() if callable(loss) else loss
        variables = list(var_list() if callable(var_list) else var_list)
        found = gradients(tensor, variables, grad_ys=None if grad_loss is None else [grad_loss])
        return self.apply_gradients(list(zip(found, variables, strict=True)), name)

    def apply_gradients(self, grads_and_vars: Any, name: str | None = None) -> Any:
        """An operation that applies gradients to variables and counts the update."""
        pairs = [(grad, var) for grad, var in grads_and_vars if grad is not None]
        if not pairs:
            names = [var.name for _, var in grads_and_vars]
            raise ValueError(f"No gradients provided for any variable: {names}.")
        variables = [var for _, var in pairs]
        graph = get_default_graph()
        with name_scope(self._name):
            with graph.control_dependencies(None):
                _ = self.iterations
                self._create_hypers()
                self._create_slots(variables)
            self._prepare_types({var.dtype.base_dtype for var in variables})
            updates = []
            with name_scope(name or self._name):
                for grad, var in pairs:
                    with name_scope(f"update_{var.op.name}"):
                        updates.append(self._update(grad, var))
            with graph.control_dependencies(updates):
                return self.iterations.assign_add(1, read_value=False)

    def _update(self, grad: Any, var: Any) -> Any:
        if isinstance(grad, IndexedSlices):
            if var.constraint is not None:
                raise RuntimeError(
                    f"Cannot use a constraint function on a sparse variable: {var.name}"
                )
            return self._resource_apply_sparse_duplicate_indices(grad.values, var, grad.indices)
        update = self._resource_apply_dense(convert_to_tensor(grad), var)
        if var.constraint is None:
            return update
        with get_default_graph().control_dependencies([update]):
            return var.assign(var.constraint(var), read_value=False)

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        return self._apply_rows(row_totals(grad), var)

    def _learning_rate(self, typed: Callable[[Any], Tensor]) -> Tensor:
        """The learning rate of this step, after schedules and decay."""
        rate = self._get_hyper("learning_rate")
        if isinstance(rate, LearningRateSchedule):
            rate = rate(cast(self.iterations, _type_of(typed)))
        rate = typed(rate)
        if self._initial_decay > 0:
            rate = rate / (1.0 + typed(self._get_hyper("decay")) * typed(self.iterations))
        return rate

    # Configurations ---------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another optimizer like this one."""
        config: dict[str, Any] = {"name": self._name}
        for setting in ("clipnorm", "clipvalue"):
            if setting in self.__dict__:
                config[setting] = self.__dict__[setting]
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """The optimizer that a configuration describes."""
        from runnel.keras import learning_rate_schedules

        given = dict(config)
        if "lr" in given:
            given["learning_rate"] = given.pop("lr")
        if isinstance(given.get("learning_rate"), dict):
            described = given["learning_rate"]
            given["learning_rate"] = learning_rate_schedules.deserialize(described, custom_objects)
        return cls(**given)


def _type_of(typed: Callable[[Any], Tensor]) -> DType:
    return typed(0.0).dtype.base_dtype
