"""Input queues in checkpoints: what is in them, where their readers stand, and a moment of rest.

A runner's thread in the middle of a step has taken an example out of one queue and not yet put it
into the next. So threads are held back between their steps while a checkpoint is saved: first those
that take from a queue, then those that fill it, so that every step that has begun can end. One that
waits for room in a full queue is told that it is done: what it puts in waits there on its own. One
that waits for its only example has not begun: what it has got so far counts as not taken.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from runnel.checkpoint.saveable_object import SaveableObject, SaveSpec
from runnel.graph import dtypes
from runnel.graph.collections import GraphKeys
from runnel.graph.errors import DeadlineExceededError, FailedPreconditionError, UnimplementedError
from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.ops.queues.queue_ops import denoted, makes_queue, queue_handle
from runnel.passes.program.state_access import variable_name
from runnel.queues.queue import Queue
from runnel.runtime.session.backend import Backend
from runnel.train.queue_runner import QueueRunner

_LONGEST_STEP = 120.0
"""The seconds that a runner's step may take to end."""
_LOOK_SECONDS = 0.02
"""How often full queues are looked at meanwhile."""
_NOT_SAVED = ("Barrier", "Stage", "Unstage", "MapStage", "MapUnstage", "OrderedMap")
"""How the types of operations begin that keep examples where nobody looks."""


class _InputSaveable(SaveableObject):
    """A queue or a reader, for a Saver."""

    def __init__(self, handle: Tensor, serialize: Any, deserialize: Any) -> None:
        self._handle, self._deserialize = handle, deserialize
        spec = SaveSpec(
            lambda: serialize(handle), "", f"{handle.name}_STATE", dtypes.string, handle.device
        )
        super().__init__(handle.op, [spec], handle.name)

    when_missing = (
        ": it was saved without tf.train.checkpoint_input_queues(); restore the variables with "
        "a graph that does not call it either, and the input begins anew"
    )

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Operation:
        return self._deserialize(self._handle, restored_tensors[0])


class _Stage:
    """A runner, and the operations that make the queues and readers that its steps use."""

    def __init__(self, runner: QueueRunner) -> None:
        self.runner = runner
        handles: list[Tensor] = []
        self.operations = _before(runner.enqueue_ops, handles)
        self.fills = {variable_name(op): op for op in _sources(handles) if makes_queue(op)}
        self.takes = {variable_name(op): op for op in self.operations if makes_queue(op)}
        self._only_takes = all(_only_takes(op) for op in set(runner.enqueue_ops))

    def takes_from(self, other: _Stage) -> bool:
        """Whether its steps take what those of ``other`` put in."""
        return other is not self and not self.takes.keys().isdisjoint(other.fills)

    def rests(self, sess: Any, resources: Any, stages: Sequence[_Stage]) -> bool:
        """Whether no step of its threads has taken what it has not put in, or drawn, or counted."""
        inside = self.runner.gate(sess).inside
        if not inside or not self._only_takes:
            return not inside
        sources = _queues(self.takes.values(), resources)
        if any(source.draws for source in sources):
            return False  # what goes back into it would be drawn in another order
        rivals = [s for s in stages if s is not self and not s.takes.keys().isdisjoint(self.takes)]
        inside += sum(rival.runner.gate(sess).inside for rival in rivals)
        return inside <= sum(source.waiting[1] for source in sources)


