"""Running a segment of a plan in the tier that pays: interpreted at first, compiled when hot.

A segment is compiled for a signature (the shapes of its inputs) once the time spent
interpreting it exceeds what compiling is expected to cost, and only if a step takes longer
than a compiled call's overhead. On an accelerator it is compiled from the start.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from runnel.graph import errors
from runnel.graph.operation import Operation
from runnel.graph.registry import COMPILED, INTERPRETED
from runnel.ops.sampling.philox import STREAM_WORDS
from runnel.passes.clusters.cluster import Segment
from runnel.passes.program.program import Node, Program
from runnel.passes.program.state_access import StateAccess
from runnel.passes.structure.structured import nested_nodes, structure_of
from runnel.runtime.compile.buffers import NotCompilable
from runnel.runtime.compile.spare_buffers import SpareBuffers
from runnel.runtime.compile.unconfirmed import Unconfirmed
from runnel.runtime.devices.device_memory import (
    device_error,
    forget_lost,
    is_device_error,
    require_memory,
)
from runnel.runtime.devices.devices import compiles_for_host, xla_device
from runnel.runtime.interpret.code import Code, Passed, lower, pass_state
from runnel.runtime.interpret.interpreted_segment import InterpretedSegment
from runnel.runtime.interpret.segment_state import Reshaped, SegmentState
from runnel.runtime.interpret.stacked_code import stacked
from runnel.runtime.interpret.stretch import Stretches
from runnel.runtime.segment.cut_segment import CutSegment, cut_around
from runnel.runtime.segment.variants import Variant, Variants
from runnel.runtime.state.step_context import StepContext, await_future, in_thread
from runnel.runtime.state.task_state import TaskState

if TYPE_CHECKING:
    from runnel.runtime.compile.bound_executable import BoundExecutable
    from runnel.runtime.compile.compiler import Executable

logger = logging.getLogger("runnel")

AUTO, NEVER, ALWAYS = "auto", "never", "always"

# What compiling costs and what a compiled call costs, roughly, on a laptop's core.
_COMPILE_SECONDS = 0.03
_COMPILE_SECONDS_PER_NODE = 0.002
_DISPATCH_SECONDS = 40e-6
_DISPATCH_SECONDS_PER_ARRAY = 1.5e-6


class SegmentRunner:
    """A segment bound to the state of a session.

    ``borrows`` says whether inputs may be the caller's arrays, which must not be in use when a
    step ends. One that ``passes_state`` is a function of values (``runtime.interpret.stretch``):
    ``passed`` is the state that it takes and gives. ``is_whole`` says that it is a whole step.
    """

    def __init__(
        self,
        program: Program,
        segment: Segment,
        access: StateAccess,
        task: TaskState,
        device: str,
        mode: str,
        borrows: bool = True,
        passes_state: bool = False,
        is_whole: bool = False,
    ) -> None:
        self.segment = segment
        self._program = program
        self._access = access
        self._task = task
        self._device = device if segment.device is None else segment.device.device_type
        self._mode = mode if segment.compilable else NEVER
        if self._device == "CPU" and not compiles_for_host():
            self._mode = NEVER
        self._compiled_code: Code | None = None
        self._can_interpret = True
        self._passes_state = passes_state
        self.passed = Passed([], [], [])
        self._stretches: Stretches | None = None
        self._alike = partial(SegmentRunner, task=task, device=device, mode=mode, borrows=borrows)
        """Makes runners of other segments for the same session."""
        self._cuts: dict[Node, CutSegment] = {}
        if not segment.compilable and mode != NEVER:
            self._stretches = Stretches(self._bind_stretch, self._device, mode == ALWAYS)
        try:
            self._code = self._lowered(INTERPRETED)
        except errors.UnimplementedError:
            # A kernel that exists only compiled: so is the segment, always.
            if self._mode == NEVER:
                raise
            self._mode, self._can_interpret = ALWAYS, False
            self._code = self._compiled_code = self._lowered(COMPILED)
        # For _compiling: one thread compiles; all that need the same executable wait for it.
        self._compile_lock = threading.Lock()
        self._compiling: dict[Variant, Future[None]] = {}
        state = self.state = SegmentState(self._code, task)
        computing = (n for n in segment.nodes if n.op_def.name != "Const" and not n.op_def.variable)
        self._first = next(computing, segment.nodes[0])
        """What an error names that comes before anything has run."""
        stack = None
        if self._can_interpret and not passes_state:
            stack = partial(stacked, self._code, program, access, self._device)
        self._interpreted = InterpretedSegment(self._code, state, self._first, passes_state, stack)
        self._has_branches = any(structure_of(node) is not None for node in segment.nodes)
        self._may_lack_value = self._has_branches or bool(state.optional)
        loads = [(cell, variable) for cell, _, variable, _ in state.loads]
        self._variants = Variants(program, segment, loads, task)
        self.is_heavy = any(node.op_def.heavy for node in segment.nodes)
        self._spare = SpareBuffers()
        self._borrows = borrows
        self._is_whole = is_whole
        nodes = sum(1 for _ in nested_nodes(segment.nodes))
        self._compile_seconds = _COMPILE_SECONDS + _COMPILE_SECONDS_PER_NODE * nodes
        arrays = len(state.loads) + len(state.stored) + len(segment.inputs) + len(segment.outputs)
        self._dispatch_seconds = _DISPATCH_SECONDS + _DISPATCH_SECONDS_PER_ARRAY * arrays

    def _lowered(self, tier: str) -> Code:
        stretches = self._stretches if tier == INTERPRETED else None
        code = lower(self._program, self.segment, self._access, self._device, tier, stretches)
        if self._passes_state:
            self.passed = pass_state(code)
        return code

    def _bind_stretch(
        self, program: Program, segment: Segment, access: StateAccess
    ) -> SegmentRunner:
        """What runs a stretch of something that is interpreted here."""
        segment = replace(segment, device=self.segment.device)
        # What it is given is not in use when the loop has ended, and its results are there.
        return self._alike(program, segment, access, borrows=False, passes_state=True)

    @property
    def is_compiled(self) -> bool:
        """True when the segment has been compiled, for whatever shapes."""
        return self._variants.are_compiled

    # Choosing a tier ------------------------------------------------------------------------

    @property
    def has_effects(self) -> bool:
        """True when running the segment may leave a trace: in state, or outside."""
        return self.state.writers is not None or not self.segment.compilable

    def run(
        self,
        inputs: list[Any],
        context: StepContext,
        started: list[Unconfirmed] | None = None,
    ) -> list[Any]:
        """The outputs for ``inputs``; state is read and replaced.

        An observer sees each operation, unless the segment must be compiled: then it sees the
        segment as a whole. With ``started``, the end of a compiled segment is not waited for.
        """
        if self._mode == NEVER:
            return self._interpreted.run(inputs, context)
        if context.deadline is not None:
            context.require_time(self._first)
        if context.observer is not None:
            return self._run_observed(inputs, context)
        variant = self._variants.find(inputs)
        if variant is None or (self._may_lack_value and self._lacks_value(inputs)):
            return self._interpreted.run(inputs, context)
        executable = self._executable(variant, inputs, context)
        if variant.cut is not None:
            return variant.cut.run(inputs, context)
        if executable is not None:
            return self._run_compiled(executable, inputs, context, started)
        start = time.perf_counter()
        outputs = self._interpreted.run(inputs, context)
        seconds = time.perf_counter() - start
        variant.seconds += seconds
        variant.fastest = min(variant.fastest, seconds)
        variant.runs += 1
        return outputs

    def _run_compiled(
        self,
        executable: BoundExecutable,
        inputs: list[Any],
        context: StepContext,
        started: list[Unconfirmed] | None,
    ) -> list[Any]:
        try:
            outputs, unconfirmed = executable.start(inputs, self._explain_failure, context)
            if unconfirmed is not None:
                if started is None:
                    unconfirmed.finish_for_good()
                else:
                    started.append(unconfirmed)
            return outputs
        except Reshaped:
            return self.run(inputs, context, started)
        except RuntimeError as error:
            if not is_device_error(error):
                raise
            raise self._device_error(error) from error

    def _executable(
        self, variant: Variant, inputs: list[Any], context: StepContext
    ) -> BoundExecutable | None:
        """The compiled form for ``variant``, made now if that pays."""
        executable = variant.executable
        if executable is None and self._pays(variant):
            return self._compile(variant, inputs, context)
        return executable

    def _lacks_value(self, inputs: list[Any]) -> bool:
        """True when something has no value that only an untaken branch would need."""
        if any(cell.value is None for cell in self.state.optional):
            return True
        return self._has_branches and any(value is None for value in inputs)

    def _must_compile(self) -> bool:
        return self._mode == ALWAYS or self._device != "CPU"

    def _pays(self, variant: Variant) -> bool:
        if self.is_heavy or self._must_compile():
            # A part of a loop that changes its shape from iteration to iteration is another matter.
            if not (self._passes_state and self._can_interpret and self._variants.are_many):
                return not variant.refused
        if variant.refused or variant.seconds <= self._compile_seconds:
            return False
        # A busy machine makes single runs of a tiny step long, but neither the shortest nor, by
        # far, the average. (A loop that the data end may be short once and long otherwise.)
        average = variant.seconds / variant.runs
        return max(variant.fastest, average / 10) > self._dispatch_seconds

    def _run_observed(self, inputs: list[Any], context: StepContext) -> list[Any]:
        if not self._must_compile():
            return self._interpreted.run(inputs, context)
        variant = self._variants.find(inputs)
        executable = None
        if variant is not None and not self._lacks_value(inputs):
            executable = self._executable(variant, inputs, context)
            if variant.cut is not None:
                return variant.cut.run(inputs, context)
        if executable is None:
            return self._interpreted.run(inputs, context)
        start = time.perf_counter_ns()
        outputs = self._run_compiled(executable, inputs, context, None)
        for output in outputs:
            if hasattr(output, "block_until_ready"):
                output.block_until_ready()
        observer = context.observer
        observer.segment(self.segment.nodes, start, time.perf_counter_ns(), outputs)
        return outputs

    # Compiling ------------------------------------------------------------------------------

    def _compile(
        self, variant: Variant, inputs: list[Any], context: StepContext
    ) -> BoundExecutable | None:
        """The executable for ``variant``; None when there is none, but interpreting works.

        Nothing can interrupt XLA. So a thread of its own compiles: a step that has to stop does not
        wait for it, and the next step finds what it has made.
        """
        compiling = self._begin_compiling(variant, inputs)
        failure: BaseException | None = None
        if compiling is not None:
            await_future(compiling, context, self._first)
            failure = compiling.exception()
        if failure is None:
            return variant.executable
        if isinstance(failure, errors.ResourceExhaustedError):
            raise failure
        if self._must_compile() or variant.runs == 0:
            # Tracing meets a wrong shape before any check of values; the interpreter finds the
            # first mistake, and the words are the same in both tiers.
            self._raise_if_interpreting_fails(inputs, context)
            raise failure
        # These very shapes have been interpreted; so they are from now on.
        variant.refused = True
        logger.warning("A step stays interpreted: compiling it failed: %s", failure)
        return None

    def _begin_compiling(self, variant: Variant, inputs: list[Any]) -> Future[None] | None:
        """What tells when ``variant`` has been compiled; None if it has been already."""
        with self._compile_lock:
            compiling = self._compiling.get(variant)
            if compiling is None and variant.executable is None and not variant.refused:
                taken = list(inputs)
                for position in self._variants.specialized:
                    # The caller's arrays may change as soon as the step has ended.
                    taken[position] = np.array(taken[position])
                compile_variant = partial(self._compile_variant, variant, taken)
                compiling = self._compiling[variant] = in_thread(compile_variant)
            return compiling

    def _compile_variant(self, variant: Variant, inputs: list[Any]) -> None:
        executable = None
        try:
            executable = self._bound(variant, self._compiled(inputs))
        except NotCompilable as reason:
            variant.cut = self._cut_around(reason.node)
            variant.refused = True
            logger.info("A loop runs dynamically for some shapes: %s", reason)
        finally:
            with self._compile_lock:
                if executable is not None:
                    variant.executable = executable
                    self._variants.note_compiled(variant)
                del self._compiling[variant]

    def _cut_around(self, node: Node | None) -> CutSegment | None:
        """The segment in pieces, of which ``node`` is one."""
        if node is None or self._passes_state:
            return None
        if node not in self._cuts:
            bind = partial(self._alike, self._program, access=self._access)
            self._cuts[node] = cut_around(
                node, self._program, self.segment, self._access, self._device, bind
            )
        return self._cuts[node]

    def _bound(self, variant: Variant, executable: Executable) -> BoundExecutable:
        from runnel.runtime.compile.bound_executable import BoundExecutable

        return BoundExecutable(
            executable,
            self.state,
            partial(self._variants.reshaped, variant) if variant.state_shapes else None,
            self._spare,
            self.segment.device,
            self._device != "CPU",
            self._borrows,
            self._first,
        )

    def _compiled(self, inputs: list[Any]) -> Executable:
        from runnel.runtime.compile import compiler

        if self._compiled_code is None:
            self._compiled_code = self._lowered(COMPILED)
        with self._task.lock:
            states = [cell.value for cell in self.state.load_cells]
            self.state.require_values(states)
        streams = None
        if self.state.streams:
            streams = np.zeros((len(self.state.streams), STREAM_WORDS), np.uint32)
        start = time.perf_counter()
        pinned = self._pinned()
        try:
            executable = compiler.compile_segment(
                self._compiled_code,
                states,
                streams,
                inputs,
                frozenset(self._variants.specialized),
                self._device.lower(),
                pinned,
                self._is_whole,
            )
        except RuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            raise self._device_error(error) from error
        require_memory(executable.needed_bytes, pinned, self.segment.nodes, self._device_name)
        logger.debug(
            "compiled %d operations in %.2f s", len(self.segment.nodes), time.perf_counter() - start
        )
        return executable

    def _pinned(self) -> Any:
        """The XLA device to compile for; None: the one that JAX takes by itself."""
        return None if self.segment.device is None else xla_device(self.segment.device)

    def _explain_failure(
        self, executable: Executable, inputs: list[Any], context: StepContext
    ) -> None:
        """Raises the error that the interpreter finds; the state is what it was before."""
        self._raise_if_interpreting_fails(inputs, context)
        names = ", ".join(repr(node.op.name) for node in executable.checked)
        why = "but does not fail when interpreted" if self._can_interpret else "at run time"
        raise errors.InvalidArgumentError(
            None,
            executable.checked[0].op,
            f"A check in this compiled step failed, {why} (one of: {names})",
        )

    def _raise_if_interpreting_fails(self, inputs: list[Any], context: StepContext) -> None:
        if self._can_interpret:
            self._interpreted.slots(inputs, context)

    @property
    def _device_name(self) -> str:
        device = self.segment.device
        return f"the {self._device}" if device is None else device.name

    def forget_lost(self) -> list[Operation]:
        """Drops the arrays that a failure of the device took along; the variables among them."""
        self._spare.forget()
        return forget_lost(self.state.cells())

    def _device_error(self, error: Exception) -> errors.OpError:
        """An error of the device, with the operations it happened in."""
        with self._task.lock:
            lost = self.forget_lost()
        return device_error(error, self.segment.nodes, self._device_name, lost)
