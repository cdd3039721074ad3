"""What is saved for variables, and for other objects of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from runnel.checkpoint.saveable_object import SaveableObject, SaveSpec
from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import reshape
from runnel.ops.assign import assign
from runnel.ops.state import assign_handle_op, read_op
from runnel.variables.partitioned_variable import PartitionedVariable
from runnel.variables.variable import Variable


def is_reference(value: Any) -> bool:
    """True for a tensor that denotes a reference variable."""
    return isinstance(value, Tensor) and value.dtype.is_ref_dtype


class VariableSaveable(SaveableObject):
    """A variable, or the reference that denotes one."""

    def __init__(self, variable: Any, slice_spec: str, name: str) -> None:
        self._variable = variable
        spec = SaveSpec(self._value, slice_spec, name, variable.dtype, variable.device)
        super().__init__(variable.op, [spec], name)

    def _value(self) -> Tensor:
        if self._variable.dtype.is_ref_dtype:
            return self.op.outputs[0]  # which is read where it is saved
        return self._variable.read_value()

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return self._variable.shape

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Any:
        [value] = restored_tensors
        if restored_shapes is not None:
            value = reshape(value, restored_shapes[0])
        if self._variable.dtype.is_ref_dtype:
            checked = restored_shapes is None and self.shape.is_fully_defined()
            return assign(self._variable, value, validate_shape=checked)
        return self._variable.assign(value, read_value=False)


def is_handle(value: Any) -> bool:
    """True for the handle of a resource variable: its own operation's output."""
    return isinstance(value, Tensor) and value.op.type == "VarHandleOp"


class HandleSaveable(SaveableObject):
    """A resource variable of which only the handle is there, as in an imported graph."""

    def __init__(self, handle: Tensor, name: str) -> None:
        self._handle = handle
        dtype = handle.op.get_attr("dtype")
        spec = SaveSpec(lambda: read_op(handle, dtype=dtype), "", name, dtype, handle.device)
        super().__init__(handle.op, [spec], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Any:
        [value] = restored_tensors
        if restored_shapes is not None:
            value = reshape(value, restored_shapes[0])
        return assign_handle_op(self._handle, value)


def _parts(name: str, variables: Iterable[Variable]) -> list[SaveableObject]:
    found: list[SaveableObject] = []
    for variable in variables:
        part = variable._get_save_slice_info()
        if part is None:
            raise ValueError(f"The parts of {name!r} must be slices; {variable.name} is not one.")
        found.append(VariableSaveable(variable, part.spec, name))
    return found


def saveables_of(name: str, value: Any) -> list[SaveableObject]:
    """What is saved for ``value`` under ``name``."""
    if isinstance(value, SaveableObject):
        return [value]
    if isinstance(value, PartitionedVariable):
        return _parts(name, value)
    if isinstance(value, Variable):
        part = value._get_save_slice_info()
        return [VariableSaveable(value, part.spec if part is not None else "", name)]
    if isinstance(value, list | tuple):
        return _parts(name, value)
    if is_reference(value):
        return [VariableSaveable(value, "", name)]
    if is_handle(value):
        return [HandleSaveable(value, name)]
    raise TypeError(
        f"{name!r}: only variables can be saved, not {value!r} ({type(value).__name__})"
    )


def named(values: Any) -> dict[str, Any]:
    """``values``, a list or dictionary of what is to be saved, by the names in the checkpoint."""
    if isinstance(values, Mapping):
        return dict(values)
    found: dict[str, Any] = {}
    for value in values:
        if isinstance(value, SaveableObject | PartitionedVariable):
            name = value.name
        elif isinstance(value, Variable):
            part = value._get_save_slice_info()
            if part is not None:
                parts = found.setdefault(part.full_name, [])
                if not isinstance(parts, list):
                    raise ValueError(f"At least two variables have the same name: {part.full_name}")
                parts.append(value)
                continue
            name = value.op.name
        else:
            tensor = value if isinstance(value, Tensor) else convert_to_tensor(value)
            if not is_reference(tensor) and not is_handle(tensor):
                raise TypeError(f"Only variables can be saved, not {value!r}")
            name, value = tensor.op.name, tensor
        if name in found:
            raise ValueError(f"At least two variables have the same name: {name}")
        found[name] = value
    return found


def all_saveables(values: Any) -> list[SaveableObject]:
    """What is saved for a list or dictionary of variables, sorted by name; each object once."""
    found: list[SaveableObject] = []
    seen: dict[Operation | Any, str] = {}
    for name, value in sorted(named(values).items()):
        for saveable in saveables_of(name, value):
            if saveable.op in seen:
                raise ValueError(
                    "The same saveable will be restored with two names: "
                    f"{seen[saveable.op]} and {name}"
                )
            seen[saveable.op] = name
            found.append(saveable)
    return found


def default_saveables() -> list[Any]:
    """The global variables of the default graph, and other objects that can be saved."""
    graph = get_default_graph()
    return [
        *graph.get_collection(GraphKeys.GLOBAL_VARIABLES),
        *graph.get_collection(GraphKeys.SAVEABLE_OBJECTS),
    ]
