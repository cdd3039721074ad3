"""Turns a step without state into one function of its feeds that JAX can trace, for export."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.runtime.schedule.unit import SegmentUnit

_MANY = (1 << 31) - 1


def pure_step(plan: Any, platform: str) -> Callable[..., list[Any]]:
    """The function from the feeds of ``plan``, one of a session of this process, to its fetches.

    Checks of data are left out: there is nobody to be told. An InvalidArgumentError names what has
    no such form: an operation that only the host can do, that waits, has state or draws numbers.
    """
    from runnel.runtime.compile.buffers import Effects
    from runnel.runtime.compile.checks import Checks
    from runnel.runtime.compile.segment_trace import SegmentTrace

    ready = plan._ready
    codes = []
    for unit in ready.schedule.units:
        if not isinstance(unit, SegmentUnit):
            raise _refused("part of the step", "it can only run as its data arrive")
        segment, code = unit.runner.segment, unit.runner._compiler.code
        last = segment.nodes[-1].op
        if not segment.compilable:
            raise _refused(last.name, f"{last.type} runs on the host", last)
        if code.loads or code.stores or code.streams:
            raise _refused(last.name, "it needs state, or random numbers", last)
        codes.append((segment, code))

    def step(*arguments: Any) -> list[Any]:
        values = {**ready.schedule._constants, **dict(zip(ready.feeds, arguments, strict=True))}
        for segment, code in codes:
            slots = list(code.template)
            for number, slot in zip(segment.inputs, code.inputs, strict=True):
                slots[slot] = values[number]
            SegmentTrace(code, slots, Checks(), platform, Effects(_Unstopped())).run({})
            for number, slot in zip(segment.outputs, code.outputs, strict=True):
                values[number] = slots[slot]
        return [values[number] for number in ready.fetches]

    return step


class _Unstopped:
    """Lets loops go on: there is no session that could stop them."""

    def ask(self, count: Any, *after: Any) -> Any:
        """As many more iterations as can be said."""
        return np.int32(_MANY)


def _refused(what: str, why: str, op: Any = None) -> InvalidArgumentError:
    return InvalidArgumentError(
        None, op, f"{what} cannot be exported: {why}. Export outputs that do not need it."
    )
