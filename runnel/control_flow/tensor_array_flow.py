"""TensorArrays as results of branches and loops: their flow, a scalar, stands for them."""

from __future__ import annotations

from typing import Any

from runnel.graph.operation import Tensor


def as_flow(value: Any) -> Any:
    """The flow of a TensorArray; anything else as it is."""
    flow = getattr(value, "_flow_of_tensor_array", None)
    return value if flow is None else flow()


def restore_arrays(originals: list[Any], tensors: list[Tensor]) -> list[Any]:
    """``tensors``, as TensorArrays where ``originals`` are."""
    return [
        tensor if not hasattr(original, "_with_flow") else original._with_flow(tensor)
        for original, tensor in zip(originals, tensors, strict=True)
    ]
