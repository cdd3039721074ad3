"""One call of a layer on symbolic tensors, and which layer made a tensor."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from runnel.control_flow.structure import flatten
from runnel.graph.operation import Tensor


class KerasHistory(NamedTuple):
    """Where a tensor comes from: its layer, the number of the call, the number of the output."""

    layer: Any
    node_index: int
    tensor_index: int


class Node:
    """A call of a layer: what it was given, and what it returned."""

    def __init__(self, layer: Any, inputs: Any, arguments: dict[str, Any], outputs: Any) -> None:
        self.layer, self.inputs, self.arguments, self.outputs = layer, inputs, arguments, outputs
        self.index = len(layer._inbound_nodes)
        layer._inbound_nodes.append(self)
        for number, tensor in enumerate(flatten(outputs)):
            tensor._keras_history = KerasHistory(layer, self.index, number)

    @property
    def input_tensors(self) -> list[Any]:
        """The tensors that it was called on."""
        return [t for t in flatten(self.inputs) if isinstance(t, Tensor)]

    @property
    def output_tensors(self) -> list[Any]:
        """The tensors that it returned."""
        return flatten(self.outputs)

    @property
    def inbound_histories(self) -> list[KerasHistory]:
        """Where its inputs come from."""
        return [history_of(tensor) for tensor in self.input_tensors]


def has_history(tensor: Any) -> bool:
    """True for a tensor that comes from an ``Input`` by way of layers."""
    return hasattr(tensor, "_keras_history")


def history_of(tensor: Any) -> KerasHistory:
    """Which layer made ``tensor``."""
    history: KerasHistory = tensor._keras_history
    return history


_REACH_KEY = ("__keras_reach",)


def begin_inputs(graph: Any) -> None:
    """From now on, ``graph`` has tensors that come from an ``Input``."""
    kept = graph.get_collection_ref(_REACH_KEY)
    if not kept:
        kept.append({})


def comes_from_input(tensor: Any) -> bool:
    """Whether ``tensor`` is computed from an ``Input``, be it by operations that are no layer's."""
    if has_history(tensor):
        return True
    kept = tensor.graph.get_collection_ref(_REACH_KEY)
    if not kept:
        return False
    known: dict[Any, bool] = kept[0]
    stack = [tensor.op]
    while stack:
        op = stack[-1]
        if op in known:
            stack.pop()
        elif any(has_history(x) or known.get(x.op) for x in op.inputs):
            known[op] = True
        else:
            unknown = [x.op for x in op.inputs if x.op not in known]
            # A loop's first operation awaits its last: that one has been seen on the way.
            unknown = [o for o in unknown if o.id < op.id]
            if unknown:
                stack.extend(unknown)
            else:
                known[op] = False
    return known[tensor.op]


class _Depth(threading.local):
    calls = 0


_depth = _Depth()


class calling:  # noqa: N801 (a block, like nullcontext)
    """Inside the block layers are called by another layer; :attr:`outermost` says if not before."""

    def __enter__(self) -> calling:
        self.outermost = _depth.calls == 0
        _depth.calls += 1
        return self

    def __exit__(self, *args: Any) -> None:
        _depth.calls -= 1
