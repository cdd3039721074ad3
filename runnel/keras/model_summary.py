"""The table of a model's layers that ``summary`` prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.keras.network import count
from runnel.keras.node import has_history, history_of


def print_summary(
    model: Any,
    line_length: int | None = None,
    positions: Any = None,
    print_fn: Callable[[str], Any] | None = None,
) -> None:
    """Prints a line for each layer of ``model``, in TensorFlow's form."""
    show = print_fn or print
    chain = _is_chain(model)
    width = line_length or (65 if chain else 98)
    places = positions or ([0.45, 0.85, 1.0] if chain else [0.33, 0.55, 0.67, 1.0])
    if places[-1] <= 1:
        places = [int(width * place) for place in places]

    def row(*fields: Any) -> None:
        line = ""
        for place, field in zip(places, fields, strict=False):
            line = (line[:-1] + " " if line else "") + str(field)
            line = line[:place].ljust(place)
        show(line)

    show(f'Model: "{model.name}"')
    show("_" * width)
    row("Layer (type)", "Output Shape", "Param #", *([] if chain else ["Connected to"]))
    show("=" * width)
    layers = model.layers
    for number, layer in enumerate(layers):
        shape = _shape(layer)
        own = f"{layer.name} ({type(layer).__name__})", shape, layer.count_params()
        if chain:
            row(*own)
        else:
            first, *rest = _sources(model, layer) or [""]
            row(*own, first)
            for source in rest:
                row("", "", "", source)
        show(("=" if number == len(layers) - 1 else "_") * width)
    trained, others = count(model._trained_weights()), count(model.non_trainable_weights)
    show(f"Total params: {trained + others:,}")
    show(f"Trainable params: {trained:,}")
    show(f"Non-trainable params: {others:,}")
    show("_" * width)


def _shape(layer: Any) -> Any:
    if len(layer._inbound_nodes) > 1:
        shapes = {tuple(y.dims for y in n.output_tensors) for n in layer._inbound_nodes}
        if len(shapes) > 1:
            return "multiple"
    if "output" not in layer.__dict__ or not layer._inbound_nodes:
        return "multiple"
    found = layer.output_shape
    return [found] if type(layer).__name__ == "InputLayer" else found


def _is_chain(model: Any) -> bool:
    if type(model).__name__ == "Sequential" or not model._is_graph_network:
        return True
    layers = model._stack_of_layers
    nodes = model._nodes_in_order
    return (
        len(nodes) == len(layers)
        and all(len({id(x) for x in node.input_tensors}) <= 1 for node in nodes)
        and _consumed_once(nodes)
    )


def _consumed_once(nodes: list[Any]) -> bool:
    taken = [id(x) for node in nodes for x in node.input_tensors]
    return len(taken) == len(set(taken))


def _sources(model: Any, layer: Any) -> list[str]:
    mine = {id(node) for node in model._nodes_in_order}
    found = []
    for node in layer._inbound_nodes:
        if id(node) in mine:
            for tensor in node.input_tensors:
                if has_history(tensor):
                    source, index, number = history_of(tensor)
                    found.append(f"{source.name}[{index}][{number}]")
    return found
