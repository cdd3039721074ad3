"""The compilations of one segment: one thread compiles each of its variants, whoever needs it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from runnel.graph.operation import Operation
from runnel.graph.shapes import is_fully_defined
from runnel.passes.program.program import Node
from runnel.runtime.compile.buffers import NotCompilable
from runnel.runtime.interpret.code import Code
from runnel.runtime.interpret.segment_state import SegmentState
from runnel.runtime.segment.beside import begin_beside
from runnel.runtime.segment.cut_segment import CutSegment
from runnel.runtime.segment.segment_compiler import SegmentCompiler
from runnel.runtime.segment.tier_choice import TierChoice
from runnel.runtime.segment.tier_trial import TierTrial
from runnel.runtime.segment.variants import Variant, Variants
from runnel.runtime.state.at_exit import is_exiting
from runnel.runtime.state.cell import Cell

if TYPE_CHECKING:
    from runnel.runtime.compile.bound_executable import BoundExecutable
    from runnel.runtime.compile.executable import Executable

logger = logging.getLogger("runnel")

Begin = Callable[[Callable[[], None]], "Future[None] | None"]
"""Has a thread do something, or not now."""


class _Shaped(NamedTuple):
    """What a compilation knows of an array."""

    shape: tuple[int, ...]
    dtype: Any


class Compilations:
    """Compiles the variants of a segment, and notes in them what has come of it.

    ``choice`` says what pays. ``bind(variant, executable, overwritten)`` makes what a step calls,
    ``cut_around(node)`` what runs in place of a segment with a node that has no compiled form.
    """

    def __init__(
        self,
        compiler: SegmentCompiler,
        code: Code,
        state: SegmentState,
        variants: Variants,
        choice: TierChoice,
        bind: Callable[[Variant, Executable, list[Cell]], BoundExecutable],
        cut_around: Callable[[Node | None], CutSegment | None],
    ) -> None:
        self._compiler = compiler
        self._code = code
        self._state = state
        self._variants = variants
        self._choice = choice
        self._bind = bind
        self._cut_around = cut_around
        # Guards what follows, and the executables of variants. The thread that holds it compiles
        # itself where no thread can be started any more.
        self._lock = threading.RLock()
        self.running: dict[Variant, Future[None]] = {}
        """What tells when a variant has been compiled."""

    def begin(self, variant: Variant, inputs: list[Any], begin: Begin) -> Future[None] | None:
        """What tells when ``variant`` has been compiled; None if nothing has begun to compile it.

        All that need the same executable share it.
        """
        with self._lock:
            compiling = self.running.get(variant)
            if compiling is None and variant.executable is None and not variant.refused:
                # The caller's arrays may change as soon as the step has ended; and large ones
                # should not be kept for the sake of their shapes.
                taken: list[Any] = list(map(_shaped, inputs))
                for position in self._variants.specialized:
                    taken[position] = np.array(inputs[position])
                with self._state.task.lock:
                    is_chained = self._compiler.options.is_chained
                    overwritten = self._overwritten() if is_chained else {}
                    cells = [*self._state.load_cells, *overwritten.values()]
                    states = [_shaped(cell.held) for cell in cells]
                beside = begin is begin_beside
                compiling = begin(
                    partial(self._compile, variant, states, taken, overwritten, beside)
                )
                if compiling is not None:
                    self.running[variant] = compiling
            return compiling

    def forget(self, variant: Variant) -> None:
        """Drops the compiled form of ``variant``; it may be compiled again."""
        with self._lock:
            variant.executable = None
            self._variants.forget_compiled(variant)

    def _overwritten(self) -> dict[Operation, Cell]:
        """The variables that are stored without having been read, where they have values."""
        loaded = set(self._state.load_cells)
        stored = zip(self._code.stores, self._state.stored, strict=True)
        return {
            variable: cell
            for (variable, _), cell in stored
            if cell.held is not None
            and cell not in loaded
            and not cell.changes_shape
            and is_fully_defined(variable.attrs["shape"]._dims)
        }

    def _compile(
        self,
        variant: Variant,
        states: list[Any],
        inputs: list[Any],
        overwritten: dict[Operation, Cell],
        beside: bool,
    ) -> None:
        executable = None
        try:
            if self._compiler.find_repetitions() and beside and not self._choice.pays(variant):
                return  # there is more to compile than it seemed
            compiled = self._compiler.executable(
                self._state,
                states,
                inputs,
                self._variants.specialized,
                list(overwritten),
            )
            executable = self._bind(variant, compiled, list(overwritten.values()))
        except NotCompilable as reason:
            variant.cut = self._cut_around(reason.node)
            variant.refused = True
            logger.info("A loop runs dynamically for some shapes: %s", reason)
        except Exception as failure:
            if not beside:
                raise
            # These very shapes have been interpreted; so they are from now on.
            variant.refused = True
            if not is_exiting():  # which interrupts compilations anywhere
                logger.warning("A step stays interpreted: compiling it failed: %s", failure)
        finally:
            with self._lock:
                if executable is not None:
                    variant.trial = TierTrial(self._choice.usual(variant)) if beside else None
                    variant.executable = executable
                    self._variants.note_compiled(variant)
                self.running.pop(variant, None)


def _shaped(value: Any) -> _Shaped | None:
    return None if value is None else _Shaped(np.shape(value), value.dtype)
