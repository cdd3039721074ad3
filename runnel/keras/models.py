"""``tf.keras.Sequential`` and ``tf.keras.Model`` as layers of layers."""

from __future__ import annotations

from typing import Any

from runnel.keras.layer import Layer


class Model(Layer):
    """A layer whose subclass keeps layers in attributes and applies them in ``call``.

    It is called on tensors and trained in a session; there is no ``compile`` or ``fit``.

    Example:
        >>> class Two(tf.keras.Model):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.hidden = tf.keras.layers.Dense(8, "relu")
        ...         self.out = tf.keras.layers.Dense(1)
        ...     def call(self, x):
        ...         return self.out(self.hidden(x))
        >>> Two()(tf.ones([2, 3])).op.name
        'two/dense_1/BiasAdd'
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or "inputs" in kwargs or "outputs" in kwargs:
            raise ValueError(
                "A model of given inputs and outputs is not there: runnel has the layers of Keras, "
                "not its training loop; run the outputs in a session, or subclass tf.keras.Model"
            )
        super().__init__(**kwargs)

    @property
    def layers(self) -> list[Any]:
        """The layers in this one's attributes."""
        return self._sublayers()


class Sequential(Model):
    """Layers one after the other.

    Example:
        >>> net = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
        >>> net(tf.ones([2, 3])).shape
        TensorShape([Dimension(2), Dimension(1)])
    """

    def __init__(self, layers: Any = None, name: str | None = None) -> None:
        super().__init__(name=name)
        self._stack: list[Any] = []
        for layer in layers or ():
            self.add(layer)

    def add(self, layer: Any) -> None:
        """Puts ``layer`` after the others."""
        if not callable(layer):
            raise TypeError(f"A Sequential is made of layers, not {layer!r}")
        self._stack.append(layer)

    def pop(self) -> None:
        """Takes the last layer away."""
        self._stack.pop()

    def call(self, inputs: Any, training: Any = None, **kwargs: Any) -> Any:
        from inspect import signature

        for layer in self._stack:
            takes = "training" in signature(layer.call).parameters
            inputs = layer(inputs, training=training) if takes else layer(inputs)
        return inputs


__all__ = ["Model", "Sequential"]


def __dir__() -> list[str]:
    return __all__
