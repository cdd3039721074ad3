"""Arrays that go into queues and come out: taken over, stacked, padded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.queues.buffers import Buffers
from runnel.queues.elements import SINGLE, Run


def taken_over(value: Any, buffers: Buffers | None = None) -> Any:
    """``value`` as something that nobody will change: what a queue may keep.

    A view may be of memory that the caller of ``run`` will use again; it is copied. An array of
    its own is frozen, so that whoever else has it copies it before changing it.
    """
    if type(value) is np.ndarray:
        if value.base is not None:
            if value.ndim == 0 and value.dtype != object:
                return value[()]
            if buffers is None or value.dtype == object:
                copy = value.copy()
            else:
                copy = buffers.empty(value.shape, value.dtype)
                np.copyto(copy, value)
            copy.flags.writeable = False
            return copy
        value.flags.writeable = False
        return value
    if isinstance(value, np.generic) or not hasattr(value, "__array__"):
        return value
    return np.asarray(value)


def batch(runs: Sequence[Run], component: int, dtype: Any) -> np.ndarray:
    """One component of the elements of ``runs``, stacked."""
    if len(runs) == 1:
        run = runs[0]
        value = run.values[component]
        if run.first == SINGLE:
            return _stack([value], dtype)
        if run.first == 0 and run.length == len(value):
            return value
        return value[run.first : run.first + run.length]
    if all([run.length == 1 for run in runs]):
        singles = [
            run.values[component] if run.first == SINGLE else run.values[component][run.first]
            for run in runs
        ]
        return _stack(singles, dtype)
    return np.concatenate(
        [
            _stack([run.values[component]], dtype)
            if run.first == SINGLE
            else run.values[component][run.first : run.first + run.length]
            for run in runs
        ]
    )


def _stack(values: list[Any], dtype: Any) -> np.ndarray:
    if dtype == object:
        stacked = np.empty((len(values), *np.shape(values[0])), object)
        for i, value in enumerate(values):
            stacked[i] = value[()] if isinstance(value, np.ndarray) and not value.ndim else value
        return stacked
    return np.array(values, dtype)


def padded_batch(runs: Sequence[Run], component: int, dtype: Any) -> np.ndarray:
    """Like :func:`batch`, of elements of different sizes: zeros (empty strings) fill up."""
    values = [value for run in runs for value in _rows(run, component)]
    shapes = [np.shape(value) for value in values]
    largest = tuple([max(sizes) for sizes in zip(*shapes, strict=True)])
    if all([shape == largest for shape in shapes]):
        return batch(runs, component, dtype)
    stacked = np.full((len(values), *largest), b"" if dtype == object else 0, dtype)
    for i, value in enumerate(values):
        part = stacked[i]
        part[tuple([slice(0, size) for size in shapes[i]])] = value
    return stacked


def _rows(run: Run, component: int) -> Sequence[Any]:
    value = run.values[component]
    return [value] if run.first == SINGLE else value[run.first : run.first + run.length]
