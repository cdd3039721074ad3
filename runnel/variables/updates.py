"""The methods that change a variable, shared by every kind of variable."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.ops import assign as ops
from runnel.ops.slice_assign import slice_assign_handle_op, slice_assign_op


class Updates:
    """Methods that return the new value of the variable, computed in the step that needs it.

    The updates of a resource variable return an object that is read when it is used; those of a
    reference variable return a reference. ``use_locking`` is accepted for compatibility: every
    update is atomic.
    """

    def _update_scope(self, may_initialize: bool = False) -> AbstractContextManager[Any]:
        """The block in which an update of a resource variable is made."""
        return nullcontext()

    def _lazy_read(self, op: Operation) -> Any:
        """The value that a resource variable has after ``op``."""
        raise NotImplementedError

    # Dense ------------------------------------------------------------------------------------

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Replaces the value; returns the new one, or with ``read_value=False`` the operation."""
        return self._dense(ops.ASSIGN, value, use_locking, name, read_value)

    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Adds ``delta``; returns the new value, or with ``read_value=False`` the operation."""
        return self._dense(ops.ASSIGN_ADD, delta, use_locking, name, read_value)

    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Subtracts ``delta``; returns the new value, or the operation."""
        return self._dense(ops.ASSIGN_SUB, delta, use_locking, name, read_value)

    def _dense(
        self, pair: ops.OpPair, value: Any, use_locking: bool, name: str | None, read_value: bool
    ) -> Any:
        locking = {"use_locking": use_locking}
        return ops.update(self, pair, value, name=name, read_value=read_value, for_ref=locking)

    def count_up_to(self, limit: int) -> Tensor:
        """Increments the variable, which must be a scalar integer; returns what it was before."""
        return ops.count_up_to(self, limit)

    # Rows -------------------------------------------------------------------------------------

    def scatter_update(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Replaces the rows that ``sparse_delta`` (``tf.IndexedSlices``) names."""
        return self._scatter(ops.SCATTER_UPDATE, sparse_delta, use_locking, name)

    def scatter_add(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Adds to the rows that ``sparse_delta`` names."""
        return self._scatter(ops.SCATTER_ADD, sparse_delta, use_locking, name)

    def scatter_sub(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Subtracts from the rows that ``sparse_delta`` names."""
        return self._scatter(ops.SCATTER_SUB, sparse_delta, use_locking, name)

    def scatter_mul(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Multiplies the rows that ``sparse_delta`` names."""
        return self._scatter(ops.SCATTER_MUL, sparse_delta, use_locking, name)

    def scatter_div(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Divides the rows that ``sparse_delta`` names."""
        return self._scatter(ops.SCATTER_DIV, sparse_delta, use_locking, name)

    def scatter_min(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Lowers the rows that ``sparse_delta`` names to its values where those are smaller."""
        return self._scatter(ops.SCATTER_MIN, sparse_delta, use_locking, name)

    def scatter_max(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Raises the rows that ``sparse_delta`` names to its values where those are larger."""
        return self._scatter(ops.SCATTER_MAX, sparse_delta, use_locking, name)

    def batch_scatter_update(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Replaces rows within each batch; see :func:`tf.batch_scatter_update`."""
        indices, values = _parts(sparse_delta)
        return ops.batch_scatter_update(self, indices, values, use_locking, name)

    def _scatter(
        self, pair: ops.OpPair, sparse_delta: Any, use_locking: bool, name: str | None
    ) -> Any:
        indices, values = _parts(sparse_delta)
        locking = {"use_locking": use_locking}
        return ops.update(self, pair, indices, values, name=name, for_ref=locking)

    # Elements and blocks ----------------------------------------------------------------------

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Replaces what ``indices`` name; see :func:`tf.scatter_nd_update`."""
        return self._scatter_nd(ops.SCATTER_ND_UPDATE, indices, updates, name)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Adds to what ``indices`` name."""
        return self._scatter_nd(ops.SCATTER_ND_ADD, indices, updates, name)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtracts from what ``indices`` name."""
        return self._scatter_nd(ops.SCATTER_ND_SUB, indices, updates, name)

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Lowers what ``indices`` name to ``updates`` where those are smaller."""
        return self._scatter_nd(ops.SCATTER_ND_MIN, indices, updates, name)

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Raises what ``indices`` name to ``updates`` where those are larger."""
        return self._scatter_nd(ops.SCATTER_ND_MAX, indices, updates, name)

    def _scatter_nd(self, pair: ops.OpPair, indices: Any, updates: Any, name: str | None) -> Any:
        locking = {"use_locking": True}
        return ops.update(self, pair, indices, updates, name=name, for_ref=locking)

    def _slice_assign(
        self, place: list[Tensor], masks: dict[str, Any], value: Any, name: str
    ) -> Any:
        pair = (slice_assign_op, slice_assign_handle_op)
        return ops.update(self, pair, *place, value, name=name, **masks)


def _parts(sparse_delta: Any) -> tuple[Tensor, Tensor]:
    if not isinstance(sparse_delta, IndexedSlices):
        raise TypeError(f"sparse_delta must be tf.IndexedSlices, not {sparse_delta!r}")
    return sparse_delta.indices, sparse_delta.values
