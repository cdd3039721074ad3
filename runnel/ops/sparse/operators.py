"""Python's operators on sparse tensors: ``sparse * dense`` and ``sparse / dense``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.sparse_tensor import SparseTensor


def _operator(name: str) -> Callable[[SparseTensor, Any], SparseTensor]:
    def operate(sparse: SparseTensor, dense: Any) -> SparseTensor:
        from runnel.ops.sparse import arithmetic  # which few programs need

        return getattr(arithmetic, name)(sparse, dense)

    return operate


def add_operators() -> None:
    """Gives sparse tensors their operators."""
    for method, function in (
        ("__mul__", "multiplied"),
        ("__rmul__", "multiplied"),
        ("__truediv__", "divided"),
        ("__div__", "divided"),
    ):
        setattr(SparseTensor, method, _operator(function))
