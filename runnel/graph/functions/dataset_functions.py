"""Functions of datasets: parts of the graph, which an operation names by their tensors.

``runnel.ops.data.function_ops`` defines such an attribute: the placeholders that stand for an
element, the tensors that the function captures, the tensors that it returns.
"""

from __future__ import annotations

from typing import Any

from runnel.graph.functions.body import HANDLES, RESOURCE, Body
from runnel.graph.functions.expansion import Expansion
from runnel.graph.functions.use import Use
from runnel.graph.imported_node import Endpoint
from runnel.graph.registry import OpDef, find_op_def


def expand(expansion: Expansion, use: Use) -> list[str]:
    """Adds ``use`` with the functions that its attributes name; returns what has its effects."""
    op_def = find_op_def(use.node.op)
    proto = type(use.node).FromString(use.node.SerializeToString())
    proto.name, proto.device = use.name, use.device
    made = expansion._append(proto, use.inputs, use.controls, use.region)
    if op_def is None:
        return []  # the import names every type that is not registered
    dropped: set[int] = set()
    for key in sorted(proto.attr):
        if proto.attr[key].WhichOneof("value") != "func":
            continue
        if proto.attr[key].func.name not in expansion.library:
            continue
        body = expansion.named(use, proto.attr[key].func)
        taken = _captured(use, op_def, proto, key)
        parts = _Function(expansion, use, key, body).add([use.inputs[i] for i in taken])
        made.functions.append((key, parts))
        for i, kind in zip(taken, body.argument_types[len(body.argument_types) - len(taken) :]):
            if kind == RESOURCE:
                dropped.add(i)
    # A function takes what denotes state as it is, so it is no input.
    for key in [k for k in proto.attr if _is_captures(k)]:
        value = proto.attr[key].list
        value.type[:] = [kind for kind in value.type if kind != RESOURCE]
    made.inputs = [e for i, e in enumerate(made.inputs) if i not in dropped]
    return []


def _is_captures(key: str) -> bool:
    return key == "Targuments" or key.endswith("_other_arguments")


def _captured(use: Use, op_def: OpDef, proto: Any, key: str) -> list[int]:
    """The positions of the inputs of ``use`` that the function ``key`` captures."""
    own = f"T{key}_other_arguments"
    types = own if own in op_def.attributes else "Targuments"
    position = 0
    for argument in op_def.inputs:
        counted = argument.type_list_attr or argument.number_attr
        value = proto.attr.get(counted or "", None)
        if counted is None:
            count = 1
        elif value is None:
            count = 0
        else:
            count = len(value.list.type) if argument.type_list_attr else int(value.i)
        if argument.type_list_attr == types:
            if position + count > len(use.inputs):
                raise use.error(f"it has {len(use.inputs)} inputs, fewer than its attributes say")
            return list(range(position, position + count))
        position += count
    return []


class _Function:
    def __init__(self, expansion: Expansion, use: Use, key: str, body: Body) -> None:
        self._expansion, self._use, self._key, self._body = expansion, use, key, body

    def add(self, captured: list[Endpoint]) -> list[tuple[str, list[Endpoint]]]:
        """Adds the nodes of the function; returns the tensors that it is made of."""
        expansion, use, body = self._expansion, self._use, self._body
        prefix = f"{use.name}/{self._key}"
        types = body.argument_types
        elements = len(types) - len(captured)
        if elements < 0:
            raise use.error(
                f"it captures {len(captured)} tensors, but its function {body.name!r} has "
                f"{len(types)} arguments"
            )
        arguments: list[Endpoint] = []
        captures: list[Endpoint] = []
        given: list[Endpoint] = []
        for i, kind in enumerate(types):
            outside = captured[i - elements] if i >= elements else None
            if outside is not None and kind == RESOURCE:
                given.append(outside)
                continue
            node = expansion.add("Placeholder", f"{prefix}/argument_{i}", types={"dtype": kind})
            node.attr["shape"].shape.unknown_rank = True
            given.append((node.name, 0))
            (arguments if outside is None else captures).append(given[-1])
        made = expansion.call(use, body, f"{prefix}/", given, None)
        outputs = made.endpoints
        plain = [i for i, kind in enumerate(made.types) if kind not in HANDLES]
        if made.effects and plain:  # a call has all of its effects
            label, i = f"{prefix}/done", plain[0]
            outputs[i] = expansion.identity(label, outputs[i], made.types[i], made.effects, None)
        return [("arguments", arguments), ("captures", captures), ("outputs", outputs)]
