"""Functions that change variables, of either kind: ``tf.assign``, ``tf.scatter_add`` and so on.

Each takes a variable (or the reference that such a function returned) and returns the new value.
"""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef
from runnel.ops import scatter_nd_update as nd
from runnel.ops import scatter_update as rows
from runnel.ops import state

OpPair = tuple[OpDef, OpDef]
"""The op for a reference and the op for a resource handle."""

ASSIGN = (state.assign_op, state.assign_handle_op)
ASSIGN_ADD = (state.assign_add_op, state.assign_add_handle_op)
ASSIGN_SUB = (state.assign_sub_op, state.assign_sub_handle_op)
SCATTER_UPDATE = (rows.scatter_update_op, rows.scatter_update_handle_op)
SCATTER_ADD = (rows.scatter_add_op, rows.scatter_add_handle_op)
SCATTER_SUB = (rows.scatter_sub_op, rows.scatter_sub_handle_op)
SCATTER_MUL = (rows.scatter_mul_op, rows.scatter_mul_handle_op)
SCATTER_DIV = (rows.scatter_div_op, rows.scatter_div_handle_op)
SCATTER_MIN = (rows.scatter_min_op, rows.scatter_min_handle_op)
SCATTER_MAX = (rows.scatter_max_op, rows.scatter_max_handle_op)
SCATTER_ND_UPDATE = (nd.scatter_nd_update_op, nd.scatter_nd_update_handle_op)
SCATTER_ND_ADD = (nd.scatter_nd_add_op, nd.scatter_nd_add_handle_op)
SCATTER_ND_SUB = (nd.scatter_nd_sub_op, nd.scatter_nd_sub_handle_op)
SCATTER_ND_MIN = (nd.scatter_nd_min_op, nd.scatter_nd_min_handle_op)
SCATTER_ND_MAX = (nd.scatter_nd_max_op, nd.scatter_nd_max_handle_op)


def update(
    ref: Any,
    ops: OpPair,
    *inputs: Any,
    name: str | None = None,
    read_value: bool = True,
    for_ref: dict[str, Any] | None = None,
    **attrs: Any,
) -> Any:
    """Adds the op of ``ops`` that suits ``ref``; returns the new value, or the operation.

    The last of ``inputs`` is a value of the variable's type. ``for_ref`` are attributes that
    only the op for a reference has; None leaves one at its default.
    """
    by_ref, by_handle = ops
    handle = getattr(ref, "handle", None)
    if handle is None:
        attrs |= {key: value for key, value in (for_ref or {}).items() if value is not None}
        result = by_ref(ref, *inputs, name=name, **attrs)
        return result if read_value else result.op
    *places, value = inputs
    replaces = by_handle is state.assign_handle_op
    with ref._update_scope(may_initialize=replaces):
        op = by_handle(handle, *places, convert_to_tensor(value, ref.dtype), name=name, **attrs)
    return ref._lazy_read(op) if read_value else op


