"""The variables that ``tf.get_variable`` has made in a graph, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from types import FunctionType
from typing import Any

from runnel.graph import dtypes
from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape, as_shape
from runnel.variables.creation import resource_variables_enabled
from runnel.variables.partitioned_variable import PartitionedVariable
from runnel.variables.partitioning import (
    PartitionInfo,
    call_partitioner,
    cut_dimension,
    iterate_parts,
)
from runnel.variables.save_slice import SaveSliceInfo
from runnel.variables.synchronization import (
    VariableAggregation,
    VariableSynchronization,
    check_modes,
)
from runnel.variables.variable import Variable

_STORE_KEY = ("__variable_store",)


class VariableStore:
    """Makes variables, and finds those made before.

    ``reuse`` is False (the variable must be new), True (it must exist) or ``tf.AUTO_REUSE``.
    """

    def __init__(self) -> None:
        self._vars: dict[str, Variable] = {}
        self._partitioned_vars: dict[str, PartitionedVariable] = {}

    def by_name(self) -> dict[str, Variable | PartitionedVariable]:
        """The variables that were made, by name; those in parts as wholes."""
        whole = {n: v for n, v in self._vars.items() if v._get_save_slice_info() is None}
        return {**whole, **self._partitioned_vars}

    def get_variable(
        self,
        name: str,
        custom_getter: Callable[..., Any] | None = None,
        trainable: bool | None = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: Any = VariableAggregation.NONE,
        **arguments: Any,
    ) -> Any:
        """The variable called ``name``; see :func:`tf.get_variable` for the arguments."""
        if custom_getter is not None and not callable(custom_getter):
            raise ValueError(f"A custom_getter must be callable, not {custom_getter!r}")
        modes = check_modes(synchronization, aggregation, trainable, name)
        synchronization, aggregation, trainable = modes
        arguments["dtype"] = as_dtype(arguments["dtype"]).base_dtype
        arguments |= {
            "trainable": trainable,
            "synchronization": synchronization,
            "aggregation": aggregation,
        }
        if custom_getter is None:
            return self._get(name, **arguments)
        if not _accepts(custom_getter, "constraint", through_keywords=True):
            del arguments["constraint"]
        return custom_getter(getter=self._get, name=name, **arguments)

    def _get(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        constraint: Any = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: Any = VariableAggregation.NONE,
    ) -> Any:
        """The getter that custom getters are given."""
        options = {
            "shape": shape,
            "dtype": as_dtype(dtype),
            "initializer": initializer,
            "regularizer": regularizer,
            "reuse": reuse,
            "trainable": trainable,
            "collections": collections,
            "caching_device": caching_device,
            "validate_shape": validate_shape,
            "use_resource": use_resource,
            "constraint": constraint,
            "synchronization": synchronization,
            "aggregation": aggregation,
        }
        graph = get_default_graph()
        is_scalar = isinstance(shape, Sequence) and not shape
        with graph._lock:  # two threads that ask for the same variable get the same one
            if partitioner is not None and not is_scalar:
                if not callable(partitioner):
                    raise ValueError(f"A partitioner must be callable, not {partitioner!r}")
                with graph.name_scope(None):
                    return self._get_partitioned(name, partitioner, **options)
            if reuse is True and partitioner is None and name in self._partitioned_vars:
                return self._get_partitioned(name, None, **options)
            if f"{name}/part_0" in self._vars:
                raise ValueError(
                    f"Variable {name} exists in parts ({name}/part_0 and so on), but no "
                    "partitioner is given for it here"
                )
            return self._get_single(name, **options)

    # One variable -----------------------------------------------------------------------------

    def _get_single(
        self,
        name: str,
        shape: Any,
        dtype: DType,
        initializer: Any,
        regularizer: Any,
        reuse: Any,
        partition_info: PartitionInfo | None = None,
        use_resource: bool | None = None,
        **options: Any,
    ) -> Variable:
        if shape is not None and initializer is not None and not callable(initializer):
            raise ValueError(
                f"If initializer is a constant, do not specify shape (variable {name}): "
                "its value has a shape already."
            )
        shape = None if shape is None else as_shape(shape)
        found = self._vars.get(name)
        if found is not None:
            return self._shared(name, found, shape, dtype, reuse)
        if reuse is True:
            raise ValueError(
                f"Variable {name} does not exist, or was not created with tf.get_variable(). "
                "To create it here, set reuse=tf.AUTO_REUSE (or reuse=None) in its scope."
            )
        if initializer is None:
            if shape is None:
                raise ValueError(
                    f"Variable {name} is new and has no initializer: its shape must be specified"
                )
            initializer = _default_initializer(name, dtype)
        variable_dtype: DType | None = None
        if callable(initializer):
            initializer, variable_dtype = _bind_initializer(
                name, initializer, shape, dtype, partition_info
            )
        if use_resource is None:
            use_resource = resource_variables_enabled()
        variable = Variable(
            initial_value=initializer,
            name=name,
            dtype=variable_dtype,
            shape=shape,
            use_resource=use_resource,
            **options,
        )
        self._vars[name] = variable
        if regularizer:  # as TensorFlow asks: a library may give an empty dict for none
            _regularize(name, variable, regularizer)
        return variable

    @staticmethod
    def _shared(name: str, found: Variable, shape: Any, dtype: DType, reuse: Any) -> Variable:
        made_at = found.op.creation_site()[-1]
        if reuse is False:
            raise ValueError(
                f"Variable {name} already exists; it was made at {made_at}\n"
                "To share it, set reuse=True or reuse=tf.AUTO_REUSE in the variable scope; for "
                "another variable, use another name or scope."
            )
        if shape is not None and not shape.is_compatible_with(found.get_shape()):
            raise ValueError(
                f"Trying to share variable {name}, but specified shape {shape} and found shape "
                f"{found.get_shape()}; it was made at {made_at}"
            )
        if not dtype.is_compatible_with(found.dtype):
            raise ValueError(
                f"Trying to share variable {name}, but specified dtype {dtype.name} and found "
                f"dtype {found.dtype.base_dtype.name}; it was made at {made_at}"
            )
        return found

    # A variable in parts ----------------------------------------------------------------------

    def _get_partitioned(
        self,
        name: str,
        partitioner: Any,
        shape: Any,
        dtype: DType,
        initializer: Any,
        reuse: Any,
        **options: Any,
    ) -> PartitionedVariable:
        if name in self._vars:
            raise ValueError(
                f"Variable {name} exists in one piece, but a partitioner is given for it here"
            )
        shape = as_shape(shape)
        if isinstance(initializer, Tensor):
            shape = shape.merge_with(initializer.shape)
        partitions = call_partitioner(partitioner, shape, dtype) if partitioner else None
        found = self._partitioned_vars.get(name)
        if found is not None:
            return _shared_parts(name, found, shape, dtype, partitions, reuse)
        if reuse is True or partitions is None:
            raise ValueError(
                f"PartitionedVariable {name} does not exist, or was not created with "
                "tf.get_variable(). To create it here, set reuse=tf.AUTO_REUSE in its scope."
            )
        dimension, count = cut_dimension(partitions)
        full_shape = [int(size) for size in shape.as_list()]
        graph = get_default_graph()
        parts: list[Variable] = []
        for i, (offset, part_shape) in enumerate(iterate_parts(full_shape, count, dimension)):
            part_name = f"{name}/part_{i}"
            with graph.name_scope(part_name + "/PartitionedInitializer"):
                initial, initial_shape = _slice_initializer(initializer, dtype, offset, part_shape)
            with graph.name_scope(None):
                part = self._get_single(
                    part_name,
                    shape=initial_shape,
                    dtype=dtype,
                    initializer=initial,
                    reuse=reuse,
                    partition_info=PartitionInfo(full_shape, offset),
                    **options,
                )
            part._set_save_slice_info(SaveSliceInfo(name, full_shape, offset, part_shape))
            parts.append(part)
        whole = PartitionedVariable(name, shape, dtype, parts, partitions)
        self._partitioned_vars[name] = whole
        return whole


def default_variable_store() -> VariableStore:
    """The store of the default graph."""
    graph = get_default_graph()
    with graph._lock:
        stores = graph.get_collection_ref(_STORE_KEY)
        if not stores:
            stores.append(VariableStore())
        return stores[0]


def _shared_parts(
    name: str,
    found: PartitionedVariable,
    shape: TensorShape,
    dtype: DType,
    partitions: list[int] | None,
    reuse: Any,
) -> PartitionedVariable:
    if reuse is False:
        raise ValueError(
            f"Partitioned variable {name} already exists; it was made at "
            f"{list(found)[0].op.creation_site()[-1]}\n"
            "To share it, set reuse=True or reuse=tf.AUTO_REUSE in the variable scope."
        )
    for what, given, existing, fits in (
        ("shape", shape, found.shape, shape.is_compatible_with(found.shape)),
        ("dtype", dtype.name, found.dtype.name, dtype.is_compatible_with(found.dtype)),
        (
            "partitions",
            partitions,
            found._get_partitions(),
            partitions in (None, found._get_partitions()),
        ),
    ):
        if not fits:
            raise ValueError(
                f"Trying to reuse partitioned variable {name}, but specified {what} {given} and "
                f"found {what} {existing}."
            )
    return found


def _slice_initializer(
    initializer: Any, dtype: DType, offset: list[int], shape: list[int]
) -> tuple[Any, list[int] | None]:
    """The initializer of a part, and the shape to tell it (None if it is a value)."""
    if initializer is None or callable(initializer):
        return initializer, shape
    from runnel.ops.slicing import slice as slice_tensor

    value = convert_to_tensor(initializer, None if isinstance(initializer, Tensor) else dtype)
    return slice_tensor(value, offset, shape), None


def _default_initializer(name: str, dtype: DType) -> Any:
    from runnel.variables.initializers import GlorotUniform, Zeros

    if dtype.is_floating:
        return GlorotUniform()
    if dtype.is_integer or dtype.is_bool or dtype.base_dtype is dtypes.string:
        return Zeros()
    raise ValueError(f"Variable {name} of type {dtype.name} needs an initializer")


def _bind_initializer(
    name: str,
    initializer: Any,
    shape: TensorShape | None,
    dtype: DType,
    partition_info: PartitionInfo | None,
) -> tuple[Callable[[], Any], DType | None]:
    """A function without arguments that makes the initial value, and the type to convert it to."""
    if isinstance(initializer, type):
        initializer = initializer()
    if shape is not None and shape.is_fully_defined():
        if _accepts(initializer, "partition_info"):
            bound = partial(
                initializer, shape.as_list(), dtype=dtype, partition_info=partition_info
            )
        else:
            bound = partial(initializer, shape.as_list(), dtype=dtype)
        return bound, dtype
    if _needs_no_arguments(initializer):
        return initializer, None
    raise ValueError(
        f"The initializer of variable {name}, {initializer!r}, needs a shape, but the shape "
        f"{'is not given' if shape is None else f'{shape} is not fully defined'}"
    )


def _accepts(function: Any, parameter: str, through_keywords: bool = False) -> bool:
    parameters = _parameters(function)
    return any(p.name == parameter for p in parameters) or (
        through_keywords and any(p.kind is p.VAR_KEYWORD for p in parameters)
    )


def _needs_no_arguments(function: Any) -> bool:
    return all(
        p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        for p in _parameters(function)
    )


def _parameters(function: Any) -> Sequence[inspect.Parameter]:
    call = type(function).__call__
    if isinstance(call, FunctionType):  # an object of a class: all of them take the same
        return _parameters_of_method(call)
    return [*inspect.signature(function).parameters.values()]


@lru_cache(maxsize=256)
def _parameters_of_method(method: FunctionType) -> Sequence[inspect.Parameter]:
    return [*inspect.signature(method.__get__(object())).parameters.values()]


def _regularize(name: str, variable: Variable, regularizer: Callable[[Any], Any]) -> None:
    graph = variable.graph
    with (
        graph.as_default(),
        graph.control_dependencies(None),
        graph.colocate_with(variable),
        graph.name_scope(f"{name}/Regularizer/"),
    ):
        loss = regularizer(variable)
    if loss is not None:
        graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
