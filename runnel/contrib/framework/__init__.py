"""``tf.contrib.framework``: default arguments, and the variables of models."""

from runnel import is_tensor
from runnel.contrib.framework import nest
from runnel.contrib.framework.arg_scope import (
    add_arg_scope,
    arg_scope,
    arg_scope_func_key,
    arg_scoped_arguments,
    current_arg_scope,
    has_arg_scope,
)
from runnel.contrib.framework.name_scopes import (
    get_name_scope,
    prepend_name_scope,
    strip_name_scope,
)
from runnel.contrib.framework.variables import (
    VariableDeviceChooser,
    add_model_variable,
    assign_from_checkpoint,
    assign_from_checkpoint_fn,
    assign_from_values,
    assign_from_values_fn,
    filter_variables,
    get_local_variables,
    get_model_variables,
    get_trainable_variables,
    get_unique_variable,
    get_variable_full_name,
    get_variables,
    get_variables_by_name,
    get_variables_by_suffix,
    get_variables_to_restore,
    global_variable,
    local_variable,
    model_variable,
    variable,
)
from runnel.control_flow.smart_cond import smart_cond, smart_constant_value
from runnel.graph.sparse_tensor import convert_to_tensor_or_sparse_tensor
from runnel.ops.assertions import assert_scalar, is_non_decreasing, is_strictly_increasing
from runnel.ops.sorting import argsort, sort
from runnel.train.checkpoint_utils import (
    init_from_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
)
from runnel.train.global_step import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
)
from runnel.variables.variable_scope import VariableScope

__all__ = [
    "VariableDeviceChooser",
    "VariableScope",
    "add_arg_scope",
    "add_model_variable",
    "arg_scope",
    "arg_scope_func_key",
    "arg_scoped_arguments",
    "argsort",
    "assert_global_step",
    "assert_scalar",
    "assign_from_checkpoint",
    "assign_from_checkpoint_fn",
    "assign_from_values",
    "assign_from_values_fn",
    "convert_to_tensor_or_sparse_tensor",
    "create_global_step",
    "current_arg_scope",
    "filter_variables",
    "get_global_step",
    "get_local_variables",
    "get_model_variables",
    "get_name_scope",
    "get_or_create_global_step",
    "get_trainable_variables",
    "get_unique_variable",
    "get_variable_full_name",
    "get_variables",
    "get_variables_by_name",
    "get_variables_by_suffix",
    "get_variables_to_restore",
    "global_variable",
    "has_arg_scope",
    "init_from_checkpoint",
    "is_non_decreasing",
    "is_strictly_increasing",
    "is_tensor",
    "list_variables",
    "load_checkpoint",
    "load_variable",
    "local_variable",
    "model_variable",
    "nest",
    "prepend_name_scope",
    "smart_cond",
    "smart_constant_value",
    "sort",
    "strip_name_scope",
    "variable",
]


def __dir__() -> list[str]:
    return __all__
