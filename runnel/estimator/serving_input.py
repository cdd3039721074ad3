"""What an exported model takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import string
from runnel.graph.operation import Tensor
from runnel.ops.constants import placeholder
from runnel.ops.parsing.parse_example import parse_example


class ServingInputReceiver(NamedTuple):
    """What a model is served with: the features that it gets, and the tensors that are fed.

    ``receiver_tensors_alternatives`` names other ways to feed it, each a signature of its own.
    """

    features: Any
    receiver_tensors: Any
    receiver_tensors_alternatives: Mapping[str, Any] | None = None


class TensorServingInputReceiver(NamedTuple):
    """Like :class:`ServingInputReceiver`, for a model whose features are one tensor."""

    features: Any
    receiver_tensors: Any
    receiver_tensors_alternatives: Mapping[str, Any] | None = None


def named_tensors(value: Any, single: str) -> dict[str, Tensor]:
    """Tensors by name; a single one is called ``single``."""
    if isinstance(value, Mapping):
        return dict(value)
    return {single: value}


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that makes a placeholder for each of ``features``, fed as it is.

    The placeholders have the types and shapes of ``features``, but ``default_batch_size`` rows (any
    number by default).

    Example:
        >>> receive = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": x})
        >>> estimator.export_saved_model("/tmp/models", receive)
    """

    def receive() -> ServingInputReceiver:
        made = {}
        for name, feature in features.items():
            tensor = feature if isinstance(feature, Tensor) else convert_to_tensor(feature)
            dims = tensor.shape.as_list()
            if not dims:
                raise ValueError(f"The feature {name!r} has no rows: its shape is {tensor.shape}")
            shape = [default_batch_size, *dims[1:]]
            made[name] = placeholder(tensor.dtype.base_dtype, shape, name=tensor.op.name)
        return ServingInputReceiver(made, dict(made))

    return receive


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that makes a placeholder for serialized examples, and parses ``feature_spec``.

    Example:
        >>> spec = {"x": tf.FixedLenFeature([4], tf.float32)}
        >>> receive = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
        >>> estimator.export_saved_model("/tmp/models", receive)
    """

    def receive() -> ServingInputReceiver:
        examples = placeholder(string, [default_batch_size], name="input_example_tensor")
        features = parse_example(examples, dict(feature_spec))
        return ServingInputReceiver(features, {"examples": examples})

    return receive
