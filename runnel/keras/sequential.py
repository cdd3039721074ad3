"""``tf.keras.Sequential``: layers one after the other."""

from __future__ import annotations

from typing import Any

from runnel.keras.inputs import Input, InputLayer
from runnel.keras.layer import Layer
from runnel.keras.model import Model
from runnel.keras.node import history_of


class Sequential(Model):
    """Layers one after the other.

    If the first one knows the shape of its input (``input_shape``), the layers are built as they
    come; else at the first call, or by ``fit``.

    Example:
        >>> net = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
        >>> net(tf.ones([2, 3])).shape
        TensorShape([Dimension(2), Dimension(1)])
    """

    def __init__(self, layers: Any = None, name: str | None = None) -> None:
        super().__init__(name=name)
        self._stack: list[Any] = []
        given = layers if isinstance(layers, list | tuple) or layers is None else [layers]
        for layer in given or ():
            self.add(layer)

    @property
    def layers(self) -> list[Any]:
        """The layers that were added, without the placeholder in front."""
        return [layer for layer in self._stack if not isinstance(layer, InputLayer)]

    def _sublayers(self) -> list[Any]:
        return list(self.__dict__.get("_stack", ()))

    def add(self, layer: Any) -> None:
        """Puts ``layer`` after the others."""
        history = getattr(layer, "_keras_history", None)
        if history is not None and isinstance(history.layer, InputLayer):
            layer = history.layer
        if not isinstance(layer, Layer):
            raise TypeError(f"The added layer must be an instance of class Layer. Found: {layer}")
        if any(layer is other for other in self._stack):
            raise ValueError(
                f"The layer {layer.name!r} is in the Sequential already; make another one, or use "
                "tf.keras.Model, where layers may be called several times"
            )
        if not self._stack:
            self._begin(layer)
        elif self.outputs:
            self._stack.append(layer)
            self._connect_stack(layer(self.outputs[0]))
        else:
            self._stack.append(layer)
            self.built = False

    def _begin(self, layer: Any) -> None:
        if isinstance(layer, InputLayer):
            self._stack.append(layer)
            self._connect_stack(layer.output)
            return
        first = layer
        while isinstance(first, Model) and first._batch_input_shape is None and first.layers:
            first = first._sublayers()[0]
        dims = first._batch_input_shape
        if dims is None and isinstance(layer, Model) and layer.inputs:
            dims = layer.inputs[0].dims
        if dims is None:
            self._stack.append(layer)
            return
        start = Input(batch_shape=dims, dtype=first.dtype, name=f"{layer.name}_input")
        self._stack += [history_of(start).layer, layer]
        self._connect_stack(layer(start))

    def _connect_stack(self, output: Any) -> None:
        if isinstance(output, list | tuple):
            raise TypeError(
                "All layers in a Sequential model should have a single output tensor. For "
                "multi-output layers, use the functional API."
            )
        start = self._stack[0].output
        self._connect(start, output)
        self._stack_of_layers = self._stack
        self._forget_compiled()

    def pop(self) -> None:
        """Takes the last layer away."""
        if not self.layers:
            raise TypeError("There are no layers in the model.")
        layer = self._stack.pop()
        if not self.layers:
            self._stack.clear()
            self.inputs = self.outputs = None
            self.__dict__.pop("_nodes_in_order", None)
            self.__dict__.pop("_stack_of_layers", None)
            self.built = False
        elif self.outputs:
            node = history_of(self.outputs[0])
            before = layer._inbound_nodes[node.node_index].input_tensors[0]
            self._connect_stack(before)

    def build(self, input_shape: Any = None) -> None:
        """Makes the variables, for inputs of a shape with the batch in front."""
        if not self._is_graph_network and input_shape is not None:
            self.__dict__["_build_input_shape"] = tuple(input_shape)
        super().build(input_shape)

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """Applies the layers, one after the other."""
        if mask is not None and not hasattr(inputs, "_keras_mask"):
            inputs._keras_mask = mask
        for layer in self.layers:
            arguments = {"training": training} if layer._takes("training") else {}
            inputs = layer(inputs, **arguments)
        return inputs

    def predict_proba(self, x: Any, batch_size: int | None = None, verbose: int = 0) -> Any:
        """The probabilities of classes: the same as ``predict``."""
        return self.predict(x, batch_size, verbose)

    def predict_classes(self, x: Any, batch_size: int | None = None, verbose: int = 0) -> Any:
        """The most probable classes: 0 and 1 where the output is a single probability."""
        found = self.predict(x, batch_size=batch_size, verbose=verbose)
        if found.shape[-1] > 1:
            return found.argmax(axis=-1)
        return (found > 0.5).astype("int32")

    def get_config(self) -> dict[str, Any]:
        """The layers and their arguments, in TensorFlow's form."""
        layers = [
            {"class_name": type(layer).__name__, "config": layer.get_config()}
            for layer in self.layers
        ]
        start = self._stack[0] if self._stack else None
        if isinstance(start, InputLayer) and layers:
            dims = list(start._batch_input_shape or ())
            config = layers[0]["config"]
            if "batch_input_shape" not in config:
                layers[0] = {**layers[0], "config": {**config, "batch_input_shape": dims}}
        config = {"name": self.name, "layers": layers}
        if "_build_input_shape" in self.__dict__:
            config["build_input_shape"] = list(self.__dict__["_build_input_shape"])
        return config

    @classmethod
    def from_config(cls, config: Any, custom_objects: Any = None) -> Any:
        """A model like the one whose configuration this is, with new variables."""
        from runnel.keras.custom_objects import known_too
        from runnel.keras.layers import deserialize

        described = config["layers"] if isinstance(config, dict) else config
        model = cls(name=config.get("name") if isinstance(config, dict) else None)
        with known_too(custom_objects):
            for layer in described:
                model.add(deserialize(layer))
        shape = config.get("build_input_shape") if isinstance(config, dict) else None
        if not model.inputs and shape:
            model.build(shape)
        return model
