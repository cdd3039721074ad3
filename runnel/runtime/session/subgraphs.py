"""Parts of a graph that operations run: the functions of datasets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.graph.operation import Operation, Tensor
from runnel.runtime.session.backend import Plan
from runnel.runtime.state.step_context import RunningSteps

MakePlan = Callable[[list[Tensor], list[Operation], list[Tensor]], Plan]


class Subgraphs:
    """Prepares functions from values of some tensors to those of others, each once."""

    def __init__(self, make_plan: MakePlan, steps: RunningSteps) -> None:
        self._make_plan = make_plan
        self._steps = steps
        self._prepared: dict[Any, Callable[[Sequence[Any]], list[Any]]] = {}
        # A function is prepared once even if several threads ask for it.
        self._lock = threading.Lock()

    def __call__(
        self, fetches: tuple[Tensor, ...], feeds: tuple[Tensor, ...]
    ) -> Callable[[Sequence[Any]], list[Any]]:
        """What computes ``fetches`` from values for ``feeds``, as a step of its own."""
        with self._lock:
            found = self._prepared.get((fetches, feeds))
            if found is None:
                found = self._prepared[fetches, feeds] = self._function(fetches, feeds)
            return found

    def _function(
        self, fetches: tuple[Tensor, ...], feeds: tuple[Tensor, ...]
    ) -> Callable[[Sequence[Any]], list[Any]]:
        wanted = list(dict.fromkeys(fetches))
        places = [wanted.index(tensor) for tensor in fetches]
        plan = self._make_plan(wanted, [], list(feeds))
        steps = self._steps

        def call(values: Sequence[Any]) -> list[Any]:
            context = steps.begin()
            try:
                found = plan.run([np.asarray(value) for value in values], context)
            finally:
                steps.end(context)
            return [found[place] for place in places]

        return call
