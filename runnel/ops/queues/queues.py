"""Queues: bounded stores of tensors that steps put in and take out, waiting for each other.

queue = tf.FIFOQueue(100, [tf.float32, tf.int32], shapes=[[784], []])
fill = queue.enqueue_many([images, labels])      # waits while the queue is full
batch, labels = queue.dequeue_many(32)           # waits for 32 elements
"""

from __future__ import annotations

import hashlib
from functools import reduce
from typing import Any

from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, int64, resource
from runnel.graph.graph import name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.random_seed import get_seed
from runnel.graph.shapes import TensorShape
from runnel.ops.queues import queue_ops
from runnel.ops.queues.queue_components import name_list, shape_list, type_list


class QueueBase:
    """A queue that exists already, denoted by ``queue_ref``; the base of all kinds of queues.

    An element is a tuple of tensors. With ``names``, elements are dictionaries instead.
    """

    def __init__(self, dtypes: Any, shapes: Any, names: Any, queue_ref: Tensor) -> None:
        self._dtypes = list(dtypes)
        if shapes is not None and len(shapes) != len(self._dtypes):
            raise ValueError(
                "Queue shapes must have the same length as dtypes, received "
                f"{len(shapes)} shapes and {len(self._dtypes)} dtypes"
            )
        known = shapes if shapes is not None else [None] * len(self._dtypes)
        self._shapes = [TensorShape(shape) for shape in known]
        self._names = name_list(names, len(self._dtypes))
        self._queue_ref = queue_ref
        self._name = queue_ref.op.name.split("/")[-1]

    @staticmethod
    def from_list(index: Any, queues: list[QueueBase]) -> QueueBase:
        """The queue of ``queues`` at ``index``, a scalar that a step may compute.

        Example:
            >>> chosen = tf.QueueBase.from_list(which, [first, second])
            >>> element = chosen.dequeue()
        """
        from runnel.ops.gather import gather
        from runnel.ops.joining import stack

        if (
            not queues
            or not isinstance(queues, list)
            or not all(isinstance(q, QueueBase) for q in queues)
        ):
            raise TypeError(f"A list of queues expected, not {queues!r}")
        if any(q.dtypes != queues[0].dtypes for q in queues):
            raise TypeError(
                "Queues do not have matching component dtypes: "
                + "; ".join(f"{q.name} {[t.name for t in q.dtypes]}" for q in queues)
            )
        if any(q.names != queues[0].names for q in queues):
            raise TypeError("Queues do not have matching component names.")
        shapes = [
            reduce(TensorShape.most_specific_compatible_shape, of_component)
            for of_component in zip(*[q.shapes for q in queues], strict=True)
        ]
        chosen = gather(stack([q.queue_ref for q in queues]), index)
        return QueueBase(queues[0].dtypes, shapes, queues[0].names, chosen)

    @property
    def queue_ref(self) -> Tensor:
        """The tensor that denotes the queue."""
        return self._queue_ref

    @property
    def name(self) -> str:
        """The name of the operation that makes the queue."""
        return self._queue_ref.op.name

    @property
    def dtypes(self) -> list[DType]:
        """The types of the components."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """The shapes of the components, as far as they are known."""
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        """The names of the components, if they have any."""
        return self._names

    # Operations -----------------------------------------------------------------------------

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """Puts one element in, waiting while the queue is full.

        It fails with a CancelledError when the queue is closed, when closing cancels what is
        pending, and when the session is closed.

        Example:
            >>> put = queue.enqueue([image, label])
        """
        with name_scope(name, f"{self._name}_enqueue", _in(vals)) as scope:
            tensors = self._components(vals)
            for tensor, shape in zip(tensors, self._shapes, strict=True):
                tensor.get_shape().assert_is_compatible_with(shape)
            return self._op(queue_ops.enqueue_ops)(self._queue_ref, tensors, name=scope)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """Puts in an element for each row of ``vals``, waiting while the queue is full.

        Example:
            >>> put = queue.enqueue_many([images, labels])
        """
        with name_scope(name, f"{self._name}_EnqueueMany", _in(vals)) as scope:
            tensors = self._components(vals)
            rows = TensorShape(None)
            for tensor, shape in zip(tensors, self._shapes, strict=True):
                given = tensor.get_shape().with_rank_at_least(1)
                rows = rows.merge_with(given[:1])
                given[1:].assert_is_compatible_with(shape)
            return self._op(queue_ops.enqueue_many_ops)(self._queue_ref, tensors, name=scope)

    def dequeue(self, name: str | None = None) -> Any:
        """One element, taken out; waits for it.

        It fails with an OutOfRangeError when the queue is closed and empty, with a CancelledError
        when the session is closed.

        Example:
            >>> image, label = queue.dequeue()
        """
        outputs = self._op(queue_ops.dequeue_ops)(
            self._queue_ref, component_types=self._dtypes, name=name or f"{self._name}_Dequeue"
        )
        for tensor, shape in zip(outputs, self._shapes, strict=True):
            tensor.set_shape(shape)
        return self._element(outputs)

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """``n`` elements as one batch, taken out; waits for them.

        When the queue is closed and has fewer, it fails with an OutOfRangeError.

        Example:
            >>> images, labels = queue.dequeue_many(32)
        """
        outputs = self._op(queue_ops.dequeue_many_ops)(
            self._queue_ref,
            n,
            component_types=self._dtypes,
            name=name or f"{self._name}_DequeueMany",
        )
        count = constant_value(outputs[0].op.inputs[1])
        rows = TensorShape([None if count is None else int(count)])
        for tensor, shape in zip(outputs, self._shapes, strict=True):
            tensor.set_shape(rows.concatenate(shape))
        return self._element(outputs)

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """``n`` elements as one batch, or what is left when the queue is closed and has fewer.

        Example:
            >>> images, labels = queue.dequeue_up_to(32)  # the last batch may be smaller
        """
        outputs = self._op(queue_ops.dequeue_up_to_ops)(
            self._queue_ref,
            n,
            component_types=self._dtypes,
            name=name or f"{self._name}_DequeueUpTo",
        )
        for tensor, shape in zip(outputs, self._shapes, strict=True):
            tensor.set_shape(TensorShape([None]).concatenate(shape))
        return self._element(outputs)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Says that no more elements come.

        Later enqueues fail. Dequeues go on until too few elements are left. Enqueues that wait
        already still succeed, and the operation waits for them, unless
        ``cancel_pending_enqueues``: then they fail.

        Example:
            >>> sess.run(queue.close())
        """
        return self._op(queue_ops.close_ops)(
            self._queue_ref,
            cancel_pending_enqueues=cancel_pending_enqueues,
            name=name or f"{self._name}_Close",
        )

    def is_closed(self, name: str | None = None) -> Tensor:
        """True when the queue has been closed."""
        return self._op(queue_ops.is_closed_ops)(
            self._queue_ref, name=name or f"{self._name}_Is_Closed"
        )

    def size(self, name: str | None = None) -> Tensor:
        """How many elements there are."""
        return self._op(queue_ops.size_ops)(self._queue_ref, name=name or f"{self._name}_Size")

    # Elements -------------------------------------------------------------------------------

    def _op(self, ops: tuple[Any, Any]) -> Any:
        return ops[0] if self._queue_ref.dtype.base_dtype is resource else ops[1]

    def _components(self, vals: Any) -> list[Tensor]:
        """``vals`` as tensors, one for each component."""
        if isinstance(vals, dict):
            if not self._names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if sorted(self._names, key=str) != sorted(vals, key=str):
                raise ValueError(
                    "Keys in dictionary to enqueue do not match names of Queue. Dictionary: "
                    f"{sorted(vals, key=str)}, Queue: {sorted(self._names, key=str)}"
                )
            vals = [vals[name] for name in self._names]
        elif self._names:
            raise ValueError("You must enqueue a dictionary in a Queue with names")
        elif not isinstance(vals, list | tuple):
            vals = [vals]
        if len(vals) != len(self._dtypes):
            raise ValueError(
                f"An element of {self.name!r} has {len(self._dtypes)} components, but "
                f"{len(vals)} were given"
            )
        return [
            convert_to_tensor(value, dtype, f"component_{i}")
            for i, (value, dtype) in enumerate(zip(vals, self._dtypes, strict=True))
        ]

    def _element(self, tensors: list[Tensor]) -> Any:
        if self._names:
            return dict(zip(self._names, tensors, strict=True))
        return tensors[0] if len(tensors) == 1 else tensors


