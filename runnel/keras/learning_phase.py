"""Whether a graph is training, for layers that are not told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from runnel.graph.graph import get_default_graph, name_scope
from runnel.ops.constants import placeholder_with_default

_KEY = ("__keras_learning_phase",)


def learning_phase() -> Any:
    """0 or 1 if it was set, else a placeholder of the graph that is False unless fed.

    Example:
        >>> sess.run(train_op, {tf.keras.backend.learning_phase(): 1})
    """
    graph = get_default_graph()
    kept = graph.get_collection_ref(_KEY)
    if not kept:
        with graph.as_default(), name_scope(""):
            kept.append(placeholder_with_default(False, [], name="keras_learning_phase"))
    return kept[0]


def set_learning_phase(value: int) -> None:
    """Sets the phase of the default graph for layers that are called from now on: 0 or 1."""
    if value not in (0, 1):
        raise ValueError(f"The learning phase must be 0 or 1, not {value!r}")
    get_default_graph().get_collection_ref(_KEY)[:] = [int(value)]


def resolved(training: Any) -> Any:
    """``training``; where that is None, the learning phase."""
    found = learning_phase() if training is None else training
    return bool(found) if isinstance(found, int) else found


def phase_of_graph() -> Any:
    """The learning phase of the default graph if anything has asked for it, else None."""
    kept = get_default_graph().get_collection_ref(_KEY)
    return kept[0] if kept else None


@contextmanager
def phase_kept(graph: Any, value: int) -> Iterator[None]:
    """The phase of ``graph`` is ``value`` inside the block, and afterwards what it was."""
    kept = graph.get_collection_ref(_KEY)
    before = list(kept)
    kept[:] = [value]
    try:
        yield
    finally:
        kept[:] = before
