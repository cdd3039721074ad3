"""``tf.keras.Input`` and ``InputLayer``: where the data of a model come in."""

from __future__ import annotations

from typing import Any

from runnel.graph.dtypes import as_dtype
from runnel.graph.operation import Tensor
from runnel.keras.layer import Layer, unique_name
from runnel.keras.node import Node, begin_inputs, has_history
from runnel.ops.constants import placeholder


class InputLayer(Layer):
    """The start of a model: a placeholder, or a tensor that is given.

    Example:
        >>> tf.keras.Sequential([tf.keras.layers.InputLayer((3,)), tf.keras.layers.Dense(1)])
    """

    supports_masking = True

    def __init__(
        self,
        input_shape: Any = None,
        batch_size: int | None = None,
        dtype: Any = None,
        input_tensor: Any = None,
        sparse: bool = False,
        name: str | None = None,
        ragged: bool = False,
        batch_input_shape: Any = None,
        **kwargs: Any,
    ) -> None:
        if sparse or ragged:
            raise ValueError(
                "tf.keras.Input makes dense placeholders; use tf.sparse_placeholder, and layers of "
                "tf.layers or operations"
            )
        name = name or unique_name("input", 1)
        if input_tensor is not None:
            dims, kind = input_tensor.dims, input_tensor.dtype.base_dtype
        else:
            if batch_input_shape is None:
                shape = [input_shape] if isinstance(input_shape, int) else input_shape or ()
                batch_input_shape = (batch_size, *shape)
            dims, kind = tuple(batch_input_shape), as_dtype(dtype or "float32")
        super().__init__(name=name, dtype=kind, batch_input_shape=dims)
        self.built, self.sparse, self.is_placeholder = True, sparse, input_tensor is None
        made = input_tensor
        if made is None:
            made = placeholder(kind, list(dims), name=name)
        self._remember(made, made)
        begin_inputs(made.graph)
        Node(self, [], {}, made)

    def get_config(self) -> dict[str, Any]:
        """The shape, the type and the name."""
        return {
            "batch_input_shape": list(self._batch_input_shape or ()),
            "dtype": self.dtype.name if self.dtype is not None else None,
            "sparse": False,
            "ragged": False,
            "name": self.name,
        }


def Input(
    shape: Any = None,
    batch_size: int | None = None,
    name: str | None = None,
    dtype: Any = None,
    sparse: bool = False,
    tensor: Any = None,
    ragged: bool = False,
    batch_shape: Any = None,
    **kwargs: Any,
) -> Tensor:
    """A placeholder of ``shape`` with a batch in front of it, or ``tensor`` itself.

    Example:
        >>> tf.keras.Input([3]).shape
        TensorShape([Dimension(None), Dimension(3)])
    """
    batch_shape = kwargs.pop("batch_input_shape", batch_shape)
    if kwargs:
        raise TypeError(f"Input got an unexpected keyword argument {next(iter(kwargs))!r}")
    if tensor is not None and has_history(tensor):
        return tensor  # type: ignore[no-any-return]
    if shape is None and batch_shape is None and tensor is None:
        raise ValueError("Please provide to Input a `shape`, a `batch_shape` or a `tensor`")
    layer = InputLayer(
        shape, batch_size, dtype, tensor, sparse, name, ragged, batch_input_shape=batch_shape
    )
    return layer.output  # type: ignore[no-any-return]
