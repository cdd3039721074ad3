"""``CollectiveOptimizer``: synchronous training without parameter servers.

Every worker has the variables itself and applies the same mean of all workers' gradients to them,
so they stay equal bit for bit. Large gradients travel as they are, the others together, one array
for each type. A variable that lies on another task, a large embedding on parameter servers, is
shared instead: each worker applies its own part of the mean to it, when all have computed theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runnel.graph.device import parsed_device
from runnel.graph.graph import control_dependencies, get_default_graph, name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.ops import control
from runnel.ops.array_shape import reshape, shape, size
from runnel.ops.collectives import all_gather, all_reduce, broadcast_recv, broadcast_send
from runnel.ops.joining import concat, stack
from runnel.ops.splitting import split
from runnel.train.optimizer import Optimizer
from runnel.train.session_run_hook import SessionRunHook
from runnel.variables.initialization import global_variables

LARGE_BYTES = 1 << 19
"""From this size on, packing a gradient takes longer than a message of its own."""


class CollectiveOptimizer(Optimizer):
    """``opt`` applied to the mean of the gradients of ``num_workers`` workers, at each of them.

    Every worker builds the same graph, with the variables on its own task, initialises them, and
    needs :meth:`make_session_run_hook`, which gives all the variables of the chief. A step waits
    for all workers; when one is lost, the others' steps fail with an ``AbortedError`` or an
    ``UnavailableError``, and monitored sessions begin anew from what the chief has saved.
    TensorFlow 1.15 has this as a strategy.

    Example:
        >>> optimizer = tf.train.CollectiveOptimizer(tf.train.AdamOptimizer(), num_workers=4)
        >>> train = optimizer.minimize(loss)
        >>> hooks = [optimizer.make_session_run_hook(is_chief=task == 0)]
        >>> folder = "checkpoints" if task == 0 else None
        >>> with tf.train.MonitoredTrainingSession(
        ...         server.target, is_chief=True, checkpoint_dir=folder, hooks=hooks) as sess:
        ...     sess.run(train)
    """

    def __init__(
        self,
        opt: Optimizer,
        num_workers: int,
        group_key: int = 1,
        use_locking: bool = False,
        name: str = "collective",
        communication_hint: str = "auto",
    ) -> None:
        """``group_key`` tells the workers of one job from other groups on the same tasks.

        ``communication_hint`` is that of :func:`tf.collectives.all_reduce`.
        """
        super().__init__(use_locking, name)
        if num_workers < 1:
            raise ValueError(f"num_workers is {num_workers}; there must be at least one")
        self._opt = opt
        self._workers = num_workers
        self._group_key = group_key
        self._hint = communication_hint

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """The gradients of this worker, as the wrapped optimizer computes them."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
    ) -> Operation:
        """Applies the mean of all workers' gradients."""
        pairs = [(grad, variable) for grad, variable in grads_and_vars if grad is not None]
        if not pairs:
            raise ValueError("Must supply at least one variable with a gradient")
        with name_scope(name, self._name):
            found: list[Any] = [None] * len(pairs)
            shared = [place for place, (_, variable) in enumerate(pairs) if _is_shared(variable)]
            for place in shared:
                found[place] = self._own_part(pairs[place][0])
            # The others' parts arrive when they have read what is shared: it may change then.
            with control_dependencies([_values_of(found[place]) for place in shared]):
                self._exchange(pairs, found)
            # A step that fails before all have arrived changes no variable.
            found = control.tuple(found)
        applied = [(grad, variable) for grad, (_, variable) in zip(found, pairs, strict=True)]
        return self._opt.apply_gradients(applied, global_step, name)

    def _exchange(self, pairs: list[tuple[Any, Any]], found: list[Any]) -> None:
        """Fills in the means of the gradients that are not in ``found`` yet."""
        together: dict[Any, list[int]] = {}
        for place, (grad, _) in enumerate(pairs):
            if found[place] is not None:
                continue
            if isinstance(grad, IndexedSlices):
                found[place] = self._rows_of_all(grad)
            else:
                alone = place if _is_large(grad) else None
                together.setdefault((grad.dtype, alone), []).append(place)
        for places in together.values():
            means = self._means([pairs[place][0] for place in places])
            for place, mean in zip(places, means, strict=True):
                found[place] = mean

    def _means(self, grads: list[Tensor]) -> list[Tensor]:
        """The means of gradients of one type, which travel as one array."""
        if len(grads) == 1:
            return [self._mean(grads[0])]
        packed = concat([reshape(grad, [-1]) for grad in grads], 0)
        mean = self._mean(packed)
        sizes = stack([size(grad) for grad in grads])
        parts = split(mean, sizes, num=len(grads))
        means = []
        for part, grad in zip(parts, grads, strict=True):
            means.append(reshape(part, shape(grad)))
            means[-1].set_shape(grad.get_shape())
        return means

    def _mean(self, value: Tensor) -> Tensor:
        who = self._workers, self._group_key
        return all_reduce(value, *who, final_op="Div", communication_hint=self._hint)

    def _rows_of_all(self, grad: IndexedSlices) -> IndexedSlices:
        mean = self._own_part(grad)
        values, indices = (
            all_gather(
                part, self._workers, self._group_key, uneven=True, communication_hint=self._hint
            )
            for part in (mean.values, mean.indices)
        )
        return IndexedSlices(values, indices, mean.dense_shape)

    def _own_part(self, grad: Any) -> Any:
        if isinstance(grad, IndexedSlices):
            return IndexedSlices(grad.values / self._workers, grad.indices, grad.dense_shape)
        return grad / self._workers

    def get_slot(self, var: Any, name: str) -> Any:
        """The wrapped optimizer's slot for a variable."""
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """The names of the wrapped optimizer's slots."""
        return self._opt.get_slot_names()

    def variables(self) -> list[Any]:
        """The variables of the wrapped optimizer."""
        return self._opt.variables()

    def make_session_run_hook(self, is_chief: bool) -> SessionRunHook:
        """Gives every worker the variables of the chief when sessions begin."""
        return _EqualBeginning(is_chief, self._workers, self._group_key, self._hint)


class _EqualBeginning(SessionRunHook):
    def __init__(self, is_chief: bool, workers: int, group_key: int, hint: str) -> None:
        self._is_chief = is_chief
        self._who: dict[str, Any] = {
            "group_size": workers,
            "group_key": group_key,
            "communication_hint": hint,
        }
        self._equal: Any = None

    def begin(self) -> None:
        with get_default_graph().name_scope("equal_beginning"):
            mine = [variable for variable in global_variables() if not _is_shared(variable)]
            self._equal = control.group(*[self._given(variable) for variable in mine])

    def _given(self, variable: Any) -> Any:
        with get_default_graph().device(variable.device):
            if self._is_chief:
                return broadcast_send(variable.read_value(), **self._who)
            dtype = variable.dtype.base_dtype
            return variable.assign(broadcast_recv(variable.get_shape(), dtype, **self._who))

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._equal)


def _values_of(grad: Any) -> Tensor:
    return grad.values if isinstance(grad, IndexedSlices) else grad


def _is_large(grad: Tensor) -> bool:
    elements = grad.get_shape().num_elements()
    return elements is not None and elements * grad.dtype.size >= LARGE_BYTES


def _is_shared(variable: Any) -> bool:
    """True for a variable that all workers use where it is."""
    return parsed_device(variable.device or "").job == "ps"
