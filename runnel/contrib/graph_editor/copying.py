"""Copies of a part of a graph, of which some inputs are other tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runnel.contrib.graph_editor.elements import (
    as_elements,
    is_iterable,
    make_list_of_t,
    require_one_graph,
)
from runnel.contrib.graph_editor.placeholders import make_placeholder_from_tensor
from runnel.contrib.graph_editor.view import SubGraphView, make_view
from runnel.contrib.graph_editor.walks import get_walks_intersection_ops
from runnel.control_flow.structure import map_leaves
from runnel.graph.graph import Graph, name_scope
from runnel.graph.graph_def import operation_to_node_def
from runnel.graph.import_graph_def import import_graph_def
from runnel.graph.operation import Operation, Tensor
from runnel.variables.variable import Variable

_COLOCATED = b"loc:@"


class TransformerInfo:
    """Which element of a copy stands for which that was copied."""

    def __init__(self, ops: Mapping[Operation, Operation], ts: Mapping[Tensor, Tensor]) -> None:
        # Programs read these two.
        self._transformed_ops, self._transformed_ts = dict(ops), dict(ts)
        self._copies: dict[Any, Any] = {**ops, **ts}
        self._originals = {copy: original for original, copy in self._copies.items()}

    @staticmethod
    def _found(known: Mapping[Any, Any], wanted: Any, missing_fn: Any) -> Any:
        def one(element: Any) -> Any:
            if isinstance(element, Variable):
                [element] = as_elements(element)
            if element in known:
                return known[element]
            return missing_fn(element) if missing_fn is not None else None

        if not is_iterable(wanted) and not isinstance(wanted, Mapping):
            return one(wanted)
        return map_leaves(one, wanted)

    def transformed(self, original: Any, missing_fn: Callable[[Any], Any] | None = None) -> Any:
        """The copy of an operation or tensor, or of each in a structure.

        Where there is none: what ``missing_fn`` says, or None.
        """
        return self._found(self._copies, original, missing_fn)

    def original(self, transformed: Any, missing_fn: Callable[[Any], Any] | None = None) -> Any:
        """What a copy was made of; else as :meth:`transformed`."""
        return self._found(self._originals, transformed, missing_fn)


def _scope(graph: Graph, dst_scope: str, reuse: bool) -> str:
    """The scope of the copies, with a slash, unique unless it is shared."""
    plain = dst_scope.rstrip("/")
    if plain and not reuse:
        plain = graph.unique_name(plain)
    return f"{plain}/" if plain else ""


def _copied(
    view: SubGraphView,
    replacements: Mapping[Tensor, Any],
    graph: Graph,
    scopes: tuple[str, str],
) -> tuple[SubGraphView, TransformerInfo]:
    """Adds copies of a view's operations to ``graph``; ``replacements`` are for inputs."""
    inside, outside = scopes
    ops = sorted(view.ops, key=lambda op: op.id)
    names = {}
    for op in ops:
        if not op.name.startswith(outside):
            raise ValueError(f"{op.name!r} is not in the scope {outside!r} that is copied.")
        # Free still; the import takes it.
        names[op] = graph.unique_name(inside + op.name.removeprefix(outside), mark_as_used=False)
    graph_def, given = _described(ops, names, replacements)
    with graph.as_default(), name_scope(None), graph.control_dependencies(None):
        import_graph_def(graph_def, given, name="")
    copies = {op: graph.get_operation_by_name(name) for op, name in names.items()}
    tensors = {}
    for op, copy in copies.items():
        copy._set_device(op.device)
        for original, made in zip(op.outputs, copy.outputs, strict=True):
            tensors[original] = made
    info = TransformerInfo(copies, tensors)
    made_view = SubGraphView([copies[op] for op in view.ops])
    own = set(copies.values())
    inputs = [t for t in (replacements.get(t, t) for t in view.inputs) if t.op in own]
    outputs = [tensors.get(tensor, tensor) for tensor in view.outputs]
    return made_view._with_boundary(inputs, outputs), info


