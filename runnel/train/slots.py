"""Slots: variables that an optimizer keeps beside a variable, of its shape and on its device."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import get_default_graph
from runnel.graph.graph_scopes import mapped_folder
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import shape as shape_of
from runnel.variables.get_variable import get_variable
from runnel.variables.initializers import Zeros
from runnel.variables.mapped_variables import mapped_variables
from runnel.variables.save_slice import SaveSliceInfo
from runnel.variables.variable import Variable
from runnel.variables.variable_scope import get_variable_scope, variable_scope


def create_slot(primary: Any, value: Any, name: str) -> Variable:
    """A variable ``<primary>/<name>`` that begins as ``value``, a tensor or an array."""
    return _create(primary, convert_to_tensor(value), name, None, None)


def create_slot_with_initializer(
    primary: Any, initializer: Any, shape: Any, dtype: Any, name: str
) -> Variable:
    """A variable ``<primary>/<name>`` of ``shape`` that begins as ``initializer`` makes it."""
    if TensorShape(shape).is_fully_defined():
        return _create(primary, initializer, name, shape, dtype)
    # What is not known yet is the shape that the primary begins with.
    begins_as = primary.initialized_value() if isinstance(primary, Variable) else primary
    return create_slot(primary, initializer(shape_of(begins_as), dtype=dtype), name)


def create_zeros_slot(primary: Any, name: str, dtype: Any = None) -> Variable:
    """A variable ``<primary>/<name>`` that begins as zeros, of the primary's type unless given."""
    dtype = dtype or primary.dtype.base_dtype
    return create_slot_with_initializer(primary, Zeros(), primary.get_shape(), dtype, name)


def _create(primary: Any, value: Any, name: str, shape: Any, dtype: Any) -> Variable:
    # A scope of its own: a second slot of that name is numbered, as TensorFlow's is.
    with variable_scope(None, f"{primary.op.name}/{name}"):
        get_variable_scope().set_partitioner(None)  # the primary is a part already, or whole
        with _beside(primary), _kept_like(primary):
            slot = get_variable(
                "",
                shape=shape,
                dtype=dtype,
                initializer=value,
                trainable=False,
                use_resource=is_resource(primary) if isinstance(primary, Variable) else None,
                validate_shape=shape is not None or value.shape.is_fully_defined(),
            )
    _mark_as_part(slot, primary)
    return slot


def _beside(primary: Any) -> AbstractContextManager[Any]:
    if primary.op.op_def.variable:
        return get_default_graph().colocate_with(primary.op)
    return nullcontext()  # the average of a tensor lies wherever variables are placed


def _kept_like(primary: Any) -> AbstractContextManager[Any]:
    """Slots of a variable in a mapped file have mapped files of their own, those of others not."""
    return mapped_variables(mapped_folder(primary.op))


def _mark_as_part(slot: Variable, primary: Any) -> None:
    """Slots of a partitioned variable are saved as parts of one, as the variable is."""
    part = getattr(primary, "_save_slice_info", None)
    rank = slot.shape.rank
    if part is None or rank == 0:
        return
    # By length, as TensorFlow cuts it, whose checkpoints have that name (in an outer scope too).
    own_name = slot.op.name[len(primary.op.name) + 1 :]
    slot._set_save_slice_info(
        SaveSliceInfo(
            f"{part.full_name}/{own_name}",
            part.full_shape[:rank],
            part.var_offset[:rank],
            part.var_shape[:rank],
        )
    )


def is_resource(variable: Any) -> bool:
    """True for a resource variable, False for a reference variable or a tensor."""
    return variable.op.type == "VarHandleOp"
