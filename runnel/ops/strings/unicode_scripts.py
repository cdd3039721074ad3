"""``UnicodeScript``: which script a character is written in."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shape_inference import unchanged

script_op = register_op(
    "UnicodeScript", inputs="input: int32", outputs="output: int32", host=True, differentiable=False
)
script_op.shape(unchanged)

_NO_CHARACTER = -1
_END = 0x110000


@cache
def _ranges() -> tuple[np.ndarray, np.ndarray]:
    """Where ranges of one script begin, and their scripts, with what is no character around."""
    from runnel.ops.strings.unicode_script_ranges import RANGES

    pairs = [pair.partition(":") for pair in RANGES.split()]
    firsts = [np.iinfo(np.int32).min, *(int(first, 16) for first, _, _ in pairs), _END]
    scripts = [_NO_CHARACTER, *(int(script) for _, _, script in pairs), _NO_CHARACTER]
    return np.array(firsts, np.int64), np.array(scripts, np.int32)


@script_op.kernel
def _(xp, codes):
    firsts, scripts = _ranges()
    return scripts[np.searchsorted(firsts, codes, side="right") - 1]


def unicode_script(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The scripts of characters, as ICU numbers them; -1 for what is no character.

    Example:
        >>> sess.run(tf.strings.unicode_script([ord("a"), ord("я"), ord("漢")]))  # [25, 8, 17]
    """
    return script_op(convert_to_tensor(input, dtypes.int32), name=name)
