"""``tf.keras.layers.Layer``: named after scopes of names, with variables of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from runnel.control_flow.structure import flatten, map_leaves
from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape, as_shape
from runnel.keras import constraints, initializers, regularizers
from runnel.keras.arguments import arguments_of, recorded
from runnel.keras.layer_arguments import described, restored
from runnel.keras.node import Node, calling, comes_from_input
from runnel.layers.base import Layer as GraphLayer
from runnel.layers.base import as_input, snake_case
from runnel.layers.dependence import depending_on
from runnel.variables.variable import Variable

_NAMES_KEY = ("__keras_layer_names",)
_NO_CHILDREN = ("input", "output", "_inbound_nodes", "_made_with")
"""Attributes in which layers may stand that are not inside this one."""


class Layer(GraphLayer):
    """Variables and a function of tensors that uses them.

    A subclass makes its variables in ``build(input_shape)`` with :meth:`add_weight`, and computes
    in ``call(inputs)``. Other than a layer of ``tf.layers`` it neither shares variables by scope
    nor puts losses and updates into the graph's collections: they are in :attr:`losses` and
    :attr:`updates`. Called on what comes from a ``tf.keras.Input``, it notes the call, so that a
    ``tf.keras.Model`` can be made of inputs and outputs.

    Example:
        >>> layer = tf.keras.layers.Dense(4)
        >>> layer(tf.ones([2, 3])).op.name
        'dense/BiasAdd'
        >>> [v.name for v in layer.trainable_weights]
        ['dense/kernel:0', 'dense/bias:0']
    """

    supports_masking = False
    input: Any
    output: Any
    _batch_input_shape: tuple[int | None, ...] | None = None
    _initial_weights: Any = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith("runnel."):
            recorded(cls)

    def __init__(
        self, trainable: bool = True, name: str | None = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        shape, batch = kwargs.pop("input_shape", None), kwargs.pop("batch_size", None)
        whole, width = kwargs.pop("batch_input_shape", None), kwargs.pop("input_dim", None)
        kwargs.pop("dynamic", None), kwargs.pop("autocast", None)
        self._initial_weights = kwargs.pop("weights", None)
        if "activity_regularizer" in kwargs:
            kwargs["activity_regularizer"] = regularizers.get(kwargs["activity_regularizer"])
        if width is not None and shape is None:
            shape = (width,)
        if shape is not None and whole is None:
            whole = (batch, *([shape] if isinstance(shape, int) else shape))
        if whole is not None:
            self._batch_input_shape = tuple(whole)
            dtype = dtype or "float32"
        super().__init__(trainable=trainable, name=name, dtype=dtype, **kwargs)

    def _set_name(self, name: Any) -> None:
        self._name = self._base_name = name or unique_name(snake_case(type(self).__name__))

    def __setattr__(self, name: str, value: Any) -> None:
        # A metric that is an attribute is one of the layer's; so are those in a list.
        if not name.startswith("_") and getattr(value, "_is_metric", False):
            self._own_metrics.append(value)
        if name == "trainable":
            for layer in self._sublayers():
                layer.trainable = value
        super().__setattr__(name, value)

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
        collections: Any = None,
        **kwargs: Any,
    ) -> Any:
        """A new variable, named after the layer and the scopes of names around its first call."""
        kind = as_dtype(dtype or self._dtype or dtypes.float32).base_dtype
        if initializer is None:
            initializer = "glorot_uniform" if kind.is_floating else "zeros"
        first = initializers.get(initializer)
        regularizer = regularizers.get(regularizer)
        dims = as_shape(() if shape is None else shape).as_list()
        wanted = trainable is None or trainable
        variable = Variable(
            lambda: first(dims, dtype=kind),
            name=name,
            trainable=wanted,
            dtype=kind,
            constraint=constraints.get(constraint),
            use_resource=True,
            collections=collections,
        )
        # Which of these are trained depends on `trainable` at the time that somebody asks.
        (self._trainable_weights if wanted else self._non_trainable_weights).append(variable)
        self._weight_names.append((name or variable.op.name.rpartition("/")[2], variable))
        if regularizer is not None:
            with name_scope(f"{name}/Regularizer"):
                self._of_variables.append(convert_to_tensor(regularizer(variable)))
        return variable

    add_variable = add_weight  # type: ignore[assignment]

    @property
    def _weight_names(self) -> list[tuple[str, Any]]:
        """The names that the layer gave its variables: those of a checkpoint."""
        return self.__dict__.setdefault("_weight_names_list", [])

    @property
    def _of_variables(self) -> list[Any]:
        return self.__dict__.setdefault("_losses_of_variables", [])

    @property
    def _inbound_nodes(self) -> list[Node]:
        """The calls on symbolic tensors."""
        return self.__dict__.setdefault("_nodes", [])

    inbound_nodes = _inbound_nodes

    # Losses, updates and metrics ----------------------------------------------------------------

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

    @property
    def updates(self) -> list[Any]:
        """Operations to run beside training; none of layers that are not trained."""
        own = self._updates if self.trainable or self.stateful else []
        inner = [update for layer in self._sublayers() for update in layer.updates]
        return list({id(update): update for update in [*own, *inner]}.values())

    @property
    def _own_metrics(self) -> list[Any]:
        return self.__dict__.setdefault("_own_metrics_list", [])

    @property
    def metrics(self) -> list[Any]:
        """The metrics of :meth:`add_metric` and of attributes, also of inner layers."""
        inner = [metric for layer in self._sublayers() for metric in getattr(layer, "metrics", ())]
        found = [*self._own_metrics, *inner]
        return list({id(metric): metric for metric in found}.values())

    def add_metric(
        self, value: Any, aggregation: str | None = None, name: str | None = None
    ) -> None:
        """Adds a value to watch: ``aggregation="mean"`` averages it over an epoch.

        A value that a metric object returned needs no ``aggregation``.
        """
        from runnel.keras.metric import Mean

        made_by = getattr(value, "_metric_obj", None)
        if made_by is not None:
            if made_by not in self._own_metrics:
                self._own_metrics.append(made_by)
            return
        if aggregation != "mean":
            raise ValueError(
                "add_metric takes aggregation='mean' for a tensor, or what a metric object returned"
            )
        if name is None:
            raise ValueError("Please provide a name for your metric like add_metric(x, name='x')")
        metric = Mean(name=name)
        self._own_metrics.append(metric)
        metric(value)

    # Calling ----------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """What makes another layer like this one: the arguments of its constructor by name.

        A program's own layer gets its base's; it adds the arguments of its own constructor.
        """
        config: dict[str, Any] = {"name": self.name, "trainable": self.trainable}
        if self._batch_input_shape is not None:
            config["batch_input_shape"] = list(self._batch_input_shape)
        config["dtype"] = None if self._dtype is None else self._dtype.name
        if type(self).get_config is Layer.get_config and _takes_more(type(self)):
            raise NotImplementedError(
                f"{type(self).__name__} takes arguments of its own: define get_config, which adds "
                "them to what super().get_config() returns"
            )
        config.update(described(arguments_of(self), self))
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A layer with the configuration that :meth:`get_config` returned."""
        return cls(**restored(config))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the outputs for inputs of a shape: found by a call in a graph of its own."""
        from runnel.keras.shape_inference import shape_of_call

        return shape_of_call(self, input_shape)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs: that of the inputs, of layers that support masking."""
        if self.supports_masking:
            return mask
        if any(found is not None for found in flatten(mask)):
            raise TypeError(
                f"Layer {self.name} does not support masking, but was passed an input_mask: {mask}"
            )
        return None

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        with calling() as call, name_scope(self.name):
            given = inputs
            inputs = map_leaves(as_input, inputs)
            self._check_inputs(inputs)
            if not self.built:
                self._build(inputs)
                if self._initial_weights is not None:
                    weights, self._initial_weights = self._initial_weights, None
                    self.set_weights(weights)
            masks = map_leaves(lambda x: getattr(x, "_keras_mask", None), inputs)
            masked = any(mask is not None for mask in flatten(masks))
            if masked and kwargs.get("mask") is None and self._takes("mask"):
                kwargs = {**kwargs, "mask": masks}
            outputs = self.call(inputs, *args, **kwargs)
            if outputs is None:
                raise ValueError(f"The call method of layer {self.name!r} returned None")
            self._regularize_activity(outputs)
            # A tensor passed through unchanged would have two makers.
            passed = {id(x) for x in flatten(inputs)}
            if call.outermost and any(id(y) in passed for y in flatten(outputs)):
                outputs = map_leaves(lambda y: _identity(y) if id(y) in passed else y, outputs)
            if masked or type(self).compute_mask is not Layer.compute_mask:
                self._mask(inputs, masks, outputs)
        self._remember(inputs, outputs)
        if call.outermost and all(isinstance(y, Tensor) for y in flatten(outputs)):
            self._note(given, inputs, args, kwargs, outputs)
        return outputs

    def _takes(self, argument: str) -> bool:
        """Whether ``call`` has this argument by name."""
        kept = self.__dict__.setdefault("_arguments_of_call", {})
        if argument not in kept:
            kept[argument] = argument in inspect.signature(self.call).parameters
        return bool(kept[argument])

    def _mask(self, inputs: Any, masks: Any, outputs: Any) -> None:
        leaves = flatten(outputs)
        if all(hasattr(leaf, "_keras_mask") for leaf in leaves):
            return  # the layers inside have done so
        found = self.compute_mask(inputs, masks)
        of_each = flatten(found) if isinstance(found, list | tuple) else [found] * len(leaves)
        for leaf, mask in zip(leaves, of_each, strict=False):
            if mask is not None:
                leaf._keras_mask = mask

    def _note(self, given: Any, inputs: Any, args: Any, kwargs: Any, outputs: Any) -> None:
        tensors = [x for x in flatten(inputs) if isinstance(x, Tensor)]
        if tensors and any(comes_from_input(x) for x in tensors):
            from runnel.keras.op_layer import with_histories

            names = list(inspect.signature(self.call).parameters)[1:]
            arguments = {**dict(zip(names, args, strict=False)), **kwargs}
            arguments = {k: v for k, v in arguments.items() if k != "mask" and v is not None}
            with_histories(tensors)
            Node(self, inputs, arguments, outputs)

    def _remember(self, inputs: Any, outputs: Any) -> None:
        self.__dict__.setdefault("input", inputs)
        self.__dict__.setdefault("output", outputs)

    @property
    def input_shape(self) -> Any:
        """The shape of the first call's input, as a tuple (a list of them for several)."""
        return _shapes(self.__dict__, "input", self.name)

    @property
    def output_shape(self) -> Any:
        """The shape of the first call's output, as a tuple (a list of them for several)."""
        return _shapes(self.__dict__, "output", self.name)

    def get_input_at(self, node_index: int) -> Any:
        """What the layer was given in one of its calls."""
        return _single(self._inbound_nodes[node_index].inputs)

    def get_output_at(self, node_index: int) -> Any:
        """What the layer returned in one of its calls."""
        return _single(self._inbound_nodes[node_index].outputs)

    def _sublayers(self) -> list[GraphLayer]:
        """The layers in this one's attributes, also in lists, tuples and dicts there."""
        kept = [v for k, v in self.__dict__.items() if k not in _NO_CHILDREN]
        leaves = [leaf for value in kept for leaf in flatten(value)]
        layers = [x for x in leaves if isinstance(x, GraphLayer) and x is not self]
        found = [x for x in layers if not getattr(x, "_is_metric", False)]
        return list({id(layer): layer for layer in found}.values())

    def get_losses_for(self, inputs: Any) -> list[Any]:
        """The losses that depend on ``inputs``; with None, those that depend on no input."""
        return depending_on(self.losses, inputs)

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
        for variable, value in zip(variables, weights, strict=True):
            if tuple(variable.shape.as_list()) != tuple(getattr(value, "shape", ())):
                raise ValueError(
                    f"The variable {variable.name} of layer {self.name!r} has shape "
                    f"{variable.shape}, but the value given has {getattr(value, 'shape', ())}"
                )
        batch_set_value(list(zip(variables, weights, strict=True)))


