"""Input from arrays in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import get_default_graph
from runnel.ops.py_function import py_func
from runnel.ops.queues.queues import FIFOQueue
from runnel.train.queue_runner import QueueRunner, add_queue_runner


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """An ``input_fn`` that gives the rows of arrays in batches.

    ``x`` is an array or a dictionary of them, ``y`` too, or None. Rows come in order, or with
    ``shuffle`` in another one in each of the ``num_epochs`` (None: for ever). The last batch may be
    smaller. A thread prepares batches of up to ``queue_capacity`` rows in all.

    Example:
        >>> input_fn = tf.estimator.inputs.numpy_input_fn({"x": xs}, ys, shuffle=True)
        >>> estimator.train(input_fn)
    """
    if not isinstance(shuffle, bool):
        raise ValueError(
            "shuffle must be provided and explicitly set as boolean (it is recommended to set it "
            f"as True for training); got {shuffle}"
        )
    features, labels = _arrays("x", x), {} if y is None else _arrays("y", y)
    if not features:
        raise ValueError("x cannot be an empty dict")
    lengths = {name: len(array) for name, array in [*features.items(), *labels.items()]}
    if len({len(a) for a in (*features.values(), *labels.values())}) > 1:
        raise ValueError(f"Length of tensors in x and y is mismatched: {lengths}")

    def input_fn() -> Any:
        arrays = [*features.values(), *labels.values()]
        rows = _Rows(len(arrays[0]), batch_size, num_epochs, shuffle, get_default_graph().seed)
        types = [as_dtype(array.dtype) for array in arrays]
        batch = py_func(lambda: rows.take_from(arrays), [], types, name="batch")
        count = None if num_epochs is not None else batch_size
        for tensor, array in zip(batch, arrays, strict=True):
            tensor.set_shape([count, *array.shape[1:]])
        queue = FIFOQueue(max(queue_capacity // batch_size, 1), types, name="numpy_input")
        add_queue_runner(QueueRunner(queue, [queue.enqueue(batch)] * num_threads))
        taken = queue.dequeue()
        taken = list(taken) if isinstance(taken, list | tuple) else [taken]
        for tensor, array in zip(taken, arrays, strict=True):
            tensor.set_shape([count, *array.shape[1:]])
        found = dict(zip(features, taken, strict=False)) if isinstance(x, Mapping) else taken[0]
        if y is None:
            return found
        rest = taken[len(features) :]
        return found, dict(zip(labels, rest, strict=True)) if isinstance(y, Mapping) else rest[0]

    return input_fn


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """:func:`numpy_input_fn` for the columns of a pandas ``DataFrame``, and a ``Series`` of labels.

    Example:
        >>> tf.estimator.inputs.pandas_input_fn(frame, frame["income"], shuffle=True)
    """
    features = {name: np.asarray(x[name]) for name in x.columns}
    if target_column in features:
        raise ValueError(f"Cannot use name {target_column} for target column: x has such a column")
    if y is not None and not np.array_equal(x.index, y.index):
        raise ValueError("Index for x and y are mismatched.")
    labels: Any = None if y is None else np.asarray(y)
    if y is not None and hasattr(y, "columns"):
        labels = {name: np.asarray(y[name]) for name in y.columns}
    options = (batch_size, num_epochs, shuffle, queue_capacity, num_threads)
    return numpy_input_fn(features, labels, *options)


def _arrays(what: str, value: Any) -> dict[str, np.ndarray]:
    found = dict(value) if isinstance(value, Mapping) else {what: value}
    for name, array in found.items():
        if not isinstance(array, np.ndarray) or not array.ndim:
            raise TypeError(
                f"{what} must be an array with rows, or a dict of them; {name!r} is not"
            )
    texts = {name: a.astype(object) for name, a in found.items() if a.dtype.kind in "SU"}
    return found | texts


class _Rows:
    """The numbers of the rows of each batch; threads may share it."""

    def __init__(
        self, rows: int, batch_size: int, epochs: int | None, shuffle: bool, seed: int | None
    ) -> None:
        self._rows = rows
        self._batch_size = batch_size
        self._epochs = epochs
        self._order = np.random.default_rng(seed) if shuffle else None
        self._lock = threading.Lock()  # a generator runs in one thread at a time
        self._batches = self._all()

    def _all(self) -> Iterator[np.ndarray]:
        kept = np.empty(0, np.int64)
        epoch = 0
        while self._rows and (self._epochs is None or epoch < self._epochs):
            epoch += 1
            numbers = np.arange(self._rows)
            if self._order is not None:
                self._order.shuffle(numbers)
            kept = np.concatenate([kept, numbers])
            while len(kept) >= self._batch_size:
                yield kept[: self._batch_size]
                kept = kept[self._batch_size :]
        if len(kept):
            yield kept

    def take_from(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """The next batch of each array; StopIteration at the end."""
        with self._lock:
            numbers = next(self._batches)
        return [array[numbers] for array in arrays]
