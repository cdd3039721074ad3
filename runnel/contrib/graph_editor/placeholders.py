"""Placeholders that take the places of tensors."""

from __future__ import annotations

from typing import Any

from runnel.contrib.graph_editor.elements import scope_prefix
from runnel.graph.operation import Tensor
from runnel.ops.constants import placeholder

_PREFIX = "geph"


def placeholder_name(t: Any = None, scope: str | None = None, prefix: str = _PREFIX) -> str:
    """A name for the placeholder of a tensor, in its scope or ``scope``."""
    if t is None:
        inside, name = "", prefix
    elif isinstance(t, Tensor):
        inside, base = scope_prefix(t.op.name), t.op.name.rpartition("/")[2]
        name = f"{prefix}__{base}_{t.value_index}"
    else:
        raise TypeError(f"Expected a Tensor or None, got {type(t).__name__}")
    if scope is not None:
        inside = f"{scope.rstrip('/')}/" if scope else ""
    return inside + name


def make_placeholder_from_tensor(t: Tensor, scope: str | None = None, prefix: str = _PREFIX) -> Any:
    """A placeholder of the type and shape of ``t``."""
    return placeholder(t.dtype.base_dtype, t.shape, name=placeholder_name(t, scope, prefix))


def make_placeholder_from_dtype_and_shape(
    dtype: Any, shape: Any = None, scope: str | None = None, prefix: str = _PREFIX
) -> Any:
    """A placeholder of a type and a shape."""
    return placeholder(dtype, shape, name=placeholder_name(None, scope, prefix))
