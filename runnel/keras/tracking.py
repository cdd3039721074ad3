"""Variables that Keras keeps for itself, beside those of a graph's collections."""

from __future__ import annotations

from typing import Any

from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import get_default_graph
from runnel.graph.shapes import as_shape
from runnel.variables.variable import Variable

_KEY = ("__keras_variables",)


def tracked(variable: Any) -> Any:
    """``variable``, which ``tf.keras.backend.get_session`` will initialise."""
    get_default_graph().get_collection_ref(_KEY).append(variable)
    return variable


def tracked_variables() -> list[Any]:
    """The variables of the default graph that Keras keeps for itself."""
    return list(get_default_graph().get_collection_ref(_KEY))


def tracked_variable(
    name: str, shape: Any, dtype: Any, first: Any, trainable: bool, collections: Any = None
) -> Any:
    """A new variable that starts as the initializer ``first`` makes it."""
    dims, kind = as_shape(() if shape is None else shape).as_list(), as_dtype(dtype)
    made = Variable(
        lambda: first(dims, dtype=kind),
        name=name,
        dtype=kind,
        trainable=trainable,
        use_resource=True,
        collections=collections,
    )
    return tracked(made)
