"""Operations that describe values for TensorBoard, each as a serialized ``Summary``."""

from runnel.ops.summaries import (
    audio_summary,
    histogram_summary,
    image_summary,
    merge_summary,
    scalar_summary,
    tensor_summaries,
)

__all__ = [
    "audio_summary",
    "histogram_summary",
    "image_summary",
    "merge_summary",
    "scalar_summary",
    "tensor_summaries",
]