def _described(
    ops: list[Operation], names: Mapping[Operation, str], replacements: Mapping[Tensor, Any]
) -> tuple[Any, dict[str, Any]]:
    """A GraphDef of copies, and the tensors that its inputs are."""
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    from runnel.graph.graph_def import GRAPH_DEF_VERSION

    graph_def = GraphDef()
    given: dict[str, Any] = {}
    known: dict[Tensor, str] = {}
    graph_def.versions.producer = GRAPH_DEF_VERSION
    colocated = {_COLOCATED + op.name.encode(): name for op, name in names.items()}
    for op in ops:
        node = operation_to_node_def(op)
        node.name = names[op]
        del node.input[:]
        for tensor in op.inputs:
            if tensor in replacements or tensor.op not in names:
                text = known.setdefault(tensor, f"_given_{len(known)}")
                given[f"{text}:0"] = replacements.get(tensor, tensor)
                node.input.append(text)
            else:
                node.input.append(f"{names[tensor.op]}:{tensor.value_index}")
        # As in TensorFlow, what lies outside is not waited for.
        node.input.extend(f"^{names[other]}" for other in op.control_inputs if other in names)
        if "_class" in node.attr:
            groups = node.attr["_class"].list.s
            renamed = [
                _COLOCATED + colocated[group].encode() if group in colocated else group
                for group in groups
            ]
            del groups[:]
            groups.extend(renamed)
        graph_def.node.append(node)
    return graph_def, given


def copy(
    sgv: Any,
    dst_graph: Graph | None = None,
    dst_scope: str = "",
    src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> tuple[SubGraphView, TransformerInfo]:
    """A copy whose inputs are placeholders, in ``dst_graph`` or the graph of ``sgv``.

    Names lose ``src_scope`` and gain ``dst_scope``, which is made unique unless it is to be shared.
    """
    view = make_view(sgv)
    graph = dst_graph if dst_graph is not None else view.graph
    if graph is None:
        raise ValueError("There is nothing to copy.")
    inside, outside = _scope(graph, dst_scope, reuse_dst_scope), _source(src_scope)
    with graph.as_default(), name_scope(None), graph.control_dependencies(None):
        placeholders = {
            tensor: make_placeholder_from_tensor(tensor, inside or None) for tensor in view.inputs
        }
    return _copied(view, placeholders, graph, (inside, outside))


def _source(src_scope: str) -> str:
    return f"{src_scope.rstrip('/')}/" if src_scope else ""


def copy_with_input_replacements(
    sgv: Any,
    replacement_ts: Mapping[Any, Any],
    dst_graph: Graph | None = None,
    dst_scope: str = "",
    src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> tuple[SubGraphView, TransformerInfo]:
    """A copy that takes what ``replacement_ts`` says in the places of tensors.

    The inputs that it does not name stay as they are.
    """
    view = make_view(sgv)
    graph = dst_graph if dst_graph is not None else view.graph
    if graph is None:
        raise ValueError("There is nothing to copy.")
    replacements = {}
    for old, new in replacement_ts.items():
        [tensor] = as_elements(old)
        [other] = as_elements(new)
        replacements[tensor] = other
    scopes = _scope(graph, dst_scope, reuse_dst_scope), _source(src_scope)
    return _copied(view, replacements, graph, scopes)


def graph_replace(
    target_ts: Any,
    replacement_ts: Mapping[Any, Any],
    dst_scope: str = "",
    src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> Any:
    """The tensors ``target_ts``, a structure, as they would be had others been there.

    What lies between the keys of ``replacement_ts`` and the targets is copied.

    Example:
        >>> y = tf.contrib.graph_editor.graph_replace(logits, {noisy: clean})
    """
    targets = [element for target in as_elements(target_ts) for element in as_elements(target)]
    keys = make_list_of_t([as_elements(key) for key in replacement_ts], allow_graph=False)
    require_one_graph([*targets, *keys])
    ops = get_walks_intersection_ops(keys, targets)
    if not ops:
        raise ValueError("Targets and replacements are not connected!")
    # A target may be a key.
    renewed = {as_elements(key)[0]: as_elements(new)[0] for key, new in replacement_ts.items()}
    _, info = copy_with_input_replacements(
        ops, replacement_ts, None, dst_scope, src_scope, reuse_dst_scope
    )
    return info.transformed(target_ts, lambda element: renewed.get(element, element))