def _identity(tensor: Any) -> Any:
    from runnel.ops.control import identity

    return identity(tensor)


def _single(structure: Any) -> Any:
    leaves = flatten(structure)
    return leaves[0] if len(leaves) == 1 else structure


def _shapes(attributes: dict[str, Any], what: str, name: str) -> Any:
    if what not in attributes:
        raise AttributeError(f"The layer {name!r} has never been called, so it has no {what}_shape")
    shapes = [tuple(TensorShape(tensor.dims).as_list()) for tensor in flatten(attributes[what])]
    return shapes[0] if len(shapes) == 1 else shapes


def _takes_more(cls: type) -> bool:
    """True for a program's own class whose constructor has arguments of its own."""
    if cls.__module__.startswith("runnel."):
        return False
    own = vars(cls).get("__init__")
    if own is None:
        return _takes_more(cls.__mro__[1])
    parameters = [p for p in inspect.signature(own).parameters.values()][1:]
    named = {p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    return bool(named - {"name", "trainable", "dtype", "input_shape", "batch_input_shape"})


def unique_name(base: str, first: int = 0) -> str:
    """``base`` for the first layer of that name in the graph, then ``base_1`` and so on.

    With ``first=1`` the first one is ``base_1``.
    """
    graph = get_default_graph()
    with graph._lock:
        counts = graph.get_collection_ref(_NAMES_KEY)
        if not counts:
            counts.append({})
        used = counts[0].get(base, first)
        counts[0][base] = used + 1
    return f"{base}_{used}" if used else base


def forget_names() -> None:
    """Counts the layers of the default graph from the start."""
    get_default_graph().get_collection_ref(_NAMES_KEY).clear()
