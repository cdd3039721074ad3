"""Compiles loops of an interpreted segment whose number of iterations changes from step to step.

A segment that meets many lengths is not worth compiling for each. Its loops are compiled by
themselves, beside the steps, once for all lengths up to a capacity
(``runtime.compile.loop_alone``). The code around them stays interpreted.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from runnel.ops.stacks import Stack
from runnel.ops.tensor_array_ops import ArrayState
from runnel.passes.program.program import Node
from runnel.passes.structure.structured import Loop, nested_nodes, structure_of, touched_by
from runnel.runtime.compile.buffers import NotCompilable
from runnel.runtime.compile.loop_alone import CompiledLoop, SpareStacks
from runnel.runtime.compile.loop_arguments import Arguments, LoopSignature
from runnel.runtime.interpret.code import Code, TracedCall
from runnel.runtime.interpret.structured_code import StructuredCall
from runnel.runtime.segment.beside import begin_beside
from runnel.runtime.segment.compile_cost import compile_cost
from runnel.runtime.state.observer import SegmentRun, StepObserver
from runnel.runtime.state.step_context import StepContext

logger = logging.getLogger("runnel")

_MANY_COUNTS = 4
"""The different numbers of iterations from which on a loop counts as one that varies."""
_MOST_SIGNATURES = 64
_MOST_FAILURES = 3
_ROOM = 8
"""A loop may be compiled for so many times as many elements as there are."""
_SHARE = 0.25
"""What a second of compiling beside the steps costs them, in seconds."""
_TRIAL_RUNS = 10
_SLOWER = 1.25


def bound_loops(code: Code, traced: Callable[[Node], TracedCall]) -> None:
    """Has the loops of interpreted ``code`` compiled by themselves where they vary.

    ``traced`` gives what a node is traced by.
    """
    spare = SpareStacks()
    for index, instruction in enumerate(code.instructions):
        node, call = instruction.node, instruction.call
        if isinstance(call, StructuredCall) and isinstance(structure_of(node), Loop):
            touched = touched_by(node)
            if not touched.writes and not touched.random:
                bounded = BoundedLoop(call, node, partial(traced, node), spare)
                code.instructions[index] = instruction._replace(call=bounded)


class _Form:
    """A loop for one signature: its compiled form if any, what it has taken in either tier."""

    __slots__ = ("interpreted", "compiled", "executable", "begun")

    def __init__(self) -> None:
        self.interpreted = _Pace()
        self.compiled = _Pace()
        """Of the first runs only."""
        self.executable: CompiledLoop | None = None
        self.begun = False


class _Pace:
    """What runs of a loop have taken for each of their elements."""

    __slots__ = ("runs", "seconds", "elements", "fastest")

    def __init__(self) -> None:
        self.runs = self.elements = 0
        self.seconds = 0.0
        self.fastest = math.inf

    def note(self, seconds: float, elements: int) -> None:
        """Takes note of a run."""
        self.runs += 1
        self.seconds += seconds
        self.elements += max(elements, 1)
        self.fastest = min(self.fastest, seconds / max(elements, 1))

    def is_slower(self, other: _Pace) -> bool:
        """True when this is clearly slower, at its best and on the whole."""
        average, usual = self.seconds / self.elements, other.seconds / other.elements
        return self.fastest > _SLOWER * other.fastest and average > usual


class BoundedLoop:
    """A loop as a function of a context and its inputs, in the tier that pays."""

    def __init__(
        self,
        interpreted: StructuredCall,
        node: Node,
        traced: Callable[[], TracedCall],
        spare: SpareStacks,
    ) -> None:
        self._spare = spare
        self._interpreted = interpreted
        self._traced = traced
        self._cost = sum(1 for _ in nested_nodes([node]))
        self._lock = threading.Lock()
        """For what begins a compilation."""
        self._node = node
        self._name = node.op.name
        self._refused = False
        self._failures = 0
        self._sizes: set[int] = set()
        self._integers: dict[int, bytes] = {}
        """The integers that have not changed yet, by position."""
        self._varying: set[int] = set()
        self._capacities: list[int] = []
        self._forms: dict[LoopSignature, _Form] = {}

    def __call__(self, context: StepContext, *args: Any) -> Any:
        observer = context.observer
        if self._refused or (observer is not None and observer.by_operation):
            return self._interpreted(context, *args)
        size = self._look(args)
        if len(self._sizes) < _MANY_COUNTS:
            return self._interpreted(context, *args)
        start = time.perf_counter()
        form, arguments = self._form(args, size)
        if form is not None and form.executable is not None:
            results = form.executable.run(arguments)
            if results is not None:
                if observer is not None:
                    self._tell(observer, start, args, results)
                elif form.compiled.runs < _TRIAL_RUNS:
                    self._try(form, time.perf_counter() - start, size)
                return results[0] if len(results) == 1 else results
        outcome = self._interpreted(context, *args)
        if form is not None and observer is None:
            spent = form.interpreted
            spent.note(time.perf_counter() - start, size)
            if not form.begun and spent.seconds > _SHARE * compile_cost.seconds(self._cost):
                self._begin(form, arguments.signature)
        return outcome

    def _tell(
        self, observer: StepObserver, start: float, args: tuple[Any, ...], results: Sequence[Any]
    ) -> None:
        """Tells an observer of a compiled run that began at ``start``."""
        taken = sum(getattr(value, "nbytes", 0) for value in args)
        begun, end = int(start * 1e9), time.perf_counter_ns()
        observer.segment(SegmentRun([self._node], begun, end, results, taken, 0, 0))

    def _look(self, args: tuple[Any, ...]) -> int:
        """Notes what varies; returns how many elements there are: about the iterations."""
        size = most = 0
        for position, value in enumerate(args):
            if type(value) is ArrayState:
                size = max(size, len(value.values))
            elif type(value) is Stack:
                size = max(size, value.count)
            elif isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "iub":
                if position not in self._varying and value.size <= 8:
                    content = value.tobytes()
                    if self._integers.setdefault(position, content) != content:
                        self._varying.add(position)
                if position in self._varying and value.ndim == 0:
                    most = max(most, int(value))
        size = size or most
        if len(self._sizes) < _MANY_COUNTS:
            self._sizes.add(size)
            if len(self._sizes) == _MANY_COUNTS:
                self._capacities = [_rounded(max(self._sizes))]
        return size

    def _form(self, args: tuple[Any, ...], size: int) -> tuple[_Form | None, Any]:
        """What is known of the loop for ``args``; None where it can only be interpreted."""
        capacity = self._capacity(size)
        varying = {
            position: args[position].ndim == 0 and 0 <= args[position] <= capacity
            for position in self._varying
        }
        try:
            arguments = Arguments(args, capacity, varying)
        except NotCompilable:
            return None, None
        form = self._forms.get(arguments.signature)
        if form is None:
            if len(self._forms) >= _MOST_SIGNATURES:
                self._refuse("its arguments have too many different shapes")
                return None, None
            form = self._forms.setdefault(arguments.signature, _Form())
        return form, arguments

    def _capacity(self, size: int) -> int:
        for capacity in self._capacities:
            if size <= capacity <= _ROOM * max(size, 1):
                return capacity
        self._capacities = sorted({*self._capacities, _rounded(size)})
        return _rounded(size)

    def _try(self, form: _Form, seconds: float, size: int) -> None:
        """Notes one of the first runs; after the last of them the slower tier is given up."""
        form.compiled.note(seconds, size)
        if form.compiled.runs == _TRIAL_RUNS and form.compiled.is_slower(form.interpreted):
            self._refuse("compiled it is slower")

    def _begin(self, form: _Form, signature: LoopSignature) -> None:
        with self._lock:
            if not form.begun:
                compiling = begin_beside(partial(self._compile, form, signature))
                form.begun = compiling is not None

    def _compile(self, form: _Form, signature: LoopSignature) -> None:
        start = time.perf_counter()
        try:
            form.executable = CompiledLoop(self._traced(), signature, self._spare)
        except Exception as reason:  # noqa: BLE001 (whatever it is, the loop runs interpreted)
            logger.info("The loop %r is interpreted for some shapes: %s", self._name, reason)
            self._failures += 1
            if self._failures == _MOST_FAILURES:
                self._refuse("compiling it fails")
            return
        compile_cost.learn(self._cost, time.perf_counter() - start)
        logger.info(
            "The loop %r varies in length: it is compiled for up to %d elements",
            self._name,
            signature.capacity,
        )

    def _refuse(self, why: str) -> None:
        self._refused = True
        self._forms = {}
        logger.info("The loop %r stays interpreted: %s", self._name, why)


def _rounded(size: int) -> int:
    """The next power of two, at least 16."""
    return 1 << max(4, (size - 1).bit_length())