class SavedQueues:
    """The runners of a graph whose queues are saved, those that take before those that fill."""

    def __init__(self) -> None:
        self._stages: list[_Stage] = []
        self._collection = ""

    def __bool__(self) -> bool:
        return bool(self._stages)

    def find(self, graph: Graph, collection: str) -> list[_Stage]:
        """Knows the runners of ``collection`` from now on."""
        self._collection = collection
        left = [_Stage(runner) for runner in graph.get_collection(collection)]
        self._stages = []
        while left:
            free = [s for s in left if not any(other.takes_from(s) for other in left)]
            if not free:
                names = ", ".join(stage.runner.name for stage in left)
                raise ValueError(f"The queues {names} fill each other: they cannot be saved.")
            self._stages += free
            left = [stage for stage in left if stage not in free]
        return self._stages

    @contextmanager
    def at_rest(self, sess: Any) -> Iterator[None]:
        """Within, no runner is in the middle of a step in ``sess``."""
        backend = sess._backend
        self._require_here(backend)
        known = {stage.runner for stage in self._stages}
        for runner in sess.graph.get_collection(self._collection):
            if runner not in known:
                raise FailedPreconditionError(
                    None,
                    None,
                    f"The runner of {runner.name!r} was added after "
                    "tf.train.checkpoint_input_queues(): call that when all of the input is built.",
                )
        with ExitStack() as held:
            for number, stage in enumerate(self._stages, 1):
                gate = stage.runner.gate(sess)
                gate.hold()
                held.callback(gate.release)
                # Those before it rest no more if what it has put in had them go on.
                self._await_rest(self._stages[:number], sess, backend.resources)
            yield

    def _require_here(self, backend: Backend) -> None:
        """An error when another task keeps what is saved: its steps cannot be held up from here."""
        for stage in self._stages:
            for op in (stage.takes | stage.fills).values():
                if not backend.keeps(op):
                    where = op.device or "the task of this session's target"
                    raise UnimplementedError(
                        None,
                        op,
                        f"The queue {op.name!r} is on {where}, which is in another process: "
                        "tf.train.checkpoint_input_queues() saves what is in the process that "
                        "fills it alone. Place the input on the task of the session, and make the "
                        "session in that task's process (tf.Session(server.target))",
                    )

    def _await_rest(self, held: Sequence[_Stage], sess: Any, resources: Any) -> None:
        deadline = time.monotonic() + _LONGEST_STEP
        filled = _queues([op for stage in held for op in stage.fills.values()], resources)
        while busy := [s for s in held if not s.rests(sess, resources, self._stages)]:
            for queue in filled:
                queue.let_producers_go()
            busy[0].runner.gate(sess).wait_for_end(_LOOK_SECONDS)
            if time.monotonic() > deadline:
                raise _does_not_end(busy[0])


def _does_not_end(stage: _Stage) -> DeadlineExceededError:
    return DeadlineExceededError(
        None,
        None,
        f"A step that fills {stage.runner.name!r} has not ended for {_LONGEST_STEP:.0f} s, so the "
        "input cannot be saved: it waits for what no queue runner brings.",
    )


def _queues(makers: Iterable[Operation], resources: Any) -> list[Queue]:
    return [denoted(queue_handle(op, resources), Queue) for op in makers]


@contextmanager
def input_at_rest(sess: Any) -> Iterator[bool]:
    """Within, the input of ``sess`` can be saved or restored; False if it is not to be."""
    saved = sess.graph.attached(SavedQueues)
    if not saved:
        yield False
        return
    with saved.at_rest(sess):
        yield True


def checkpoint_input_queues(collection: str = GraphKeys.QUEUE_RUNNERS) -> list[SaveableObject]:
    """Has checkpoints hold the input that is on its way: a job that goes on misses no example.

    Call it when the input is built, before a ``Saver``, a ``MonitoredTrainingSession`` or an
    initializer is made. Savers then save what is in the queues of the graph's runners, where their
    readers stand, and which random numbers come next; local variables that runners use (the count
    of epochs) become global ones. While a checkpoint is saved or restored the runners rest. Save
    between training steps, as ``CheckpointSaverHook`` does. Returns what was added to
    ``tf.GraphKeys.SAVEABLE_OBJECTS``.

    Example:
        >>> images, labels = tf.train.shuffle_batch([image, label], 32, 1001, 1000)
        >>> tf.train.checkpoint_input_queues()
    """
    from runnel.ops.data import input_state_ops as ops
    from runnel.ops.data.reader_ops import READERS

    graph = get_default_graph()
    stages = graph.attached(SavedQueues).find(graph, collection)
    if not stages:
        raise ValueError("There are no queue runners: build the input first.")
    used = list(dict.fromkeys(op for stage in stages for op in stage.operations))
    queues = {name: op for stage in stages for name, op in (stage.takes | stage.fills).items()}
    # Also those with which the training step itself reads.
    reading = [op for queue in queues.values() for op in queue.outputs[0].consumers()]
    used += _sources([op.inputs[0] for op in reading if op.type.startswith("ReaderRead")])
    readers = {variable_name(op): op for op in used if op.type in READERS}
    _require_saveable(graph, used, queues.values())
    _make_global(graph, used)
    saveables: list[SaveableObject] = [
        _InputSaveable(op.outputs[0], ops.serialize_queue_op, ops.deserialize_queue_op)
        for op in queues.values()
    ]
    saveables += [
        _InputSaveable(op.outputs[0], ops.serialize_reader_op, ops.deserialize_reader_op)
        for op in readers.values()
    ]
    present = {saveable.op for saveable in graph.get_collection(GraphKeys.SAVEABLE_OBJECTS)}
    for saveable in saveables:
        if saveable.op not in present:
            graph.add_to_collection(GraphKeys.SAVEABLE_OBJECTS, saveable)
    return saveables


