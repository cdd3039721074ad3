"""``MergeSummary``: several summaries as one."""

from __future__ import annotations

import numpy as np

from runnel.ops.summaries.serialized import (
    invalid,
    register_summary_op,
    string_scalar,
    summary_class,
)

merge_summary_op = register_summary_op(
    "MergeSummary", inputs="inputs: N * string", attrs="N: int >= 1"
)


@merge_summary_op.kernel
def _(xp, inputs):
    pieces = [piece for value in inputs for piece in np.asarray(value).reshape(-1).tolist()]
    summary_type = summary_class()
    seen: set[str] = set()
    for piece in pieces:
        try:
            summary = summary_type.FromString(piece)
        except Exception as error:
            raise invalid("Could not parse one of the summary inputs") from error
        for value in summary.value:
            tag = value.tag
            if tag and tag in seen:  # a TensorSummary has none
                raise invalid(f"Duplicate tag {tag} found in summary inputs")
            seen.add(tag)
    return string_scalar(b"".join(pieces))  # the encoding of joined lists is the joined encodings
