"""``TensorSummary`` and ``TensorSummaryV2``: whole tensors, for the plugins that read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.dtypes import DType
from runnel.graph.tensor_proto import encode_array
from runnel.ops.summaries.serialized import (
    invalid,
    register_summary_op,
    serialized,
    single,
    summary_class,
    text,
)

tensor_summary_op = register_summary_op(
    "TensorSummary",
    inputs="tensor: T",
    attrs=[
        "T: type",
        "description: string = ''",
        "labels: list(string) = []",
        "display_name: string = ''",
    ],
)
tensor_summary_v2_op = register_summary_op(
    "TensorSummaryV2",
    inputs="tag: string, tensor: T, serialized_summary_metadata: string",
    attrs="T: type",
)


@tensor_summary_op.kernel
def _(xp, tensor, *, T, operation):  # noqa: N803 (TensorFlow's attribute name)
    summary = summary_class()()
    _fill(summary.value.add(node_name=operation.name), tensor, T)
    return serialized(summary)


@tensor_summary_v2_op.kernel
def _(xp, tag, tensor, metadata, *, T):  # noqa: N803 (TensorFlow's attribute name)
    summary = summary_class()()
    value = summary.value.add(tag=text(single(tag, "tag")))
    _fill(value, tensor, T)
    value.metadata.SetInParent()
    try:
        value.metadata.ParseFromString(single(metadata, "serialized_summary_metadata"))
    except Exception as error:
        raise invalid("serialized_summary_metadata is no SummaryMetadata") from error
    return serialized(summary)


def _fill(value: Any, tensor: Any, dtype: DType) -> None:
    value.tensor.CopyFrom(encode_array(np.asarray(tensor), dtype))
