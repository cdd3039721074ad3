"""``UnicodeScript``: which script a character is written in; the characters of a script."""

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


@cache
def _numbers() -> dict[str, int]:
    from runnel.ops.strings.unicode_script_names import NAMES

    pairs = [pair.partition(":") for pair in NAMES.split()]
    return {name: int(number) for name, _, number in pairs}


def characters_of_script(name: str) -> list[tuple[int, int]] | None:
    """The characters of a script, as ranges; None for what is no name of one.

    Example:
        >>> characters_of_script("Thai")
        [(3585, 3642), (3648, 3675)]
    """
    number = _numbers().get(name)
    if number is None:
        return None
    firsts, scripts = _ranges()
    found = np.flatnonzero(scripts == number)
    return list(zip(firsts[found].tolist(), (firsts[found + 1] - 1).tolist(), strict=True))


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