def _in(vals: Any) -> list[Any]:
    """The tensors among ``vals``, whose graph is the one to add to."""
    values = vals.values() if isinstance(vals, dict) else vals
    if not isinstance(values, list | tuple) and not isinstance(vals, dict):
        values = [vals]
    return [value for value in values if isinstance(value, Tensor)]


class FIFOQueue(QueueBase):
    """A queue from which elements come in the order in which they were put in.

    ``capacity`` is how many elements there may be; ``dtypes`` and ``shapes`` are of the
    components. Without ``shapes`` elements may differ in shape, and come out one at a time.
    Queues with the same ``shared_name`` in one session are one queue.

    Example:
        >>> queue = tf.FIFOQueue(100, [tf.float32, tf.int32], shapes=[[784], []])
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str | None = "fifo_queue",
    ) -> None:
        types, dims = type_list(dtypes), shape_list(shapes)
        _check(types, dims, name_list(names, len(types)))
        ref = queue_ops.fifo_op(
            component_types=types,
            shapes=dims or [],
            capacity=capacity,
            shared_name=shared_name or "",
            name=name,
        )
        super().__init__(types, dims, names, ref)


class RandomShuffleQueue(QueueBase):
    """A queue from which elements come in random order.

    At least ``min_after_dequeue`` elements stay in it until it is closed, so that those that come
    out have been mixed with as many others. The same ``seed`` gives the same order.

    Example:
        >>> queue = tf.RandomShuffleQueue(1000, 500, [tf.float32], shapes=[[784]], seed=1)
    """

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        types, dims = type_list(dtypes), shape_list(shapes)
        _check(types, dims, name_list(names, len(types)))
        seed1, seed2 = get_seed(seed)
        if seed1 is None or seed2 is None:
            seed1, seed2 = 0, 0
        elif seed is None and shared_name is not None:
            # Every graph that shares the queue says the same of it.
            digest = hashlib.md5(f"{seed1}{shared_name}".encode()).hexdigest()
            seed2 = int(digest[:8], 16) & 0x7FFFFFFF
        ref = queue_ops.shuffle_op(
            component_types=types,
            shapes=dims or [],
            capacity=capacity,
            min_after_dequeue=min_after_dequeue,
            seed=seed1,
            seed2=seed2,
            shared_name=shared_name or "",
            name=name,
        )
        super().__init__(types, dims, names, ref)


class PaddingFIFOQueue(QueueBase):
    """A FIFOQueue whose elements may differ in size: those of a batch are padded with zeros.

    A dimension of ``shapes`` that is None may differ.

    Example:
        >>> queue = tf.PaddingFIFOQueue(100, [tf.int32], shapes=[[None]])
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        types, dims = type_list(dtypes), shape_list(shapes, partial=True)
        _check(types, dims, name_list(names, len(types)))
        ref = queue_ops.padding_op(
            component_types=types,
            shapes=dims or [],
            capacity=capacity,
            shared_name=shared_name or "",
            name=name,
        )
        super().__init__(types, dims, names, ref)


class PriorityQueue(QueueBase):
    """A queue from which the element with the smallest priority comes first.

    The first component of every element is its priority, an int64; ``types`` and ``shapes`` are
    of the others. Elements of equal priority come in the order in which they were put in.

    Example:
        >>> queue = tf.PriorityQueue(10, [tf.string], shapes=[[]])
        >>> put = queue.enqueue([3, "later"])
    """

    def __init__(
        self,
        capacity: int,
        types: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        others, dims = type_list(types), shape_list(shapes)
        _check(others, dims, None)
        ref = queue_ops.priority_op(
            component_types=others,
            shapes=dims or [],
            capacity=capacity,
            shared_name=shared_name or "",
            name=name,
        )
        all_dims = [TensorShape([]), *dims] if dims else None
        super().__init__([int64, *others], all_dims, names, ref)


def _check(types: list[DType], shapes: list[TensorShape] | None, names: list[str] | None) -> None:
    if shapes is not None and len(shapes) != len(types):
        raise ValueError(
            "Queue shapes must have the same length as dtypes, received "
            f"{len(shapes)} shapes and {len(types)} dtypes"
        )