def _require_saveable(graph: Graph, used: Iterable[Operation], queues: Iterable[Operation]) -> None:
    """Raises an error if the input keeps something of which checkpoints would know nothing."""
    saved = {saveable.op for saveable in graph.get_collection(GraphKeys.SAVEABLE_OBJECTS)}
    for op in used:
        if op.type.startswith(_NOT_SAVED):
            raise ValueError(
                f"The input keeps examples in {op.name!r} ({op.type}), which is not saved: only "
                "queues and readers are."
            )
        if op.type in ("PyFunc", "EagerPyFunc") and not op.inputs:
            raise ValueError(
                f"The input comes out of the Python function of {op.name!r}, and how far that is "
                "is not saved: take it from tf.data or tf.train.slice_input_producer."
            )
        if op.type.startswith("IteratorGetNext") and op.inputs[0].op not in saved:
            raise ValueError(
                f"A queue is filled from the iterator {op.inputs[0].op.name!r}: first add "
                "tf.data.experimental.make_saveable_from_iterator(iterator) to the collection "
                "tf.GraphKeys.SAVEABLE_OBJECTS."
            )
    for op in queues:
        types = op.attrs["component_types"]
        if op.outputs[0].dtype is not dtypes.resource:
            raise ValueError(f"{op.name!r} ({op.type}) is of TensorFlow's first kind of queues.")
        if any(dtype in (dtypes.resource, dtypes.variant) for dtype in types):
            raise ValueError(f"The elements of {op.name!r} are no values that can be saved.")


def _make_global(graph: Graph, used: Sequence[Operation]) -> None:
    """Has local variables that are ``used`` saved, and not initialised after they are restored."""
    operations = set(used)
    local = graph.get_collection_ref(GraphKeys.LOCAL_VARIABLES)
    for variable in [each for each in local if each.op in operations]:
        local[:] = [each for each in local if each is not variable]
        graph.add_to_collection(GraphKeys.GLOBAL_VARIABLES, variable)


def _before(ends: Iterable[Any], handles: list[Tensor]) -> list[Operation]:
    """What the operations ``ends`` need, and they; not for what they enqueue into: ``handles``."""
    found: dict[Operation, None] = {}
    left = [end.op if isinstance(end, Tensor) else end for end in ends]
    while left:
        op = left.pop()
        if op in found:
            continue
        found[op] = None
        inputs = list(op.inputs)
        if op.type.startswith("QueueEnqueue"):
            handles.append(inputs.pop(0))
        left += [*(tensor.op for tensor in inputs), *op.control_inputs]
    return list(found)


def _only_takes(enqueue: Any) -> bool:
    """Whether a step that ends with ``enqueue`` changes nothing before but what it dequeues."""
    operations = _before([enqueue], [])
    queues = [op for op in operations if makes_queue(op)]
    effects = [
        op.type
        for op in operations
        if op.op_def.stateful and not (makes_queue(op) or op.type.startswith("QueueEnqueue"))
    ]
    return len(effects) == len(queues) == 1 and effects[0].startswith("QueueDequeue")


def _sources(handles: Iterable[Tensor]) -> list[Operation]:
    """The operations from which ``handles`` come, past those that choose or pass them on."""
    found: dict[Operation, None] = {}
    left = list(handles)
    while left:
        op = left.pop().op
        if op not in found:
            found[op] = None
            kinds = (dtypes.resource, dtypes.string)
            left += [tensor for tensor in op.inputs if tensor.dtype.base_dtype in kinds]
    return list(found)
