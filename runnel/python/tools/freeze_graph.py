"""``freeze_graph``: a graph and a checkpoint become one graph with constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef
from tensorboard.compat.proto.saver_pb2 import SaverDef

from runnel import gfile
from runnel.graph.graph import Graph
from runnel.graph.import_graph_def import import_graph_def
from runnel.graph_util import convert_variables_to_constants
from runnel.python.tools.graph_files import read_graph, read_message
from runnel.python.tools.saved_model_utils import get_meta_graph_def
from runnel.runtime.session.session import Session
from runnel.saved_model import loader, tag_constants
from runnel.train.checkpoint_state import checkpoint_exists
from runnel.train.checkpoint_utils import load_checkpoint
from runnel.train.meta_graph import import_meta_graph
from runnel.train.saver import Saver

__all__ = ["freeze_graph", "freeze_graph_with_def_protos"]


def freeze_graph_with_def_protos(
    input_graph_def: Any,
    input_saver_def: Any,
    input_checkpoint: Any,
    output_node_names: str,
    restore_op_name: str | None,
    filename_tensor_name: str | None,
    output_graph: str | None,
    clear_devices: bool,
    initializer_nodes: str,
    variable_names_whitelist: str = "",
    variable_names_blacklist: str = "",
    input_meta_graph_def: Any = None,
    input_saved_model_dir: str | None = None,
    saved_model_tags: Any = None,
    checkpoint_version: int = SaverDef.V2,
) -> Any:
    """A GraphDef that computes ``output_node_names`` (with commas), with its variables' values.

    The variables come from a checkpoint or a SavedModel. The graph is also written to
    ``output_graph``, unless that is empty. ``initializer_nodes`` run after the variables are there.
    """
    if not input_saved_model_dir and not checkpoint_exists(input_checkpoint):
        raise ValueError(f"Input checkpoint '{input_checkpoint}' doesn't exist!")
    if not output_node_names:
        raise ValueError("You need to supply the name of a node to --output_node_names.")

    def restore(session: Session) -> None:
        if input_saver_def:
            Saver(saver_def=input_saver_def).restore(session, input_checkpoint)
        elif input_meta_graph_def:
            saver = import_meta_graph(input_meta_graph_def, clear_devices=clear_devices)
            if saver is not None:
                saver.restore(session, input_checkpoint)
        elif input_saved_model_dir:
            loader.load(session, saved_model_tags or [tag_constants.SERVING], input_saved_model_dir)
        else:
            _restore_by_name(session, input_checkpoint, checkpoint_version)
        if initializer_nodes:
            session.run(_names(initializer_nodes))

    if input_meta_graph_def:
        graph_def = input_meta_graph_def.graph_def
    else:
        graph_def = input_graph_def
    graph_def = _copy(graph_def, clear_devices)
    is_there = bool(input_meta_graph_def or input_saved_model_dir)
    frozen = _frozen(
        graph_def,
        None if is_there else graph_def,
        restore,
        (output_node_names, variable_names_whitelist, variable_names_blacklist),
    )
    if output_graph:
        with gfile.GFile(output_graph, "wb") as file:
            file.write(frozen.SerializeToString(deterministic=True))
    return frozen


def freeze_graph(
    input_graph: str | None,
    input_saver: str | None,
    input_binary: bool,
    input_checkpoint: Any,
    output_node_names: str,
    restore_op_name: str | None,
    filename_tensor_name: str | None,
    output_graph: str | None,
    clear_devices: bool,
    initializer_nodes: str,
    variable_names_whitelist: str = "",
    variable_names_blacklist: str = "",
    input_meta_graph: str | None = None,
    input_saved_model_dir: str | None = None,
    saved_model_tags: str = tag_constants.SERVING,
    checkpoint_version: int = SaverDef.V2,
) -> Any:
    """:func:`freeze_graph_with_def_protos` of the graph, saver or meta graph in files.

    Example:
        >>> from runnel.python.tools import freeze_graph
        >>> freeze_graph.freeze_graph("graph.pbtxt", "", False, "model.ckpt-100", "softmax",
        ...     "save/restore_all", "save/Const:0", "frozen.pb", True, "")
    """
    graph_def = meta_graph_def = saver_def = None
    if input_saved_model_dir:
        graph_def = get_meta_graph_def(input_saved_model_dir, saved_model_tags).graph_def
    elif input_graph:
        graph_def = read_graph(input_graph, input_binary)
    if input_meta_graph:
        what = "Input meta graph"
        meta_graph_def = read_message(input_meta_graph, input_binary, MetaGraphDef(), what)
    if input_saver:
        saver_def = read_message(input_saver, input_binary, SaverDef(), "Input saver")
    return freeze_graph_with_def_protos(
        graph_def,
        saver_def,
        input_checkpoint,
        output_node_names,
        restore_op_name,
        filename_tensor_name,
        output_graph,
        clear_devices,
        initializer_nodes,
        variable_names_whitelist,
        variable_names_blacklist,
        meta_graph_def,
        input_saved_model_dir,
        [tag for tag in saved_model_tags.replace(" ", "").split(",") if tag],
        checkpoint_version,
    )


def _names(text: str) -> list[str]:
    return [name for name in text.replace(" ", "").split(",") if name]


def _copy(graph_def: Any, clear_devices: bool) -> Any:
    copy = type(graph_def)()
    copy.CopyFrom(graph_def)
    for node in copy.node if clear_devices else ():
        node.device = ""
    return copy


def _frozen(
    graph_def: Any,
    to_import: Any,
    restore: Callable[[Session], None],
    names: tuple[str, str, str],
) -> Any:
    outputs, whitelist, blacklist = map(_names, names)
    with Graph().as_default(), Session() as session:
        if to_import is not None:
            import_graph_def(to_import, name="")
        restore(session)
        return convert_variables_to_constants(
            session, graph_def, outputs, whitelist or None, blacklist or None
        )


def _restore_by_name(session: Session, checkpoint: Any, version: int) -> None:
    """Restores the variables that the graph and the checkpoint name alike."""
    graph = session.graph
    variables = {}
    for name in load_checkpoint(checkpoint).get_variable_to_shape_map():
        try:
            variables[name] = graph.get_tensor_by_name(f"{name}:0")
        except KeyError:  # the graph does without this one
            continue
    with graph.as_default():
        Saver(variables, write_version=version).restore(session, checkpoint)
