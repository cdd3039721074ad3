"""``TrainSpec`` and ``EvalSpec``: with what a model is trained and evaluated in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.estimator.estimator_spec import checked_hooks
from runnel.estimator.exporter import Exporter
from runnel.train.checkpoint_hook import CheckpointSaverListener
from runnel.train.session_run_hook import SessionRunHook


def _require_function(what: str, value: Any) -> None:
    if not callable(value):
        raise TypeError(f"{what} must be callable, given: {value!r}")


class TrainSpec:
    """What :func:`train_and_evaluate` trains with, up to ``max_steps`` or the input's end."""

    def __init__(
        self,
        input_fn: Callable[..., Any],
        max_steps: int | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        saving_listeners: Sequence[CheckpointSaverListener] | None = None,
    ) -> None:
        _require_function("input_fn", input_fn)
        if max_steps is not None and max_steps <= 0:
            raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
        self.input_fn = input_fn
        self.max_steps = max_steps
        self.hooks = checked_hooks(hooks)
        self.saving_listeners = tuple(saving_listeners or ())


class EvalSpec:
    """What :func:`train_and_evaluate` evaluates with, and which exporters it calls.

    ``steps`` batches are evaluated (None: all); ``throttle_secs`` lie between two evaluations at
    least. A task that only evaluates begins after ``start_delay_secs``.
    """

    def __init__(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = 100,
        name: str | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        exporters: Any = None,
        start_delay_secs: float = 120,
        throttle_secs: float = 600,
    ) -> None:
        _require_function("input_fn", input_fn)
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        if start_delay_secs < 0:
            raise ValueError(f"Must specify start_delay_secs >= 0, given: {start_delay_secs}")
        if throttle_secs < 0:
            raise ValueError(f"Must specify throttle_secs >= 0, given: {throttle_secs}")
        self.input_fn = input_fn
        self.steps = steps
        self.name = name
        self.hooks = checked_hooks(hooks)
        self.exporters = _exporters(exporters)
        self.start_delay_secs = start_delay_secs
        self.throttle_secs = throttle_secs


def _exporters(exporters: Any) -> tuple[Exporter, ...]:
    found = (exporters,) if isinstance(exporters, Exporter) else tuple(exporters or ())
    for exporter in found:
        if not isinstance(exporter, Exporter):
            raise TypeError(f"exporters must be Exporters, given: {exporter!r}")
    names = [exporter.name for exporter in found]
    if len(set(names)) != len(names):
        raise ValueError(f"`exporters` must have unique names. Such a name is missing: {names}")
    return found
