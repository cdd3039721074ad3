"""``tf.contrib.deprecated``: the summaries of TensorFlow 0.12."""

from runnel.summary.tagged_summaries import (
    audio_summary,
    histogram_summary,
    image_summary,
    merge_all_summaries,
    merge_summary,
    scalar_summary,
)

__all__ = [
    "audio_summary",
    "histogram_summary",
    "image_summary",
    "merge_all_summaries",
    "merge_summary",
    "scalar_summary",
]


def __dir__() -> list[str]:
    return __all__
