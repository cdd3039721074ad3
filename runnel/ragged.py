"""``tf.ragged``: tensors whose rows have different lengths."""

from runnel.ops.ragged.ragged_constant import constant, constant_value, placeholder
from runnel.ops.ragged.ragged_math import map_flat_values
from runnel.ops.ragged.ragged_rows import (
    boolean_mask,
    stack_dynamic_partitions,
)
from runnel.ops.ragged.ragged_rows import ragged_range as range  # noqa: A004 (TensorFlow's name)
from runnel.ops.ragged.ragged_rows import ragged_stack as stack
from runnel.ops.ragged.ragged_value import RaggedTensorValue
from runnel.ops.ragged.row_partitions import row_splits_to_segment_ids, segment_ids_to_row_splits

__all__ = [
    "RaggedTensorValue",
    "boolean_mask",
    "constant",
    "constant_value",
    "map_flat_values",
    "placeholder",
    "range",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
    "stack",
    "stack_dynamic_partitions",
]


def __dir__() -> list[str]:
    return __all__
