"""Variables of models: making them, finding them, and giving them values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from runnel.contrib.framework.arg_scope import add_arg_scope
from runnel.graph.collections import GraphKeys
from runnel.graph.device import DeviceSpec
from runnel.graph.graph import device as device_scope
from runnel.graph.graph import get_default_graph, name_scope
from runnel.ops.assign import assign
from runnel.ops.constants import placeholder
from runnel.ops.control import group
from runnel.train.checkpoint_utils import load_checkpoint
from runnel.train.saver import Saver
from runnel.variables.get_variable import get_variable
from runnel.variables.variable import Variable
from runnel.variables.variable_scope import VariableScope

# Making -----------------------------------------------------------------------------------------


@add_arg_scope
def variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    caching_device: Any = None,
    device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    use_resource: bool | None = None,
    **kwargs: Any,
) -> Any:
    """``tf.get_variable``, on ``device``, whose arguments an ``arg_scope`` can set."""
    wanted = list(dict.fromkeys([*(collections or ()), GraphKeys.GLOBAL_VARIABLES]))
    make = get_variable if custom_getter is None else custom_getter
    # Without a device, those of the scopes around it stay: `tf.device(None)` would end them.
    with device_scope(device or ""):
        return make(
            name,
            shape=shape,
            dtype=dtype,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
            collections=wanted,
            caching_device=caching_device,
            partitioner=partitioner,
            use_resource=use_resource,
            **kwargs,
        )


@add_arg_scope
def model_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    caching_device: Any = None,
    device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    use_resource: bool | None = None,
    **kwargs: Any,
) -> Any:
    """A :func:`variable` that belongs to the model: it is in ``MODEL_VARIABLES``, too."""
    wanted = [*(collections or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return variable(
        *(name, shape, dtype, initializer, regularizer, trainable, wanted, caching_device),
        *(device, partitioner, custom_getter, use_resource),
        **kwargs,
    )


def local_variable(
    initial_value: Any,
    validate_shape: bool = True,
    name: str | None = None,
    use_resource: bool | None = None,
) -> Any:
    """A variable that is neither trained nor saved."""
    return Variable(
        initial_value,
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES],
        validate_shape=validate_shape,
        name=name,
        use_resource=use_resource,
    )


def global_variable(
    initial_value: Any,
    validate_shape: bool = True,
    name: str | None = None,
    use_resource: bool | None = None,
) -> Any:
    """A variable that is saved, but not trained."""
    return Variable(
        initial_value,
        trainable=False,
        collections=[GraphKeys.GLOBAL_VARIABLES],
        validate_shape=validate_shape,
        name=name,
        use_resource=use_resource,
    )


def add_model_variable(var: Any) -> None:
    """Has a variable belong to the model."""
    members = get_default_graph().get_collection_ref(GraphKeys.MODEL_VARIABLES)
    if not any(member is var for member in members):
        members.append(var)


# Finding ----------------------------------------------------------------------------------------


def get_variables(
    scope: str | VariableScope | None = None,
    suffix: str | None = None,
    collection: str = GraphKeys.GLOBAL_VARIABLES,
) -> list[Any]:
    """The variables of a collection, of a scope, whose names end with ``suffix``."""
    prefix = scope.name if isinstance(scope, VariableScope) else scope
    if suffix is not None:
        pattern = suffix if ":" in suffix else suffix + ":"
        prefix = (prefix or "") + ".*" + pattern
    return get_default_graph().get_collection(collection, prefix)


def get_model_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """Those of the model."""
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """Those that are not saved."""
    return get_variables(scope, suffix, GraphKeys.LOCAL_VARIABLES)


def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """Those that are trained."""
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
    """Those whose names end so."""
    return get_variables(scope=scope, suffix=suffix)


def get_variables_by_name(given_name: str, scope: Any = None) -> list[Any]:
    """Those of a name, in whatever scope inside ``scope``."""
    return get_variables(scope=scope, suffix=f"/{given_name}:|^{given_name}:")


def get_unique_variable(var_op_name: str) -> Any:
    """The one variable of that name; a ValueError if there is none, or are several."""
    candidates = get_variables(scope=var_op_name)
    exact = [found for found in candidates if found.op.name == var_op_name]
    if len(exact) != 1:
        raise ValueError(
            f"There is no single variable {var_op_name!r}; there are: "
            f"{[found.op.name for found in candidates]}"
        )
    return exact[0]


def get_variable_full_name(var: Any) -> str:
    """The name of a variable; for a part of one, that of the whole."""
    slice_info = var._save_slice_info
    return str(slice_info.full_name) if slice_info else str(var.op.name)


def get_variables_to_restore(include: Any = None, exclude: Any = None) -> list[Any]:
    """The variables in the scopes of ``include`` (by default all) and not in those of ``exclude``.

    Example:
        >>> kept = tf.contrib.framework.get_variables_to_restore(exclude=["logits"])
        >>> tf.train.Saver(kept).restore(session, checkpoint)
    """
    for given in (include, exclude):
        if isinstance(given, str):
            raise TypeError("include and exclude are lists of scopes, not strings")
    wanted = [v for scope in include for v in get_variables(scope)] if include else get_variables()
    left_out = {id(found) for scope in exclude or () for found in get_variables(scope)}
    return [found for found in wanted if id(found) not in left_out]


def filter_variables(
    var_list: Iterable[Any],
    include_patterns: Any = None,
    exclude_patterns: Any = None,
    reg_search: bool = True,
) -> list[Any]:
    """The variables whose names match a pattern to include, and none to exclude."""
    match = re.search if reg_search else re.match
    found = list(var_list)
    if include_patterns:
        found = [v for v in found if any(match(p, v.op.name) for p in include_patterns)]
    if exclude_patterns:
        found = [v for v in found if not any(match(p, v.op.name) for p in exclude_patterns)]
    return found


# Giving values ----------------------------------------------------------------------------------


def assign_from_values(var_names_to_values: Mapping[str, Any]) -> tuple[Any, dict[Any, Any]]:
    """An operation, and what to feed it, that gives variables values by their names."""
    updates, feed = [], {}
    with name_scope("assign_from_values"):
        for name, value in var_names_to_values.items():
            target = get_unique_variable(name)
            update, fed = _assignment(target, np.asarray(value), name)
            updates.append(update)
            feed.update(fed)
        return group(*updates), feed


def assign_from_values_fn(var_names_to_values: Mapping[str, Any]) -> Callable[[Any], None]:
    """A function of a session that gives variables values."""
    update, feed = assign_from_values(var_names_to_values)
    return lambda session: session.run(update, feed)


def _assignment(target: Any, value: np.ndarray, source: str) -> tuple[Any, dict[Any, Any]]:
    if not target.shape.is_compatible_with(value.shape):
        raise ValueError(
            f"Variable {target.op.name} has shape {target.shape}, but the value of {source} has "
            f"shape {value.shape}"
        )
    fed = placeholder(target.dtype.base_dtype, value.shape)
    return assign(target, fed), {fed: value}


def _by_checkpoint_name(var_list: Any) -> dict[str, list[Any]]:
    if isinstance(var_list, Mapping):
        return {k: list(v) if isinstance(v, list | tuple) else [v] for k, v in var_list.items()}
    found: dict[str, list[Any]] = {}
    for var in var_list:
        found.setdefault(get_variable_full_name(var), []).append(var)
    return found


def assign_from_checkpoint(
    model_path: Any, var_list: Any, ignore_missing_vars: bool = False
) -> tuple[Any, dict[Any, Any]]:
    """An operation, and what to feed it, that gives variables their values in a checkpoint.

    ``var_list`` is a list of variables, or has them by their names in the checkpoint.
    """
    reader = load_checkpoint(model_path)
    updates, feed = [], {}
    for name, variables in _by_checkpoint_name(var_list).items():
        if not reader.has_tensor(name):
            if ignore_missing_vars:
                _warn_missing(name, model_path)
                continue
            raise ValueError(f"The checkpoint {model_path} has no variable {name}")
        whole = np.asarray(reader.get_tensor(name))
        for target in variables:
            part = target._save_slice_info
            value = whole
            if part is not None:
                ends = zip(part.var_offset, part.var_shape, strict=True)
                value = whole[tuple([slice(begin, begin + size) for begin, size in ends])]
            update, fed = _assignment(target, value, name)
            updates.append(update)
            feed.update(fed)
    return group(*updates), feed


def assign_from_checkpoint_fn(
    model_path: Any,
    var_list: Any,
    ignore_missing_vars: bool = False,
    reshape_variables: bool = False,
) -> Callable[[Any], None] | None:
    """A function of a session that restores variables; None where there is nothing to restore.

    With ``ignore_missing_vars`` what the checkpoint does not have is left alone.
    """
    if not var_list:
        raise ValueError("var_list cannot be empty")
    if ignore_missing_vars:
        reader = load_checkpoint(model_path)
        named = var_list if isinstance(var_list, Mapping) else {v.op.name: v for v in var_list}
        var_list = {}
        for name, var in named.items():
            if reader.has_tensor(name):
                var_list[name] = var
            else:
                _warn_missing(name, model_path)
        if not var_list:
            return None
    saver = Saver(var_list, reshape=reshape_variables)
    return lambda session: saver.restore(session, model_path)


def _warn_missing(name: str, path: Any) -> None:
    from runnel import logging

    logging.warning("Variable %s missing in checkpoint %s", name, path)


class VariableDeviceChooser:
    """A device function: variables on the parameter servers in turn, or all on one device."""

    def __init__(
        self,
        num_tasks: int = 0,
        job_name: str = "ps",
        device_type: str = "CPU",
        device_index: int = 0,
        replica: Any = None,
    ) -> None:
        self._num_tasks = num_tasks
        self._job_name = job_name
        self._device_type = device_type
        self._device_index = device_index
        self._replica = replica
        self._next_task = 0

    def __call__(self, op: Any) -> str:
        spec = DeviceSpec(
            replica=self._replica, device_type=self._device_type, device_index=self._device_index
        )
        if self._num_tasks > 0:
            spec = DeviceSpec(
                job=self._job_name,
                replica=self._replica,
                task=self._next_task,
                device_type=self._device_type,
                device_index=self._device_index,
            )
            self._next_task = (self._next_task + 1) % self._num_tasks
        return spec.to_string()
