"""``tf.keras.metrics.Metric``: a value that is gathered over batches, and the means of values."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.effects import has_effect
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.keras.arguments import arguments_of
from runnel.keras.layer import Layer
from runnel.keras.layer_arguments import described
from runnel.keras.tracking import tracked
from runnel.keras.weighting import matched, weighted
from runnel.ops.array_shape import size as size_of
from runnel.ops.casting import cast
from runnel.ops.control import group, identity
from runnel.ops.fill import ones_like
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.zero_safe import div_no_nan


class Metric(Layer):
    """A value that is gathered in variables: updated by batches, reset between epochs.

    A subclass makes variables with :meth:`add_weight`, and defines :meth:`update_state` and
    :meth:`result`. Calling the metric updates it and returns its result.

    Example:
        >>> class Positives(tf.keras.metrics.Metric):
        ...     def __init__(self, name="positives", **kwargs):
        ...         super().__init__(name=name, **kwargs)
        ...         self.count = self.add_weight("count", initializer="zeros")
        ...     def update_state(self, y_true, y_pred, sample_weight=None):
        ...         self.count.assign_add(tf.reduce_sum(tf.cast(y_pred > 0.5, tf.float32)))
        ...     def result(self):
        ...         return self.count
    """

    _is_metric = True
    stateful = True

    def __init__(self, name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(name=name, dtype=dtype or "float32", **kwargs)
        self.built = True

    def add_weight(  # type: ignore[override]
        self,
        name: str,
        shape: Any = (),
        aggregation: Any = None,
        synchronization: Any = None,
        initializer: Any = "zeros",
        dtype: Any = None,
    ) -> Any:
        """A variable of the metric, in none of the graph's collections."""
        with name_scope(self.name), get_default_graph().control_dependencies(None):
            made = super().add_weight(
                *(name, shape, dtype or self._dtype, initializer),
                trainable=False,
                collections=[],
            )
        return tracked(made)

    def update_state(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a batch: for subclasses to define."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def result(self) -> Any:
        """The value so far: for subclasses to define."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def reset_states(self) -> None:
        """Sets all variables to zeros, in the default session."""
        from runnel.keras.backend_state import batch_set_value

        batch_set_value([(v, np.zeros(v.shape.as_list())) for v in self.variables])

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for method, wrapper in (("update_state", _updating), ("result", _resulting)):
            own = vars(cls).get(method)
            if own is not None:
                setattr(cls, method, wrapper(own))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        update = self.update_state(*args, **kwargs)
        with get_default_graph().control_dependencies([] if update is None else [update]):
            result = self.result()
        self._call_result = result
        result._metric_obj = self
        return result

    @property
    def metrics(self) -> list[Any]:
        """Itself."""
        return [self]

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another of its kind."""
        kind = None if self._dtype is None else self._dtype.name
        return {"name": self.name, "dtype": kind, **described(arguments_of(self))}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A metric with the configuration that :meth:`get_config` returned."""
        return cls(**config)


def _updating(method: Any) -> Any:
    """``update_state`` as a method that returns an operation with all that it does."""

    def update_state(self: Any, *args: Any, **kwargs: Any) -> Any:
        graph = get_default_graph()
        before = len(graph._ops)
        with name_scope(self.name):
            returned = method(self, *args, **kwargs)
            made = [op for op in graph._ops[before:] if op.control_flow_context is None]
            begin = {variable.initializer for variable in self.weights}
            done = [op for op in made if has_effect(op.op_def) and op not in begin]
            given = returned.op if isinstance(returned, Tensor) else returned
            if isinstance(given, Operation) and given not in done:
                done.append(given)
            return group(*done) if done else None

    update_state.__doc__ = method.__doc__
    update_state.__wrapped__ = method  # type: ignore[attr-defined]
    return update_state


def _resulting(method: Any) -> Any:
    """``result`` as a method that returns a tensor of its own."""

    def result(self: Any) -> Any:
        with name_scope(self.name):
            return identity(convert_to_tensor(method(self)))

    result.__doc__ = method.__doc__
    result.__wrapped__ = method  # type: ignore[attr-defined]
    return result


class _Reduce(Metric):
    counts = True
    count: Any

    def __init__(self, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_weight("total")
        self.count = self.add_weight("count") if self.counts else None

    def update_state(self, values: Any, sample_weight: Any = None) -> Any:
        """Adds values, each with its weight."""
        return self._gather(values, sample_weight)

    def _gather(self, values: Any, sample_weight: Any) -> Any:
        values = cast(convert_to_tensor(values), self._dtype)
        if sample_weight is not None:
            sample_weight = convert_to_tensor(sample_weight)
            values, weights = weighted(values, sample_weight)
            number = reduce_sum(weights)
        else:
            number = cast(size_of(values), self._dtype)
        added = self.total.assign_add(reduce_sum(values), read_value=False)
        if self.count is None:
            return added
        return group(added, self.count.assign_add(number, read_value=False))

    def result(self) -> Any:
        """The total, or the mean, so far."""
        if self.count is None:
            return identity(self.total)
        return div_no_nan(self.total.value(), self.count.value())


class Sum(_Reduce):
    """The sum of values over batches."""

    counts = False

    def __init__(self, name: str = "sum", dtype: Any = None) -> None:
        super().__init__(name, dtype)


class Mean(_Reduce):
    """The mean of values over batches, weighted by ``sample_weight``.

    Example:
        >>> mean = tf.keras.metrics.Mean()
        >>> update = mean.update_state([1.0, 3.0])
    """

    def __init__(self, name: str = "mean", dtype: Any = None) -> None:
        super().__init__(name, dtype)


class MeanMetricWrapper(Mean):
    """The mean of a function of labels and predictions."""

    def __init__(self, fn: Any, name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(str(name or getattr(fn, "__name__", "mean")), dtype)
        self._fn, self._fn_kwargs = fn, kwargs

    def update_state(  # type: ignore[override]
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> Any:
        """Adds a batch of labels and predictions."""
        true, predicted = (cast(convert_to_tensor(x), self._dtype) for x in (y_true, y_pred))
        predicted, true = matched(predicted, true)
        found = self._fn(true, predicted, **self._fn_kwargs)
        return self._gather(found, sample_weight)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another of its kind."""
        config = super().get_config()
        if "fn" in config:
            from runnel.keras.custom_objects import serialize_keras_object

            config["fn"] = serialize_keras_object(self._fn)
            config.update(self._fn_kwargs)
        return config


class MeanTensor(Metric):
    """The mean of tensors of one shape, element by element."""

    def __init__(self, name: str = "mean_tensor", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.total: Any = None
        self.count: Any = None

    def update_state(self, values: Any, sample_weight: Any = None) -> Any:
        """Adds a tensor."""
        values = cast(convert_to_tensor(values), self._dtype)
        if self.total is None:
            self.total = self.add_weight("total", values.dims)
            self.count = self.add_weight("count", values.dims)
        elif tuple(self.total.shape.as_list()) != values.dims:
            raise ValueError(
                "MeanTensor input values must always have the same shape. Expected shape (set "
                f"during the first call): {self.total.shape}. Got: {values.shape}"
            )
        number = ones_like(values)
        if sample_weight is not None:
            values, number = weighted(values, convert_to_tensor(sample_weight))
        return group(self.total.assign_add(values), self.count.assign_add(number))

    def result(self) -> Any:
        """The means so far."""
        if self.total is None:
            raise ValueError(
                "MeanTensor does not have any result yet. Please call the MeanTensor instance or "
                "use `.update_state(value)` before retrieving the result."
            )
        return div_no_nan(self.total.value(), self.count.value())
