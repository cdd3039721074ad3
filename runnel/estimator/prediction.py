"""Predicting: what a model gives for each row of its input."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from runnel.graph.collections import GraphKeys
from runnel.graph.graph import get_default_graph
from runnel.train.session_creators import SessionCreator

logger = logging.getLogger("runnel")


class InGraph(SessionCreator):
    """Makes sessions of a graph that is the default one only meanwhile."""

    def __init__(self, creator: SessionCreator) -> None:
        self._creator = creator
        self._graph = get_default_graph()

    def create_session(self) -> Any:
        with self._graph.as_default():
            return self._creator.create_session()


def chosen(predictions: Any, predict_keys: Any) -> Any:
    """The predictions that are asked for."""
    if not predict_keys:
        return predictions
    if not isinstance(predictions, Mapping):
        raise ValueError("predict_keys argument is not valid in case of non-dict predictions.")
    wanted = [predict_keys] if isinstance(predict_keys, str) else list(predict_keys)
    found = {name: predictions[name] for name in predictions if name in wanted}
    if not found:
        raise ValueError(
            f"Expected to run at least one output from {sorted(predictions)}, provided {wanted}."
        )
    return found


def rows(values: Any) -> Iterator[Any]:
    """What was predicted for each row of a batch."""
    if not isinstance(values, Mapping):
        yield from values
        return
    lengths = {name: np.shape(value)[0] for name, value in values.items() if np.ndim(value)}
    if len(lengths) != len(values) or len(set(lengths.values())) != 1:
        raise ValueError(
            "Batch length of predictions should be same. They have these lengths: "
            f"{ {name: lengths.get(name) for name in values} }; predict(yield_single_examples="
            "False) gives them as they are"
        )
    for number in range(next(iter(lengths.values()))):
        yield {name: value[number] for name, value in values.items()}


def warn_if_endless(input_hooks: Sequence[Any]) -> None:
    """Tells of input that never ends."""
    graph = get_default_graph()
    ends = input_hooks or graph.get_collection(GraphKeys.QUEUE_RUNNERS)
    if not ends and not any("Iterator" in op.type for op in graph.get_operations()):
        logger.warning(
            "Input graph does not use tf.data.Dataset or contain a QueueRunner. That means predict "
            "yields forever. This is probably a mistake."
        )
