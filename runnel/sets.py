"""``tf.sets``: sets as the rows of tensors."""

from runnel.ops.sparse.sets import set_difference, set_intersection, set_size, set_union
from runnel.ops.sparse.sets import set_difference as difference
from runnel.ops.sparse.sets import set_intersection as intersection
from runnel.ops.sparse.sets import set_size as size
from runnel.ops.sparse.sets import set_union as union

__all__ = [
    "difference",
    "intersection",
    "set_difference",
    "set_intersection",
    "set_size",
    "set_union",
    "size",
    "union",
]


def __dir__() -> list[str]:
    return __all__
