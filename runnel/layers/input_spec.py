"""``tf.layers.InputSpec``: what a layer expects of its inputs."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.shapes import as_dims, compatible_dims, format_dims


class InputSpec:
    """The type, rank and shape that a layer expects of an input.

    ``axes`` is a dict from the number of a dimension (it may be negative) to its size. What is
    None is not checked, and neither is what the static shape of the input leaves unknown.

    Example:
        >>> spec = tf.layers.InputSpec(min_ndim=2, axes={-1: 10})
    """

    def __init__(
        self,
        dtype: Any = None,
        shape: Any = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: dict[int, int | None] | None = None,
    ) -> None:
        self.dtype = None if dtype is None else as_dtype(dtype)
        self.shape = None if shape is None else as_dims(shape)
        self.ndim = len(self.shape) if self.shape is not None else ndim
        self.max_ndim = max_ndim
        self.min_ndim = min_ndim
        self.axes = {int(axis): size for axis, size in (axes or {}).items()}

    def __repr__(self) -> str:
        given = {name: value for name, value in vars(self).items() if value not in (None, {})}
        return f"InputSpec({', '.join(f'{name}={value}' for name, value in given.items())})"

    def check(self, tensor: Any, layer: str) -> None:
        """Raises a ValueError that says what is wrong with ``tensor`` as an input of ``layer``."""
        tensor = convert_to_tensor(tensor)
        problem = self._problem(tensor)
        if problem is not None:
            raise ValueError(
                f"Input {tensor.name} of layer {layer} is incompatible with the layer: {problem}. "
                f"Full shape received: {format_dims(tensor.dims)}"
            )

    def _problem(self, tensor: Any) -> str | None:
        dims = tensor.dims
        if self.dtype is not None and tensor.dtype.base_dtype is not self.dtype:
            return f"expected dtype={self.dtype.name}, found dtype={tensor.dtype.base_dtype.name}"
        if dims is None:
            if self.ndim or self.max_ndim or self.min_ndim:
                return "its rank is undefined, but the layer requires a defined rank"
            return None
        rank = len(dims)
        if self.ndim is not None and rank != self.ndim:
            return f"expected ndim={self.ndim}, found ndim={rank}"
        if self.max_ndim is not None and rank > self.max_ndim:
            return f"expected max_ndim={self.max_ndim}, found ndim={rank}"
        if self.min_ndim is not None and rank < self.min_ndim:
            return f"expected min_ndim={self.min_ndim}, found ndim={rank}"
        for axis, size in self.axes.items():
            if not -rank <= axis < rank:
                return f"expected axis {axis} to exist, found ndim={rank}"
            if size is not None and dims[axis] not in (None, size):
                return f"expected axis {axis} of the shape to be {size}, found {dims[axis]}"
        if not compatible_dims(self.shape, dims):
            return f"expected shape={format_dims(self.shape)}"
        return None
