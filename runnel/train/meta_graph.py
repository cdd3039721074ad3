"""``MetaGraphDef``: a graph with its collections and its Saver, in a file and back."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from runnel.checkpoint.whole_file import write_whole
from runnel.graph.collections import GraphKeys
from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.graph_def import strip_default_attributes
from runnel.graph.import_graph_def import import_graph_def
from runnel.graph.serialized_message import FEWER_CONSTANTS, serialized_message
from runnel.train.collection_def import add_collections, read_collections
from runnel.train.queue_checkpoints import SavedQueues
from runnel.train.reading_order import add_reading_order
from runnel.train.saver import Saver


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
    the graph in a name scope, without the scope's name; what it takes from outside is listed in
    the collection ``unbound_inputs``, and ``import_meta_graph`` needs an ``input_map`` for it.
    ``clear_devices`` leaves devices out, ``strip_default_attrs`` attributes that have their
    default, ``clear_extraneous_savers`` the operations of Savers other than ``saver_def``.

    Example:
        >>> tf.train.export_meta_graph("/tmp/model.meta")
        >>> saver = tf.train.import_meta_graph("/tmp/model.meta")
    """
    if kwargs:
        raise TypeError(f"export_meta_graph has no arguments {', '.join(kwargs)}")
    graph = graph or get_default_graph()
    found = _messages().MetaGraphDef()
    if meta_info_def is not None:
        found.meta_info_def.MergeFromString(meta_info_def.SerializeToString())
        found.meta_info_def.ClearField("stripped_op_list")
    found.meta_info_def.tensorflow_version = "1.15.0"
    if graph_def is None:
        graph_def = graph.as_graph_def(add_shapes=True)
        if not export_scope:  # a part has no training operation
            add_reading_order(graph, graph_def)
    found.graph_def.CopyFrom(graph_def)
    unbound = _keep_scope(found.graph_def, export_scope) if export_scope else []
    if clear_extraneous_savers:
        _remove_other_savers(found.graph_def, saver_def)
    if clear_devices:
        for node in found.graph_def.node:
            node.device = ""
    if strip_default_attrs:
        strip_default_attributes(found.graph_def)
    used = {node.op for node in found.graph_def.node}
    _add_op_list(found.meta_info_def.stripped_op_list, used)
    found.meta_info_def.stripped_default_attrs = strip_default_attrs
    if saver_def is not None:
        found.saver_def.CopyFrom(saver_def)
    keys = graph.get_all_collection_keys() if collection_list is None else collection_list
    if clear_extraneous_savers:
        keys = [key for key in keys if key != GraphKeys.SAVERS]
    add_collections(found, graph, keys, export_scope)
    if unbound:
        found.collection_def[_UNBOUND].bytes_list.value.extend(map(str.encode, unbound))
    if filename is not None:
        write_meta_graph(filename, found, as_text)
    return found


_UNBOUND = "unbound_inputs"
_UNBOUND_PREFIX = "$unbound_inputs_"
_SAVER_OPS = frozenset({"SaveV2", "Save", "SaveSlices", "RestoreV2", "Restore", "RestoreSlice"})


def _remove_other_savers(graph_def: Any, saver_def: Any) -> None:
    """Removes the operations of Savers, each in a scope of its own, but those of ``saver_def``."""
    kept = "" if saver_def is None else saver_def.restore_op_name.rpartition("/")[0]
    scopes = {node.name.rpartition("/")[0] for node in graph_def.node if node.op in _SAVER_OPS}
    removed = tuple(f"{scope}/" for scope in scopes if scope and scope != kept)
    nodes = [node for node in graph_def.node if not node.name.startswith(removed)]
    wanted = {text.removeprefix("^") for node in nodes for text in node.input}
    if removed and not any(text.startswith(removed) for text in wanted):
        copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
        del graph_def.node[:]
        graph_def.node.extend(copies)


def _keep_scope(graph_def: Any, scope: str) -> list[str]:
    """Leaves the nodes of ``scope``, without its name; returns the inputs from outside, renamed."""
    inside = f"{scope}/"
    kept = [node for node in graph_def.node if node.name.startswith(inside)]
    unbound: set[str] = set()
    copies = [type(node).FromString(node.SerializeToString()) for node in kept]
    del graph_def.node[:]
    for node in copies:
        node.name = node.name[len(inside) :]
        names = []
        for text in node.input:
            mark = "^" if text.startswith("^") else ""
            name = text.removeprefix("^")
            if name.startswith(inside):
                names.append(mark + name[len(inside) :])
            else:
                names.append(f"{mark}{_UNBOUND_PREFIX}{name}")
                unbound.add(names[-1])
        node.input[:] = names
        if "frame_name" in node.attr:  # of a loop, whose context is called the same
            frame = node.attr["frame_name"]
            frame.s = frame.s.removeprefix(inside.encode())
        if "_class" in node.attr:
            places = node.attr["_class"].list.s
            places[:] = [p.replace(b"loc:@" + inside.encode(), b"loc:@") for p in places]
        graph_def.node.append(node)
    return sorted(unbound)


def _require_bound(found: Any, input_map: Any) -> None:
    """A ValueError where a part of a graph lacks what it took from outside."""
    if _UNBOUND not in found.collection_def:
        return
    values = found.collection_def[_UNBOUND].bytes_list.value
    unbound = sorted(value.decode(errors="replace") for value in values)
    missing = [name for name in unbound if name not in (input_map or {})]
    if missing:
        raise ValueError(
            f"Graph contains unbound inputs: {', '.join(missing)}. Must provide these inputs "
            "through input_map."
        )


def _add_op_list(op_list: Any, used: Iterable[str]) -> None:
    for name in sorted(used):
        op_list.op.add(name=name)


def write_meta_graph(filename: Any, found: Any, as_text: bool = False) -> None:
    """Writes a ``MetaGraphDef`` to a file, which appears whole."""
    path = Path(os.fsdecode(os.fspath(filename)))
    if as_text:
        from google.protobuf import text_format

        content = text_format.MessageToString(found).encode()
    else:
        content = serialized_message(found, "The MetaGraphDef", FEWER_CONSTANTS)
    write_whole(path, content)


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
    _require_bound(found, kwargs.get("input_map"))
    graph = get_default_graph()
    graph_def = type(found.graph_def)()
    graph_def.CopyFrom(found.graph_def)
    if clear_devices:
        for node in graph_def.node:
            node.device = ""
    # A newer writer's attributes mean nothing new while they have that writer's defaults.
    kwargs.setdefault("producer_op_list", found.meta_info_def.stripped_op_list)
    import_graph_def(graph_def, name=import_scope or "", **kwargs)
    scope = import_scope
    read_collections(found, graph, scope)
    if any(node.op == "SerializeQueue" for node in graph_def.node):
        graph.attached(SavedQueues).find(graph, GraphKeys.QUEUE_RUNNERS)
    if found.HasField("saver_def"):
        return Saver.from_proto(found.saver_def, scope)
    if graph.get_collection(GraphKeys.GLOBAL_VARIABLES):
        return Saver(name=scope)
    return None
