"""A task that evaluates the checkpoints of a job, as other tasks write them."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping
from typing import Any

from runnel.checkpoint.reading import checkpoint_exists
from runnel.estimator.estimator import Estimator
from runnel.estimator.train_spec import EvalSpec
from runnel.graph.collections import GraphKeys
from runnel.train.checkpoint_utils import load_variable

logger = logging.getLogger("runnel")

_LOOK_SECONDS = 1.0
"""How soon a checkpoint is seen for which the evaluator has been waiting."""

Evaluated = tuple[Mapping[str, Any] | None, list[Any]]
"""Metrics, and what exporters returned."""


def evaluate_and_export(
    estimator: Estimator, spec: EvalSpec, path: str, is_last: bool
) -> tuple[Mapping[str, Any], list[Any]]:
    """Evaluates the checkpoint ``path``, and hands it to the exporters of ``spec``."""
    metrics = estimator.evaluate(
        spec.input_fn, spec.steps, spec.hooks, checkpoint_path=path, name=spec.name
    )
    exports = []
    for exporter in spec.exporters:
        folder = os.path.join(estimator.model_dir, "export", exporter.name)
        exports.append(exporter.export(estimator, folder, path, metrics, is_last))
    return metrics, exports


class ContinuousEvaluation:
    """Evaluates each newest checkpoint, until one of ``max_steps`` steps; None: for ever."""

    def __init__(self, estimator: Estimator, spec: EvalSpec, max_steps: int | None) -> None:
        self._estimator = estimator
        self._spec = spec
        self._max_steps = max_steps
        self._sleep = threading.Event()  # that nobody sets: a signal interrupts the wait

    def run(self) -> Evaluated:
        """The metrics of the last evaluation, and what the exporters returned after it."""
        spec = self._spec
        if spec.start_delay_secs > 0:
            logger.info("Waiting %f secs before starting eval.", spec.start_delay_secs)
            self._sleep.wait(spec.start_delay_secs)
        seen: str | None = None
        while True:
            path = self._estimator.latest_checkpoint()
            if path is None or path == seen:
                self._sleep.wait(_LOOK_SECONDS)
                continue
            begun = time.monotonic()
            seen = path
            step = self._step_of(path)
            if step is None:
                continue  # it was removed meanwhile: there is a newer one
            is_last = bool(self._max_steps and step >= self._max_steps)
            found = evaluate_and_export(self._estimator, spec, path, is_last)
            if is_last:
                return found
            self._sleep.wait(max(0.0, spec.throttle_secs - (time.monotonic() - begun)))

    def _step_of(self, path: str) -> int | None:

        if not checkpoint_exists(path):
            return None
        return int(load_variable(path, GraphKeys.GLOBAL_STEP))
