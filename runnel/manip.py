"""``tf.manip``: operations that move elements."""

from runnel.ops.array_shape import reshape
from runnel.ops.gather import gather_nd
from runnel.ops.padding import tile
from runnel.ops.reversal import reverse
from runnel.ops.rolling import roll
from runnel.ops.scatter_nd import scatter_nd
from runnel.ops.space import batch_to_space_nd, space_to_batch_nd

__all__ = [
    "batch_to_space_nd",
    "gather_nd",
    "reshape",
    "reverse",
    "roll",
    "scatter_nd",
    "space_to_batch_nd",
    "tile",
]


def __dir__() -> list[str]:
    return __all__
