"""Layers of layers: a graph of calls from inputs to outputs, or a program's own ``call``."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.control_flow.structure import flatten, map_leaves, pack_as
from runnel.graph.operation import Tensor
from runnel.keras.layer import Layer
from runnel.keras.node import Node, has_history, history_of
from runnel.keras.op_layer import with_histories
from runnel.layers.dependence import depending_on

_OWN = ("_outputs", "_inputs", "inputs", "outputs", "_nodes_in_order", "_compiled")


class Network(Layer):
    """What models are made of: layers that are called one after the other.

    Of inputs and outputs it finds the layers between them, in the order of TensorFlow, and calls
    them again when it is called on other tensors.
    """

    supports_masking = True
    inputs: list[Any] | None = None
    outputs: list[Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = dict(zip(("inputs", "outputs", "name"), args, strict=False))
        if len(args) > 2 or "inputs" in kwargs or "outputs" in kwargs or len(args) == 2:
            given.update(kwargs)
            inputs, outputs = given.pop("inputs"), given.pop("outputs")
            super().__init__(**given)
            self._connect(inputs, outputs)
        else:
            super().__init__(*args, **kwargs)

    @property
    def _is_graph_network(self) -> bool:
        return "_nodes_in_order" in self.__dict__

    # Inputs and outputs -----------------------------------------------------------------------

    def _connect(self, inputs: Any, outputs: Any) -> None:
        """Becomes the graph of calls between ``inputs`` and ``outputs``."""
        leaves = flatten(outputs)
        with_histories(leaves)
        for tensor in flatten(inputs):
            if not has_history(tensor):
                raise ValueError(
                    f"Input tensors to a Model must come from tf.keras.Input; received: {tensor}"
                )
        for tensor in leaves:
            if not isinstance(tensor, Tensor) or not has_history(tensor):
                raise ValueError(
                    "Output tensors to a Model must be the output of a layer that was called on "
                    f"what comes from a tf.keras.Input; found: {tensor}"
                )
        self._inputs, self._outputs = inputs, outputs
        self.inputs, self.outputs = flatten(inputs), leaves
        order, self._nodes_in_order = _sorted_layers(self.inputs, leaves)
        self._stack_of_layers = order
        self._name_ends()
        self.built = True
        self.__dict__["input"] = inputs
        self.__dict__["output"] = outputs

    def _name_ends(self) -> None:
        self.input_names = [history_of(x).layer.name for x in self.inputs or ()]
        names: list[str] = []
        for tensor in self.outputs or ():
            name = base = history_of(tensor).layer.name
            count = 1
            while name in names:
                name, count = f"{base}_{count}", count + 1
            names.append(name)
        self.output_names = names

    @property
    def layers(self) -> list[Any]:
        """The layers of the model, in the order in which they are applied."""
        return self._sublayers()

    def _sublayers(self) -> list[Any]:
        if "_stack_of_layers" in self.__dict__:
            own = {k: v for k, v in self.__dict__.items() if k not in (*_OWN, "input", "output")}
            known = {id(layer) for layer in self._stack_of_layers}
            extra = [
                leaf
                for name, value in own.items()
                if name not in ("_stack_of_layers", "_nodes", "_made_with")
                for leaf in flatten(value)
                if isinstance(leaf, Layer) and id(leaf) not in known and leaf is not self
                if not getattr(leaf, "_is_metric", False)
            ]
            return [*self._stack_of_layers, *{id(x): x for x in extra}.values()]
        return super()._sublayers()

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """The layer of a name, or at a place."""
        layers = self.layers
        if index is not None:
            if len(layers) <= index:
                raise ValueError(
                    f"Was asked to retrieve layer at index {index} but model only has "
                    f"{len(layers)} layers."
                )
            return layers[index]
        for layer in layers:
            if layer.name == name:
                return layer
        raise ValueError(
            f"No such layer: {name}; the layers are {', '.join(layer.name for layer in layers)}"
        )

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """Applies the layers to other inputs."""
        if not self._is_graph_network:
            raise NotImplementedError("When subclassing the `Model` class, implement `call`")
        made: dict[int, Any] = {}
        given = flatten(inputs)
        if isinstance(inputs, dict) and not isinstance(self._inputs, dict):
            given = [inputs[name] for name in self.input_names]
        for own, tensor in zip(self.inputs or (), given, strict=True):
            made[id(own)] = tensor
        masks = flatten(mask) if mask is not None else []
        for tensor, found in zip(given, masks, strict=False):
            if found is not None:
                tensor._keras_mask = found
        for node in self._nodes_in_order:
            if all(id(y) in made for y in node.output_tensors):
                continue
            layer = node.layer
            again = map_leaves(lambda x: made.get(id(x), x), node.inputs)
            arguments = map_leaves(lambda x: made.get(id(x), x), node.arguments)
            if training is not None and layer._takes("training"):
                arguments.setdefault("training", training)
            outputs = layer(again, **arguments)
            for old, new in zip(node.output_tensors, flatten(outputs), strict=True):
                made[id(old)] = new
        return pack_as(self._outputs, [made[id(y)] for y in self.outputs or ()])

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The masks that the layers inside have made."""
        return None

    # Variables --------------------------------------------------------------------------------

    @property
    def weights(self) -> list[Any]:
        """All variables, layer by layer."""
        found = [w for layer in self._sublayers() for w in layer.weights]
        found += [*self._trainable_weights, *self._non_trainable_weights]
        return list({id(w): w for w in found}.values())

    @property
    def state_updates(self) -> list[Any]:
        """The updates of stateful layers, which run in every step."""
        layers = [layer for layer in self._sublayers() if layer.stateful]
        return [update for layer in layers for update in layer.updates]

    @property
    def stateful(self) -> bool:  # type: ignore[override]
        """True where a layer keeps state from batch to batch."""
        return any(layer.stateful for layer in self._sublayers())

    @stateful.setter
    def stateful(self, value: bool) -> None:
        del value

    def reset_states(self) -> None:
        """Sets the states of stateful layers to zeros."""
        for layer in self.layers:
            if getattr(layer, "stateful", False) and hasattr(layer, "reset_states"):
                layer.reset_states()

    def get_updates_for(self, inputs: Any) -> list[Any]:
        """The updates that depend on ``inputs``; with None, those that depend on no input."""
        return depending_on(self.updates, inputs)

    def count_params(self) -> int:
        """The number of elements of all variables."""
        if not self.built:
            raise ValueError(
                f"The model {self.name!r} is not built yet: call it on inputs, build it with an "
                "input shape, or fit it"
            )
        return count(self.weights)

    def _build(self, inputs: Any) -> None:
        self.built = True  # the call builds the layers

    def build(self, input_shape: Any = None) -> None:
        """Makes the variables, for inputs of a shape with the batch in front."""
        if self._is_graph_network or self.built:
            self.built = True
            return
        if input_shape is None:
            raise ValueError("Input shape must be defined when calling build on a model subclass")
        if type(self).call is Network.call:
            raise ValueError(f"The model {self.name!r} has no layers and no call method")
        from runnel.graph.graph import Graph, get_default_graph
        from runnel.keras.shape_inference import placeholders_like

        graph: Graph = get_default_graph()
        with graph.as_default():
            self(placeholders_like(input_shape, self.dtype or "float32"))
        self.built = True

    # Showing ----------------------------------------------------------------------------------

    def summary(
        self, line_length: int | None = None, positions: Any = None, print_fn: Any = None
    ) -> None:
        """Prints the layers, their shapes and the number of their parameters.

        Example:
            >>> model.summary()
        """
        from runnel.keras.model_summary import print_summary

        if not self.built:
            raise ValueError(
                "This model has not yet been built. Build the model first by calling `build()` or "
                "calling `fit()` with some data, or specify an `input_shape` argument in the first "
                "layer(s) for automatic build."
            )
        print_summary(self, line_length, positions, print_fn)

    # Configurations ---------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """The layers, their arguments and how they are connected, in TensorFlow's form."""
        if not self._is_graph_network:
            raise NotImplementedError(
                f"{type(self).__name__} computes in its own `call`, which no configuration says; "
                "save its weights, or make it of inputs and outputs"
            )
        return connected_config(self)

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """A model like the one whose configuration this is, with new variables."""
        from runnel.keras.custom_objects import known_too

        with known_too(custom_objects):
            inputs, outputs = connected(config)
        return cls(inputs=inputs, outputs=outputs, name=config.get("name"))


