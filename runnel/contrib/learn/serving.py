"""What an exported model of ``tf.contrib.learn`` takes, and how experiments export."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from runnel.contrib.learn.experiment import ExportStrategy
from runnel.estimator import estimator as core
from runnel.estimator.serving_input import (
    build_parsing_serving_input_receiver_fn,
    build_raw_serving_input_receiver_fn,
)

__all__ = [
    "InputFnOps",
    "build_default_serving_input_fn",
    "build_parsing_serving_input_fn",
    "make_export_strategy",
]


def __dir__() -> list[str]:
    return __all__


class InputFnOps(NamedTuple):
    """The features that a model gets, and the tensors that are fed: ``default_inputs``."""

    features: Any
    labels: Any
    default_inputs: Any


def build_parsing_serving_input_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], InputFnOps]:
    """A function for a model that is fed serialized ``tf.train.Example``.

    Example:
        >>> spec = tf.contrib.layers.create_feature_spec_for_parsing(columns)
        >>> estimator.export_savedmodel(
        ...     "/tmp/models", tf.contrib.learn.build_parsing_serving_input_fn(spec))
    """
    receive = build_parsing_serving_input_receiver_fn(feature_spec, default_batch_size)

    def input_fn() -> InputFnOps:
        found = receive()
        return InputFnOps(found.features, None, {"examples": found.receiver_tensors["examples"]})

    return input_fn


def build_default_serving_input_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], InputFnOps]:
    """A function for a model that is fed its features as they are."""
    receive = build_raw_serving_input_receiver_fn(features, default_batch_size)

    def input_fn() -> InputFnOps:
        found = receive()
        return InputFnOps(found.features, None, found.receiver_tensors)

    return input_fn


def make_export_strategy(
    serving_input_fn: Callable[[], Any],
    default_output_alternative_key: str | None = None,
    assets_extra: Mapping[str, Any] | None = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:
    """How an experiment exports the model as a SavedModel; the folder is called ``Servo``."""

    def export(
        estimator: Any, folder: str, checkpoint_path: Any = None, eval_result: Any = None
    ) -> Any:
        if isinstance(estimator, core.Estimator):
            return estimator.export_savedmodel(
                folder, serving_input_fn, assets_extra, as_text, checkpoint_path
            )
        return estimator.export_savedmodel(
            folder,
            serving_input_fn,
            default_output_alternative_key,
            assets_extra,
            as_text,
            checkpoint_path,
        )

    return ExportStrategy("Servo", export, strip_default_attrs)
