"""Observers of a step hear of its operations, compiled segments and transfers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from runnel.graph.operation import Operation
from runnel.passes.program.program import Node


@dataclass(frozen=True, slots=True)
class SegmentRun:
    """One call of a compiled segment, waited for; times in nanoseconds of ``perf_counter_ns``."""

    nodes: Sequence[Node]
    start: int
    end: int
    outputs: Sequence[Any]
    taken_bytes: int
    """Bytes of what it was given: inputs, and the variables that it reads."""
    updated_bytes: int
    """Bytes of the variables that it replaces."""
    needed_bytes: int
    """The memory that XLA takes for the call beyond its arguments, results included."""


@dataclass(frozen=True, slots=True)
class TransferRun:
    """One value that went from a device to another, waited for."""

    tensor: str
    source: str | Operation
    """The name of the device that it came from, or the operation that made it."""
    destination: str
    start: int
    end: int
    value: Any


class Observers:
    """Several observers of one step."""

    def __init__(self, *observers: StepObserver) -> None:
        self._observers = observers
        self.by_operation = any(observer.by_operation for observer in observers)

    def operation(self, node: Node, start: int, end: int, outputs: Sequence[Any]) -> None:
        """An operation was interpreted."""
        for observer in self._observers:
            observer.operation(node, start, end, outputs)

    def segment(self, run: SegmentRun) -> None:
        """A compiled segment ran."""
        for observer in self._observers:
            observer.segment(run)

    def transfer(self, run: TransferRun) -> None:
        """A value was moved to another device."""
        for observer in self._observers:
            observer.transfer(run)


class StepObserver(Protocol):
    """Is told what a step does, by the thread that does it, when it has been done."""

    by_operation: bool
    """True when it wants each operation by itself: what can be interpreted is not run compiled.
    False leaves every segment in the tier in which it runs unobserved."""

    def operation(self, node: Node, start: int, end: int, outputs: Sequence[Any]) -> None:
        """An operation was interpreted."""

    def segment(self, run: SegmentRun) -> None:
        """A compiled segment ran."""

    def transfer(self, run: TransferRun) -> None:
        """A value was moved to another device."""
