"""Operations on mutable state.

A variable is denoted by a reference (``VariableV2``) or a resource handle (``VarHandleOp``);
both are the same thing at run time. Kernels are pure: an update takes the variable's present
value and returns the new one, and the executor threads it through the step.
"""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType
from runnel.graph.errors import OutOfRangeError
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import Dims, TensorShape, merge_dims
from runnel.ops.bounds import in_range

_WHO = ["container: string = ''", "shared_name: string = ''"]
_NUMBER = "T: numbertype"

variable_op = register_op(
    "VariableV2",
    outputs="ref: Ref(dtype)",
    attrs=["shape: shape", "dtype: type", *_WHO],
    variable=True,
    differentiable=False,
)
old_variable_op = register_op(
    "Variable",
    outputs="ref: Ref(dtype)",
    attrs=["shape: shape", "dtype: type", *_WHO],
    variable=True,
    differentiable=False,
)
handle_op = register_op(
    "VarHandleOp",
    outputs="resource: resource",
    attrs=[
        *_WHO,
        "debug_name: string = ''",
        "dtype: type",
        "shape: shape",
        "allowed_devices: list(string) = []",
    ],
    variable=True,
    differentiable=False,
)


@variable_op.shape
def _(*, shape):
    return shape._dims


def variable(shape: TensorShape, dtype: DType, name: str) -> Tensor:
    """A reference to new state."""
    attrs = {**variable_op.defaults, "shape": shape, "dtype": dtype}
    add_op = get_default_graph().add_op
    return add_op(variable_op, (), attrs, (dtype.as_ref,), name, dims=shape._dims).outputs[0]


@old_variable_op.shape
def _(*, shape):
    # This op could not say "unknown": graphs that hold it say "scalar" for it.
    return shape._dims or None


@handle_op.shape
def _():
    return ()


def handle_dims(handle: Tensor) -> Dims:
    """The static shape of the variable that a resource handle denotes."""
    while handle.op.op_def.name in ("Enter", "Switch", "Identity"):  # control flow passes it on
        handle = handle.op.inputs[0]
    shape = handle.op.attrs.get("shape") if handle.op.op_def.variable else None
    return shape._dims if isinstance(shape, TensorShape) else None


# Reading --------------------------------------------------------------------------------------

read_op = register_op(
    "ReadVariableOp",
    inputs="resource: resource",
    outputs="value: dtype",
    attrs="dtype: type",
    stateful=True,
)


@read_op.shape
def _(handle):
    return handle_dims(handle)


@read_op.kernel
def _(xp, value):
    return value


@read_op.gradient
def _(op, grad):
    return grad


is_initialized_op = register_op(
    "IsVariableInitialized",
    inputs="ref: Ref(dtype)",
    outputs="is_initialized: bool",
    attrs="dtype: type",
    host=True,
    stateful=True,
    allows_uninitialized=True,
    differentiable=False,
)
handle_is_initialized_op = register_op(
    "VarIsInitializedOp",
    inputs="resource: resource",
    outputs="is_initialized: bool",
    host=True,
    stateful=True,
    allows_uninitialized=True,
    differentiable=False,
)
for _op in (is_initialized_op, handle_is_initialized_op):

    @_op.shape
    def _(ref):
        return ()

    @_op.kernel
    def _(xp, value):
        return xp.asarray(value is not None)


shape_of_handle_op = register_op(
    "VariableShape",
    inputs="input: resource",
    outputs="output: out_type",
    attrs="out_type: {int32, int64} = DT_INT32",
    stateful=True,
    differentiable=False,
)


@shape_of_handle_op.shape
def _(handle):
    dims = handle_dims(handle)
    return (None if dims is None else len(dims),)


@shape_of_handle_op.kernel
def _(xp, value, *, out_type):
    return xp.asarray(value.shape, out_type.np_dtype)


# TensorFlow's Saver adds it before it reads a variable; here reading copies nothing.
disable_copy_op = register_op(
    "DisableCopyOnRead", inputs="resource: resource", stateful=True, host=True, differentiable=False
)


@disable_copy_op.kernel
def _(xp, value):
    return ()


# Dense updates --------------------------------------------------------------------------------


def _same_shape(ref: Tensor, value: Tensor) -> Dims:
    return merge_dims(ref.dims, value.dims)


assign_op = register_op(
    "Assign",
    inputs="ref: Ref(T), value: T",
    outputs="output_ref: Ref(T)",
    attrs=["T: type", "validate_shape: bool = true", "use_locking: bool = true"],
    overwrites=("ref",),
    differentiable=False,
)