def assign(
    ref: Any,
    value: Any,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Any:
    """Gives the variable ``ref`` the value ``value``; returns the new value.

    ``validate_shape=False`` allows a reference variable to change its shape.

    Example:
        >>> v = tf.Variable(1.0)
        >>> set_v = tf.assign(v, 2.0)
    """
    options = {"validate_shape": validate_shape, "use_locking": use_locking}
    return update(ref, ASSIGN, value, name=name, for_ref=options)


def assign_add(
    ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Any:
    """Adds ``value`` to the variable ``ref``; returns the new value."""
    return update(ref, ASSIGN_ADD, value, name=name, for_ref={"use_locking": use_locking})


def assign_sub(
    ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Any:
    """Subtracts ``value`` from the variable ``ref``; returns the new value."""
    return update(ref, ASSIGN_SUB, value, name=name, for_ref={"use_locking": use_locking})


def count_up_to(ref: Any, limit: int, name: str | None = None) -> Tensor:
    """Increments the integer variable ``ref`` and returns what it was before.

    When it has reached ``limit``, running this raises ``tf.errors.OutOfRangeError``.
    """
    handle = getattr(ref, "handle", None)
    if handle is None:
        return state.count_up_to_op(ref, limit=limit, name=name)
    with ref._update_scope():
        return state.count_up_to_handle_op(handle, limit=limit, T=ref.dtype, name=name)


def is_variable_initialized(ref: Any, name: str | None = None) -> Tensor:
    """A boolean tensor: whether the variable ``ref`` has a value in the session."""
    if getattr(ref, "handle", None) is not None:
        return state.handle_is_initialized_op(ref.handle, name=name)
    return state.is_initialized_op(ref, name=name)


def scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """``ref[indices[i]] = updates[i]`` for each i; returns the new value.

    ``indices`` may have any shape; ``updates`` has that shape followed by a row's, or is a scalar.

    Example:
        >>> table = tf.Variable(tf.zeros([4, 2]))
        >>> tf.scatter_update(table, [3, 0], [[1.0, 1.0], [2.0, 2.0]])
    """
    return _scatter(ref, SCATTER_UPDATE, indices, updates, use_locking, name)


def scatter_add(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """``ref[indices[i]] += updates[i]`` for each i; equal indices add up."""
    return _scatter(ref, SCATTER_ADD, indices, updates, use_locking, name)


def scatter_sub(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """``ref[indices[i]] -= updates[i]`` for each i; equal indices add up."""
    return _scatter(ref, SCATTER_SUB, indices, updates, use_locking, name)


def scatter_mul(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """``ref[indices[i]] *= updates[i]`` for each i; equal indices multiply."""
    return _scatter(ref, SCATTER_MUL, indices, updates, use_locking, name)


def scatter_div(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """``ref[indices[i]] /= updates[i]`` for each i; integers are divided towards zero."""
    return _scatter(ref, SCATTER_DIV, indices, updates, use_locking, name)


def scatter_min(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """``ref[indices[i]] = min(ref[indices[i]], updates[i])`` for each i."""
    return _scatter(ref, SCATTER_MIN, indices, updates, use_locking, name)


def scatter_max(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """``ref[indices[i]] = max(ref[indices[i]], updates[i])`` for each i."""
    return _scatter(ref, SCATTER_MAX, indices, updates, use_locking, name)


def _scatter(
    ref: Any, ops: OpPair, indices: Any, updates: Any, use_locking: bool | None, name: str | None
) -> Any:
    return update(ref, ops, indices, updates, name=name, for_ref={"use_locking": use_locking})


def scatter_nd_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """``ref[tuple(indices[i])] = updates[i]``, an index being the last dimension of ``indices``.

    Example:
        >>> matrix = tf.Variable(tf.zeros([3, 3]))
        >>> tf.scatter_nd_update(matrix, [[0, 0], [1, 1]], [1.0, 2.0])
    """
    return _scatter(ref, SCATTER_ND_UPDATE, indices, updates, use_locking, name)


def scatter_nd_add(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """``ref[tuple(indices[i])] += updates[i]``; equal indices add up."""
    return _scatter(ref, SCATTER_ND_ADD, indices, updates, use_locking, name)


def scatter_nd_sub(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """``ref[tuple(indices[i])] -= updates[i]``; equal indices add up."""
    return _scatter(ref, SCATTER_ND_SUB, indices, updates, use_locking, name)


def batch_scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """``scatter_update`` within each batch: the dimensions of ``indices`` but its last.

    ``ref[i, indices[i, j]] = updates[i, j]``, and so on for more batch dimensions.
    """
    from runnel.ops.array_shape import expand_dims, reshape
    from runnel.ops.array_shape import shape as shape_of
    from runnel.ops.casting import cast
    from runnel.ops.fill import ones_like
    from runnel.ops.joining import concat
    from runnel.ops.ranges import range as numbers_to

    with name_scope(name, "batch_scatter_update"):
        indices = convert_to_tensor(indices, name="indices")
        rank = indices.shape.rank
        if rank is None:
            raise ValueError("batch_scatter_update needs indices of known rank")
        sizes = shape_of(indices)
        last = expand_dims(indices, axis=-1)
        columns = []
        for axis in range(rank - 1):
            shape: list[Any] = [1] * (rank + 1)
            shape[axis] = sizes[axis]
            batch = cast(numbers_to(sizes[axis]), indices.dtype)
            columns.append(reshape(batch, shape) * ones_like(last))
        columns.append(last)
        return scatter_nd_update(ref, concat(columns, axis=-1), updates, use_locking)
