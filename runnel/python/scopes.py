"""Names of ``variable_scope`` that are not public."""

from __future__ import annotations

from typing import Any

from runnel.variables.variable import Variable
from runnel.variables.variable_scope import variable_scope

__all__ = ["variable"]

variable = Variable


def _pure_variable_scope(
    name_or_scope: Any,
    reuse: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    old_name_scope: str | None = None,
    dtype: Any = None,
    use_resource: bool | None = None,
    constraint: Any = None,
) -> variable_scope:
    """``tf.variable_scope`` that opens no name scope."""
    return variable_scope(
        name_or_scope,
        initializer=initializer,
        regularizer=regularizer,
        caching_device=caching_device,
        partitioner=partitioner,
        custom_getter=custom_getter,
        reuse=reuse,
        dtype=dtype,
        use_resource=use_resource,
        constraint=constraint,
        auxiliary_name_scope=False,
    )