@assign_op.shape
def _(ref, value, *, validate_shape):
    return _same_shape(ref, value) if validate_shape else value.dims


@assign_op.kernel
def _(xp, ref, value):
    return value


assign_handle_op = register_op(
    "AssignVariableOp",
    inputs="resource: resource, value: dtype",
    attrs=["dtype: type", "validate_shape: bool = false"],
    overwrites=("resource",),
    differentiable=False,
)


@assign_handle_op.shape
def _(handle, value):
    return merge_dims(handle_dims(handle), value.dims)


@assign_handle_op.kernel
def _(xp, ref, value):
    return value


def _dense_update(ref_name: str, handle_name: str, combine: Any) -> tuple[OpDef, OpDef]:
    by_ref = register_op(
        ref_name,
        inputs="ref: Ref(T), value: T",
        outputs="output_ref: Ref(T)",
        attrs=[_NUMBER, "use_locking: bool = false"],
        updates=("ref",),
        differentiable=False,
    )
    by_ref.shape(_same_shape)
    by_handle = register_op(
        handle_name,
        inputs="resource: resource, value: dtype",
        attrs="dtype: type",
        updates=("resource",),
        differentiable=False,
    )

    @by_handle.shape
    def _(handle, value):
        return merge_dims(handle_dims(handle), value.dims)

    for op_def in (by_ref, by_handle):

        @op_def.kernel
        def _(xp, ref, value):
            if ref.shape != value.shape:
                raise ValueError(
                    f"A variable of shape {ref.shape} cannot be updated by a value of another "
                    f"shape, {value.shape}"
                )
            return combine(xp, ref, value)

    return by_ref, by_handle


assign_add_op, assign_add_handle_op = _dense_update(
    "AssignAdd", "AssignAddVariableOp", lambda xp, ref, value: xp.add(ref, value)
)
assign_sub_op, assign_sub_handle_op = _dense_update(
    "AssignSub", "AssignSubVariableOp", lambda xp, ref, value: xp.subtract(ref, value)
)


# Counting -------------------------------------------------------------------------------------

count_up_to_op = register_op(
    "CountUpTo",
    inputs="ref: Ref(T)",
    outputs="output: T",
    attrs=["limit: int", "T: {int32, int64}"],
    updates=("ref",),
    host=True,
    differentiable=False,
)
count_up_to_handle_op = register_op(
    "ResourceCountUpTo",
    inputs="resource: resource",
    outputs="output: T",
    attrs=["limit: int", "T: {int32, int64}"],
    updates=("resource",),
    host=True,
    differentiable=False,
)
for _op in (count_up_to_op, count_up_to_handle_op):

    @_op.shape
    def _(ref):
        return ()

    @_op.kernel
    def _(xp, value, *, limit):
        if value >= limit:
            raise OutOfRangeError(None, None, f"Reached limit of {limit}")
        return value + value.dtype.type(1), value


# Indices --------------------------------------------------------------------------------------


# Gathering ----------------------------------------------------------------------------------

gather_handle_op = register_op(
    "ResourceGather",
    inputs="resource: resource, indices: Tindices",
    outputs="output: dtype",
    attrs=[
        "batch_dims: int = 0",
        "validate_indices: bool = true",
        "dtype: type",
        "Tindices: {int32, int64}",
    ],
    stateful=True,
)


@gather_handle_op.shape
def _(handle, indices, *, batch_dims):
    dims = handle_dims(handle)
    if dims is None or indices.dims is None:
        return None
    merge_dims(dims[:batch_dims], indices.dims[:batch_dims])
    return indices.dims + dims[batch_dims + 1 :]


@gather_handle_op.kernel
def _(xp, params, indices, *, batch_dims, check):
    in_range(xp, indices, params.shape[batch_dims], check)
    if batch_dims == 0:
        return xp.take(params, indices, axis=0)
    batch = xp.ix_(*[xp.arange(n) for n in indices.shape[:batch_dims]])
    inner = (1,) * (indices.ndim - batch_dims)
    return params[(*[b.reshape(b.shape + inner) for b in batch], indices)]


@gather_handle_op.gradient
def _(op, grad):
    from runnel.ops.gather import slices_of_gather

    handle, indices = op.inputs
    if op.attrs["batch_dims"] != 0:
        raise LookupError(f"{op.name!r} gathers with batch_dims, which has no gradient")
    dims = handle_dims(handle)
    known = dims is not None and None not in dims
    shape = convert_to_tensor(TensorShape(dims)) if known else shape_of_handle_op(handle)
    return [slices_of_gather(shape, indices, grad), None]
