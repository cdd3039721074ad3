"""What ``compile`` adds to a model: its loss, its metrics, and the steps that train and test it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.operation import Tensor
from runnel.keras import accuracy, loss_functions, losses, metrics
from runnel.keras.backend_state import floatx, get_session
from runnel.keras.learning_phase import phase_of_graph
from runnel.keras.loss_objects import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    Loss,
    LossFunctionWrapper,
    SparseCategoricalCrossentropy,
)
from runnel.keras.metric import Mean, MeanMetricWrapper, Metric
from runnel.keras.weighting import Reduction, fitting, reduced
from runnel.layers.dependence import depending_on
from runnel.ops.arithmetic import add, add_n, multiply
from runnel.ops.casting import cast
from runnel.ops.constants import constant, placeholder, placeholder_with_default
from runnel.ops.control import group

_ACCURACY = ("accuracy", "acc")
_CROSSENTROPY = ("crossentropy", "ce")


@dataclass(eq=False)
class Endpoint:
    """One output of a model, and what training asks of it."""

    output: Any
    name: str
    loss: Any
    loss_weight: float = 1.0
    weight_mode: str | None = None
    target: Any = None
    feeds_target: bool = True
    weights: Any = None
    mean_loss: Mean | None = None
    metrics: list[Metric] = field(default_factory=list)
    weighted_metrics: list[Metric] = field(default_factory=list)

    @property
    def trains(self) -> bool:
        """Whether the output has a loss."""
        return self.loss is not None

    def is_sparse(self) -> bool:
        """Whether labels are numbers of classes."""
        return (
            isinstance(self.loss, SparseCategoricalCrossentropy)
            or _function(self.loss) is loss_functions.sparse_categorical_crossentropy
        )

    def is_binary(self) -> bool:
        """Whether outputs are each of two classes."""
        return (
            isinstance(self.loss, BinaryCrossentropy)
            or _function(self.loss) is loss_functions.binary_crossentropy
        )

    def is_categorical(self) -> bool:
        """Whether labels are one-hot."""
        return (
            isinstance(self.loss, CategoricalCrossentropy)
            or _function(self.loss) is loss_functions.categorical_crossentropy
        )

    def needs_same_shape(self) -> bool:
        """Whether labels must have the shape of the output."""
        same = loss_functions.mean_squared_error
        return self.is_binary() or self.is_categorical() or _function(self.loss) is same


def _function(loss: Any) -> Any:
    return loss.fn if isinstance(loss, LossFunctionWrapper) else None


def as_loss(given: Any) -> Any:
    """The loss object that ``compile`` makes of a name, a function, a dict or an object."""
    if given is None or isinstance(given, Loss):
        return given
    if isinstance(given, Mapping):
        given = losses.get(dict(given))
    if callable(given) and not hasattr(given, "__name__"):
        return given
    found = losses.get(given)
    if isinstance(found, Loss):
        return found
    return LossFunctionWrapper(found, Reduction.SUM_OVER_BATCH_SIZE, found.__name__)


def of_each_output(given: Any, names: list[str], what: str, default: Any = None) -> list[Any]:
    """What was given for all outputs, one for each: a list, a dict by name, or one for all."""
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ValueError(
                f'Unknown entry in {what}: "{unknown[0]}". The outputs are {", ".join(names)}'
            )
        return [given.get(name, default) for name in names]
    if isinstance(given, list | tuple):
        if len(given) != len(names):
            raise ValueError(
                f"When passing a list as {what}, it should have one entry per model output. The "
                f"model has {len(names)} outputs, but you passed {given!r}"
            )
        return list(given)
    return [given] * len(names)


def metrics_of_each_output(given: Any, names: list[str], what: str) -> list[list[Any]]:
    """The metrics of each output: of a flat list, those that all have."""
    if not given:
        return [[] for _ in names]
    if isinstance(given, Mapping) or any(isinstance(m, list | tuple) for m in given):
        found = of_each_output(given, names, what)
    elif not isinstance(given, list | tuple):
        raise TypeError(
            f"Type of {what} argument not understood. Expected a list or dictionary, found: {given}"
        )
    else:
        # Metric objects gather, so each output needs its own.
        found = [list(given)]
        found += [[_copied(m) for m in given] for _ in names[1:]]
    return [[] if m is None else list(m) if isinstance(m, list | tuple) else [m] for m in found]


def _copied(metric: Any) -> Any:
    return type(metric).from_config(metric.get_config()) if isinstance(metric, Metric) else metric


class Compiled:
    """The training side of a model: made by ``compile``, once its outputs are known."""

    def __init__(
        self,
        model: Any,
        loss: Any,
        metrics: Any,
        loss_weights: Any,
        sample_weight_mode: Any,
        weighted_metrics: Any,
        target_tensors: Any,
    ) -> None:
        self.model = model
        self.trained = list(model.trainable_weights)
        self._updates = list(model.updates)
        names = model.output_names
        if isinstance(loss, Mapping) and not set(loss) <= set(names) and "class_name" in loss:
            loss = as_loss(loss)
        found_losses = [as_loss(one) for one in of_each_output(loss, names, "loss")]
        weights = of_each_output(loss_weights, names, "loss_weights", 1.0)
        modes = of_each_output(sample_weight_mode, names, "sample_weight_mode")
        targets = of_each_output(target_tensors, names, "target_tensors")
        self.endpoints = [
            Endpoint(output, name, one, 1.0 if weight is None else weight, mode, target)
            for output, name, one, weight, mode, target in zip(
                model.outputs, names, found_losses, weights, modes, targets, strict=True
            )
        ]
        self.metric_objects: list[Metric] = []
        plain = metrics_of_each_output(metrics, names, "metrics")
        others = metrics_of_each_output(weighted_metrics, names, "weighted_metrics")
        for endpoint, own, own_weighted in zip(self.endpoints, plain, others, strict=True):
            if endpoint.trains:
                endpoint.metrics = self._metrics(endpoint, own, "")
                endpoint.weighted_metrics = self._metrics(endpoint, own_weighted, "weighted_")
        self._make_targets()
        if len(self.endpoints) > 1:
            for endpoint in self.endpoints:
                if endpoint.trains:
                    endpoint.mean_loss = Mean(name=f"{endpoint.name}_loss")
        with name_scope("metrics"):
            for endpoint in self.endpoints:
                for metric in endpoint.metrics:
                    self._watch(endpoint, metric, None)
        self._assembled_for: Any = None
        self._steps: dict[Any, tuple[Any, Callable[..., Any]]] = {}
        self._train_ops: dict[Any, Any] = {}
        self.assemble([e.weight_mode is not None for e in self.endpoints])

    # Metrics ----------------------------------------------------------------------------------

    def _metrics(self, endpoint: Endpoint, given: list[Any], prefix: str) -> list[Metric]:
        """The metric objects of an output; of two with one name, the later one."""
        chosen = dict(self._named(endpoint, one, prefix) for one in given)
        return [self._metric(endpoint, name, found) for name, found in chosen.items()]

    def _named(self, endpoint: Endpoint, given: Any, prefix: str) -> tuple[str, Any]:
        """The name of a metric, and its function or object."""
        short = given if isinstance(given, str) else None
        found = self._chosen(endpoint, short) if short in _ACCURACY + _CROSSENTROPY else None
        if found is None:
            found = metrics.get(given)
        if short in _ACCURACY:
            name = "acc"
        elif short in _CROSSENTROPY:
            name = "ce"
        elif isinstance(found, Metric):
            name = found.name
        else:
            name = getattr(found, "__name__", None) or type(found).__name__
        return (name if isinstance(found, Metric) else prefix + name), found

    def _metric(self, endpoint: Endpoint, name: str, found: Any) -> Metric:
        """The metric object of an output, under a name that no other has."""
        if len(self.endpoints) > 1:
            name = f"{endpoint.name}_{name}"
        base, number = name, 1
        taken = self.names
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        metric = found if isinstance(found, Metric) else MeanMetricWrapper(found, name)
        metric._name = name
        self.metric_objects.append(metric)
        return metric

    def _chosen(self, endpoint: Endpoint, short: str | None) -> Any:
        """The accuracy, or the cross entropy, that fits the loss and the shape of an output."""
        single = (endpoint.output.dims or (None,))[-1] == 1 or endpoint.is_binary()
        if short in _ACCURACY:
            if single:
                return accuracy.binary_accuracy
            sparse = endpoint.is_sparse()
            return accuracy.sparse_categorical_accuracy if sparse else accuracy.categorical_accuracy
        if single:
            return loss_functions.binary_crossentropy
        if endpoint.is_sparse():
            return loss_functions.sparse_categorical_crossentropy
        return loss_functions.categorical_crossentropy

    @property
    def names(self) -> list[str]:
        """What a step returns: the loss, the losses of several outputs, the metrics."""
        found = ["loss"]
        if len(self.endpoints) > 1:
            found += [f"{e.name}_loss" for e in self.endpoints if e.trains]
        found += [metric.name for metric in self.metric_objects]
        own = {id(metric) for metric in self.metric_objects}
        return found + [
            metric.name for metric in self.model._added_metrics() if id(metric) not in own
        ]

    @property
    def watched(self) -> list[Metric]:
        """The metrics of :attr:`names`, without the loss."""
        means = [e.mean_loss for e in self.endpoints if e.mean_loss is not None]
        found = [*means, *self.metric_objects, *self.model._added_metrics()]
        return [m for m in {id(m): m for m in found}.values() if hasattr(m, "_call_result")]

    def _watch(self, endpoint: Endpoint, metric: Metric, weights: Any) -> None:
        mask = getattr(endpoint.output, "_keras_mask", None)
        with name_scope(metric.name):
            weights = _masked(weights, mask, endpoint.output)
            metric(endpoint.target, endpoint.output, sample_weight=weights)

    # The loss ---------------------------------------------------------------------------------

    def _make_targets(self) -> None:
        for endpoint in self.endpoints:
            if not endpoint.trains:
                endpoint.feeds_target = False
            elif endpoint.target is None:
                rank = len(endpoint.output.dims or ())
                kind = endpoint.output.dtype.base_dtype
                endpoint.target = placeholder(kind, [None] * rank, name=f"{endpoint.name}_target")
            else:
                kind = endpoint.target.op.type
                endpoint.feeds_target = kind in ("Placeholder", "PlaceholderWithDefault")

    def assemble(self, weighted: list[bool]) -> None:
        """Makes the loss, for outputs with and without weights of examples."""
        if self._assembled_for == weighted:
            return
        with name_scope("loss"):
            for endpoint, has_weights in zip(self.endpoints, weighted, strict=True):
                endpoint.weights = None
                if has_weights and endpoint.trains:
                    temporal = endpoint.weight_mode == "temporal"
                    default = constant([[1.0]] if temporal else [1.0], floatx())
                    dims = [None, None] if temporal else [None]
                    endpoint.weights = placeholder_with_default(
                        default, dims, name=f"{endpoint.name}_sample_weights"
                    )
            self.total_loss = self._total()
        with name_scope("metrics"):
            for endpoint in self.endpoints:
                for metric in endpoint.weighted_metrics:
                    self._watch(endpoint, metric, endpoint.weights)
        self._assembled_for = list(weighted)
        self._steps.clear()

    def _total(self) -> Any:
        total: Any = None
        for endpoint in self.endpoints:
            if not endpoint.trains:
                continue
            with name_scope(f"{endpoint.name}_loss"):
                loss = self._loss_of(endpoint)
                if endpoint.mean_loss is not None:
                    endpoint.mean_loss(loss)
                scaled = (
                    loss if endpoint.loss_weight == 1.0 else multiply(loss, endpoint.loss_weight)
                )
                total = scaled if total is None else add(total, scaled)
        added = self.model._losses_of_inputs()
        if total is None and not added:
            raise ValueError("The model cannot be compiled because it has no loss to optimize.")
        if added:
            extra = add_n(
                [cast(loss, (total if total is not None else loss).dtype) for loss in added]
            )
            total = extra if total is None else add(total, extra)
        return total

    def _loss_of(self, endpoint: Endpoint) -> Any:
        mask = getattr(endpoint.output, "_keras_mask", None)
        weights = _masked(endpoint.weights, mask, endpoint.output)
        loss = endpoint.loss
        if not hasattr(loss, "reduction"):
            return loss(endpoint.target, endpoint.output, sample_weight=weights)
        losses_of_examples = loss.call(endpoint.target, endpoint.output)
        reduction = loss.reduction
        if reduction == Reduction.AUTO:
            reduction = Reduction.SUM_OVER_BATCH_SIZE
        found = reduced(losses_of_examples, weights, reduction)
        if found.dims != ():
            raise ValueError(
                f"The loss of output {endpoint.name!r} gives {found.dims} values, but training "
                "needs one: give it another reduction than NONE"
            )
        return found

    # Steps ------------------------------------------------------------------------------------

    @property
    def fed(self) -> list[Endpoint]:
        """The outputs whose targets are fed."""
        return [e for e in self.endpoints if e.feeds_target]

    def step(self, mode: str) -> Callable[..., list[Any]]:
        """The function of inputs, targets and weights that trains on, or tests, one batch."""
        model = self.model
        feeds = [*model._fed_inputs(), *[e.target for e in self.fed]]
        feeds += [e.weights for e in self.fed if e.weights is not None]
        phase = phase_of_graph()
        fetches: list[Any] = [self.total_loss, *[m._call_result for m in self.watched]]
        if mode == "train":
            effects = self.make_train_op()
            phase = phase_of_graph()
            if isinstance(phase, Tensor):
                feeds.append(phase)
        else:
            effects = list(model.state_updates)
        session = get_session()
        key = mode, id(session), len(feeds), len(fetches)
        kept = self._steps.get(key)
        if kept is None or kept[0] is not session:
            known = {phase: mode == "train"} if isinstance(phase, Tensor) else {}
            run = session._callable_where([fetches, effects], feeds, known)
            self._steps[key] = kept = session, _bound(run, mode == "train" and phase in feeds)
        return kept[1]

    def make_train_op(self) -> list[Any]:
        """The operation that trains on a batch, and the optimizer's variables with it."""
        if self.total_loss not in self._train_ops:
            model = self.model
            with name_scope("training"):
                updates = list(model.optimizer.get_updates(self.total_loss, self.trained))
            inputs = model.inputs
            updates += depending_on(self._updates, None) + depending_on(self._updates, inputs)
            # TensorFlow enters the scope again, which numbers that of the next model.
            with name_scope("training"):
                every = list({id(u): u for u in updates}.values())
                self._train_ops[self.total_loss] = [group(*every)]
        found: list[Any] = self._train_ops[self.total_loss]
        return found


def _bound(run: Callable[..., Any], with_phase: bool) -> Callable[..., list[Any]]:
    if with_phase:
        return lambda values: run(*values, True)[0]  # type: ignore[no-any-return]
    return lambda values: run(*values)[0]  # type: ignore[no-any-return]


def _masked(weights: Any, mask: Any, output: Any) -> Any:
    """Weights of examples, 0 where a mask is False."""
    if mask is None:
        return weights
    kept = cast(mask, output.dtype.base_dtype)
    if weights is None:
        return kept
    return multiply(fitting(cast(weights, kept.dtype), kept), kept)


def graph_of(model: Any) -> Any:
    """The graph that a model is in."""
    tensors = model.inputs or ()
    return tensors[0].graph if tensors else get_default_graph()
