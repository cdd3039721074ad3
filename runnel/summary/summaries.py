"""Adding summaries to a graph, and merging them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.default_collections import get_collection
from runnel.graph.dtypes import float32, string
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.summaries.audio_summary import audio_summary_v2_op
from runnel.ops.summaries.histogram_summary import histogram_summary_op
from runnel.ops.summaries.image_summary import image_summary_op
from runnel.ops.summaries.merge_summary import merge_summary_op
from runnel.ops.summaries.scalar_summary import scalar_summary_op
from runnel.ops.summaries.tensor_summaries import tensor_summary_v2_op
from runnel.summary.scope import clean_tag, collect, summary_scope

_SUMMARIES = (GraphKeys.SUMMARIES,)
_V2_SUMMARIES = "_SUMMARY_V2"


def scalar(
    name: str,
    tensor: Any,
    collections: Iterable[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary of a single number: a serialized ``Summary``, for ``FileWriter.add_summary``.

    The name, within the current name scopes, is the tag that TensorBoard shows; ``family`` is put
    before it. The tensor is added to ``collections``, from which ``merge_all`` takes them
    (``GraphKeys.SUMMARIES`` unless given).

    Example:
        >>> tf.summary.scalar("loss", loss)
    """
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        summary = scalar_summary_op(tag, tensor, name=scope)
        collect(summary, collections, _SUMMARIES)
    return summary


def histogram(
    name: str,
    values: Any,
    collections: Iterable[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary of how ``values`` are distributed; one that is not finite is an error.

    Example:
        >>> tf.summary.histogram("weights", weights)
    """
    with summary_scope(name, family, "HistogramSummary", [values]) as (tag, scope):
        summary = histogram_summary_op(tag, values, name=scope)
        collect(summary, collections, _SUMMARIES)
    return summary


def image(
    name: str,
    tensor: Any,
    max_outputs: int = 3,
    collections: Iterable[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary of the first ``max_outputs`` images of a batch.

    ``tensor`` is [batch, height, width, channels] with 1 (gray), 3 (RGB) or 4 (RGBA) channels.
    ``uint8`` is shown as it is; other numbers are scaled, image by image: the largest to 255 or,
    where some are negative, zero to the middle. Pixels that are not finite are red.

    Example:
        >>> tf.summary.image("digits", tf.reshape(x, [-1, 28, 28, 1]))
    """
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        summary = image_summary_op(tag, tensor, max_images=max_outputs, name=scope)
        collect(summary, collections, _SUMMARIES)
    return summary


def audio(
    name: str,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Iterable[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary of the first ``max_outputs`` clips of a batch.

    ``tensor`` is [batch, frames, channels] or [batch, frames], from -1 to 1; ``sample_rate``, in
    hertz, may be a tensor.

    Example:
        >>> tf.summary.audio("speech", waves, sample_rate=16000)
    """
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        rate = convert_to_tensor(sample_rate, dtype=float32, name="sample_rate")
        summary = audio_summary_v2_op(tag, tensor, rate, max_outputs=max_outputs, name=scope)
        collect(summary, collections, _SUMMARIES)
    return summary


def text(name: str, tensor: Any, collections: Iterable[str] | None = None) -> Tensor:
    """A summary of strings, which TensorBoard shows as Markdown; one and two axes as a table.

    Example:
        >>> tf.summary.text("sample", tf.constant("*Thus* spake"))
    """
    from tensorboard.compat.proto.summary_pb2 import SummaryMetadata

    tensor = convert_to_tensor(tensor)
    if tensor.dtype.base_dtype is not string:
        raise ValueError(
            f"Expected tensor {tensor.name} to have dtype string, got {tensor.dtype.name}"
        )
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    return tensor_summary(name, tensor, collections=collections, summary_metadata=metadata)


def tensor_summary(
    name: str,
    tensor: Any,
    summary_description: str | None = None,
    collections: Iterable[str] | None = None,
    summary_metadata: Any = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Tensor:
    """A summary of a whole tensor, for the TensorBoard plugin that ``summary_metadata`` names.

    Example:
        >>> tf.summary.tensor_summary("attention", weights, summary_description="who sees whom")
    """
    from tensorboard.compat.proto.summary_pb2 import SummaryMetadata

    metadata = SummaryMetadata()
    if summary_metadata is not None:
        metadata.CopyFrom(summary_metadata)
    if summary_description is not None:
        metadata.summary_description = summary_description
    if display_name is not None:
        metadata.display_name = display_name
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        summary = tensor_summary_v2_op(tag, tensor, metadata.SerializeToString(), name=scope)
        collect(summary, collections, _SUMMARIES)
    return summary


def merge(
    inputs: Sequence[Any], collections: Iterable[str] | None = None, name: str | None = None
) -> Tensor:
    """One summary with all the values of ``inputs``; two of the same tag are an error.

    Example:
        >>> summaries = tf.summary.merge([loss_summary, weight_summary])
    """
    cleaned = clean_tag(name)
    with name_scope(cleaned, "Merge", inputs):
        summary = merge_summary_op(list(inputs), name=cleaned)
        collect(summary, collections, ())
    return summary


def merge_all(
    key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> Tensor | None:
    """One summary of all that are in the collection ``key``, or None where there are none.

    ``scope`` is a pattern for the beginning of their names.

    Example:
        >>> summaries = tf.summary.merge_all()
    """
    members = get_collection(key, scope)
    return merge(members, name=name) if members else None


def get_summary_description(node_def: Any) -> Any:
    """The ``SummaryDescription`` in the ``NodeDef`` of a ``TensorSummary``."""
    from google.protobuf import json_format
    from tensorboard.compat.proto.summary_pb2 import SummaryDescription

    if node_def.op != "TensorSummary":
        raise ValueError(f"Can't get_summary_description on {node_def.op}")
    return json_format.Parse(node_def.attr["description"].s.decode(), SummaryDescription())


def initialize(graph: Any = None, session: Any = None) -> None:
    """Prepares writers of TensorFlow 2's kind; a :class:`FileWriter` needs none.

    There is no writer of that kind here, so nothing is to be done, as in TensorFlow without one.
    """


def all_v2_summary_ops() -> list[Any]:
    """The summaries of TensorFlow 2's kind in the default graph."""
    return get_collection(_V2_SUMMARIES)
