"""What a checkpoint holds for an object: tensors to save, and how to put them back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.graph.dtypes import DType
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape


class SaveSpec:
    """One tensor of a checkpoint: its name there, and the slice of a larger one that it is."""

    def __init__(
        self,
        tensor: Tensor | Callable[[], Tensor],
        slice_spec: str,
        name: str,
        dtype: DType | None = None,
        device: str | None = None,
    ) -> None:
        """``tensor`` may be a function that makes it, where saving is described."""
        self._tensor = tensor
        self.slice_spec = slice_spec
        self.name = name
        if isinstance(tensor, Tensor):
            dtype, device = tensor.dtype, tensor.device
        if dtype is None:
            raise ValueError(f"The type of {name!r} must be given: its tensor is made later.")
        self.dtype = dtype.base_dtype
        self.device = device or ""

    @property
    def tensor(self) -> Tensor:
        return self._tensor() if callable(self._tensor) else self._tensor


class SaveableObject:
    """Something that can be saved: subclasses say how it is restored."""

    when_missing = ""
    """What to tell, and advise, if a checkpoint does not have it."""

    def __init__(self, op: Any, specs: Sequence[SaveSpec], name: str) -> None:
        self.op = op
        self.specs = list(specs)
        self.name = name

    @property
    def device(self) -> str:
        return self.specs[0].device

    @property
    def shape(self) -> TensorShape | None:
        """The static shape of what its only tensor is restored to, if it has one."""
        return None

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Any:
        """An operation that gives the object ``restored_tensors``, one for each spec."""
        raise ValueError(f"{type(self).__name__} does not say how it is restored")
