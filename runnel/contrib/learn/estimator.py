"""``tf.contrib.learn.Estimator``: ``fit``, ``evaluate`` and ``predict``, over ``tf.estimator``."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from runnel.contrib.layers.feature_column_ops import infer_real_valued_columns
from runnel.contrib.layers.feature_columns import RealValuedColumn
from runnel.contrib.learn.array_input import array_input_fn, array_of, check_input
from runnel.contrib.learn.keys import ModeKeys
from runnel.contrib.learn.metric_spec import metric_ops
from runnel.contrib.learn.model_fn_ops import ModelFnOps
from runnel.contrib.learn.monitors import replace_monitors_with_hooks
from runnel.contrib.learn.run_config import RunConfig
from runnel.estimator import estimator as core
from runnel.estimator.estimator_spec import EstimatorSpec
from runnel.estimator.serving_input import ServingInputReceiver
from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.constants import placeholder
from runnel.train.hooks import FeedFnHook

logger = logging.getLogger("runnel")

_INPUT_OPS = ("Iterator", "Dequeue", "ReaderRead")


class NotFittedError(ValueError, AttributeError):
    """A model is used before it is trained."""


class _Core(core.Estimator):
    _predicts_for_ever = False


class BaseEstimator:
    """What the estimators of ``tf.contrib.learn`` have in common."""


class Estimator(BaseEstimator):
    """A model that ``model_fn`` builds, with its checkpoints in ``model_dir``.

    ``model_fn`` takes ``features`` and ``labels``, and, as it likes, ``mode``, ``params``,
    ``config`` and ``model_dir``; it returns :class:`ModelFnOps`, or predictions, the loss and the
    operation that trains. ``feature_engineering_fn`` changes features and labels before that.

    Example:
        >>> classifier = tf.contrib.learn.Estimator(model_fn, "/tmp/model")
        >>> classifier.fit(x, y, steps=100)
        >>> list(classifier.predict(x))
    """

    def __init__(
        self,
        model_fn: Callable[..., Any] | None = None,
        model_dir: Any = None,
        config: Any = None,
        params: Any = None,
        feature_engineering_fn: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        if model_fn is None:
            raise ValueError("model_fn must be provided: a function that builds the model")
        names = set(inspect.signature(model_fn).parameters)
        if params is not None and "params" not in names:
            raise ValueError(
                f"Estimator's model_fn ({model_fn}) does not have a params argument, but params "
                f"({params}) were passed to the Estimator's constructor."
            )
        self._model_fn = model_fn
        self._names = names
        self.params = params
        self._engineer = feature_engineering_fn
        self._label_kinds: Any = None
        # It checks the folder and the configuration, and makes the folder's name.
        made = core.Estimator(_nothing, model_dir, config or RunConfig())
        self._model_dir, self._config = made.model_dir, made.config

    @property
    def model_dir(self) -> str:
        """The folder of its checkpoints."""
        return self._model_dir

    @property
    def config(self) -> Any:
        """How it runs."""
        return self._config

    @property
    def model_fn(self) -> Callable[..., Any]:
        """The function that builds the model."""
        return self._model_fn

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters of the model."""
        return dict(self.params or {})

    def get_variable_names(self) -> list[str]:
        """The names of what the newest checkpoint has."""
        return self._core().get_variable_names()

    def get_variable_value(self, name: str) -> Any:
        """A value of the newest checkpoint."""
        return self._core().get_variable_value(name)

    # Building -------------------------------------------------------------------------------

    def _core(self, metrics: Mapping[Any, Any] | None = None) -> core.Estimator:
        """The estimator of ``tf.estimator`` that does the work."""

        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            return self._built(features, labels, mode, metrics).estimator_spec()

        return _Core(model_fn, self._model_dir, self._config)

    def _built(
        self, features: Any, labels: Any, mode: str, metrics: Mapping[Any, Any] | None = None
    ) -> ModelFnOps:
        if mode == ModeKeys.INFER:
            labels = self._label_placeholders() if labels is None else labels
        else:
            self._label_kinds = _kinds(labels)
        if self._engineer is not None:
            features, labels = self._engineer(features, labels)
        offered = {
            "mode": mode,
            "params": self.params,
            "config": self.config,
            "model_dir": self.model_dir,
        }
        taken = {name: value for name, value in offered.items() if name in self._names}
        found = self._model_fn(features, labels, **taken)
        if not isinstance(found, ModelFnOps):
            found = _from_tuple(found, mode)
        if metrics and mode == ModeKeys.EVAL:
            found.eval_metric_ops.update(metric_ops(metrics, features, labels, found.predictions))
        return found

    def _label_placeholders(self) -> Any:
        """For models that build their loss while they predict: labels that nobody feeds."""
        kinds = self._label_kinds
        if isinstance(kinds, dict):
            return {name: _placeholder(kind) for name, kind in kinds.items()}
        return None if kinds is None else _placeholder(kinds)

    # Using ----------------------------------------------------------------------------------

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Callable[..., Any] | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        monitors: Sequence[Any] | None = None,
        max_steps: int | None = None,
    ) -> Estimator:
        """Trains, from the newest checkpoint on, until the input ends or steps are made.

        ``steps`` counts steps of this call, ``max_steps`` those of the model's whole life. Rows of
        ``x`` and ``y`` come for ever, in a new order each time; without a ``batch_size`` each step
        takes all of them.
        """
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        check_input(x, y, input_fn, None, batch_size)
        if input_fn is None:
            input_fn = array_input_fn(x, y, batch_size, shuffle=True, epochs=None)
        hooks = replace_monitors_with_hooks(monitors, self)
        self._core().train(input_fn, hooks=hooks, steps=steps, max_steps=max_steps)
        return self

    def partial_fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Callable[..., Any] | None = None,
        steps: int = 1,
        batch_size: int | None = None,
        monitors: Sequence[Any] | None = None,
    ) -> Estimator:
        """Trains on some more data: by default one step."""
        return self.fit(x, y, input_fn, steps, batch_size, monitors)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Callable[..., Any] | None = None,
        feed_fn: Callable[[], Any] | None = None,
        batch_size: int | None = None,
        steps: int | None = None,
        metrics: Mapping[Any, Any] | None = None,
        name: str | None = None,
        checkpoint_path: Any = None,
        hooks: Sequence[Any] | None = None,
        log_progress: bool = True,
    ) -> dict[str, Any]:
        """The model's metrics over the input, or ``steps`` batches of it, by name.

        ``metrics`` adds to those of the model: functions of predictions and labels, or
        :class:`MetricSpec`, by name.
        """
        check_input(x, y, input_fn, feed_fn, batch_size)
        if metrics is not None and not isinstance(metrics, Mapping):
            raise ValueError(f"Metrics argument should be None or dict. Got {metrics}.")
        self._require_checkpoint(checkpoint_path)
        if input_fn is None:
            input_fn = array_input_fn(x, y, batch_size, shuffle=False, epochs=1)
        every_hook = replace_monitors_with_hooks(hooks, self)
        if feed_fn is not None:
            every_hook.append(FeedFnHook(feed_fn))
        return self._core(metrics).evaluate(
            input_fn, steps or None, every_hook, checkpoint_path, name
        )

    def predict(
        self,
        x: Any = None,
        input_fn: Callable[..., Any] | None = None,
        batch_size: int | None = None,
        outputs: Sequence[str] | None = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """Yields what the model predicts, row by row; with ``as_iterable=False``, all at once.

        ``outputs`` chooses among predictions. Input that never changes is predicted once.
        """
        check_input(x, None, input_fn, None, batch_size)
        self._require_checkpoint(None)
        ends = True
        if input_fn is None:
            input_fn = array_input_fn(x, None, batch_size, shuffle=False, epochs=1)
        else:
            ends = False
        batches = self._batches(input_fn, outputs)
        if not as_iterable:
            return _joined(batches) if ends else next(batches)
        return batches if iterate_batches else _rows(batches)

    def _batches(self, input_fn: Callable[..., Any], outputs: Any) -> Iterator[Any]:
        changes: list[bool] = []

        def watched() -> Any:
            found = input_fn()
            changes.append(hasattr(found, "make_one_shot_iterator") or _may_change())
            return found

        for batch in self._core().predict(
            watched, predict_keys=outputs, yield_single_examples=False
        ):
            yield batch
            if not changes[-1]:
                return

    def _require_checkpoint(self, path: Any) -> None:
        if path is None and self._core().latest_checkpoint() is None:
            raise NotFittedError(
                f"Couldn't find trained model at {self._model_dir}: call fit first"
            )

    def export_savedmodel(
        self,
        export_dir_base: Any,
        serving_input_fn: Callable[[], Any],
        default_output_alternative_key: str | None = None,
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
    ) -> bytes:
        """Writes the model as a SavedModel into a new folder of ``export_dir_base``; returns it.

        ``serving_input_fn`` returns features, labels and what is fed, as
        ``tf.contrib.learn.build_parsing_serving_input_fn`` and functions of ``tf.estimator.export``
        do.
        """

        def receive() -> ServingInputReceiver:
            found = serving_input_fn()
            if hasattr(found, "receiver_tensors"):
                return ServingInputReceiver(found.features, found.receiver_tensors)
            features, _, fed = found
            return ServingInputReceiver(features, fed)

        self._require_checkpoint(checkpoint_path)
        return self._core().export_saved_model(
            export_dir_base,
            receive,
            assets_extra,
            as_text,
            checkpoint_path,
            strip_default_attrs=False,
        )


class SKCompat(BaseEstimator):
    """An estimator as scikit-learn has them: it takes arrays, and ``predict`` returns arrays.

    Example:
        >>> classifier = tf.contrib.learn.SKCompat(tf.contrib.learn.Estimator(model_fn))
        >>> classifier.fit(x, y, steps=100).predict(x)
    """

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator

    def fit(
        self,
        x: Any,
        y: Any,
        batch_size: int = 128,
        steps: int | None = None,
        max_steps: int | None = None,
        monitors: Sequence[Any] | None = None,
    ) -> SKCompat:
        """Trains on batches of rows."""
        self._estimator.fit(x, y, None, steps, batch_size, monitors, max_steps)
        return self

    def score(
        self,
        x: Any,
        y: Any,
        batch_size: int = 128,
        steps: int | None = None,
        metrics: Mapping[Any, Any] | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """The model's metrics."""
        return self._estimator.evaluate(
            x, y, batch_size=batch_size, steps=steps, metrics=metrics, name=name
        )

    def predict(self, x: Any, batch_size: int = 128, outputs: Any = None) -> Any:
        """What the model predicts for all rows: an array, or a dictionary of them."""
        # Not the method of a classifier, which yields classes alone.
        return Estimator.predict(self._estimator, x, None, batch_size, outputs, as_iterable=False)


def infer_real_valued_columns_from_input_fn(input_fn: Callable[[], Any]) -> list[RealValuedColumn]:
    """A column of numbers for each feature of ``input_fn``."""
    with Graph().as_default():
        features, _ = input_fn()
        return infer_real_valued_columns(features)


def infer_real_valued_columns_from_input(x: Any) -> list[RealValuedColumn]:
    """A column of numbers for each array of ``x``, or for the only one.

    Example:
        >>> columns = tf.contrib.learn.infer_real_valued_columns_from_input(x_train)
    """
    if isinstance(x, Mapping):
        x = {name: array_of(value) for name, value in x.items()}
    else:
        x = array_of(x)
    return infer_real_valued_columns_from_input_fn(array_input_fn(x, None, None, False, 1))


def _nothing(features: Any, labels: Any, mode: str) -> EstimatorSpec:
    raise AssertionError("a model that is never built")


def _from_tuple(found: Any, mode: str) -> ModelFnOps:
    if not isinstance(found, tuple | list) or len(found) != 3:
        raise ValueError("Unrecognized value returned by model_fn, please return ModelFnOps.")
    return ModelFnOps(mode, predictions=found[0], loss=found[1], train_op=found[2])


def _kinds(labels: Any) -> Any:
    """The types and shapes of labels; None where there are none."""
    if isinstance(labels, Mapping):
        return {name: _kinds(value) for name, value in labels.items()}
    if labels is None or isinstance(labels, SparseTensor) or not isinstance(labels, Tensor):
        return None
    return labels.dtype, None if labels.shape.rank is None else labels.shape.as_list()


def _placeholder(kind: Any) -> Any:
    if kind is None:
        return None
    dtype, dims = kind
    return placeholder(dtype, dims and [None, *dims[1:]])


def _may_change() -> bool:
    """Whether the input of the default graph is another in each step."""
    operations = get_default_graph().get_operations()
    return any(part in op.type for op in operations for part in _INPUT_OPS)


def _rows(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        if not isinstance(batch, Mapping):
            yield from batch
            continue
        for number in range(len(next(iter(batch.values())))):
            yield {name: value[number] for name, value in batch.items()}


def _joined(batches: Iterator[Any]) -> Any:
    every = list(batches)
    if not every:
        raise ValueError("There is nothing to predict: the input has no rows")
    if not isinstance(every[0], Mapping):
        return np.concatenate(every, axis=0)
    return {name: np.concatenate([one[name] for one in every], axis=0) for name in every[0]}
