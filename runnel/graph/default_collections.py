"""The collections of the default graph."""

from __future__ import annotations

from typing import Any

from runnel.graph.graph import get_default_graph


def add_to_collection(name: Any, value: Any) -> None:
    """``Graph.add_to_collection`` of the default graph.

    Example:
        >>> tf.add_to_collection("losses", loss)
    """
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    """``Graph.add_to_collections`` of the default graph."""
    get_default_graph().add_to_collections(names, value)


def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """``Graph.get_collection`` of the default graph.

    Example:
        >>> total_loss = tf.add_n(tf.get_collection("losses"))
    """
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: Any) -> list[Any]:
    """``Graph.get_collection_ref`` of the default graph."""
    return get_default_graph().get_collection_ref(key)