def count(variables: list[Any]) -> int:
    """The number of elements of ``variables``."""
    return sum(int(np.prod(v.shape.as_list(), dtype=np.int64)) for v in variables)


# The order of layers ------------------------------------------------------------------------


def _sorted_layers(inputs: list[Any], outputs: list[Any]) -> tuple[list[Any], list[Node]]:
    """The layers as TensorFlow orders them, and the calls in an order that can be repeated."""
    seen_layers: dict[int, int] = {}
    finished: list[Node] = []
    known: set[int] = set()
    # Without recursion: a network may be a thousand layers deep.
    for output in outputs:
        stack: list[tuple[Any, int]] = [(output, 0)]
        while stack:
            tensor, place = stack.pop()
            history = history_of(tensor)
            node = history.layer._inbound_nodes[history.node_index]
            if place == 0:
                if id(node) in known:
                    continue
                known.add(id(node))
                seen_layers.setdefault(id(history.layer), len(seen_layers))
            before = node.input_tensors if not any(tensor is x for x in inputs) else []
            if place < len(before):
                stack.append((tensor, place + 1))
                if not has_history(before[place]):
                    continue
                stack.append((before[place], 0))
            else:
                finished.append(node)
    depths: dict[int, int] = {}
    of_layers: dict[int, tuple[int, Any]] = {}
    for node in reversed(finished):
        depth = max(depths.get(id(node), 0), of_layers.get(id(node.layer), (0, None))[0])
        of_layers[id(node.layer)] = depth, node.layer
        depths[id(node)] = depth
        for tensor in node.input_tensors:
            if has_history(tensor):
                history = history_of(tensor)
                inbound = history.layer._inbound_nodes[history.node_index]
                depths[id(inbound)] = max(depth + 1, depths.get(id(inbound), 0))
    for tensor in inputs:
        layer = history_of(tensor).layer
        if id(layer) not in of_layers:  # an input that no output depends on
            seen_layers[id(layer)] = -1
            of_layers[id(layer)] = 0, layer
    ordered = sorted(of_layers.values(), key=lambda pair: (-pair[0], seen_layers[id(pair[1])]))
    names = [layer.name for _, layer in ordered]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(
            f'The name "{sorted(twice)[0]}" is used {names.count(sorted(twice)[0])} times in the '
            "model. All layer names should be unique."
        )
    _require_inputs(finished, inputs)
    return [layer for _, layer in ordered], finished


