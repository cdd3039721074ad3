"""The summaries of TensorFlow 0.12, whose tags are given whole: name scopes do not change them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import float32
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.summaries.audio_summary import audio_summary_v2_op
from runnel.ops.summaries.histogram_summary import histogram_summary_op
from runnel.ops.summaries.image_summary import image_summary_op
from runnel.ops.summaries.scalar_summary import scalar_summary_op
from runnel.summary.scope import collect
from runnel.summary.summaries import merge, merge_all

_SUMMARIES = (GraphKeys.SUMMARIES,)


def scalar_summary(
    tags: Any,
    values: Any,
    collections: Iterable[str] | None = None,
    name: str | None = None,
) -> Tensor:
    """A summary of numbers: ``values`` and ``tags`` have the same shape.

    Example:
        >>> tf.scalar_summary("loss", loss)
        >>> tf.scalar_summary(["first", "second"], [a, b])
    """
    with name_scope(name, "ScalarSummary", [tags, values]) as scope:
        summary = scalar_summary_op(tags, values, name=scope)
        collect(summary, collections, _SUMMARIES)
    return summary


def histogram_summary(
    tag: Any,
    values: Any,
    collections: Iterable[str] | None = None,
    name: str | None = None,
) -> Tensor:
    """A summary of how ``values`` are distributed.

    Example:
        >>> tf.histogram_summary("weights", weights)
    """
    with name_scope(name, "HistogramSummary", [tag, values]) as scope:
        summary = histogram_summary_op(tag, values, name=scope)
        collect(summary, collections, _SUMMARIES)
    return summary


def image_summary(
    tag: Any,
    tensor: Any,
    max_images: int = 3,
    collections: Iterable[str] | None = None,
    name: str | None = None,
) -> Tensor:
    """A summary of the first ``max_images`` images of a batch; see ``tf.summary.image``.

    Example:
        >>> tf.image_summary("digits", tf.reshape(x, [-1, 28, 28, 1]))
    """
    with name_scope(name, "ImageSummary", [tag, tensor]) as scope:
        summary = image_summary_op(tag, tensor, max_images=max_images, name=scope)
        collect(summary, collections, _SUMMARIES)
    return summary


def audio_summary(
    tag: Any,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Iterable[str] | None = None,
    name: str | None = None,
) -> Tensor:
    """A summary of the first ``max_outputs`` clips of a batch; see ``tf.summary.audio``.

    Example:
        >>> tf.audio_summary("speech", waves, 16000)
    """
    with name_scope(name, "AudioSummary", [tag, tensor]) as scope:
        rate = convert_to_tensor(sample_rate, dtype=float32, name="sample_rate")
        summary = audio_summary_v2_op(tag, tensor, rate, max_outputs=max_outputs, name=scope)
        collect(summary, collections, _SUMMARIES)
    return summary


def merge_summary(
    inputs: Sequence[Any], collections: Iterable[str] | None = None, name: str | None = None
) -> Tensor:
    """One summary with all the values of ``inputs``; the newer name is ``tf.summary.merge``."""
    return merge(inputs, collections, name)


def merge_all_summaries(key: str = GraphKeys.SUMMARIES) -> Tensor | None:
    """One summary of the collection ``key``; the newer name is ``tf.summary.merge_all``."""
    return merge_all(key)
