"""What a checkpoint holds for an object: tensors to save, and how to put them back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import reshape
from runnel.ops.assign import assign
from runnel.variables.partitioned_variable import PartitionedVariable
from runnel.variables.variable import Variable


class SaveSpec:
    """One tensor of a checkpoint: its name there, and the slice of a larger one that it is."""

    def __init__(
        self,
        tensor: Tensor | Callable[[], Tensor],
        slice_spec: str,
        name: str,
        dtype: DType | None = None,
        device: str | None = None,
    ) -> None:
        """``tensor`` may be a function that makes it, where saving is described."""
        self._tensor = tensor
        self.slice_spec = slice_spec
        self.name = name
        if isinstance(tensor, Tensor):
            dtype, device = tensor.dtype, tensor.device
        if dtype is None:
            raise ValueError(f"The type of {name!r} must be given: its tensor is made later.")
        self.dtype = dtype.base_dtype
        self.device = device or ""

    @property
    def tensor(self) -> Tensor:
        return self._tensor() if callable(self._tensor) else self._tensor


class SaveableObject:
    """Something that can be saved: subclasses say how it is restored."""

    def __init__(self, op: Any, specs: Sequence[SaveSpec], name: str) -> None:
        self.op = op
        self.specs = list(specs)
        self.name = name

    @property
    def device(self) -> str:
        return self.specs[0].device

    @property
    def shape(self) -> TensorShape | None:
        """The static shape of what its only tensor is restored to, if it has one."""
        return None

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Any:
        """An operation that gives the object ``restored_tensors``, one for each spec."""
        raise ValueError(f"{type(self).__name__} does not say how it is restored")


def is_reference(value: Any) -> bool:
    """True for a tensor that denotes a reference variable."""
    return isinstance(value, Tensor) and value.dtype.is_ref_dtype


class _VariableSaveable(SaveableObject):
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


def _parts(name: str, variables: Iterable[Variable]) -> list[SaveableObject]:
    found: list[SaveableObject] = []
    for variable in variables:
        part = variable._get_save_slice_info()
        if part is None:
            raise ValueError(f"The parts of {name!r} must be slices; {variable.name} is not one.")
        found.append(_VariableSaveable(variable, part.spec, name))
    return found


def saveables_of(name: str, value: Any) -> list[SaveableObject]:
    """What is saved for ``value`` under ``name``."""
    if isinstance(value, SaveableObject):
        return [value]
    if isinstance(value, PartitionedVariable):
        return _parts(name, value)
    if isinstance(value, Variable):
        part = value._get_save_slice_info()
        return [_VariableSaveable(value, part.spec if part is not None else "", name)]
    if isinstance(value, list | tuple):
        return _parts(name, value)
    if is_reference(value):
        return [_VariableSaveable(value, "", name)]
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
            if not is_reference(tensor):
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
