"""Python's ``x[...]`` on tensors."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import constant_tensor, convert_to_tensor
from runnel.graph.dtypes import DType
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def
from runnel.ops.joining import pack_op
from runnel.ops.strided_slice import strided_slice_op

newaxis = None


def getitem(x: Any, key: Any) -> Tensor:
    """``x[key]`` with Python's rules: integers, slices, ``...``, ``tf.newaxis``, scalar tensors.

    A boolean tensor or array selects, as ``tf.boolean_mask`` does.

    Example:
        >>> x[0, ..., ::-1, tf.newaxis]
    """
    if isinstance(key, Tensor | np.ndarray) and key.dtype == dtypes.bool_:
        from runnel.ops.masking import boolean_mask

        return boolean_mask(x, key)
    entries = list(key) if isinstance(key, list | tuple) else [key]
    tensors = [_is_tensor(entry) for entry in entries]
    if any(tensors) and any(_has_bounds(entry) for entry in entries):
        # Bounds that are known go first, in a slice of their own: what is left then has a size
        # that does not depend on data, and compiles.
        bounded = [builtins.slice(None) if t else e for e, t in zip(entries, tensors, strict=True)]
        rest = [
            e if t or e is Ellipsis else builtins.slice(None)
            for e, t in zip(entries, tensors, strict=True)
            if t or e is None or e is Ellipsis or isinstance(e, builtins.slice)
        ]
        return getitem(getitem(x, tuple(bounded)), tuple(rest))
    return _Spec(entries).apply(x)


def _is_tensor(entry: Any) -> bool:
    return isinstance(entry, Tensor) or hasattr(entry, "_as_graph_element")


def _has_bounds(entry: Any) -> bool:
    return isinstance(entry, builtins.slice) and (entry.start is not None or entry.stop is not None)


class _Spec:
    """The inputs and masks of a strided slice, gathered entry by entry."""

    def __init__(self, entries: list[Any]) -> None:
        self.begin: list[Any] = []
        self.end: list[Any] = []
        self.strides: list[Any] = []
        self.masks = dict.fromkeys(
            ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0
        )
        for entry in entries:
            self._add(entry)

    def _add(self, entry: Any) -> None:
        bit = 1 << len(self.begin)
        masks = self.masks
        if isinstance(entry, builtins.slice):
            if entry.start is None:
                masks["begin_mask"] |= bit
            if entry.stop is None:
                masks["end_mask"] |= bit
            self._append(
                0 if entry.start is None else _index(entry.start),
                0 if entry.stop is None else _index(entry.stop),
                1 if entry.step is None else _index(entry.step),
            )
        elif entry is Ellipsis:
            masks["ellipsis_mask"] |= bit
            self._append(0, 0, 1)
        elif entry is None:
            masks["new_axis_mask"] |= bit
            self._append(0, 0, 1)
        else:
            index = _index(entry)
            masks["shrink_axis_mask"] |= bit
            # The end is not looked at where a dimension is dropped.
            self._append(index, index + 1 if type(index) is int else 0, 1)

    def _append(self, begin: Any, end: Any, stride: Any) -> None:
        self.begin.append(begin)
        self.end.append(end)
        self.strides.append(stride)

    def apply(self, x: Any) -> Tensor:
        everything = [*self.begin, *self.end, *self.strides]
        wide = any(isinstance(e, Tensor) and e.dtype.base_dtype is dtypes.int64 for e in everything)
        dtype = dtypes.int64 if wide else dtypes.int32
        with name_scope(None, "strided_slice", [x]) as scope:
            bounds = [_vector(part, dtype) for part in (self.begin, self.end, self.strides)]
            return strided_slice_op(x, *bounds, **self.masks, name=scope)


def _vector(entries: list[Any], dtype: DType) -> Tensor:
    if all(type(entry) is int for entry in entries):
        return constant_tensor(np.array(entries, dtype.np_dtype), dtype, None, "stack")
    parts = [
        get_op_def("Cast")(entry, DstT=dtype)
        if isinstance(entry, Tensor) and entry.dtype.base_dtype is not dtype
        else entry
        for entry in entries
    ]
    return pack_op(parts, name="stack")


def _index(entry: Any) -> Any:
    """An index as a Python integer or a scalar tensor."""
    if type(entry) is int:
        return entry
    if _is_tensor(entry):
        tensor = convert_to_tensor(entry)
        if not tensor.dtype.is_integer:
            raise TypeError(f"An index must be an integer, but {tensor!r} is not")
        if tensor.dims not in (None, ()):
            raise TypeError(f"Only a scalar tensor can be an index, not {tensor!r}; use tf.gather")
        return tensor
    if not isinstance(entry, bool | np.bool_) and hasattr(entry, "__index__"):
        return entry.__index__()
    raise TypeError(
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tensors are "
        f"valid indices, got {entry!r}"
    )


Tensor._override_operator("__getitem__", getitem)
