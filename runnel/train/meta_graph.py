"""``MetaGraphDef``: a graph with its collections and its Saver, in a file and back."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from runnel.checkpoint.whole_file import write_whole
from runnel.graph.collections import GraphKeys
from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.import_graph_def import import_graph_def
from runnel.graph.operation import Operation, Tensor
from runnel.train.saver import Saver
from runnel.variables.proto_names import add_scope, strip_scope
from runnel.variables.variable import Variable

logger = logging.getLogger("runnel")

_OF_VARIABLES = frozenset(
    {
        GraphKeys.GLOBAL_VARIABLES,
        GraphKeys.LOCAL_VARIABLES,
        GraphKeys.MODEL_VARIABLES,
        GraphKeys.MOVING_AVERAGE_VARIABLES,
        GraphKeys.TRAINABLE_VARIABLES,
        GraphKeys.METRIC_VARIABLES,
        GraphKeys.GLOBAL_STEP,
    }
)
_CONTEXTS = frozenset({GraphKeys.COND_CONTEXT, GraphKeys.WHILE_CONTEXT})
"""What TensorFlow needs to differentiate loops that it has read; here the graph says it."""


def _messages() -> Any:
    from tensorboard.compat.proto import meta_graph_pb2

    return meta_graph_pb2


def export_meta_graph(
    filename: Any = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Iterable[str] | None = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> Any:
    """A graph with its collections as a ``MetaGraphDef``, written to ``filename`` if one is given.

    ``collection_list`` names the collections (all by default). ``export_scope`` takes the part of
    the graph in a name scope, without the scope's name. ``clear_devices`` leaves devices out.

    Example:
        >>> tf.train.export_meta_graph("/tmp/model.meta")
        >>> saver = tf.train.import_meta_graph("/tmp/model.meta")
    """
    if kwargs:
        raise TypeError(f"export_meta_graph has no arguments {', '.join(kwargs)}")
    graph = graph or get_default_graph()
    found = _messages().MetaGraphDef()
    found.meta_info_def.tensorflow_version = "1.15.0"
    found.meta_info_def.tags.extend(meta_info_def.tags if meta_info_def is not None else ())
    if graph_def is None:
        graph_def = graph.as_graph_def(add_shapes=True)
    found.graph_def.CopyFrom(graph_def)
    if export_scope:
        _keep_scope(found.graph_def, export_scope)
    if clear_devices:
        for node in found.graph_def.node:
            node.device = ""
    used = {node.op for node in found.graph_def.node}
    _add_op_list(found.meta_info_def.stripped_op_list, used)
    found.meta_info_def.stripped_default_attrs = strip_default_attrs
    if saver_def is not None:
        found.saver_def.CopyFrom(saver_def)
    keys = graph.get_all_collection_keys() if collection_list is None else collection_list
    for key in keys:
        if isinstance(key, str) and key not in _CONTEXTS:
            if clear_extraneous_savers and key == GraphKeys.SAVERS:
                continue
            _add_collection(found, key, graph.get_collection(key), export_scope)
    if filename is not None:
        _write(Path(os.fsdecode(os.fspath(filename))), found, as_text)
    return found


def _keep_scope(graph_def: Any, scope: str) -> None:
    """Leaves the nodes of ``scope``, without its name; inputs from outside become placeholders."""
    inside = f"{scope}/"
    kept = [node for node in graph_def.node if node.name.startswith(inside)]
    outside = {
        text
        for node in kept
        for text in node.input
        if not text.removeprefix("^").startswith(inside)
    }
    if outside:
        raise ValueError(
            f"The scope {scope!r} takes {', '.join(sorted(outside)[:5])} from outside: export the "
            "whole graph, or make these placeholders inside of the scope"
        )
    copies = [type(node).FromString(node.SerializeToString()) for node in kept]
    del graph_def.node[:]
    for node in copies:
        node.name = node.name[len(inside) :]
        names = []
        for text in node.input:
            mark = "^" if text.startswith("^") else ""
            names.append(mark + text.removeprefix("^")[len(inside) :])
        node.input[:] = names
        if "_class" in node.attr:
            places = node.attr["_class"].list.s
            places[:] = [p.replace(b"loc:@" + inside.encode(), b"loc:@") for p in places]
        graph_def.node.append(node)


def _add_op_list(op_list: Any, used: Iterable[str]) -> None:
    for name in sorted(used):
        op_list.op.add(name=name)


def _write(path: Path, found: Any, as_text: bool) -> None:
    if as_text:
        from google.protobuf import text_format

        content = text_format.MessageToString(found).encode()
    else:
        content = found.SerializeToString()
    write_whole(path, content)


def _add_collection(found: Any, key: str, values: list[Any], scope: str | None) -> None:
    """Adds a collection, if everything in it can be written."""
    described = _messages().CollectionDef()
    protos = [v.to_proto(scope) for v in values if hasattr(v, "to_proto")]
    try:
        if values and len(protos) == len(values):
            kept = [proto.SerializeToString() for proto in protos if proto is not None]
            described.bytes_list.value.extend(kept)
        elif all(isinstance(v, Tensor | Operation | Variable) for v in values):
            names = [v.name for v in values]
            if scope:
                names = [n for n in names if n.startswith(f"{scope}/")]
            described.node_list.value.extend(strip_scope(name, scope) for name in names)
        elif all(isinstance(v, bool | int) for v in values):
            described.int64_list.value.extend(values)
        elif all(isinstance(v, float) for v in values):
            described.float_list.value.extend(values)
        elif all(isinstance(v, str | bytes) for v in values):
            described.bytes_list.value.extend(
                v.encode() if isinstance(v, str) else v for v in values
            )
        else:
            kinds = sorted({type(v).__name__ for v in values})
            logger.warning("The collection %r is not exported: it has %s", key, ", ".join(kinds))
            return
    except (TypeError, ValueError) as error:
        logger.warning("The collection %r is not exported: %s", key, error)
        return
    found.collection_def[key].CopyFrom(described)


# Reading ----------------------------------------------------------------------------------------


def read_meta_graph_file(filename: Any) -> Any:
    """The ``MetaGraphDef`` in a file, binary or text."""
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    path = Path(os.fsdecode(os.fspath(filename)))
    if not path.is_file():
        raise OSError(f"File {path} does not exist.")
    content = path.read_bytes()
    found = _messages().MetaGraphDef()
    try:
        found.ParseFromString(content)
        return found
    except DecodeError:
        pass
    try:
        text_format.Parse(content.decode(), found)
        return found
    except (UnicodeDecodeError, text_format.ParseError) as error:
        raise OSError(f"{path} has no MetaGraphDef: {error}") from None


def import_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    **kwargs: Any,
) -> Saver | None:
    """Adds the graph in a ``MetaGraphDef``, or a file with one, to the default graph.

    Its collections are added too: variables become variables. Returns its Saver; one for all
    variables if it has none, None if there are no variables.

    Example:
        >>> saver = tf.train.import_meta_graph("/tmp/model/ckpt-1000.meta")
        >>> saver.restore(sess, "/tmp/model/ckpt-1000")
    """
    found = meta_graph_or_file
    if not hasattr(found, "graph_def"):
        found = read_meta_graph_file(found)
    graph = get_default_graph()
    graph_def = type(found.graph_def)()
    graph_def.CopyFrom(found.graph_def)
    if clear_devices:
        for node in graph_def.node:
            node.device = ""
    import_graph_def(graph_def, name=import_scope or "", **kwargs)
    scope = import_scope
    made: dict[str, Variable] = {}
    for key in sorted(found.collection_def):
        if key in _CONTEXTS:
            continue
        for value in _collection(key, found.collection_def[key], graph, scope, made):
            graph.add_to_collection(key, value)
    if found.HasField("saver_def"):
        return Saver.from_proto(found.saver_def, scope)
    if graph.get_collection(GraphKeys.GLOBAL_VARIABLES):
        return Saver(name=scope)
    return None


def _collection(
    key: str, described: Any, graph: Graph, scope: str | None, made: dict[str, Variable]
) -> list[Any]:
    kind = described.WhichOneof("kind")
    if kind is None:
        return []
    values = list(getattr(described, kind).value)
    if kind == "node_list":
        return [graph.as_graph_element(add_scope(name, scope)) for name in values]
    if kind != "bytes_list":
        return values
    if key in _OF_VARIABLES:
        return [_variable(value, scope, made) for value in values]
    if key == GraphKeys.SAVERS:
        from tensorboard.compat.proto.saver_pb2 import SaverDef

        return [Saver.from_proto(SaverDef.FromString(value), scope) for value in values]
    return values


def _variable(content: bytes, scope: str | None, made: dict[str, Variable]) -> Variable:
    from tensorboard.compat.proto.variable_pb2 import VariableDef

    described = VariableDef.FromString(content)
    name = described.variable_name
    if name not in made:
        made[name] = Variable.from_proto(described, import_scope=scope)
    return made[name]
