"""``tf.saved_model.loader``: a SavedModel, read into a session."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from runnel.saved_model.assets import assets_of
from runnel.saved_model.constants import (
    LEGACY_INIT_OP_KEY,
    MAIN_OP_KEY,
    VARIABLES_DIRECTORY,
    VARIABLES_FILENAME,
)
from runnel.saved_model.model_file import contains_saved_model, read_saved_model
from runnel.train.meta_graph import import_meta_graph
from runnel.variables.proto_names import add_scope

logger = logging.getLogger("runnel")

maybe_saved_model_directory = contains_saved_model

__all__ = ["load", "maybe_saved_model_directory"]

_INIT_OP_SIGNATURE = "__saved_model_init_op"


def __dir__() -> list[str]:
    return __all__


def load(
    sess: Any,
    tags: Iterable[str],
    export_dir: Any,
    import_scope: str | None = None,
    **saver_kwargs: Any,
) -> Any:
    """Adds the graph that has exactly ``tags`` to that of ``sess``, and restores its variables.

    Returns the ``MetaGraphDef``: its ``signature_def`` names inputs and outputs. With
    ``import_scope`` the graph lies in that scope. Other arguments are those of
    :func:`tf.train.import_meta_graph`.

    Example:
        >>> with tf.Graph().as_default(), tf.Session() as sess:
        ...     model = tf.saved_model.load(sess, ["serve"], "/tmp/model/1")
        ...     signature = model.signature_def["serving_default"]
        ...     y = sess.run(signature.outputs["y"].name, {signature.inputs["x"].name: value})
    """
    folder = Path(os.fsdecode(os.fspath(export_dir)))
    found = with_tags(read_saved_model(folder), tags, folder)
    with sess.graph.as_default():
        assets = assets_of(found, folder, import_scope)
        saver = import_meta_graph(found, import_scope=import_scope, **saver_kwargs)
        if saver is None:
            logger.info("The specified SavedModel has no variables; no checkpoints were restored.")
        else:
            saver.restore(sess, folder / VARIABLES_DIRECTORY / VARIABLES_FILENAME)
        main_op = _main_op(found, sess.graph, import_scope)
        if main_op is not None:
            sess.run(main_op, feed_dict=assets)
    return found


def with_tags(saved_model: Any, tags: Iterable[str], folder: Path) -> Any:
    """The graph that has exactly ``tags``."""
    wanted = {tags} if isinstance(tags, str) else set(tags)
    for meta_graph in saved_model.meta_graphs:
        if set(meta_graph.meta_info_def.tags) == wanted:
            return meta_graph
    there = [sorted(m.meta_info_def.tags) for m in saved_model.meta_graphs]
    raise RuntimeError(
        f"MetaGraphDef associated with tags {', '.join(sorted(wanted)) or '(none)'} could not be "
        f"found in the SavedModel {folder}. It has graphs with these tags: "
        + ("; ".join(", ".join(one) or "(none)" for one in there) or "no graphs at all")
    )


def _main_op(meta_graph: Any, graph: Any, scope: str | None) -> Any:
    """What is to be run once the variables are restored."""
    if _INIT_OP_SIGNATURE in meta_graph.signature_def:
        outputs = meta_graph.signature_def[_INIT_OP_SIGNATURE].outputs
        for info in outputs.values():
            return graph.as_graph_element(add_scope(info.name, scope))
    for key in (MAIN_OP_KEY, LEGACY_INIT_OP_KEY):
        if key in meta_graph.collection_def:
            names = meta_graph.collection_def[key].node_list.value
            if len(names) != 1:
                raise RuntimeError(
                    f"Expected exactly one SavedModel init op. Found {len(names)}: {list(names)}."
                )
            return graph.as_graph_element(add_scope(names[0], scope))
    return None
