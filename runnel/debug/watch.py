"""What sees each operation of a watched step, and stops it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.passes.program.program import Node
from runnel.passes.structure.structured import structure_of
from runnel.runtime.state.observer import SegmentRun, TransferRun

StopWhen = Callable[[Any, Any], bool]
"""Whether a step is to stop at a tensor: its name, and its value."""
Keep = Callable[[Tensor, Any], None]
"""Takes a tensor and the value that it has in the step."""


def has_inf_or_nan(name: Any, value: Any) -> bool:
    """True when a value has elements that are infinite, or not a number."""
    numbers = _numbers(value)
    return numbers is not None and not np.isfinite(numbers).all()


def _numbers(value: Any) -> np.ndarray | None:
    """``value`` as numbers that can be infinite; None if it has none."""
    if value is None or not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return None
    array = np.asarray(value)
    if array.dtype.kind in "fc":
        return array
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else None


class StoppedStep(InvalidArgumentError):
    """A watched step stopped at a tensor: ``tensor`` is its name."""

    tensor: str = ""


class Watch:
    """Sees each operation of one step; :attr:`seen` has the values, in the order of making."""

    by_operation = True

    def __init__(self, stop_when: StopWhen | None, keep: Keep | None) -> None:
        self._stop_when = stop_when
        self._keep = keep
        self.seen: dict[str, Any] = {}

    def note(self, tensor: Tensor, value: Any) -> None:
        """Takes note of a value."""
        self.seen[tensor.name] = value
        if self._keep is not None and value is not None:
            self._keep(tensor, value)

    def operation(self, node: Node, start: int, end: int, outputs: Sequence[Any]) -> None:
        """An operation was interpreted."""
        if structure_of(node) is not None:
            return  # a whole loop or conditional, whose operations were seen
        for tensor, value in zip(node.op.outputs, outputs, strict=False):
            self.note(tensor, value)
            if self._stop_when is not None and self._stop_when(tensor.name, value):
                given = [self._given(t.name) for t in node.op.inputs]
                stopped = StoppedStep(
                    None,
                    node.op,
                    f"The step stops here: {tensor.name} is {described(value)}. "
                    + ("; ".join(given) or "It has no inputs"),
                )
                stopped.tensor = tensor.name
                raise stopped

    def _given(self, name: str) -> str:
        return f"{name} was {described(self.seen.get(name))}"

    def segment(self, run: SegmentRun) -> None:
        """A segment ran that exists only compiled: its operations are not seen."""

    def transfer(self, run: TransferRun) -> None:
        """What crosses between devices stays what it is."""


def described(value: Any) -> str:
    """A value for people: its type and shape, the range of its numbers, what is not one."""
    if value is None or not hasattr(value, "dtype"):
        return "not seen"
    array = np.asarray(value)
    what = f"{array.dtype.name} of shape {array.shape}"
    numbers = _numbers(value)
    if numbers is None or not numbers.size:
        return what if array.size != 1 else f"{what}: {array.item()!r}"
    nans, infinite = int(np.isnan(numbers).sum()), int(np.isinf(numbers).sum())
    finite = np.abs(numbers[np.isfinite(numbers)]) if numbers.dtype.kind == "c" else None
    finite = numbers[np.isfinite(numbers)] if finite is None else finite
    if finite.size:
        what += f" with elements from {finite.min():.6g} to {finite.max():.6g}"
    bad = [f"{n} {word}" for n, word in ((nans, "NaN"), (infinite, "infinite")) if n]
    return what + (f", {' and '.join(bad)} of {numbers.size}" if bad else "")
