"""``EstimatorSpec``: what a ``model_fn`` has built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runnel.estimator.export_output import ExportOutput, PredictOutput
from runnel.estimator.mode_keys import ModeKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.ops.array_shape import reshape
from runnel.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from runnel.train.scaffold import Scaffold
from runnel.train.session_run_hook import SessionRunHook


class EstimatorSpec:
    """The operations of a model, as ``mode`` needs them.

    Training needs ``loss`` and ``train_op``, evaluation ``loss``, prediction ``predictions`` (a
    tensor, or a dictionary of them). ``eval_metric_ops`` maps names to what functions of
    ``tf.metrics`` return. ``export_outputs`` are the signatures of an exported model; by default it
    gives the predictions.

    Example:
        >>> return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op)
    """

    def __init__(
        self,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Mapping[str, Any] | None = None,
        export_outputs: Mapping[str, ExportOutput] | None = None,
        training_chief_hooks: Sequence[SessionRunHook] | None = None,
        training_hooks: Sequence[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        evaluation_hooks: Sequence[SessionRunHook] | None = None,
        prediction_hooks: Sequence[SessionRunHook] | None = None,
    ) -> None:
        self.mode = mode
        self.train_op = _train_op(train_op, mode)
        self.loss = _loss(loss, mode)
        self.predictions = _predictions(predictions, mode)
        self.eval_metric_ops = _metrics(eval_metric_ops or {})
        self.export_outputs = _export_outputs(export_outputs, self.predictions, mode)
        self.training_chief_hooks = checked_hooks(training_chief_hooks)
        self.training_hooks = checked_hooks(training_hooks)
        self.evaluation_hooks = checked_hooks(evaluation_hooks)
        self.prediction_hooks = checked_hooks(prediction_hooks)
        if scaffold is not None and not isinstance(scaffold, Scaffold):
            raise TypeError(f"scaffold must be a tf.train.Scaffold, not {scaffold!r}")
        self.scaffold = scaffold or Scaffold()

    def _replace(self, **changes: Any) -> EstimatorSpec:
        """A copy with some of the values others."""
        return EstimatorSpec(**{**vars(self), **changes})


def _of_this_graph(what: str, value: Any) -> None:
    if value.graph is not get_default_graph():
        raise ValueError(
            f"{what} {value.name} must be from the default graph. Possible causes of this error: "
            "it was made outside of model_fn and input_fn, or in another graph"
        )


def _train_op(value: Any, mode: str) -> Any:
    if value is None:
        if mode == ModeKeys.TRAIN:
            raise ValueError("Missing train_op.")
        return None
    value = getattr(value, "_as_graph_element", lambda: value)()
    if not isinstance(value, Tensor | Operation):
        raise TypeError(f"train_op must be Operation or Tensor, given: {value!r}")
    if mode == ModeKeys.TRAIN:
        _of_this_graph("train_op", value)
    return value


def _loss(value: Any, mode: str) -> Any:
    if value is None:
        if mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            raise ValueError("Missing loss.")
        return None
    value = convert_to_tensor(value)
    if value.shape.num_elements() not in (None, 1):
        raise ValueError(f"Loss must be scalar, given: {value}")
    if mode != ModeKeys.PREDICT:
        _of_this_graph("loss", value)
    return value if value.shape.ndims == 0 else reshape(value, [])


def _predictions(value: Any, mode: str) -> Any:
    if value is None:
        if mode == ModeKeys.PREDICT:
            raise ValueError("Missing predictions.")
        return {}
    for name, tensor in value.items() if isinstance(value, Mapping) else [("", value)]:
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"predictions{name and f'[{name!r}]'} must be Tensor, given: {tensor!r}"
            )
        if mode == ModeKeys.PREDICT:
            _of_this_graph("predictions", tensor)
    return value


def _metrics(metrics: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    if not isinstance(metrics, Mapping):
        raise TypeError(f"eval_metric_ops must be a dict, given: {metrics!r}")
    for name, pair in metrics.items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(
                "Values of eval_metric_ops must be (metric_value, update_op) tuples, given: "
                f"{pair!r} for key: {name}"
            )
    return dict(metrics)


def _export_outputs(
    outputs: Mapping[str, ExportOutput] | None, predictions: Any, mode: str
) -> dict[str, ExportOutput] | None:
    if mode != ModeKeys.PREDICT:
        return dict(outputs) if outputs is not None else None
    if outputs is None:
        return {DEFAULT_SERVING_SIGNATURE_DEF_KEY: PredictOutput(predictions)}
    if not isinstance(outputs, Mapping):
        raise TypeError(f"export_outputs must be a dict, given: {outputs!r}")
    for name, output in outputs.items():
        if not isinstance(output, ExportOutput):
            raise TypeError(
                f"Values in export_outputs must be ExportOutput objects, given: {output!r} for "
                f"{name!r}"
            )
    found = dict(outputs)
    if DEFAULT_SERVING_SIGNATURE_DEF_KEY not in found:
        if len(found) != 1:
            raise ValueError(
                "Multiple export_outputs were provided, but none of them is specified as the "
                f"default: call one of them {DEFAULT_SERVING_SIGNATURE_DEF_KEY!r}"
            )
        [found[DEFAULT_SERVING_SIGNATURE_DEF_KEY]] = outputs.values()
    return found


def checked_hooks(hooks: Sequence[SessionRunHook] | None) -> tuple[SessionRunHook, ...]:
    """``hooks``, all of which must be some."""
    for hook in hooks or ():
        if not isinstance(hook, SessionRunHook):
            raise TypeError(f"All hooks must be SessionRunHook instances, given: {hook!r}")
    return tuple(hooks or ())
