"""``tf.keras.layers.Layer``: named after scopes of names, with variables of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.control_flow.structure import flatten, map_leaves
from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.shapes import as_shape
from runnel.keras import constraints, initializers, regularizers
from runnel.layers.base import Layer as GraphLayer
from runnel.layers.base import as_input, snake_case
from runnel.variables.variable import Variable

_NAMES_KEY = ("__keras_layer_names",)


class Layer(GraphLayer):
    """Variables and a function of tensors that uses them.

    A subclass makes its variables in ``build(input_shape)`` with :meth:`add_weight`, and computes
    in ``call(inputs)``. Other than a layer of ``tf.layers`` it neither shares variables by scope
    nor puts losses and updates into the graph's collections: they are in :attr:`losses` and
    :attr:`updates`.

    Example:
        >>> layer = tf.keras.layers.Dense(4)
        >>> layer(tf.ones([2, 3])).op.name
        'dense/BiasAdd'
        >>> [v.name for v in layer.trainable_weights]
        ['dense/kernel:0', 'dense/bias:0']
    """

    def __init__(
        self, trainable: bool = True, name: str | None = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        # They serve models that Keras itself builds and runs.
        for unused in ("input_shape", "batch_input_shape", "input_dim", "batch_size", "dynamic"):
            kwargs.pop(unused, None)
        super().__init__(trainable=trainable, name=name, dtype=dtype, **kwargs)

    def _set_name(self, name: Any) -> None:
        self._name = self._base_name = name or unique_name(snake_case(type(self).__name__))

    # Variables --------------------------------------------------------------------------------

    def add_weight(  # type: ignore[override]
        self,
        name: str | None = None,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Callable[[Any], Any] | None = None,
        trainable: bool | None = None,
        constraint: Any = None,
        partitioner: Any = None,
        use_resource: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """A new variable, named after the layer and the scopes of names around its first call."""
        kind = as_dtype(dtype or self._dtype or dtypes.float32).base_dtype
        if initializer is None:
            initializer = "glorot_uniform" if kind.is_floating else "zeros"
        first = initializers.get(initializer)
        regularizer = regularizers.get(regularizer)
        dims = as_shape(() if shape is None else shape).as_list()
        wanted = self.trainable and (trainable is None or trainable)
        variable = Variable(
            lambda: first(dims, dtype=kind),
            name=name,
            trainable=wanted,
            dtype=kind,
            constraint=constraints.get(constraint),
            use_resource=True,
        )
        (self._trainable_weights if wanted else self._non_trainable_weights).append(variable)
        if regularizer is not None:
            with name_scope(f"{name}/Regularizer"):
                self._of_variables.append(convert_to_tensor(regularizer(variable)))
        return variable

    add_variable = add_weight  # type: ignore[assignment]

    @property
    def _of_variables(self) -> list[Any]:
        return self.__dict__.setdefault("_losses_of_variables", [])

    @property
    def losses(self) -> list[Any]:
        """What :meth:`add_loss` was given, then the regularizers' values, also of inner layers."""
        own = [*self._losses, *self._of_variables]
        inner = [loss for layer in self._sublayers() for loss in layer.losses]
        return list({id(loss): loss for loss in [*own, *inner]}.values())

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses (a tensor, a function without arguments, or a list) to :attr:`losses`."""
        found = losses if isinstance(losses, list | tuple) else [losses]
        made = [loss() if callable(loss) else loss for loss in found]
        self._losses.extend(convert_to_tensor(loss) for loss in made if loss is not None)

    # Calling ----------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """The name, the type and whether it is trained; subclasses add what they are made with."""
        kind = None if self._dtype is None else self._dtype.name
        return {"name": self.name, "trainable": self.trainable, "dtype": kind}

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        with name_scope(self.name):
            inputs = map_leaves(as_input, inputs)
            self._check_inputs(inputs)
            if not self.built:
                self._build(inputs)
            outputs = self.call(inputs, *args, **kwargs)
            if outputs is None:
                raise ValueError(f"The call method of layer {self.name!r} returned None")
            self._regularize_activity(outputs)
        self._remember(inputs, outputs)
        return outputs

    def _remember(self, inputs: Any, outputs: Any) -> None:
        self.__dict__.setdefault("input", inputs)
        self.__dict__.setdefault("output", outputs)

    def _sublayers(self) -> list[GraphLayer]:
        """The layers in this one's attributes, also in lists, tuples and dicts there."""
        kept = [v for k, v in self.__dict__.items() if k not in ("input", "output")]
        leaves = [leaf for value in kept for leaf in flatten(value)]
        return [leaf for leaf in leaves if isinstance(leaf, GraphLayer)]

    def get_weights(self) -> list[Any]:
        """The values of the variables, in the default session."""
        from runnel.keras.backend import batch_get_value

        return batch_get_value(self.weights)

    def set_weights(self, weights: Any) -> None:
        """Sets the variables to arrays, in the default session."""
        from runnel.keras.backend import batch_set_value

        variables = self.weights
        if len(weights) != len(variables):
            raise ValueError(
                f"The layer {self.name!r} has {len(variables)} variables, but {len(weights)} "
                "values were given"
            )
        batch_set_value(list(zip(variables, weights, strict=True)))


def unique_name(base: str) -> str:
    """``base`` for the first layer of that name in the graph, then ``base_1`` and so on."""
    graph = get_default_graph()
    with graph._lock:
        counts = graph.get_collection_ref(_NAMES_KEY)
        if not counts:
            counts.append({})
        used = counts[0].get(base, 0)
        counts[0][base] = used + 1
    return f"{base}_{used}" if used else base
