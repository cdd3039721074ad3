"""A variable that is stored in parts, and used as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from runnel.graph.conversion import register_tensor_conversion_function
from runnel.graph.dtypes import DType
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.control import identity
from runnel.variables.variable import Variable


class PartitionedVariable:
    """Variables that are parts of one, cut along one dimension.

    Used as a tensor it is the parts, joined. ``tf.get_variable`` makes it when it is given a
    partitioner.
    """

    def __init__(
        self,
        name: str,
        shape: Any,
        dtype: DType,
        variable_list: Sequence[Variable],
        partitions: Sequence[int],
    ) -> None:
        if not isinstance(variable_list, list | tuple):
            raise TypeError(f"variable_list must be a list or tuple, not {variable_list!r}")
        if not isinstance(partitions, list | tuple):
            raise TypeError(f"partitions must be a list or tuple, not {partitions!r}")
        if any(parts < 1 for parts in partitions):
            raise ValueError(f"partition values must be positive: {partitions}")
        if not variable_list:
            raise ValueError("variable_list may not be empty")
        self._shape = TensorShape(shape)
        if self._shape.rank != len(partitions):
            raise ValueError(f"The shape {self._shape} and {partitions} are not of equal length")
        offsets: dict[Variable, list[int]] = {}
        for variable in variable_list:
            part = variable._get_save_slice_info()
            if part is None:
                raise ValueError(f"{variable.name} has no save_slice_info: it is not a part")
            if part.full_shape != self._shape:
                raise ValueError(
                    f"{variable.name} is a part of a variable of shape {part.full_shape}, "
                    f"not {self._shape}"
                )
            offsets[variable] = part.var_offset
        self._variable_list = sorted(variable_list, key=lambda variable: offsets[variable])
        self._name = name
        self._dtype = dtype
        self._partitions = list(partitions)

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        return self._shape

    def get_shape(self) -> TensorShape:
        """The shape of the whole."""
        return self._shape

    def _get_variable_list(self) -> list[Variable]:
        return self._variable_list

    def _get_partitions(self) -> list[int]:
        return self._partitions

    def __iter__(self) -> Iterator[Variable]:
        """The parts, in order."""
        return iter(self._variable_list)

    def __len__(self) -> int:
        axes = self._partition_axes()
        if len(axes) > 1:
            raise ValueError(f"A variable cut along {len(axes)} dimensions has no length")
        return len(self._variable_list)

    def __repr__(self) -> str:
        return f"<tf.PartitionedVariable '{self._name}' shape={self._shape} {self._partitions}>"

    def _partition_axes(self) -> list[int]:
        return [i for i, parts in enumerate(self._partitions) if parts > 1] or [0]

    def _partition_axis(self) -> int:
        axes = self._partition_axes()
        if len(axes) > 1:
            raise NotImplementedError(
                f"{self._name} is cut along dimensions {axes}; only one is supported here"
            )
        return axes[0]

    def as_tensor(self) -> Tensor:
        """The value of the whole."""
        from runnel.ops.joining import concat

        graph = self._variable_list[0].graph
        with graph.as_default(), graph.control_dependencies(None):
            joined: Any = self._variable_list[0]
            if len(self._variable_list) > 1:
                axis = self._partition_axis()
                with graph.name_scope(self._name + "/ConcatPartitions/"):
                    joined = concat(self._variable_list, axis)
            with graph.name_scope(None):
                return identity(joined, name=self._name)

    # Updates ----------------------------------------------------------------------------------

    def _apply(self, update: Callable[[Variable, Any], Any], value: Any) -> list[Any]:
        from runnel.ops.splitting import split

        axis = self._partition_axis()
        if isinstance(value, list):
            values = value
            if len(values) != len(self._variable_list):
                raise ValueError(
                    f"{self._name} has {len(self._variable_list)} parts, but {len(values)} values "
                    "are given"
                )
        elif isinstance(value, PartitionedVariable):
            values = list(value)
        else:
            sizes = [variable.shape.as_list()[axis] for variable in self._variable_list]
            values = split(value, sizes, axis=axis)
        return [update(variable, part) for variable, part in zip(self._variable_list, values)]

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Any]:
        """Replaces the parts; ``value`` is the whole, or a list with a value for each part."""
        return self._apply(lambda v, x: v.assign(x, use_locking, name, read_value), value)

    def assign_add(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Any]:
        """Adds to the parts."""
        return self._apply(lambda v, x: v.assign_add(x, use_locking, name, read_value), value)

    def assign_sub(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Any]:
        """Subtracts from the parts."""
        return self._apply(lambda v, x: v.assign_sub(x, use_locking, name, read_value), value)


def _to_tensor(
    variable: PartitionedVariable, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Any:
    if dtype is not None and not dtype.is_compatible_with(variable.dtype):
        raise ValueError(
            f"{variable!r} has type {variable.dtype.name}, but {dtype.name} is needed here."
        )
    if as_ref:
        raise NotImplementedError(f"{variable!r} cannot be updated as one; update its parts.")
    return variable.as_tensor()


register_tensor_conversion_function(PartitionedVariable, _to_tensor)
