"""``tf.layers.Layer``: an object that owns variables and applies them to its inputs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from runnel.control_flow.structure import flatten, map_leaves
from runnel.graph import dtypes
from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.layers.dependence import depending_on
from runnel.layers.input_spec import InputSpec
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.variables.get_variable import get_variable
from runnel.variables.partitioned_variable import PartitionedVariable
from runnel.variables.synchronization import VariableAggregation, VariableSynchronization
from runnel.variables.variable_scope import VariableScope, variable_scope

_NAMES_KEY = ("__layer_names",)


class Layer:
    """Variables and a function of tensors that uses them.

    A subclass makes its variables in ``build(input_shape)`` with :meth:`add_weight`, and computes
    in ``call(inputs)``. A layer that is called again uses the same variables. They are in the
    layer's variable scope, whose name is fixed by the first call: ``dense/kernel`` for the first
    nameless :class:`Dense` of a scope, ``dense_1/kernel`` for the second.

    Example:
        >>> class Scale(tf.layers.Layer):
        ...     def build(self, input_shape):
        ...         self.factor = self.add_weight("factor", [input_shape[-1]])
        ...         super().build(input_shape)
        ...     def call(self, inputs):
        ...         return inputs * self.factor
        >>> Scale()(tf.ones([2, 3])).shape
        TensorShape([Dimension(2), Dimension(3)])
    """

    # Defaults on the class: cells of TensorFlow's time often do not call the constructor.
    _scope: VariableScope | None = None
    _current_scope: VariableScope | None = None
    _reuse: Any = None
    _dtype: DType | None = None
    _activity_regularizer: Any = None
    _use_resource_variables: bool | None = None
    built: bool = False
    trainable: bool = True
    stateful: bool = False
    input_spec: Any = None

    def __init__(
        self, trainable: bool = True, name: Any = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        scope = kwargs.pop("_scope", None)
        self._reuse = kwargs.pop("_reuse", None)
        self._activity_regularizer = kwargs.pop("activity_regularizer", None)
        if kwargs:
            raise TypeError(
                f"{type(self).__name__} got an unexpected keyword argument {next(iter(kwargs))!r}"
            )
        self.trainable = trainable
        self.built = False
        self._dtype = None if dtype is None else as_dtype(dtype).base_dtype
        self._set_name(name)
        if scope:
            with variable_scope(scope) as captured:
                self._scope = captured

    # Lists are made when they are first used, for the same reason.

    @property
    def _trainable_weights(self) -> list[Any]:
        return self.__dict__.setdefault("_trainable_weights_list", [])

    @property
    def _non_trainable_weights(self) -> list[Any]:
        return self.__dict__.setdefault("_non_trainable_weights_list", [])

    @property
    def _losses(self) -> list[Any]:
        return self.__dict__.setdefault("_losses_list", [])

    @property
    def _updates(self) -> list[Any]:
        return self.__dict__.setdefault("_updates_list", [])

    # Names ------------------------------------------------------------------------------------

    def _set_name(self, name: Any) -> None:
        if name and not isinstance(name, VariableScope):
            self._name = self._base_name = name
            return
        snake = snake_case(type(self).__name__)
        self._base_name = name.name if name else snake
        self._name = _unique_layer_name(snake)

    @property
    def name(self) -> str:
        """The layer's name; its variables are named after :attr:`scope_name`."""
        if "_name" not in self.__dict__:
            self._set_name(None)
        return self._name

    @property
    def scope_name(self) -> str:
        """The name of the layer's variable scope, known from the first call on."""
        if self._scope is None:
            raise ValueError(
                f"The layer {self.name!r} has not been used yet; the name of its variable scope "
                "is determined when it is first called"
            )
        return self._scope.name

    def _set_scope(self, scope: Any = None) -> None:
        if self._scope is not None:
            return
        name = self.__dict__.get("_base_name") or snake_case(type(self).__name__)
        if self._reuse:
            opened = variable_scope(name if scope is None else scope)
        else:
            opened = variable_scope(scope, default_name=name)
        with opened as captured:
            self._scope = captured

    # Variables --------------------------------------------------------------------------------

    @property
    def dtype(self) -> DType | None:
        """The type of the layer's variables; that of the first input unless given."""
        return self._dtype

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables that training changes: none while the layer is not ``trainable``.

        Those of layers in the attributes of this one are among them.
        """
        if not self.trainable:
            return []
        return _distinct(self._trainable_weights, *(x.trainable_weights for x in self._sublayers()))

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The variables that training leaves alone."""
        inner = self._sublayers()
        left_alone = [self._non_trainable_weights, *(x.non_trainable_weights for x in inner)]
        if self.trainable:
            return _distinct(*left_alone)
        frozen = [self._trainable_weights, *(layer.trainable_weights for layer in inner)]
        return _distinct(*frozen, *left_alone)

    def _sublayers(self) -> list[Layer]:
        """The layers in this one's attributes, also in lists, tuples and dicts there."""
        leaves = [leaf for value in self.__dict__.values() for leaf in flatten(value)]
        return [leaf for leaf in leaves if isinstance(leaf, Layer)]

    @property
    def weights(self) -> list[Any]:
        """All variables, the trainable ones first."""
        return self.trainable_weights + self.non_trainable_weights

    @property
    def trainable_variables(self) -> list[Any]:
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Any]:
        return self.non_trainable_weights

    @property
    def variables(self) -> list[Any]:
        return self.weights

    def add_weight(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Callable[[Any], Any] | None = None,
        trainable: bool | None = None,
        constraint: Any = None,
        use_resource: bool | None = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: Any = VariableAggregation.NONE,
        partitioner: Any = None,
    ) -> Any:
        """The variable ``name`` of the layer's scope, made if it is new (``tf.get_variable``)."""
        if synchronization is VariableSynchronization.ON_READ:
            if trainable:
                raise ValueError(
                    f"Variable {name}: a trainable variable cannot be synchronized ON_READ; pass "
                    "trainable=False"
                )
            trainable = False
        wanted = self.trainable and (trainable is None or trainable)
        graph = get_default_graph()
        existing = set(graph.get_collection(GraphKeys.GLOBAL_VARIABLES))
        self._set_scope()
        reuse = self.built or self._reuse
        with variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as scope:
            self._current_scope = scope
            with name_scope(scope.original_name_scope):
                variable = get_variable(
                    name,
                    shape=shape,
                    dtype=self._dtype or dtypes.float32 if dtype is None else dtype,
                    initializer=initializer,
                    trainable=wanted,
                    constraint=constraint,
                    partitioner=partitioner,
                    use_resource=use_resource or self._use_resource_variables or scope.use_resource,
                    synchronization=synchronization,
                    aggregation=aggregation,
                )
                parts = _parts(variable)
                if regularizer is not None and not any(part in existing for part in parts):
                    with name_scope(f"{name}/Regularizer"):
                        self.add_loss(regularizer(variable))
        # A custom getter may have made it untrainable.
        if wanted and variable_is_trainable(variable):
            self._trainable_weights.extend(parts)
        else:
            self._non_trainable_weights.extend(parts)
        return variable

    add_variable = add_weight

    # Losses and updates -----------------------------------------------------------------------

    @property
    def losses(self) -> list[Any]:
        """What the regularizers of this layer, and :meth:`add_loss`, add to the objective."""
        return _distinct(self._losses, *(layer.losses for layer in self._sublayers()))

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses (a tensor or a list) that are also in ``tf.losses``' collection."""
        found = losses if isinstance(losses, list | tuple) else [losses]
        made = [loss() if callable(loss) else loss for loss in found]
        kept = [convert_to_tensor(loss) for loss in made if loss is not None]
        self._losses.extend(kept)
        _add_new(GraphKeys.REGULARIZATION_LOSSES, kept)

    def get_losses_for(self, inputs: Any) -> list[Any]:
        """The losses that depend on ``inputs``; with None, those that depend on no input."""
        return depending_on(self.losses, inputs)

    @property
    def updates(self) -> list[Any]:
        """Operations that must run beside training, such as those of moving averages."""
        return _distinct(self._updates, *(layer.updates for layer in self._sublayers()))

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Adds operations (one or a list) to run beside training."""
        self._updates.extend(updates if isinstance(updates, list | tuple) else [updates])

    def get_updates_for(self, inputs: Any) -> list[Any]:
        """The updates that depend on ``inputs``; with None, those that depend on no input."""
        return depending_on(self.updates, inputs)

    # Calling ----------------------------------------------------------------------------------

    def build(self, input_shape: Any) -> None:
        """Makes the variables; called once, with the shape(s) of the first inputs."""
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """What the layer computes: for subclasses to define."""
        return inputs

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The shape of the output for an input of ``input_shape``."""
        raise NotImplementedError(f"{type(self).__name__} does not tell its output's shape")

    def count_params(self) -> int:
        """The number of elements of all variables."""
        if not self.built:
            raise ValueError(f"The layer {self.name!r} is not built yet: call it first")
        return sum(weight.shape.num_elements() or 0 for weight in self.weights)

    def apply(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The same as calling the layer."""
        return self(inputs, *args, **kwargs)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        self._set_scope(kwargs.pop("scope", None))
        reuse = True if self.built else self._reuse
        with variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as scope:
            self._current_scope = scope
            if "scope" in inspect.signature(self.call).parameters:
                kwargs["scope"] = scope
            with name_scope(scope.original_name_scope):
                inputs = map_leaves(as_input, inputs)
                self._check_inputs(inputs)
                if not self.built:
                    self._build(inputs)
                outputs = self.call(inputs, *args, **kwargs)
                if outputs is None:
                    raise ValueError(f"The call method of layer {self.name!r} returned None")
                self._regularize_activity(outputs)
        _add_new(GraphKeys.UPDATE_OPS, self._updates)
        return outputs

    def _check_inputs(self, inputs: Any) -> None:
        if self.input_spec is None:
            return
        specs: list[InputSpec | None] = flatten(self.input_spec)
        leaves = flatten(inputs)
        if len(specs) != len(leaves):
            raise ValueError(
                f"Layer {self.name} expects {len(specs)} inputs, but it received {len(leaves)}: "
                f"{leaves}"
            )
        for spec, leaf in zip(specs, leaves, strict=True):
            if spec is not None:
                spec.check(leaf, self.name)

    def _build(self, inputs: Any) -> None:
        if self._dtype is None:
            first = next((leaf for leaf in flatten(inputs) if hasattr(leaf, "dtype")), None)
            self._dtype = None if first is None else as_dtype(first.dtype).base_dtype
        self.build(map_leaves(lambda leaf: getattr(leaf, "shape", None), inputs))
        # A build method that does not call this class's has built it all the same.
        self.built = True

    def _regularize_activity(self, outputs: Any) -> None:
        if self._activity_regularizer is None:
            return
        with name_scope("ActivityRegularizer"):
            for output in flatten(outputs):
                loss = self._activity_regularizer(output)
                self.add_loss(loss / cast(shape_of(output)[0], loss.dtype))


def snake_case(name: str) -> str:
    """``BasicLSTMCell`` as ``basic_lstm_cell``: the base of a layer's names."""
    words = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    snake = re.sub("([a-z])([A-Z])", r"\1_\2", words).lower()
    # A scope's name cannot start with an underscore.
    return "private" + snake if snake.startswith("_") else snake


def variable_is_trainable(variable: Any) -> bool:
    """True for a variable (or the parts of one) in the collection of the trainable ones."""
    trainable = get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES)
    return any(found is _parts(variable)[0] for found in trainable)


def _parts(variable: Any) -> list[Any]:
    return list(variable) if isinstance(variable, PartitionedVariable) else [variable]


def _distinct(*lists: list[Any]) -> list[Any]:
    return list({id(value): value for values in lists for value in values}.values())


def _unique_layer_name(base: str) -> str:
    """``base`` with the number of the layers of that name in the graph, from 1."""
    graph = get_default_graph()
    with graph._lock:
        counts = graph.get_collection_ref(_NAMES_KEY)
        if not counts:
            counts.append({})
        counts[0][base] = counts[0].get(base, 0) + 1
        return f"{base}_{counts[0][base]}"


def as_input(value: Any) -> Any:
    """Arrays and numbers become tensors; what is not a tensor (a TensorArray) stays as it is."""
    if value is None or isinstance(value, Tensor) or hasattr(value, "_flow_of_tensor_array"):
        return value
    return convert_to_tensor(value)


def _add_new(collection: str, values: list[Any]) -> None:
    graph = get_default_graph()
    present = graph.get_collection(collection)
    for value in values:
        if not any(value is found for found in present):
            graph.add_to_collection(collection, value)
