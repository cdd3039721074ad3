"""``StagingArea`` and ``MapStagingArea``: tuples of tensors that wait between two steps.

A step that puts the next batch while it uses the one that an earlier step has put overlaps moving
data with computing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.queues import staging_ops


class BaseStagingArea:
    """What both kinds have in common: types, shapes and names of the components, bounds."""

    def __init__(
        self,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        if shared_name is None:
            self._name = get_default_graph().unique_name(type(self).__name__)
        elif isinstance(shared_name, str):
            self._name = shared_name
        else:
            raise ValueError(f"shared_name must be a string, got {shared_name!r}")
        self._dtypes = [as_dtype(t) for t in dtypes]
        if shapes is not None and len(shapes) != len(self._dtypes):
            raise ValueError("StagingArea shapes must be the same length as dtypes")
        self._shapes = [TensorShape(s) for s in shapes or [None] * len(self._dtypes)]
        if names is not None and len(names) != len(self._dtypes):
            raise ValueError("StagingArea names must be the same length as dtypes")
        self._names: list[str] | None = None if names is None else list(names)
        self._capacity = capacity
        self._memory_limit = memory_limit

    @property
    def name(self) -> str:
        """The name of the staging area, which others may share."""
        return self._name

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

    @property
    def capacity(self) -> int:
        """How many tuples there may be; 0: any number."""
        return self._capacity

    @property
    def memory_limit(self) -> int:
        """How many bytes there may be; 0: any number."""
        return self._memory_limit

    def _who(self, dtypes: Sequence[DType] | None = None) -> dict[str, Any]:
        """The attributes by which every operation on this area finds it."""
        return {
            "dtypes": self._dtypes if dtypes is None else list(dtypes),
            "shared_name": self._name,
            "capacity": self._capacity,
            "memory_limit": self._memory_limit,
        }

    def _components(self, vals: Any, indices: Sequence[int] | None) -> tuple[Any, list[int]]:
        """``vals`` as tensors, and which components they are."""
        if isinstance(vals, dict):
            if not self._names:
                raise ValueError("Staging areas must have names to enqueue a dictionary")
            if not set(vals) <= set(self._names):
                raise ValueError(
                    f"Keys in dictionary to put do not match names of staging area. Dictionary: "
                    f"{sorted(vals)}, staging area: {sorted(self._names)}"
                )
            indices = [i for i, name in enumerate(self._names) if name in vals]
            vals = [vals[self._names[i]] for i in indices]
        elif self._names:
            raise ValueError("You must enqueue a dictionary in a staging area with names")
        elif not isinstance(vals, list | tuple):
            vals = [vals]
        if indices is None:
            raise ValueError("Indices must be supplied when inserting a list of tensors")
        if len(indices) != len(vals):
            raise ValueError(f"There are {len(indices)} indices for {len(vals)} values")
        tensors = []
        for value, i in zip(vals, indices, strict=True):
            tensor = convert_to_tensor(value, self._dtypes[i], f"component_{i}")
            tensor.get_shape().assert_is_compatible_with(self._shapes[i])
            tensors.append(tensor)
        return tensors, list(indices)

    def _result(self, tensors: list[Tensor], indices: Sequence[int]) -> Any:
        for tensor, i in zip(tensors, indices, strict=True):
            tensor.set_shape(self._shapes[i])
        if self._names:
            return {self._names[i]: t for t, i in zip(tensors, indices, strict=True)}
        return tensors


class StagingArea(BaseStagingArea):
    """Tuples that leave in the order in which they were put in.

    With ``capacity`` or ``memory_limit`` (bytes), putting in waits for room.

    Example:
        >>> area = StagingArea([tf.float32], shapes=[[784]])
        >>> put = area.put([next_batch])
        >>> batch = area.get()  # waits for what an earlier step has put
    """

    def put(self, values: Any, name: str | None = None) -> Operation:
        """Puts a tuple in, when there is room."""
        with name_scope(name, f"{self._name}_put") as scope:
            if not isinstance(values, list | tuple | dict):
                values = [values]
            tensors, _ = self._components(values, list(range(len(values))))
            if len(tensors) != len(self._dtypes):
                raise ValueError(
                    f"A tuple has {len(self._dtypes)} components, but {len(tensors)} were given"
                )
            return staging_ops.stage_op(tensors, name=scope, **self._who())

    def get(self, name: str | None = None) -> Any:
        """The first tuple, taken out; waits for it."""
        made = staging_ops.unstage_op(name=name or f"{self._name}_get", **self._who())
        return self._result(made, range(len(self._dtypes)))

    def peek(self, index: Any, name: str | None = None) -> Any:
        """The tuple at ``index``, which stays; waits for it."""
        made = staging_ops.peek_op(index, name=name or f"{self._name}_peek", **self._who())
        return self._result(made, range(len(self._dtypes)))

    def size(self, name: str | None = None) -> Tensor:
        """How many tuples there are."""
        return staging_ops.size_op(name=name or f"{self._name}_size", **self._who())

    def clear(self, name: str | None = None) -> Operation:
        """Forgets all tuples."""
        return staging_ops.clear_op(name=name or f"{self._name}_clear", **self._who())


class MapStagingArea(BaseStagingArea):
    """Tuples under integer keys, whose components may be put in and taken out separately.

    With ``ordered``, taking without a key gives the tuple of the smallest key.

    Example:
        >>> area = MapStagingArea([tf.float32, tf.int32], names=["x", "y"])
        >>> put = area.put(7, {"x": x, "y": y})
        >>> key, values = area.get(7)
    """

    def __init__(
        self,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        ordered: bool = False,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        super().__init__(dtypes, shapes, names, shared_name, capacity, memory_limit)
        self._ops = staging_ops.ordered_map_ops if ordered else staging_ops.map_ops

    def put(
        self, key: Any, vals: Any, indices: Sequence[int] | None = None, name: str | None = None
    ) -> Operation:
        """Puts components of the tuple under ``key`` in, when there is room."""
        with name_scope(name, f"{self._name}_put") as scope:
            tensors, places = self._components(vals, indices)
            key = convert_to_tensor(key, "int64")
            return self._ops.put(key, places, tensors, name=scope, **self._who())

    def _places(self, indices: Any) -> tuple[list[int], list[DType]]:
        if indices is None:
            places = list(range(len(self._dtypes)))
        elif not isinstance(indices, list | tuple) or not indices:
            raise TypeError(f"indices must be a list that is not empty, not {indices!r}")
        elif all(isinstance(i, str) for i in indices):
            if self._names is None or not set(indices) <= set(self._names):
                raise ValueError(f"{indices} are not among the names {self._names}")
            places = [self._names.index(i) for i in indices]
        else:
            places = list(indices)
        return places, [self._dtypes[i] for i in places]

    def get(self, key: Any = None, indices: Any = None, name: str | None = None) -> Any:
        """The key and the components ``indices`` (all) of its tuple, taken out; waits for it.

        Without a key, those of any tuple.
        """
        places, types = self._places(indices)
        if key is None:
            found, values = self._ops.get_any(
                places, name=name or f"{self._name}_get_nokey", **self._who(types)
            )
            return found, self._result(values, places)
        key = convert_to_tensor(key, "int64")
        made = self._ops.get(key, places, name=name or f"{self._name}_get", **self._who(types))
        return key, self._result(made, places)

    def peek(self, key: Any, indices: Any = None, name: str | None = None) -> Any:
        """Components of the tuple under ``key``, which stay; waits for it."""
        places, types = self._places(indices)
        key = convert_to_tensor(key, "int64")
        made = self._ops.peek(key, places, name=name or f"{self._name}_pop", **self._who(types))
        return self._result(made, places)

    def size(self, name: str | None = None) -> Tensor:
        """How many tuples are complete."""
        return self._ops.size(name=name or f"{self._name}_size", **self._who())

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """How many tuples lack components."""
        return self._ops.incomplete_size(
            name=name or f"{self._name}_incomplete_size", **self._who()
        )

    def clear(self, name: str | None = None) -> Operation:
        """Forgets all tuples."""
        return self._ops.clear(name=name or f"{self._name}_clear", **self._who())
