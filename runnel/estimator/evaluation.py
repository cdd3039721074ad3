"""Evaluating a model: metrics over the input, from one checkpoint."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel import metrics
from runnel.estimator.estimator_spec import EstimatorSpec
from runnel.graph.collections import GraphKeys
from runnel.ops.control import group
from runnel.summary.file_writer import FileWriterCache
from runnel.train.global_step import get_global_step
from runnel.train.hooks import FinalOpsHook
from runnel.train.monitored_session import MonitoredSession
from runnel.train.progress_hook import ProgressLine
from runnel.train.session_creators import ChiefSessionCreator
from runnel.train.session_run_hook import SessionRunHook

logger = logging.getLogger("runnel")


class _StopAfter(SessionRunHook):
    """Ends an evaluation after some steps, and shows how far it is; logs it about ten times."""

    def __init__(self, steps: int | None) -> None:
        self._steps = steps
        self._done = 0
        self._line = ProgressLine(what="evaluation step", unasked=True)

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._done = 0
        self._line.show(0, self._steps)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._done += 1
        every = 1 if self._steps is None else max(self._steps // 10, 1)
        if self._steps is None:
            logger.info("Evaluation [%d]", self._done)
        elif self._done % every == 0 or self._done == self._steps:
            logger.info("Evaluation [%d/%d]", self._done, self._steps)
        if self._line.is_due():
            self._line.show(self._done, self._steps)
        if self._done == self._steps:
            run_context.request_stop()

    def end(self, session: Any) -> None:
        self._line.show(self._done, self._steps)
        self._line.close()


def run_evaluation(
    spec: EstimatorSpec,
    checkpoint: str | None,
    session_config: Any,
    steps: int | None,
    hooks: Sequence[SessionRunHook],
    folder: str,
) -> dict[str, Any]:
    """The metrics of ``spec`` over the input, also written as summaries to ``folder``."""
    if "loss" in spec.eval_metric_ops or GraphKeys.GLOBAL_STEP in spec.eval_metric_ops:
        taken = "loss" if "loss" in spec.eval_metric_ops else GraphKeys.GLOBAL_STEP
        raise ValueError(
            f'Metric with name "{taken}" is not allowed, because Estimator already defines a '
            "default metric with the same name."
        )
    all_metrics = {**spec.eval_metric_ops, "loss": metrics.mean(spec.loss)}
    values: dict[str, Any] = {name: value for name, (value, _) in all_metrics.items()}
    values[GraphKeys.GLOBAL_STEP] = get_global_step()
    update = group(*(update for _, update in all_metrics.values()))
    final = FinalOpsHook(values)
    begun = time.monotonic()
    creator = ChiefSessionCreator(
        spec.scaffold, config=session_config, checkpoint_filename_with_path=checkpoint
    )
    every_hook = [*hooks, *spec.evaluation_hooks, _StopAfter(steps), final]
    with MonitoredSession(creator, hooks=every_hook) as sess:
        while not sess.should_stop():
            sess.run(update)
    found = {name: _plain(value) for name, value in final.final_ops_values.items()}
    logger.info("Inference Time : %.5fs", time.monotonic() - begun)
    _write(folder, found, checkpoint)
    return found


def _plain(value: Any) -> Any:
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _write(folder: str, found: dict[str, Any], checkpoint: str | None) -> None:
    from tensorboard.compat.proto.summary_pb2 import Summary

    step = int(found[GraphKeys.GLOBAL_STEP])
    shown = ", ".join(f"{name} = {value}" for name, value in sorted(found.items()))
    logger.info("Saving dict for global step %d: %s", step, shown)
    os.makedirs(folder, exist_ok=True)
    summary = Summary()
    for name, value in found.items():
        if name == GraphKeys.GLOBAL_STEP:
            continue
        if np.ndim(value) == 0 and np.asarray(value).dtype.kind in "fiub":
            summary.value.add(tag=name, simple_value=float(value))
        elif isinstance(value, bytes):  # a metric may be a serialized summary
            parsed = Summary.FromString(value)
            for number, one in enumerate(parsed.value):
                one.tag = f"{name}/{number}"
            summary.value.extend(parsed.value)
        else:
            logger.warning("Skipping summary for %s, must be a float or np.float32.", name)
    writer = FileWriterCache.get(folder)
    writer.add_summary(summary, step)
    writer.flush()
    if checkpoint:
        logger.info("Evaluated the checkpoint %s for global step %d", checkpoint, step)
