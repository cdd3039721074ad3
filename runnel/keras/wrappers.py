"""Layers around other layers: applied to each step of a sequence, and in both directions."""

from __future__ import annotations

from typing import Any

from runnel.graph.shapes import TensorShape, as_dims
from runnel.keras.core_layers import add, concatenate, multiply
from runnel.keras.layer import Layer
from runnel.ops.array_shape import reshape, shape
from runnel.ops.reversal import reverse


class Wrapper(Layer):
    """A layer around ``layer``."""

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.layer = layer

    @property
    def activity_regularizer(self) -> Any:
        """That of the layer inside."""
        return getattr(self.layer, "_activity_regularizer", None)


class TimeDistributed(Wrapper):
    """A layer applied to every step of a batch of sequences."""

    supports_masking = True

    def build(self, input_shape: Any) -> None:
        if not self.layer.built:
            # Named after this layer alone: time_distributed/kernel.
            batch, _, *inner = as_dims(input_shape) or (None, None)
            self.layer._dtype = self.layer._dtype or self._dtype
            self.layer.build(TensorShape([batch, *inner]))
            self.layer.built = True
        super().build(input_shape)

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        given = shape(inputs)
        whole = [given[i] if d is None else d for i, d in enumerate(inputs.dims)]
        merged = reshape(inputs, [-1, *whole[2:]])
        merged.set_shape([None, *inputs.dims[2:]])
        arguments: dict[str, Any] = {}
        if self.layer._takes("training") and training is not None:
            arguments["training"] = training
        outputs = self.layer.call(merged, **arguments)
        result = reshape(outputs, [*whole[:2], *_inner(outputs)])
        result.set_shape([*inputs.dims[:2], *outputs.dims[1:]])
        return result


def _inner(outputs: Any) -> list[Any]:
    given = shape(outputs)
    return [given[i] if d is None else d for i, d in enumerate(outputs.dims)][1:]


def _backwards(layer: Any) -> Any:
    """Another layer like ``layer``, which is not built yet, that goes the other way."""
    if layer.built:
        raise ValueError(
            f"The layer {layer.name!r} has been used; give Bidirectional a new one, or both"
        )
    config = layer.get_config()
    config["go_backwards"] = not config["go_backwards"]
    config["name"] = f"backward_{layer.name}"
    return type(layer).from_config(config)


class Bidirectional(Wrapper):
    """A recurrent layer over sequences and another one of its kind over their reverses.

    Example:
        >>> tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(8))(sequences)
    """

    supports_masking = True

    def __init__(
        self,
        layer: Any,
        merge_mode: str | None = "concat",
        weights: Any = None,
        backward_layer: Any = None,
        **kwargs: Any,
    ) -> None:
        if merge_mode not in ("concat", "sum", "mul", "ave", None):
            raise ValueError(f"merge_mode must be concat, sum, mul, ave or None: {merge_mode!r}")
        if layer._batch_input_shape is not None:
            kwargs.setdefault("batch_input_shape", layer._batch_input_shape)
        Layer.__init__(self, weights=weights, **kwargs)
        self.merge_mode = merge_mode
        self.forward_layer, self.backward_layer = layer, backward_layer or _backwards(layer)
        for one in (self.forward_layer, self.backward_layer):
            one.zero_output_for_mask = one.return_sequences
        # The configuration is that of the layer as it was given.
        self.__dict__["_given_layer"] = {
            "class_name": type(layer).__name__,
            "config": layer.get_config(),
        }
        layer._rename(f"forward_{layer.name}")

    @property
    def layer(self) -> Any:
        """The layer that goes forward."""
        return self.forward_layer

    def __call__(self, inputs: Any, initial_state: Any = None, *args: Any, **kwargs: Any) -> Any:
        if initial_state is not None:
            inputs = [inputs, *initial_state]
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        ahead_from = back_from = inputs
        if isinstance(inputs, list | tuple):
            sequence, *states = inputs
            half = len(states) // 2
            ahead_from, back_from = [sequence, *states[:half]], [sequence, *states[half:]]
            mask = mask[0] if isinstance(mask, list | tuple) else mask
        arguments: dict[str, Any] = {"mask": mask} if mask is not None else {}
        if training is not None:
            arguments["training"] = training
        ahead = self.forward_layer(ahead_from, **arguments)
        back = self.backward_layer(back_from, **arguments)
        found: list[Any] = []
        if self.forward_layer.return_state:
            found = [*ahead[1:], *back[1:]]
            ahead, back = ahead[0], back[0]
        if self.forward_layer.return_sequences:
            back = reverse(back, [0 if self.forward_layer.time_major else 1])
        if self.merge_mode == "concat":
            merged = concatenate([ahead, back])
        elif self.merge_mode == "mul":
            merged = multiply([ahead, back])
        elif self.merge_mode is None:
            return [ahead, back, *found]
        else:
            merged = add([ahead, back])
            merged = merged / 2.0 if self.merge_mode == "ave" else merged
        return [merged, *found] if found else merged

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the inputs, where the outputs are sequences."""
        given = mask[0] if isinstance(mask, list | tuple) else mask
        if not self.forward_layer.return_sequences:
            return None
        return [given, given] if self.merge_mode is None else given

    def get_config(self) -> dict[str, Any]:
        """The layer as it was given, and how the directions are merged."""
        config = super().get_config()
        config.pop("backward_layer", None)
        return {**config, "layer": self.__dict__["_given_layer"], "merge_mode": self.merge_mode}
