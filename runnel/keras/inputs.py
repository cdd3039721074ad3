"""``tf.keras.Input``: a placeholder."""

from __future__ import annotations

from typing import Any

from runnel.graph.operation import Tensor
from runnel.keras.layer import unique_name
from runnel.ops.constants import placeholder


def Input(
    shape: Any = None,
    batch_size: int | None = None,
    name: str | None = None,
    dtype: Any = "float32",
    sparse: bool = False,
    tensor: Any = None,
) -> Tensor:
    """A placeholder of ``shape`` with a batch in front of it, or ``tensor`` itself.

    Example:
        >>> tf.keras.Input([3]).shape
        TensorShape([Dimension(None), Dimension(3)])
    """
    if tensor is not None:
        return tensor  # type: ignore[no-any-return]
    if sparse:
        raise ValueError("tf.keras.Input makes dense placeholders; use tf.sparse_placeholder")
    return placeholder(dtype, [batch_size, *(shape or ())], name=name or unique_name("input"))
