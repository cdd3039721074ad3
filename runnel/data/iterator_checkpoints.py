"""Where iterators stand, in checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.checkpoint.saveable_object import SaveableObject, SaveSpec
from runnel.data.iterators import GLOBAL_ITERATORS, Iterator
from runnel.graph import dtypes
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.ops.data.iterator_ops import EXTERNAL_STATE_POLICIES, deserialize_op, serialize_op
from runnel.train.checkpoint_hook import CheckpointSaverHook
from runnel.train.checkpoint_state import latest_checkpoint
from runnel.train.saver import Saver
from runnel.train.session_run_hook import SessionRunHook


class IteratorSaveable(SaveableObject):
    """An iterator, for a :class:`Saver`."""

    def __init__(self, resource: Tensor, policy: str) -> None:
        self._resource = resource

        def serialized() -> Tensor:
            number = EXTERNAL_STATE_POLICIES.index(policy)
            return serialize_op(resource, external_state_policy=number)

        spec = SaveSpec(
            serialized, "", f"{resource.name}_STATE", dtypes.variant, resource.device or None
        )
        super().__init__(resource.op, [spec], resource.name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Operation:
        return deserialize_op(self._resource, restored_tensors[0])


def _required_policy(external_state_policy: str | None) -> str:
    policy = "fail" if external_state_policy is None else external_state_policy
    if policy not in EXTERNAL_STATE_POLICIES:
        raise ValueError(
            "Invalid `ExternalStatePolicy.` Supported values include 'warn', 'ignore', and 'fail.' "
            f"Received {external_state_policy}."
        )
    return policy


def make_saveable_from_iterator(
    iterator: Iterator, external_state_policy: str | None = None
) -> SaveableObject:
    """What has a ``Saver`` save where ``iterator`` stands, and restore it exactly.

    ``external_state_policy`` says what to do about functions that use random numbers, variables or
    Python, which are not saved with it: ``"fail"``, ``"warn"`` or ``"ignore"``.

    An iterator that has not begun is begun by restoring it, if its dataset needs no feed; else run
    its initializer first.

    Example:
        >>> position = tf.data.experimental.make_saveable_from_iterator(iterator)
        >>> tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, position)
        >>> saver = tf.train.Saver()  # saves the variables and the iterator
    """
    return IteratorSaveable(iterator._iterator_resource, _required_policy(external_state_policy))


class _InputSaver(Saver):
    """A saver that keeps its own account of which checkpoint is the latest."""

    def __init__(self, saveables: list[Any], latest_filename: str) -> None:
        super().__init__(saveables, sharded=True)
        self._latest_filename = latest_filename

    def save(self, *args: Any, **how: Any) -> str | None:
        how["latest_filename"] = self._latest_filename
        how["write_meta_graph"] = False
        return super().save(*args, **how)


class CheckpointInputPipelineHook(SessionRunHook):
    """Saves where the iterators of an Estimator's input stand, as often as its model is saved.

    Training that is started again goes on with the element that follows.

    Example:
        >>> hook = tf.data.experimental.CheckpointInputPipelineHook(estimator)
        >>> estimator.train(input_fn, hooks=[hook], steps=1000)
    """

    def __init__(self, estimator: Any, external_state_policy: str | None = None) -> None:
        config = estimator.config
        prefix = "input"
        if (getattr(config, "num_worker_replicas", 1) or 1) > 1:
            prefix = f"input_{config.task_type}_{config.task_id}"
        self._policy = _required_policy(external_state_policy)
        self._folder = estimator.model_dir
        self._latest_filename = f"checkpoint_{prefix}"
        self._how = {
            "save_secs": config.save_checkpoints_secs,
            "save_steps": config.save_checkpoints_steps,
            "checkpoint_basename": f"{prefix}.ckpt",
        }
        self._hook: CheckpointSaverHook | None = None
        self._first = True

    def begin(self) -> None:
        resources = get_default_graph().get_collection(GLOBAL_ITERATORS)
        saveables = [IteratorSaveable(resource, self._policy) for resource in resources]
        if not saveables:
            raise ValueError("The input has no iterators: there is nothing to save.")
        self._saver = _InputSaver(saveables, self._latest_filename)
        self._hook = CheckpointSaverHook(self._folder, saver=self._saver, **self._how)
        self._hook.begin()
        self._first = True

    @property
    def _saving(self) -> CheckpointSaverHook:
        assert self._hook is not None, "begin() comes first"
        return self._hook

    def before_run(self, run_context: Any) -> Any:
        # Not when the session is made: the iterators may be begun by a hook that comes later.
        if self._first:
            self._first = False
            latest = latest_checkpoint(self._folder, self._latest_filename)
            if latest is None:
                self._saving.after_create_session(run_context.session, None)
            else:
                self._saver.restore(run_context.session, latest)
        return self._saving.before_run(run_context)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._saving.after_run(run_context, run_values)

    def end(self, session: Any) -> None:
        self._saving.end(session)
