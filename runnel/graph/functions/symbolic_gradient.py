"""``SymbolicGradient``: the gradient of a function of the library, called like a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.functions.body import Body
from runnel.graph.functions.expansion import Expansion, FunctionCall
from runnel.graph.functions.use import Results, Use, check_types
from runnel.graph.imported_node import Endpoint, parse_endpoint

Gradients = Callable[[list[Any], list[Any], list[Any]], list[Any]]
"""(ys, xs, gradients of the ys) → gradients of the xs, zeros where there are none"""

_known: list[Gradients] = []


def declare_gradients(function: Gradients) -> None:
    """``function`` takes gradients; what can differentiate stands after this package."""
    _known[:] = [function]


def expand(expansion: Expansion, use: Use) -> Results:
    """The nodes that compute the gradient."""
    function = expansion.function_of(use, "f")
    xs, ys = function.argument_types, function.result_types
    check_types(use, "Tin", [*xs, *ys])
    check_types(use, "Tout", xs)
    if len(use.inputs) != len(xs) + len(ys):
        raise use.error(
            f"the gradient of {function.name!r} takes {len(xs)} arguments and {len(ys)} gradients, "
            f"but has {len(use.inputs)} inputs"
        )
    found = _differentiated(expansion, use, function)
    return _GraphCall(expansion, use, found, f"{use.name}/", use.inputs, use.region).run()


def _differentiated(expansion: Expansion, use: Use, function: Body) -> Body:
    """The gradient as a function whose nodes name tensors as a graph does."""
    from runnel.graph.graph import Graph
    from runnel.graph.import_graph_def import import_graph_def

    types = [*function.argument_types, *function.result_types]
    graph_def = type(expansion.graph_def)()
    graph_def.versions.CopyFrom(expansion.graph_def.versions)
    graph_def.library.CopyFrom(expansion.graph_def.library)
    names = [f"argument_{i}" for i in range(len(types))]
    for name, kind in zip(names, types, strict=True):
        node = graph_def.node.add(name=name, op="Placeholder")
        node.attr["dtype"].type = kind
        node.attr["shape"].shape.unknown_rank = True
    count = len(function.argument_types)
    node = graph_def.node.add(name="forward", op="PartitionedCall", input=names[:count])
    node.attr["f"].CopyFrom(use.node.attr["f"])
    with Graph().as_default() as graph:
        elements = [*(f"{name}:0" for name in names), "forward"]
        made = import_graph_def(graph_def, return_elements=elements, name="")
        assert made is not None
        tensors, forward = made[:-1], made[-1]
        try:
            grads = _known[0](list(forward.outputs), tensors[:count], tensors[count:])
        except (LookupError, TypeError) as error:
            raise use.error(f"the function {function.name!r} has no gradient: {error}") from None
        written = graph.as_graph_def()
    return Body(
        f"gradient of {function.name}",
        types,
        {name: i for i, name in enumerate(names)},
        {node.name: node for node in written.node if node.name not in names},
        function.argument_types,
        [grad.name for grad in grads],
        {},
        [],
    )


class _GraphCall(FunctionCall):
    """A call whose nodes name tensors as a graph does."""

    def _endpoints(self, text: str) -> list[Endpoint]:
        name, index = parse_endpoint(text) or (text, 0)
        position = self._body.arguments.get(name)
        return [(self._names[name], index) if position is None else self._given[position]]
