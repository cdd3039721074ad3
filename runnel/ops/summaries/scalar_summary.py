"""``ScalarSummary``: single numbers."""

from __future__ import annotations

import numpy as np

from runnel.ops.summaries.serialized import (
    invalid,
    register_summary_op,
    serialized,
    summary_class,
    text,
)

scalar_summary_op = register_summary_op(
    "ScalarSummary", inputs="tags: string, values: T", attrs="T: realnumbertype"
)


@scalar_summary_op.kernel
def _(xp, tags, values):
    tags, values = np.asarray(tags), np.asarray(values)
    if tags.shape != values.shape:
        tag = f" (tag '{text(tags.item())}')" if tags.size == 1 else ""
        raise invalid(
            f"tags and values are not the same shape: {list(tags.shape)} != "
            f"{list(values.shape)}{tag}"
        )
    summary = summary_class()()
    add = summary.value.add
    with np.errstate(over="ignore"):  # what single precision cannot hold is infinite there
        numbers = values.astype(np.float32).reshape(-1).tolist()
    for tag, number in zip(tags.reshape(-1).tolist(), numbers, strict=True):
        add(tag=text(tag), simple_value=number)
    return serialized(summary)
