"""Operations between the layers of a model: each stands in the model as a layer of its own."""

from __future__ import annotations

from typing import Any

from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.keras.layer import Layer
from runnel.keras.node import Node, comes_from_input, has_history


class TensorFlowOpLayer(Layer):
    """One operation, applied again to other inputs when the model is called again."""

    def __init__(self, op: Operation, **kwargs: Any) -> None:
        super().__init__(name=op.name.replace("/", "_"), **kwargs)
        self.op, self.built = op, True
        self._varying = [place for place, x in enumerate(op.inputs) if has_history(x)]

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        given = inputs if isinstance(inputs, list | tuple) else [inputs]
        whole = list(self.op.inputs)
        for place, tensor in zip(self._varying, given, strict=True):
            whole[place] = tensor
        made = repeated(self.op, whole)
        return list(made) if len(made) > 1 else made[0]

    def get_config(self) -> dict[str, Any]:
        """Refused: an operation has no configuration."""
        raise NotImplementedError(
            f"The operation {self.op.name} stands between layers, which a configuration cannot "
            "say: wrap it in a tf.keras.layers.Lambda, or save the weights alone"
        )


def repeated(op: Operation, inputs: list[Tensor]) -> list[Tensor]:
    """The outputs of another operation like ``op``, of other inputs."""
    if op.control_flow_context is not None:
        raise ValueError(
            f"The operation {op.name} is part of a loop or a conditional between the layers of a "
            "model, which can therefore not be called again: put them into a "
            "tf.keras.layers.Lambda"
        )
    graph = get_default_graph()
    made = graph.create_op(op.type, inputs, attrs=dict(op.attrs), name=op.name.rpartition("/")[2])
    return list(made.outputs)


def with_histories(tensors: list[Tensor]) -> None:
    """Gives tensors that operations made of layers' outputs a history, as layers' outputs."""
    stack = list(tensors)
    while stack:
        tensor = stack[-1]
        if has_history(tensor):
            stack.pop()
            continue
        missing = [x for x in tensor.op.inputs if not has_history(x) and comes_from_input(x)]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        of_layers = [x for x in tensor.op.inputs if has_history(x)]
        if of_layers:
            layer = TensorFlowOpLayer(tensor.op)
            outputs = list(tensor.op.outputs)
            layer._remember(of_layers, outputs)
            Node(layer, of_layers, {}, outputs)
