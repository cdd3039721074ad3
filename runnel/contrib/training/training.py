"""Training operations, and the loop that runs them in a monitored session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.contrib.slim import learning
from runnel.train.optimizer import Optimizer
from runnel.train.scaffold import Scaffold
from runnel.train.session_run_hook import SessionRunHook
from runnel.train.training_session import MonitoredTrainingSession

_USE_GLOBAL_STEP = 0
GradientsAndVariables = list[tuple[Any, Any]]


def clip_gradient_norms_fn(
    max_norm: float,
) -> Callable[[GradientsAndVariables], GradientsAndVariables]:
    """A function that scales each gradient down to ``max_norm``, for :func:`create_train_op`."""
    return lambda gradients_to_variables: learning.clip_gradient_norms(
        gradients_to_variables, max_norm
    )


def create_train_op(
    total_loss: Any,
    optimizer: Optimizer,
    global_step: Any = _USE_GLOBAL_STEP,
    update_ops: Any = None,
    variables_to_train: Any = None,
    transform_grads_fn: Callable[[GradientsAndVariables], GradientsAndVariables] | None = None,
    summarize_gradients: bool = False,
    gate_gradients: int = Optimizer.GATE_OP,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    check_numerics: bool = True,
) -> Any:
    """An operation that trains, and gives the loss; the update operations of the graph run first.

    Example:
        >>> train_op = tf.contrib.training.create_train_op(
        ...     loss, optimizer, transform_grads_fn=tf.contrib.training.clip_gradient_norms_fn(3.0))
        >>> tf.contrib.training.train(train_op, "/tmp/model")
    """
    return learning.create_train_op(
        total_loss,
        optimizer,
        global_step,
        update_ops,
        variables_to_train,
        summarize_gradients=summarize_gradients,
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
        check_numerics=check_numerics,
        transform_grads_fn=transform_grads_fn,
    )


def train(
    train_op: Any,
    logdir: Any,
    master: str = "",
    is_chief: bool = True,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: float | None = 600,
    save_summaries_steps: int | None = 100,
    config: Any = None,
    max_wait_secs: float = 7200,
    run_metadata: Any = None,
) -> Any:
    """Runs ``train_op`` until a hook stops it; returns its last value.

    Checkpoints and summaries go to ``logdir``; without it there must be a hook that stops.
    """
    if logdir is None and is_chief:
        if save_summaries_steps:
            raise ValueError("logdir cannot be None when save_summaries_steps is not None")
        if save_checkpoint_secs:
            raise ValueError("logdir cannot be None when save_checkpoint_secs is not None")
    loss: Any = None
    with MonitoredTrainingSession(
        master=master,
        is_chief=is_chief,
        checkpoint_dir=logdir,
        scaffold=scaffold,
        hooks=hooks,
        chief_only_hooks=chief_only_hooks,
        save_checkpoint_secs=save_checkpoint_secs,
        save_summaries_steps=save_summaries_steps,
        config=config,
        max_wait_secs=max_wait_secs,
    ) as session:
        while not session.should_stop():
            loss = session.run(train_op, run_metadata=run_metadata)
    return loss
