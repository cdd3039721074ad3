"""Stopping compiled loops: those that may run long ask the host from time to time.

A loop whose number of iterations is not known while it is compiled runs a number of them, a
*quantum*, at a time. After each it calls back: the host looks at the step's deadline and session,
and answers with the next quantum, chosen so that it is asked some fifty times a second, or with 0
to stop.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from runnel.runtime.state.at_exit import is_exiting
from runnel.runtime.state.step_context import StepContext

_SECONDS = 0.02
_MOST = 1 << 30
_FIRST_ELEMENTS = 1 << 22
_FEW_ITERATIONS = 1 << 20

_numbers = itertools.count(1)
_running: dict[int, _Run] = {}


class _Run:
    __slots__ = ("context", "asked")

    def __init__(self, context: StepContext) -> None:
        self.context = context
        self.asked = time.perf_counter()


@contextmanager
def watched(context: StepContext) -> Iterator[np.int32]:
    """A number for a run of a compiled segment, by which its loops ask about ``context``."""
    number = next(_numbers) % (1 << 31)
    _running[number] = _Run(context)
    try:
        yield np.int32(number)
    finally:
        del _running[number]


def _next_quantum(number: Any, count: Any) -> np.int32:
    """What a loop of run ``number`` that has run ``count`` iterations since the last call does."""
    run = _running.get(int(number))
    if run is None:  # nobody waits for it any more
        return np.int32(0 if is_exiting() else _MOST)
    if run.context.must_stop():
        return np.int32(0)
    now = time.perf_counter()
    elapsed, run.asked = now - run.asked, now
    return np.int32(min(_MOST, max(1, int(count) * _SECONDS / max(elapsed, 1e-6))))


def is_short(exact: bool, times: int | None) -> bool:
    """True for a loop that ends by itself before anyone would want to stop it."""
    return exact and times is not None and times <= _FEW_ITERATIONS


def stoppable_loop(
    goes_on: Callable[[Any], Any], body: Callable[[Any], Any], start: Any, number: Any
) -> tuple[Any, Any]:
    """``lax.while_loop(goes_on, body, start)`` that asks; and whether it was stopped."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def some(carry: Any) -> Any:
        state, quantum, _ = carry
        state, count = lax.while_loop(
            lambda c: goes_on(c[0]) & (c[1] < quantum),
            lambda c: (body(c[0]), c[1] + 1),
            (state, jnp.zeros((), np.int32)),
        )
        answer = jax.ShapeDtypeStruct((), np.int32)
        quantum = lax.cond(
            count >= quantum,
            lambda: jax.pure_callback(_next_quantum, answer, number, count),
            lambda: quantum,
        )
        return state, quantum, quantum == 0

    first = jnp.asarray(_first_quantum(jax.tree_util.tree_leaves(start)), np.int32)
    state, _, stopped = lax.while_loop(
        lambda carry: goes_on(carry[0]) & ~carry[2],
        some,
        (start, first, jnp.asarray(False)),
    )
    return state, stopped


def _first_quantum(arrays: Sequence[Any]) -> int:
    elements = sum(math.prod(array.shape) for array in arrays)
    return min(1 << 16, max(16, _FIRST_ELEMENTS // max(1, elements)))
