"""Images in another element type: integers over their whole range, floats from 0 to 1."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.arithmetic import multiply
from runnel.ops.casting import cast, saturate_cast
from runnel.ops.control import identity
from runnel.ops.division import floordiv


def convert_image_dtype(
    image: Any, dtype: Any, saturate: bool = False, name: str | None = None
) -> Tensor:
    """``image`` as ``dtype``, scaled: the largest integer corresponds to 1.0.

    ``saturate`` clips values that do not fit; otherwise they wrap around.

    Example:
        >>> tf.image.convert_image_dtype(tf.constant([0, 255], tf.uint8), tf.float32)  # [0., 1.]
    """
    image = convert_to_tensor(image, name="image")
    source, target = image.dtype.base_dtype, as_dtype(dtype).base_dtype
    for kind, what in ((target, "dtype"), (source, "image dtype")):
        if not kind.is_floating and not kind.is_integer:
            raise AttributeError(
                f"{what} must be either floating point or integer, not {kind.name}"
            )
    if source is target:
        return identity(image, name=name)
    to_target = saturate_cast if saturate else cast
    with name_scope(name, "convert_image", [image]) as scope:
        if source.is_floating and target.is_floating:
            return cast(image, target, name=scope)
        if target.is_floating:
            return multiply(cast(image, target), 1.0 / source.max, name=scope)
        if source.is_floating:
            # The half has the cast, which cuts off, round.
            return to_target(multiply(image, target.max + 0.5), target, name=scope)
        if source.max > target.max:
            scale = (source.max + 1) // (target.max + 1)
            return to_target(floordiv(image, scale), target, name=scope)
        scale = (target.max + 1) // (source.max + 1)
        return multiply(to_target(image, target), scale, name=scope)
