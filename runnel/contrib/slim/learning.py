"""``slim.learning``: training operations, and the loop that runs them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from runnel import logging
from runnel.graph.collections import GraphKeys
from runnel.graph.errors import OutOfRangeError
from runnel.graph.graph import control_dependencies, get_default_graph, name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.ops.checks import verify_tensor_all_finite
from runnel.ops.clipping import clip_by_norm, global_norm
from runnel.ops.comparison import equal, greater_equal
from runnel.ops.constants import constant
from runnel.ops.control import identity
from runnel.ops.division import mod
from runnel.summary import histogram, merge_all, scalar
from runnel.timeline import Timeline
from runnel.train.global_step import get_global_step, get_or_create_global_step
from runnel.train.optimizer import Optimizer
from runnel.train.progress_hook import LoopProgress
from runnel.train.supervisor import Supervisor
from runnel.variables.initialization import trainable_variables

__all__ = [
    "add_gradients_summaries",
    "clip_gradient_norms",
    "create_train_op",
    "multiply_gradients",
    "train",
    "train_step",
]

_USE_DEFAULT = 0
_USE_GLOBAL_STEP = 0


def _map_gradient(grad: Any, function: Callable[[Any], Any]) -> Any:
    if grad is None:
        return None
    if isinstance(grad, IndexedSlices):
        return IndexedSlices(function(grad.values), grad.indices, grad.dense_shape)
    return function(grad)


def clip_gradient_norms(
    gradients_to_variables: list[tuple[Any, Any]], max_norm: float
) -> list[tuple[Any, Any]]:
    """Each gradient by itself scaled down to the norm ``max_norm``."""
    return [
        (_map_gradient(grad, lambda g: clip_by_norm(g, max_norm)), var)
        for grad, var in gradients_to_variables
    ]


def multiply_gradients(
    grads_and_vars: list[tuple[Any, Any]], gradient_multipliers: Mapping[Any, Any]
) -> list[tuple[Any, Any]]:
    """Gradients times the numbers that are given for variables, or for their names."""
    if not isinstance(grads_and_vars, list):
        raise ValueError("`grads_and_vars` must be a list.")
    if not gradient_multipliers:
        raise ValueError("`gradient_multipliers` is empty.")
    found = []
    for grad, var in grads_and_vars:
        key = var if var in gradient_multipliers else var.op.name
        if key in gradient_multipliers:
            if grad is None:
                raise ValueError("Requested multiple of `None` gradient.")
            factor = gradient_multipliers[key]
            grad = _map_gradient(grad, lambda g, k=factor: g * constant(k, g.dtype.base_dtype))  # type: ignore[misc]
        found.append((grad, var))
    return found


def add_gradients_summaries(grads_and_vars: list[tuple[Any, Any]]) -> list[Any]:
    """A histogram and the norm of each gradient."""
    summaries = []
    for grad, var in grads_and_vars:
        if grad is None:
            logging.info("Var %s has no gradient", var.op.name)
            continue
        values = grad.values if isinstance(grad, IndexedSlices) else grad
        summaries.append(histogram(f"{var.op.name}_gradient", values))
        summaries.append(scalar(f"{var.op.name}_gradient_norm", global_norm([values])))
    return summaries


def create_train_op(
    total_loss: Any,
    optimizer: Optimizer,
    global_step: Any = _USE_GLOBAL_STEP,
    update_ops: Any = None,
    variables_to_train: Any = None,
    clip_gradient_norm: float = 0,
    summarize_gradients: bool = False,
    gate_gradients: int = Optimizer.GATE_OP,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    gradient_multipliers: Mapping[Any, Any] | None = None,
    check_numerics: bool = True,
    transform_grads_fn: Callable[[list[Any]], list[Any]] | None = None,
) -> Any:
    """An operation that trains, and gives the loss; the update operations of the graph run first.

    Example:
        >>> train_op = slim.learning.create_train_op(loss, tf.train.AdamOptimizer(1e-3))
        >>> slim.learning.train(train_op, logdir, number_of_steps=1000)
    """
    if isinstance(global_step, int) and global_step == _USE_GLOBAL_STEP:
        global_step = get_or_create_global_step()
    if update_ops is None:
        update_ops = get_default_graph().get_collection(GraphKeys.UPDATE_OPS)
    if update_ops:
        with control_dependencies(list(update_ops)), name_scope("update_barrier"):
            total_loss = identity(total_loss)
    gradients = optimizer.compute_gradients(
        total_loss,
        trainable_variables() if variables_to_train is None else variables_to_train,
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
    )
    if gradient_multipliers:
        gradients = multiply_gradients(gradients, gradient_multipliers)
    if transform_grads_fn is not None:
        gradients = transform_grads_fn(gradients)
    if clip_gradient_norm > 0:
        gradients = clip_gradient_norms(gradients, clip_gradient_norm)
    if summarize_gradients:
        with name_scope("summarize_grads"):
            add_gradients_summaries(gradients)
    updates = optimizer.apply_gradients(gradients, global_step=global_step)
    with name_scope("train_op"):
        if check_numerics:
            total_loss = verify_tensor_all_finite(total_loss, "LossTensor is inf or nan")
        with control_dependencies([updates]):
            made = identity(total_loss)
    members = get_default_graph().get_collection_ref(GraphKeys.TRAIN_OP)
    if not any(made is member for member in members):
        members.append(made)
    return made


def train_step(
    sess: Any, train_op: Any, global_step: Any, train_step_kwargs: Mapping[str, Any]
) -> tuple[Any, bool]:
    """One step: the loss, and whether it was the last."""
    began = time.monotonic()
    options, metadata = None, None
    if "should_trace" in train_step_kwargs and sess.run(train_step_kwargs["should_trace"]):
        from tensorboard.compat.proto.config_pb2 import RunMetadata, RunOptions

        options = RunOptions(trace_level=RunOptions.FULL_TRACE)
        metadata = RunMetadata()
    loss, step = sess.run([train_op, global_step], options=options, run_metadata=metadata)
    if metadata is not None:
        trace = Timeline(metadata.step_stats).generate_chrome_trace_format()
        path = os.path.join(train_step_kwargs["logdir"], f"tf_trace-{step}.json")
        with open(path, "w") as file:
            file.write(trace)
    if "should_log" in train_step_kwargs and sess.run(train_step_kwargs["should_log"]):
        seconds = time.monotonic() - began
        logging.info("global step %d: loss = %.4f (%.3f sec/step)", step, loss, seconds)
    last = "should_stop" in train_step_kwargs and bool(sess.run(train_step_kwargs["should_stop"]))
    return loss, last


def train(
    train_op: Any,
    logdir: Any,
    train_step_fn: Callable[..., tuple[Any, bool]] = train_step,
    train_step_kwargs: Any = _USE_DEFAULT,
    log_every_n_steps: int = 1,
    graph: Any = None,
    master: str = "",
    is_chief: bool = True,
    global_step: Any = None,
    number_of_steps: int | None = None,
    init_op: Any = _USE_DEFAULT,
    init_feed_dict: Any = None,
    local_init_op: Any = _USE_DEFAULT,
    init_fn: Callable[[Any], Any] | None = None,
    ready_op: Any = _USE_DEFAULT,
    summary_op: Any = _USE_DEFAULT,
    save_summaries_secs: float = 600,
    summary_writer: Any = _USE_DEFAULT,
    startup_delay_steps: int = 0,
    saver: Any = None,
    save_interval_secs: float = 600,
    sync_optimizer: Any = None,
    session_config: Any = None,
    session_wrapper: Callable[[Any], Any] | None = None,
    trace_every_n_steps: int | None = None,
    ignore_live_threads: bool = False,
) -> Any:
    """Runs ``train_op`` until ``number_of_steps``, with checkpoints and summaries in ``logdir``.

    Returns the last loss. A folder that has a checkpoint is gone on with.
    """
    if train_op is None:
        raise ValueError("train_op cannot be None.")
    if logdir is None and (trace_every_n_steps is not None):
        raise ValueError("logdir cannot be None when trace_every_n_steps is not None")
    graph = graph or get_default_graph()
    with graph.as_default():
        global_step = get_global_step() if global_step is None else global_step
        if global_step is None:
            global_step = get_or_create_global_step()
        with name_scope("init_ops"):
            if isinstance(summary_op, int) and summary_op == _USE_DEFAULT:
                summary_op = merge_all()
        if isinstance(train_step_kwargs, int) and train_step_kwargs == _USE_DEFAULT:
            train_step_kwargs = _step_arguments(
                global_step, number_of_steps, log_every_n_steps, trace_every_n_steps, logdir
            )
        hooks = [sync_optimizer] if sync_optimizer is not None else []
        for optimizer in hooks if isinstance(hooks, list) else [hooks]:
            if is_chief:
                graph.add_to_collection(GraphKeys.QUEUE_RUNNERS, optimizer.get_chief_queue_runner())
    supervisor = Supervisor(
        graph=graph,
        is_chief=is_chief,
        logdir=logdir,
        init_op=init_op,
        init_feed_dict=init_feed_dict,
        local_init_op=local_init_op,
        ready_op=ready_op,
        summary_op=None,
        global_step=global_step,
        saver=_USE_DEFAULT if saver is None else saver,
        save_summaries_secs=save_summaries_secs,
        save_model_secs=save_interval_secs,
        summary_writer=summary_writer,
        init_fn=init_fn,
    )
    if summary_op is not None:
        supervisor.summary_op = summary_op
    loss: Any = None
    with supervisor.managed_session(master, config=session_config) as sess:
        running = sess if session_wrapper is None else session_wrapper(sess)
        last = False
        try:
            with LoopProgress(sess, global_step, number_of_steps) as progress:
                while not (supervisor.should_stop() or last):
                    loss, last = train_step_fn(running, train_op, global_step, train_step_kwargs)
                    progress.note(loss)
        except OutOfRangeError as error:
            logging.info("The input has ended: %s", error)
        logging.info("Stopping Training.")
        supervisor._save_if_new(sess)
    return loss


def _step_arguments(
    global_step: Any, steps: int | None, log_every: int, trace_every: int | None, logdir: Any
) -> dict[str, Any]:
    """What :func:`train_step` looks at: operations that say when to stop, log and trace."""
    found: dict[str, Any] = {}
    with name_scope("train_step"):
        if steps:
            found["should_stop"] = greater_equal(global_step, steps)
        if log_every > 0:
            found["should_log"] = equal(mod(global_step, log_every), 0)
        if trace_every is not None:
            found["should_trace"] = equal(mod(global_step, trace_every), 0)
            found["logdir"] = logdir
    return found


def __dir__() -> list[str]:
    return __all__
