"""``slim.model_analyzer``: how large variables and the outputs of operations are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["analyze_ops", "analyze_vars", "tensor_description"]


def tensor_description(var: Any) -> str:
    """The type and the shape of a tensor or variable: ``(float32_ref 3x4)``."""
    dims = var.get_shape().dims
    if dims is None:
        return f"({var.dtype.name} ?)"
    return f"({var.dtype.name} {'x'.join('?' if d.value is None else str(d) for d in dims)})"


def analyze_vars(variables: Iterable[Any], print_info: bool = False) -> tuple[int, int]:
    """How many numbers, and how many bytes, variables hold; a line for each, if asked for."""
    if print_info:
        print("---------\nVariables: name (type shape) [size]\n---------")
    total_size = total_bytes = 0
    for variable in variables:
        size = variable.get_shape().num_elements() or 0
        nbytes = size * variable.dtype.size
        total_size, total_bytes = total_size + size, total_bytes + nbytes
        if print_info:
            print(variable.name, tensor_description(variable), f"[{size}, bytes: {nbytes}]")
    if print_info:
        print(f"Total size of variables: {total_size}\nTotal bytes of variables: {total_bytes}")
    return total_size, total_bytes


def analyze_ops(graph: Any, print_info: bool = False) -> int:
    """The numbers that the outputs of all operations hold together, where that is known."""
    if print_info:
        print("---------\nOperations: name -> (type shapes) [size]\n---------")
    total = 0
    for op in graph.get_operations():
        size = sum(output.get_shape().num_elements() or 0 for output in op.outputs)
        total += size
        if print_info:
            shapes = ", ".join(map(tensor_description, op.outputs)) or "()"
            print(f"{op.name}\t-> {shapes} [{size}]")
    if print_info:
        print(f"Total size of operations: {total}")
    return total


def __dir__() -> list[str]:
    return __all__