def _require_inputs(nodes: list[Node], inputs: list[Any]) -> None:
    given = {id(x) for x in inputs}
    for node in nodes:
        if not node.input_tensors and not any(id(y) in given for y in node.output_tensors):
            raise ValueError(
                f"Graph disconnected: cannot obtain value for tensor {node.output_tensors[0].name} "
                f'of layer "{node.layer.name}", which is not among the inputs of the model'
            )


# Configurations -----------------------------------------------------------------------------


def _numbers(network: Any) -> dict[int, int]:
    """The number of each of the model's calls among its layer's calls in the model."""
    mine = {id(node) for node in network._nodes_in_order}
    found = {}
    for layer in network._stack_of_layers:
        kept = [node for node in layer._inbound_nodes if id(node) in mine]
        found.update({id(node): number for number, node in enumerate(kept)})
    return found


def _place(tensor: Any, numbers: dict[int, int]) -> list[Any]:
    layer, index, number = history_of(tensor)
    return [layer.name, numbers[id(layer._inbound_nodes[index])], number]


def connected_config(network: Any) -> dict[str, Any]:
    """The configuration of a model of inputs and outputs."""
    numbers = _numbers(network)
    layers = []
    for layer in network._stack_of_layers:
        nodes = []
        for node in layer._inbound_nodes:
            if id(node) in numbers and node.input_tensors:
                nodes.append(_node_config(node, numbers))
        described = {
            "name": layer.name,
            "class_name": type(layer).__name__,
            "config": layer.get_config(),
            "inbound_nodes": nodes,
        }
        layers.append(described)
    return {
        "name": network.name,
        "layers": layers,
        "input_layers": [_place(x, numbers) for x in network.inputs],
        "output_layers": [_place(y, numbers) for y in network.outputs],
    }


def _node_config(node: Node, numbers: dict[int, int]) -> list[Any]:
    arguments = {}
    for name, value in node.arguments.items():
        if any(isinstance(leaf, Tensor) for leaf in flatten(value)):
            raise ValueError(
                f"The layer {node.layer.name!r} was called with {name}= a tensor, which a "
                "configuration cannot say: pass it among the inputs"
            )
        arguments[name] = value
    return [[*_place(x, numbers), arguments] for x in node.input_tensors]


def connected(config: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """The inputs and outputs of new layers, connected as a configuration says."""
    from runnel.keras.layers import deserialize

    layers: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = []
    for described in config["layers"]:
        made = deserialize(described)
        layers[described["name"]] = made
        waiting += [(described["name"], node) for node in described["inbound_nodes"]]
    while waiting:
        left = []
        for name, node in waiting:
            calls = node if isinstance(node[0], list) else [node]
            arguments = calls[0][3] if len(calls[0]) > 3 else {}
            if not all(len(layers[c[0]]._inbound_nodes) > c[1] for c in calls):
                left.append((name, node))
                continue
            # Calls of one layer come in the order in which the configuration lists them.
            if any(other == name for other, _ in left):
                left.append((name, node))
                continue
            tensors = [_output(layers, c) for c in calls]
            layers[name](tensors[0] if len(tensors) == 1 else tensors, **arguments)
        if len(left) == len(waiting):
            raise ValueError(f"The configuration of {config.get('name')!r} is not connected")
        waiting = left
    inputs = [_output(layers, place) for place in _places(config["input_layers"])]
    return inputs, [_output(layers, place) for place in _places(config["output_layers"])]


def _places(given: Any) -> list[Any]:
    return [given] if given and isinstance(given[0], str) else list(given)


def _output(layers: dict[str, Any], place: list[Any]) -> Any:
    return layers[place[0]]._inbound_nodes[place[1]].output_tensors[place[2]]
