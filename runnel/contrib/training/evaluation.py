"""Evaluating a model at one checkpoint, or at each that comes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.graph.collections import GraphKeys
from runnel.graph.graph import control_dependencies, get_default_graph
from runnel.ops.control import identity
from runnel.summary import FileWriter, merge_all
from runnel.train.checkpoint_waiting import checkpoints_iterator
from runnel.train.global_step import get_global_step
from runnel.train.hooks import FinalOpsHook
from runnel.train.monitored_session import MonitoredSession
from runnel.train.scaffold import Scaffold
from runnel.train.session_creators import ChiefSessionCreator
from runnel.train.session_run_hook import SessionRunArgs, SessionRunHook
from runnel.variables.get_variable import get_variable
from runnel.variables.variable_scope import variable_scope

logger = logging.getLogger("runnel")


def get_or_create_eval_step() -> Any:
    """The local variable that counts the steps of an evaluation; one in each graph."""
    graph = get_default_graph()
    found = graph.get_collection(GraphKeys.EVAL_STEP)
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    with variable_scope("", reuse=False, auxiliary_name_scope=False):
        return get_variable(
            "eval_step",
            initializer=np.zeros((), np.int64),
            trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.EVAL_STEP],
        )


class StopAfterNEvalsHook(SessionRunHook):
    """Stops an evaluation after ``num_evals`` steps; None: at the end of the input."""

    def __init__(self, num_evals: int | None, log_progress: bool = True) -> None:
        self._num_evals = num_evals
        self._log_progress = log_progress
        self._completed: Any = None

    def _set_evals_completed_tensor(self, updated_eval_step: Any) -> None:
        self._completed = updated_eval_step

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs({"evals_completed": self._completed})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        completed = int(run_values.results["evals_completed"])
        if self._log_progress:
            of = "" if self._num_evals is None else f"/{self._num_evals}"
            logger.info("Evaluation [%d%s]", completed, of)
        if self._num_evals is not None and completed >= self._num_evals:
            run_context.request_stop()


class SummaryAtEndHook(SessionRunHook):
    """Writes the summaries of a graph, or ``summary_op``, at the end of a session."""

    def __init__(
        self,
        log_dir: Any = None,
        summary_writer: Any = None,
        summary_op: Any = None,
        feed_dict: Any = None,
    ) -> None:
        if (log_dir is None) == (summary_writer is None):
            raise ValueError("exactly one of log_dir and summary_writer should be provided.")
        self._log_dir = log_dir
        self._writer = summary_writer
        self._summary_op = summary_op
        self._feed_dict = feed_dict
        self._replaced = summary_op is None

    def begin(self) -> None:
        if self._replaced:
            self._summary_op = merge_all()
        self._global_step = get_global_step()

    def end(self, session: Any) -> None:
        if self._summary_op is None:
            return
        fetches = [self._summary_op]
        if self._global_step is not None:
            fetches.append(self._global_step)
        text, *step = session.run(fetches, self._feed_dict)
        writer = self._writer if self._log_dir is None else FileWriter(self._log_dir)
        writer.add_summary(text, int(step[0]) if step else None)
        writer.flush()
        if self._log_dir is not None:
            writer.close()


def _counted(eval_ops: Any, hooks: Sequence[SessionRunHook]) -> Any:
    """``eval_ops`` with a count of the steps, which ``hooks`` are told of."""
    step = get_or_create_eval_step()
    counted: Any = eval_ops
    completed = step
    if eval_ops is not None:
        # The count is read after it has been raised: a hook that stops would be a step late.
        completed = identity(step.assign_add(1, use_locking=True))
        if isinstance(eval_ops, dict):
            counted = {**eval_ops, "update_eval_step": completed}
        elif isinstance(eval_ops, list | tuple):
            counted = [*eval_ops, completed]
        else:
            counted = [eval_ops, completed]
    with control_dependencies(None):
        for hook in hooks:
            if isinstance(hook, StopAfterNEvalsHook):
                hook._set_evals_completed_tensor(completed)
    return counted


def evaluate_once(
    checkpoint_path: Any,
    master: str = "",
    scaffold: Scaffold | None = None,
    eval_ops: Any = None,
    feed_dict: Any = None,
    final_ops: Any = None,
    final_ops_feed_dict: Any = None,
    hooks: Sequence[SessionRunHook] | None = None,
    config: Any = None,
) -> Any:
    """Runs ``eval_ops`` at a checkpoint until a hook stops it; returns the value of ``final_ops``.

    Example:
        >>> tf.contrib.training.evaluate_once(
        ...     tf.train.latest_checkpoint("/tmp/model"), eval_ops=update, final_ops=accuracy,
        ...     hooks=[tf.contrib.training.StopAfterNEvalsHook(100)])
    """
    given = list(hooks or [])
    counted = _counted(eval_ops, given)
    last = FinalOpsHook(final_ops, final_ops_feed_dict)
    _evaluate(checkpoint_path, master, scaffold, counted, feed_dict, [*given, last], config)
    return last.final_ops_values


def evaluate_repeatedly(
    checkpoint_dir: Any,
    master: str = "",
    scaffold: Scaffold | None = None,
    eval_ops: Any = None,
    feed_dict: Any = None,
    final_ops: Any = None,
    final_ops_feed_dict: Any = None,
    eval_interval_secs: float = 60,
    hooks: Sequence[SessionRunHook] | None = None,
    config: Any = None,
    max_number_of_evaluations: int | None = None,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Any:
    """Does what :func:`evaluate_once` does at each checkpoint that comes into a folder.

    It ends after ``max_number_of_evaluations``, or when none comes for ``timeout`` seconds.
    """
    given = list(hooks or [])
    counted = _counted(eval_ops, given)
    last = FinalOpsHook(final_ops, final_ops_feed_dict)
    paths = checkpoints_iterator(checkpoint_dir, eval_interval_secs, timeout, timeout_fn)
    for number, path in enumerate(paths, 1):
        _evaluate(path, master, scaffold, counted, feed_dict, [*given, last], config)
        if max_number_of_evaluations is not None and number >= max_number_of_evaluations:
            break
    return last.final_ops_values


def _evaluate(
    path: Any,
    master: str,
    scaffold: Scaffold | None,
    eval_ops: Any,
    feed_dict: Any,
    hooks: list[SessionRunHook],
    config: Any,
) -> None:
    creator = ChiefSessionCreator(
        scaffold=scaffold, checkpoint_filename_with_path=path, master=master, config=config
    )
    with MonitoredSession(session_creator=creator, hooks=hooks) as session:
        while eval_ops is not None and not session.should_stop():
            session.run(eval_ops, feed_dict)
