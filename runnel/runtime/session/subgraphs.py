"""Runs parts of a graph for operations: the functions of datasets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.graph.operation import Operation, Tensor
from runnel.runtime.lockstep.rows import RowsTooLarge, SeparateRows, StackedRows, repeated, stack_of
from runnel.runtime.session.backend import Plan
from runnel.runtime.state.step_context import RunningSteps

MakePlan = Callable[[list[Tensor], list[Operation], list[Tensor]], Plan]


class Subgraph:
    """A function from values of some tensors to those of others; each call is a step of its own."""

    def __init__(self, plan: Plan, places: list[int], steps: RunningSteps) -> None:
        self._plan, self._places, self._steps = plan, places, steps
        self._too_large = False

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        steps = self._steps
        context = steps.begin_inside()
        try:
            found = self._plan.run([np.asarray(value) for value in values], context)
        finally:
            steps.end(context)
        return [found[place] for place in self._places]

    @property
    def has_rows(self) -> bool:
        """Whether :meth:`rows` can be called."""
        return not self._too_large and getattr(self._plan, "lockstep", None) is not None

    def rows(self, columns: Sequence[Any], shared: Sequence[Any], count: int) -> list[Any]:
        """What ``count`` calls give, as columns, in the order of their arguments.

        A column is an array with a row for each call, or a list of the values. ``shared`` are
        arguments that are the same in every call, behind the others. If it fails nothing has
        happened: whoever wants to know which call is wrong makes them one after the other.
        """
        run: Any = self._plan.lockstep  # type: ignore[attr-defined]
        fed = [
            SeparateRows(column) if isinstance(column, list) else StackedRows(column)
            for column in columns
        ]
        context = self._steps.begin_inside()
        try:
            found = run([*fed, *map(np.asarray, shared)], count, context)
        except RowsTooLarge:
            self._too_large = True
            raise
        finally:
            self._steps.end(context)
        given: set[int] = set()
        return [_column(found[place], count, given) for place in self._places]


def _column(value: Any, count: int, given: set[int]) -> Any:
    """The rows of a value, in an array that is not one of ``given``, to which it is added."""
    made: Any
    if isinstance(value, SeparateRows):
        stack = value.stack()
        made = value.values if stack is None else stack
    elif isinstance(value, StackedRows):
        made = value.array
    else:
        made = repeated(value, count)
        made = stack_of([value] * count) if made is None else made
    if isinstance(made, np.ndarray) and (not made.flags.writeable or id(made) in given):
        made = made.copy()
    given.add(id(made))
    return made


class Subgraphs:
    """Prepares functions from values of some tensors to those of others, each once."""

    def __init__(self, make_plan: MakePlan, steps: RunningSteps) -> None:
        self._make_plan = make_plan
        self._steps = steps
        self._prepared: dict[Any, Subgraph] = {}
        # A function is prepared once even if several threads ask for it.
        self._lock = threading.Lock()

    def __call__(self, fetches: tuple[Tensor, ...], feeds: tuple[Tensor, ...]) -> Subgraph:
        """What computes ``fetches`` from values for ``feeds``, as a step of its own."""
        with self._lock:
            found = self._prepared.get((fetches, feeds))
            if found is None:
                wanted = list(dict.fromkeys(fetches))
                places = [wanted.index(tensor) for tensor in fetches]
                plan = self._make_plan(wanted, [], list(feeds))
                found = self._prepared[fetches, feeds] = Subgraph(plan, places, self._steps)
            return found
