"""The objects of a model as TensorFlow's checkpoints name them: layers, variables, slots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from runnel.keras.layer import Layer
from runnel.keras.network import Network
from runnel.keras.optimizer import Optimizer
from runnel.variables.variable import Variable

GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
_SUFFIX = ".ATTRIBUTES/VARIABLE_VALUE"


@dataclass(eq=False)
class ObjectNode:
    """An object: a variable, or something that has others under names."""

    variable: Any = None
    children: dict[str, ObjectNode] = field(default_factory=dict)
    slots: list[tuple[Any, str, Any]] = field(default_factory=list)
    """Of an optimizer: variables, the names of their slots, and the slots."""
    path: str = ""


def object_graph(model: Any) -> tuple[ObjectNode, list[ObjectNode]]:
    """The root of a model's objects, and all of them in TensorFlow's order, with their paths."""
    made: dict[int, ObjectNode] = {}
    root = _node_of(model, made)
    if isinstance(model.optimizer, Optimizer):
        root.children["optimizer"] = _optimizer_node(model.optimizer)
    order, waiting = [root], [root]
    seen = {id(root)}
    while waiting:
        node = waiting.pop(0)
        for name, child in node.children.items():
            if id(child) not in seen:
                seen.add(id(child))
                child.path = f"{node.path}/{_escaped(name)}" if node.path else _escaped(name)
                order.append(child)
                waiting.append(child)
    return root, order


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")


def _node_of(value: Any, made: dict[int, ObjectNode]) -> ObjectNode:
    if id(value) in made:
        return made[id(value)]
    node = made[id(value)] = ObjectNode()
    if isinstance(value, Variable):
        node.variable = value
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            if _counts(part):
                node.children[str(number)] = _node_of(part, made)
    elif isinstance(value, dict):
        for name, part in value.items():
            if _counts(part):
                node.children[str(name)] = _node_of(part, made)
    else:
        for name, part in _children(value):
            node.children.setdefault(name, _node_of(part, made))
    return node


def _children(layer: Any) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    if isinstance(layer, Network) and (layer._is_graph_network or hasattr(layer, "_stack")):
        with_weights = 0
        for number, inner in enumerate(layer._sublayers()):
            if inner.weights:
                found.append((f"layer_with_weights-{with_weights}", inner))
                with_weights += 1
            found.append((f"layer-{number}", inner))
    for name, variable in getattr(layer, "_weight_names", ()):
        found.append((name, variable))
    for name, value in vars(layer).items():
        if not name.startswith("_") and name not in ("input", "output", "inputs", "outputs"):
            if _counts(value):
                found.append((name, value))
    return found


def _counts(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_counts(part) for part in value)
    if isinstance(value, dict):
        return any(_counts(part) for part in value.values())
    if isinstance(value, Layer):
        return not getattr(value, "_is_metric", False)
    return isinstance(value, Variable)


def _optimizer_node(optimizer: Optimizer) -> ObjectNode:
    node = ObjectNode()
    if optimizer._iterations is not None:
        node.children["iter"] = ObjectNode(optimizer._iterations)
    for name, value in sorted(optimizer._hyper.items()):
        if isinstance(value, Variable):
            node.children[name] = ObjectNode(value)
    cache = getattr(optimizer, "_m_cache", None)
    if cache is not None:
        node.children["momentum_cache"] = ObjectNode(cache)
    for op, slots in optimizer._slots.items():
        node.slots += [(op, name, slot) for name, slot in slots.items()]
    return node


def written(model: Any) -> tuple[dict[str, Any], bytes]:
    """The variables of a model by their keys in a checkpoint, and the graph that names them."""
    from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph

    _, order = object_graph(model)
    variables: dict[str, Any] = {}
    numbers = {id(node): number for number, node in enumerate(order)}
    owners = {node.variable.op: node for node in order if node.variable is not None}
    proto = TrackableObjectGraph()
    slots: list[tuple[Any, str]] = []
    for node in order:
        described = proto.nodes.add()
        for name, child in node.children.items():
            described.children.add(node_id=numbers[id(child)], local_name=name)
        for op, slot_name, slot in node.slots:
            if op not in owners:
                continue
            number = len(order) + len(slots)
            owner = owners[op]
            described.slot_variables.add(
                original_variable_node_id=numbers[id(owner)],
                slot_name=slot_name,
                slot_variable_node_id=number,
            )
            slots.append((slot, f"{owner.path}/.OPTIMIZER_SLOT/{node.path}/{slot_name}/{_SUFFIX}"))
        if node.variable is not None:
            _attribute(described, node.variable, f"{node.path}/{_SUFFIX}", variables)
    for slot, key in slots:
        _attribute(proto.nodes.add(), slot, key, variables)
    return variables, proto.SerializeToString()


def _attribute(described: Any, variable: Any, key: str, variables: dict[str, Any]) -> None:
    described.attributes.add(name="VARIABLE_VALUE", full_name=variable.op.name, checkpoint_key=key)
    variables[key] = variable


def matched(model: Any, serialized: bytes) -> tuple[dict[Any, str], list[str]]:
    """The key of each variable of ``model`` in a checkpoint, and the paths that it lacks."""
    from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph

    proto = TrackableObjectGraph.FromString(serialized)
    root, order = object_graph(model)
    places = {id(root): 0}
    found: dict[Any, str] = {}
    missing: list[str] = []
    for node in order:
        place = places.get(id(node))
        if place is None:
            if node.variable is not None:
                missing.append(node.path)
            continue
        described = proto.nodes[place]
        theirs = {child.local_name: child.node_id for child in described.children}
        for name, child in node.children.items():
            if name in theirs:
                places.setdefault(id(child), theirs[name])
        if node.variable is not None:
            keys = [a.checkpoint_key for a in described.attributes if a.name == "VARIABLE_VALUE"]
            if keys:
                found[node.variable] = keys[0]
            else:
                missing.append(node.path)
    _match_slots(order, places, proto, found)
    return found, missing


def _match_slots(order: Any, places: dict[int, int], proto: Any, found: dict[Any, str]) -> None:
    numbers = {n.variable.op: places.get(id(n)) for n in order if n.variable is not None}
    for node in order:
        if not node.slots or id(node) not in places:
            continue
        theirs = {
            (slot.original_variable_node_id, slot.slot_name): slot.slot_variable_node_id
            for slot in proto.nodes[places[id(node)]].slot_variables
        }
        for op, name, variable in node.slots:
            place = theirs.get((numbers.get(op), name))
            if place is not None and proto.nodes[place].attributes:
                found[variable] = proto.nodes[place].attributes[0].checkpoint_key
