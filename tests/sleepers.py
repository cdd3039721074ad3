"""Lets a test wait until steps can only wait."""

from __future__ import annotations

import threading

from runnel.runtime.state.step_context import RunningSteps, StepContext

_sleep = StepContext.sleep
_asleep: list[StepContext] = []
_changed = threading.Condition()


def _noted(context: StepContext) -> None:
    with _changed:
        _asleep.append(context)
        _changed.notify_all()
    try:
        _sleep(context)
    finally:
        _asleep.remove(context)


StepContext.sleep = _noted  # type: ignore[method-assign]


def await_sleepers(steps: RunningSteps, count: int, seconds: float) -> bool:
    """Waits until ``count`` of ``steps`` can only wait; False when they do not."""
    with _changed:
        return _changed.wait_for(
            lambda: sum(context.steps is steps for context in _asleep) >= count, seconds
        )
