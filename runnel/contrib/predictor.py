"""``tf.contrib.predictor``: a saved model as a function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel.graph.graph import Graph
from runnel.runtime.session.session import Session
from runnel.saved_model.loader import load
from runnel.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY

__all__ = ["Predictor", "from_saved_model"]


class Predictor:
    """Outputs by name for inputs by name."""

    def __init__(
        self, session: Any, feed_tensors: Mapping[str, Any], fetch_tensors: Mapping[str, Any]
    ) -> None:
        self.session = session
        self.graph = session.graph
        self.feed_tensors = dict(feed_tensors)
        self.fetch_tensors = dict(fetch_tensors)

    def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, Any]:
        unknown = set(input_dict) - set(self.feed_tensors)
        if unknown:
            raise ValueError(
                f"Got unexpected keys in input_dict: {sorted(unknown)}; expected: "
                f"{sorted(self.feed_tensors)}"
            )
        feed = {self.feed_tensors[name]: value for name, value in input_dict.items()}
        return self.session.run(self.fetch_tensors, feed)  # type: ignore[no-any-return]


def from_saved_model(
    export_dir: Any,
    signature_def_key: str | None = None,
    signature_def: Any = None,
    input_names: Mapping[str, str] | None = None,
    output_names: Mapping[str, str] | None = None,
    tags: str | None = None,
    graph: Graph | None = None,
    config: Any = None,
) -> Predictor:
    """A function over a signature of a saved model.

    Example:
        >>> predict = tf.contrib.predictor.from_saved_model(path)
        >>> predict({"x": [[1.0, 2.0]]})["output"]
    """
    wanted = (tags or "serve").split(",")
    session = Session(graph=graph or Graph(), config=config)
    with session.graph.as_default():
        meta_graph = load(session, wanted, export_dir)
    key = signature_def_key or DEFAULT_SERVING_SIGNATURE_DEF_KEY
    if signature_def is None and input_names is None:
        if key not in meta_graph.signature_def:
            raise ValueError(
                f"The model has no signature {key!r}; it has {sorted(meta_graph.signature_def)}"
            )
        signature_def = meta_graph.signature_def[key]
    if signature_def is not None:
        input_names = {name: info.name for name, info in signature_def.inputs.items()}
        output_names = {name: info.name for name, info in signature_def.outputs.items()}
    feeds, fetches = (
        {name: session.graph.get_tensor_by_name(tensor) for name, tensor in (names or {}).items()}
        for names in (input_names, output_names)
    )
    return Predictor(session, feeds, fetches)


def __dir__() -> list[str]:
    return __all__
