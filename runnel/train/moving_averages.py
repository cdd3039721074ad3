"""Exponential moving averages of variables and tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from runnel.graph import dtypes
from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.operation import Operation
from runnel.ops.arithmetic import minimum
from runnel.ops.arithmetic import pow as power
from runnel.ops.assign import assign, assign_sub
from runnel.ops.casting import cast
from runnel.ops.control import group
from runnel.train.slots import create_slot, create_zeros_slot
from runnel.variables.get_variable import get_variable
from runnel.variables.initialization import (
    global_variables,
    moving_average_variables,
    trainable_variables,
)
from runnel.variables.initializers import Zeros
from runnel.variables.variable import Variable
from runnel.variables.variable_scope import get_variable_scope, variable_scope

_TYPES = (dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64)


def assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """Moves ``variable`` towards ``value``: ``variable -= (1 - decay) * (variable - value)``.

    ``zero_debias`` corrects for a variable that began as zero (Kingma and Ba 2015, section 3).
    """
    with name_scope(name, "AssignMovingAvg") as scope:
        # In the decay's own type first: 1 - 0.9 as a float32 is what TensorFlow means by it.
        weight = cast(convert_to_tensor(1.0 - decay, name="decay"), variable.dtype.base_dtype)
        with get_default_graph().colocate_with(variable.op):
            if zero_debias:
                return _debiased(variable, value, weight)
            return assign_sub(variable, (variable - value) * weight, name=scope)


def _debiased(variable: Any, value: Any, weight: Any) -> Any:
    dtype = variable.dtype.base_dtype
    with variable_scope(variable.op.name):
        biased, count = (
            get_variable(
                _unused(name), shape=shape, dtype=dtype, initializer=Zeros(), trainable=False
            )
            for name, shape in (("biased", variable.get_shape()), ("local_step", []))
        )
    moved = assign_sub(biased, (biased - value) * weight)
    counted = count.assign_add(1)
    correction = 1 - power(1.0 - weight, counted)
    return assign(variable, moved / correction)


def _unused(name: str) -> str:
    """``name``, with a number if the current variable scope has such a variable already."""
    scope = get_variable_scope()
    if scope.reuse:
        return name
    taken = {variable.op.name for variable in global_variables()}
    number, candidate = 0, name
    while f"{scope.name}/{candidate}" in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


class ExponentialMovingAverage:
    """Keeps averages of variables, in variables of their own.

    The averages of a variable begin with its initial value, those of a tensor with zero (which
    ``zero_debias`` corrects for). With ``num_updates``, a count of steps, early averages move
    faster: the decay is at most ``(1 + num_updates) / (10 + num_updates)``.

    Example:
        >>> ema = tf.train.ExponentialMovingAverage(decay=0.999)
        >>> with tf.control_dependencies([train_step]):
        ...     train = ema.apply([w, b])
        >>> averaged_w = ema.average(w)
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[Any, Variable] = {}

    @property
    def name(self) -> str:
        return self._name

    def apply(self, var_list: Sequence[Any] | None = None) -> Operation:
        """An operation that moves the averages of ``var_list`` (default: trainable variables).

        The first call for a variable or tensor makes its average.
        """
        targets = trainable_variables() if var_list is None else list(var_list)
        for target in targets:
            if target.dtype.base_dtype not in _TYPES:
                raise TypeError(
                    f"The variables must be half, float, or double: {target.name} is "
                    f"{target.dtype.base_dtype.name}"
                )
        debiased = set()
        for target in targets:
            if target not in self._averages:
                self._averages[target] = self._make(target)
                if self._zero_debias and not isinstance(target, Variable):
                    debiased.add(target)
        with name_scope(self._name) as scope:
            decay = convert_to_tensor(self._decay, dtypes.float32, name="decay")
            if self._num_updates is not None:
                updates = cast(self._num_updates, dtypes.float32, name="num_updates")
                decay = minimum(decay, (1.0 + updates) / (10.0 + updates))
            moves = [
                assign_moving_average(self._averages[target], target, decay, target in debiased)
                for target in targets
            ]
            return group(*moves, name=scope)

    def _make(self, target: Any) -> Variable:
        graph = get_default_graph()
        with graph.control_dependencies(None):
            if not isinstance(target, Variable):
                return create_zeros_slot(target, self._name)
            average = create_slot(target, target.initialized_value(), self._name)
        graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, target)
        return average

    def average(self, var: Any) -> Variable | None:
        """The variable that holds the average of ``var``, or None."""
        return self._averages.get(var)

    def average_name(self, var: Any) -> str:
        """The name of that variable, whether it exists or not."""
        if var in self._averages:
            return self._averages[var].op.name
        return get_default_graph().unique_name(f"{var.op.name}/{self._name}", mark_as_used=False)

    def variables_to_restore(
        self, moving_avg_variables: Iterable[Any] | None = None
    ) -> dict[str, Any]:
        """Names in a checkpoint to variables: that of the average for those that have one.

        ``moving_avg_variables`` default to the trainable variables and those with averages.
        """
        if moving_avg_variables is None:
            moving_avg_variables = trainable_variables() + moving_average_variables()
        averaged = dict.fromkeys(moving_avg_variables)
        names = {self.average_name(v): v for v in averaged}
        for variable in global_variables():
            if variable not in averaged:
                names.setdefault(variable.op.name, variable)
        return names
