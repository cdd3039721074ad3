"""Collections of a graph as ``CollectionDef`` protocol buffers, and back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from runnel.autodiff.loop_record import records_of
from runnel.control_flow.context_protos import ContextReader, ContextWriter
from runnel.graph.collections import GraphKeys
from runnel.graph.graph import Graph
from runnel.graph.operation import Operation, Tensor
from runnel.train.queue_runner import QueueRunner, queue_runner_def
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
_CONTEXTS = {
    GraphKeys.COND_CONTEXT: "CondContextDef",
    GraphKeys.WHILE_CONTEXT: "WhileContextDef",
}


class _Described(NamedTuple):
    """How a program describes what is in a collection of its own."""

    message: Any
    to_proto: Callable[..., Any] | None
    from_proto: Callable[..., Any] | None


_of_programs: dict[Any, _Described] = {}


def register_proto_function(
    collection_name: Any,
    proto_type: Any = None,
    to_proto: Callable[..., Any] | None = None,
    from_proto: Callable[..., Any] | None = None,
) -> None:
    """Has MetaGraphs describe what is in a collection by messages of ``proto_type``.

    ``to_proto(value, export_scope=)`` makes one, ``from_proto(message, import_scope=)`` reads one.
    """
    if to_proto is not None and not callable(to_proto):
        raise TypeError("to_proto must be callable.")
    if from_proto is not None and not callable(from_proto):
        raise TypeError("from_proto must be callable.")
    if collection_name in _of_programs:
        raise KeyError(f"The collection {collection_name!r} is described by functions already")
    _of_programs[collection_name] = _Described(proto_type, to_proto, from_proto)


def get_to_proto_function(collection_name: Any) -> Callable[..., Any] | None:
    """The function that describes what is in a collection."""
    found = _of_programs.get(collection_name)
    return None if found is None else found.to_proto


def get_from_proto_function(collection_name: Any) -> Callable[..., Any] | None:
    """The function that reads what is in a collection."""
    found = _of_programs.get(collection_name)
    return None if found is None else found.from_proto


# Out --------------------------------------------------------------------------------------------


def add_collections(found: Any, graph: Graph, keys: Iterable[Any], scope: str | None) -> None:
    """Adds the collections ``keys`` of ``graph`` to the ``MetaGraphDef`` ``found``.

    One with something that cannot be written is left out, and the log says so.
    """
    writer = None
    for key in keys:
        if not isinstance(key, str):
            continue
        values = graph.get_collection(key)
        if key in _CONTEXTS:
            writer = writer or ContextWriter(graph, scope)
            protos = [proto for v in values if (proto := writer.describe(v)) is not None]
            content = [proto.SerializeToString() for proto in protos]
            found.collection_def[key].bytes_list.value.extend(content)
            continue
        try:
            described = _described(values, scope, get_to_proto_function(key))
        except (TypeError, ValueError) as error:
            logger.warning("The collection %r is not exported: %s", key, error)
        else:
            found.collection_def[key].CopyFrom(described)


def _described(
    values: list[Any], scope: str | None, to_proto: Callable[..., Any] | None = None
) -> Any:
    from google.protobuf.any_pb2 import Any as AnyProto
    from tensorboard.compat.proto.meta_graph_pb2 import CollectionDef

    described = CollectionDef()
    if to_proto is None:
        protos = [v.to_proto(scope) for v in values if hasattr(v, "to_proto")]
    else:
        protos = [to_proto(v, export_scope=scope) for v in values]
    if values and len(protos) == len(values):
        kept = [proto.SerializeToString() for proto in protos if proto is not None]
        described.bytes_list.value.extend(kept)
    elif all(isinstance(v, Tensor | Operation | Variable) for v in values):
        names = [v.name for v in values]
        if scope:
            names = [n for n in names if n.startswith(f"{scope}/")]
        described.node_list.value.extend(strip_scope(name, scope) for name in names)
    elif all(isinstance(v, AnyProto) for v in values):
        described.any_list.value.extend(values)
    elif all(isinstance(v, bool | int) for v in values):
        described.int64_list.value.extend(values)
    elif all(isinstance(v, float) for v in values):
        described.float_list.value.extend(values)
    elif all(isinstance(v, str | bytes) for v in values):
        described.bytes_list.value.extend(v.encode() if isinstance(v, str) else v for v in values)
    else:
        raise TypeError(f"it has {', '.join(sorted({type(v).__name__ for v in values}))}")
    return described


# In ---------------------------------------------------------------------------------------------


def read_collections(found: Any, graph: Graph, scope: str | None) -> None:
    """Adds the collections of the ``MetaGraphDef`` ``found``, imported under ``scope``.

    Variables, savers, queue runners, branches and loops become objects again.
    """
    made: dict[str, Variable] = {}
    if any(key in found.collection_def for key in _CONTEXTS):
        records_of(graph).catch_up(graph)  # which finds the loops
    reader = ContextReader(graph, scope)
    for key in sorted(found.collection_def):
        described = found.collection_def[key]
        kind = described.WhichOneof("kind")
        values = [] if kind is None else list(getattr(described, kind).value)
        if kind == "node_list":
            values = [graph.as_graph_element(add_scope(name, scope)) for name in values]
        elif kind == "bytes_list":
            values = [_object(key, value, scope, made, reader) for value in values]
            values = [value for value in values if value is not None]
        for value in values:
            graph.add_to_collection(key, value)


def _object(
    key: str, content: bytes, scope: str | None, made: dict[str, Variable], reader: ContextReader
) -> Any:
    from google.protobuf.message import DecodeError

    if key in _CONTEXTS:
        return reader.read(_CONTEXTS[key], content)
    try:
        if (own := _of_programs.get(key)) is not None and own.from_proto is not None:
            return own.from_proto(own.message.FromString(content), import_scope=scope)
        if key in _OF_VARIABLES:
            return _variable(content, scope, made)
        if key == GraphKeys.SAVERS:
            from tensorboard.compat.proto.saver_pb2 import SaverDef

            return Saver.from_proto(SaverDef.FromString(content), scope)
        if key == GraphKeys.QUEUE_RUNNERS:
            return QueueRunner.from_proto(queue_runner_def().FromString(content), scope)
    except DecodeError as error:
        raise ValueError(f"The collection {key!r} is damaged: {error}") from None
    return content


def _variable(content: bytes, scope: str | None, made: dict[str, Variable]) -> Variable:
    from tensorboard.compat.proto.variable_pb2 import VariableDef

    described = VariableDef.FromString(content)
    name = described.variable_name
    if name not in made:
        made[name] = Variable.from_proto(described, import_scope=scope)
    return made[name]
