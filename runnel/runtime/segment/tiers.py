"""Runs a segment of a plan in the tier that pays: interpreted at first, compiled when hot.

runnel compiles a segment for a signature (the shapes of its inputs) once the time spent
interpreting it exceeds the expected cost of compiling beside the steps, and only if a step takes
longer than a compiled call's overhead. Steps go on interpreted until the compiled form is ready. A
form that turns out slower, at once or later, is dropped (``tier_trial``). On an accelerator, and
where the interpreter would take forever, a segment is compiled from the start, and steps wait for
it.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from runnel.graph import errors
from runnel.graph.device_set import local_device
from runnel.graph.operation import Operation
from runnel.graph.registry import COMPILED, INTERPRETED
from runnel.mapped_array import is_mapped
from runnel.passes.clusters.cluster import Segment
from runnel.passes.program.program import Node, Program
from runnel.passes.program.state_access import StateAccess
from runnel.passes.structure.structured import nested_nodes
from runnel.runtime.compile.executable import CompileOptions
from runnel.runtime.compile.spare_buffers import SpareBuffers
from runnel.runtime.compile.unconfirmed import Unconfirmed
from runnel.runtime.devices.device_memory import (
    device_error,
    forget_lost,
    is_device_error,
)
from runnel.runtime.devices.devices import compiles_for_host
from runnel.runtime.devices.transfer import sent_observed
from runnel.runtime.interpret.code import Code, Passed, lower, pass_state
from runnel.runtime.interpret.interpreted_segment import InterpretedSegment
from runnel.runtime.interpret.row_updates import updated_by_rows
from runnel.runtime.interpret.segment_state import Reshaped, SegmentState
from runnel.runtime.interpret.stacked_code import stacked
from runnel.runtime.interpret.stretch import Stretches
from runnel.runtime.segment.beside import begin_beside
from runnel.runtime.segment.bounded_loops import bound_loops
from runnel.runtime.segment.compilations import Compilations
from runnel.runtime.segment.compile_cost import compile_cost
from runnel.runtime.segment.cut_segment import CutSegment, cut_around
from runnel.runtime.segment.segment_compiler import SegmentCompiler
from runnel.runtime.segment.tier_choice import TierChoice, is_large, must_compile
from runnel.runtime.segment.tier_trial import TierTrial
from runnel.runtime.segment.variants import Variant, Variants
from runnel.runtime.state.cell import Cell, as_numpy
from runnel.runtime.state.in_thread import in_thread
from runnel.runtime.state.observer import SegmentRun
from runnel.runtime.state.options import ALWAYS, AUTO, NEVER, SessionOptions
from runnel.runtime.state.sent_ahead import SentStep
from runnel.runtime.state.step_context import LOOK_SECONDS, StepContext
from runnel.runtime.state.task_state import TaskState

if TYPE_CHECKING:
    from runnel.runtime.compile.bound_executable import BoundExecutable
    from runnel.runtime.compile.executable import Executable
    from runnel.runtime.lockstep.lockstep_segment import LockstepSegment

logger = logging.getLogger("runnel")

_NOTICE_SECONDS = 1.0
"""For how long a step waits for a compilation before it says so."""
_STEPS_AHEAD = 256
"""How many steps may have been sent to an accelerator and not yet been seen to succeed. (XLA itself
has fewer on their way: it makes who sends more wait.)"""


class SegmentRunner:
    """A segment bound to the state of a session.

    ``borrows`` says whether inputs may be the caller's arrays, which must not be in use when a
    step ends. One that ``passes_state`` is a function of values (``runtime.interpret.stretch``):
    ``passed`` is the state that it takes and gives. ``is_whole`` says that it is a whole step:
    ``options.steps_ahead`` of such may be on their way to the device. ``is_alone`` says that the
    rest of its step, if there is any, are single operations.
    """

    def __init__(
        self,
        program: Program,
        segment: Segment,
        access: StateAccess,
        task: TaskState,
        device: str,
        options: SessionOptions,
        borrows: bool = True,
        passes_state: bool = False,
        is_whole: bool = False,
        is_alone: bool = False,
    ) -> None:
        self.segment = segment
        self._program = program
        self._access = access
        self._task = task
        self._device = device if segment.device is None else segment.device.device_type
        mode = options.jit
        self._mode = mode if segment.compilable else NEVER
        if self._device == "CPU" and not compiles_for_host():
            self._mode = NEVER
        nodes = [*nested_nodes(segment.nodes)]
        steps_ahead = options.steps_ahead
        if steps_ahead is None:
            steps_ahead = 0 if self._device == "CPU" else _STEPS_AHEAD
        self._steps_ahead = steps_ahead if is_whole and segment.compilable else 0
        how = CompileOptions(
            self._device.lower(),
            is_whole,
            is_alone,
            self._steps_ahead > 0,
            options.tensor_float_32 is not False,
        )
        lowered = partial(self._lowered, COMPILED)
        self._compiler = SegmentCompiler(
            program, segment, len(nodes), how, lowered, self._device_error
        )
        self._passes_state = passes_state
        self.passed = Passed([], [], [])
        self._stretches: Stretches | None = None
        self._alike = partial(
            SegmentRunner, task=task, device=device, options=options, borrows=borrows
        )
        """Makes runners of other segments for the same session."""
        self._cuts: dict[Node, CutSegment] = {}
        if not segment.compilable and mode != NEVER:
            self._stretches = Stretches(self._bind_stretch, self._device, mode == ALWAYS)
        if must_compile(self._mode, self._device) and self._mode != NEVER and not passes_state:
            self._code = self._compiler.code
        elif self._mode == NEVER or self._can_interpret:
            self._code = self._interpreted_code or self._lowered(INTERPRETED)
        else:
            self._mode, self._code = ALWAYS, self._compiler.code
        self.only_reads = not self._code.instructions and not self._code.stores
        """True when it computes nothing: what it gives is read, or goes through it."""
        if self._mode == AUTO and self._device == "CPU":
            if self.only_reads:
                self._mode = NEVER
            elif not passes_state:
                bound_loops(self._code, self._compiler.traced_by)
        state = self.state = SegmentState(self._code, task)
        computing = (n for n in segment.nodes if n.op_def.name != "Const" and not n.op_def.variable)
        self._first = next(computing, segment.nodes[0])
        """What an error names that comes before anything has run."""
        self._tables = [task.cell(variable) for variable in updated_by_rows(self._code)]
        loads = [(cell, variable) for cell, _, variable, _ in state.loads]
        self._variants = Variants(program, segment, loads, task)
        arrays = len(state.loads) + len(state.stored) + len(segment.inputs) + len(segment.outputs)
        self.choice = TierChoice(
            self._mode,
            self._device,
            nodes,
            arrays,
            self._tables,
            state.load_cells,
            self._variants,
            self._compiler,
            lambda: self._can_interpret,
            passes_state,
            is_whole,
        )
        self._may_lack_value = self.choice.has_branches or bool(state.optional)
        self._spare = SpareBuffers()
        self._borrows = borrows
        self.compilations = Compilations(
            *(self._compiler, self._code, state, self._variants, self.choice),
            *(self._bound, self._cut_around),
        )

    @cached_property
    def _interpreted_code(self) -> Code | None:
        """What the interpreter runs; None for a kernel that exists only compiled."""
        try:
            return self._lowered(INTERPRETED)
        except errors.UnimplementedError:
            return None

    @property
    def _can_interpret(self) -> bool:
        """False for a segment that is compiled, always."""
        return self._interpreted_code is not None

    @cached_property
    def _interpreted(self) -> InterpretedSegment:
        """The segment in the interpreter, made when it is wanted: it may be compiled at once."""
        code, state = self._interpreted_code or self._code, self.state
        if code is not self._code:
            state = SegmentState(code, self._task)
        stack = None
        if self._can_interpret and not self._passes_state and not state.is_mapped:
            stack = partial(stacked, code, self._program, self._access, self._device)
        return InterpretedSegment(code, state, self._first, self._passes_state, stack)

    def _lowered(self, tier: str) -> Code:
        stretches = self._stretches if tier == INTERPRETED else None
        start = time.thread_time()
        code = lower(self._program, self.segment, self._access, self._device, tier, stretches)
        compile_cost.guess(len(self.segment.nodes), time.thread_time() - start)
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

    def in_lockstep(self) -> LockstepSegment | None:
        """The segment for many sets of inputs at once, where that pays and changes nothing."""
        if not self._can_interpret or self._mode == ALWAYS or self.choice.is_heavy:
            return None
        if self._device != "CPU":
            return None
        from runnel.runtime.lockstep.lockstep_segment import LockstepSegment

        return LockstepSegment.of(self._code, self.state, self._first, self._device)

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

        An observer sees each operation of what is interpreted, and what is compiled as a whole.
        With ``started``, the end of a compiled segment is not waited for.
        """
        if context.deadline is not None:
            context.require_time(self._first)
        if self._mode == NEVER or (self._task.maps and self._takes_mapped(inputs)):
            return self._interpreted.run(inputs, context)
        if context.observer is not None:
            return self._run_observed(inputs, context)
        variant = self._variants.find(inputs)
        if variant is None or (self._may_lack_value and self._lacks_value(inputs)):
            return self._interpreted.run(inputs, context)
        executable = self._executable(variant, inputs, context)
        if variant.cut is not None:
            return variant.cut.run(inputs, context)
        if executable is None:
            start = time.perf_counter()
            outputs = self._interpreted.run(inputs, context)
            variant.interpreted.note(time.perf_counter() - start)
            return outputs
        trial = variant.trial
        if trial is not None and trial.looks():
            return self._run_on_trial(variant, trial, executable, inputs, context)
        if variant.compiled.calls >= variant.compiled.due and context.deadline is None:
            return self._run_timed(variant, executable, inputs, context)
        return self._run_compiled(executable, inputs, context, started)

    def _takes_mapped(self, inputs: list[Any]) -> bool:
        """True when an input is an array in a mapped file, which XLA would take as a whole."""
        return self._can_interpret and any(map(is_mapped, inputs))

    def run_whole(self, inputs: list[Any], context: StepContext, fetches: bool) -> list[Any]:
        """:meth:`run` for a whole step; one that ``fetches`` nothing may be sent ahead."""
        sendable = self._sendable(inputs, context) if self._steps_ahead else None
        if sendable is None:
            self._task.settle(context)
            return self.run(inputs, context)
        variant, executable = sendable
        sender = self._task.sender()
        if sender:
            sender.look()
        is_alone, begun = not sender, time.perf_counter()
        step = SentStep(
            list(inputs),
            context,
            self._first,
            partial(self._explain_sent, executable),
            self._failed,
        )
        if not fetches:
            step.own_inputs()
        try:
            outputs = executable.send(step, sender)
        except Reshaped:
            return self.run_whole(inputs, context, fetches)
        except RuntimeError as error:
            failure = self._failed(error)
            if failure is None:
                raise
            raise failure from error
        if not fetches:
            sender.keep(self._steps_ahead)
            return outputs
        try:
            for value in (*outputs, step.held):  # all at the same time
                if hasattr(value, "copy_to_host_async"):
                    value.copy_to_host_async()
            sender.settle()
            if is_alone and variant.compiled.calls > variant.compiled.due:
                variant.compiled.note(time.perf_counter() - begun)
        except BaseException:
            with suppress(Exception):
                step.held.block_until_ready()  # what was fed must not be in use any more
            step.own_inputs()
            raise
        return outputs

    def _sendable(
        self, inputs: list[Any], context: StepContext
    ) -> tuple[Variant, BoundExecutable] | None:
        """The compiled form for ``inputs``, where a call of it need not be waited for."""
        if context.deadline is not None or context.observer is not None:
            return None
        variant = self._variants.find(inputs)
        if variant is None or variant.cut is not None:
            return None
        if variant.trial is not None and not variant.trial.is_over:
            return None
        executable = variant.executable
        if executable is None or not executable.can_be_sent or executable.lacks_value:
            return None
        if self._may_lack_value and self._lacks_value(inputs):
            return None
        return variant, executable

    def _explain_sent(self, executable: BoundExecutable, step: SentStep) -> None:
        inputs = [as_numpy(value) for value in step.inputs]
        self._explain_failure(executable.executable, inputs, step.context)

    def _failed(self, error: Exception) -> errors.OpError | None:
        """What a device did wrong, if ``error`` is one of a device."""
        is_device = isinstance(error, RuntimeError) and is_device_error(error)
        return self._device_error(error) if is_device else None

    def _run_on_trial(
        self,
        variant: Variant,
        trial: TierTrial,
        executable: BoundExecutable,
        inputs: list[Any],
        context: StepContext,
    ) -> list[Any]:
        """A run that is waited for and timed; after some, the slower tier is given up."""
        interprets = trial.interprets
        start = time.perf_counter()
        if interprets:
            outputs = self._interpreted.run(inputs, context)
            variant.interpreted.note(time.perf_counter() - start)
        else:
            outputs = self._run_timed(variant, executable, inputs, context)
        end = time.perf_counter()
        trial.note(start, end, interprets)
        if not trial.is_kept and variant.trial is trial:
            self._give_up(variant, trial)
        return outputs

    def _run_timed(
        self, variant: Variant, executable: BoundExecutable, inputs: list[Any], context: StepContext
    ) -> list[Any]:
        """A compiled run that is waited for and timed."""
        start = time.perf_counter()
        outputs = self._run_compiled(executable, inputs, context, None)
        self._await_end(outputs)
        variant.compiled.note(time.perf_counter() - start)
        return outputs

    def _await_end(self, outputs: list[Any]) -> None:
        """Waits until a compiled call that gave ``outputs`` has ended."""
        # All that a call gives is there at the same time. The variable may be another step's.
        ends = [value for value in outputs if hasattr(value, "block_until_ready")]
        with suppress(RuntimeError):  # another step has already taken the variable over
            for value in ends or [cell.held for cell in self.state.stored[:1]]:
                if hasattr(value, "block_until_ready"):
                    value.block_until_ready()

    def _give_up(self, variant: Variant, trial: TierTrial) -> None:
        """Has ``variant`` interpreted: compiled it is slower, as things are now."""
        variant.trial = None
        variant.slower += 1
        variant.compared = trial.compared
        self.compilations.forget(variant)  # it is tried again when much more has been spent
        slow, fast = (1e3 * seconds for seconds in trial.compared)
        why = f"compiled it is slower: {slow:.3g} ms against {fast:.3g} ms"
        logger.info("%s is interpreted: %s", self._what, why)

    def _stay_interpreted(self, variant: Variant, why: str) -> None:
        variant.refused = True
        self.compilations.forget(variant)
        logger.info("%s stays interpreted: %s", self._what, why)

    @property
    def _what(self) -> str:
        """The segment, for people."""
        return f"A step of {len(self.segment.nodes)} operations (with {self._first.op.name!r})"

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
        """The compiled form for ``variant``, if there is one; it is made if that pays."""
        executable = variant.executable
        if executable is not None and executable.lacks_value:
            self.compilations.forget(variant)
            executable = None
        if self.choice.keeps_tables():
            if executable is not None:
                self._stay_interpreted(variant, "it changes rows of tables, for many shapes")
            return None
        if executable is not None or not self.choice.pays(variant):
            return executable
        if self.choice.is_compiled_at_once:
            return self._compile(variant, inputs, context)
        self.compilations.begin(variant, inputs, begin_beside)
        return None

    def _lacks_value(self, inputs: list[Any]) -> bool:
        """True when something has no value that only an untaken branch would need."""
        if any(cell.held is None for cell in self.state.optional):
            return True
        return self.choice.has_branches and any(value is None for value in inputs)

    def _run_observed(self, inputs: list[Any], context: StepContext) -> list[Any]:
        """:meth:`run` in the same tier, waited for; what it takes counts for no decision."""
        if context.observer.by_operation and not self.choice.must_compile:
            return self._interpreted.run(inputs, context)
        variant = self._variants.find(inputs)
        executable = None
        if variant is not None and not self._lacks_value(inputs):
            executable = self._executable(variant, inputs, context)
            if variant.cut is not None:
                return variant.cut.run(inputs, context)
        if executable is None:
            return self._interpreted.run(inputs, context)
        if self._device != "CPU":
            receiver = self.segment.device or local_device(self._device, 0)
            names = {i: self._variants.input_name(i) for i in executable.executable.argument_inputs}
            inputs = sent_observed(inputs, names, receiver, context.observer)
        loaded = [cell.held for cell in self.state.load_cells]
        taken = sum(getattr(value, "nbytes", 0) for value in (*inputs, *loaded))
        start = time.perf_counter_ns()
        outputs = self._run_compiled(executable, inputs, context, None)
        self._await_end(outputs)
        end = time.perf_counter_ns()
        stored = sum(getattr(cell.held, "nbytes", 0) for cell in self.state.stored)
        needed = executable.executable.needed_bytes
        run = SegmentRun(self.segment.nodes, start, end, outputs, taken, stored, needed)
        context.observer.segment(run)
        return outputs

    # Compiling ------------------------------------------------------------------------------

    def _compile(
        self, variant: Variant, inputs: list[Any], context: StepContext
    ) -> BoundExecutable | None:
        """The executable for ``variant``, waited for; None when there is none, only pieces.

        Nothing can interrupt XLA. So a thread of its own compiles: a step that has to stop does not
        wait for it, and the next step finds what it has made.
        """
        compiling = self.compilations.begin(variant, inputs, in_thread)
        failure: BaseException | None = None
        if compiling is not None:
            self._await(compiling, context)
            failure = compiling.exception()
        if failure is None:
            return variant.executable
        if not isinstance(failure, errors.ResourceExhaustedError):
            # Tracing meets a wrong shape before any check of values; the interpreter finds the
            # first mistake, and the words are the same in both tiers.
            self._raise_if_interpreting_fails(inputs, context)
        raise failure

    def _await(self, compiling: Future[None], context: StepContext) -> None:
        """Waits for a compilation, and says so; an error when the step has to stop before that."""
        start, told = time.perf_counter(), False
        while not compiling.done():
            context.require_time(self._first)
            wait([compiling], context.patience(LOOK_SECONDS))
            if not told and time.perf_counter() - start > _NOTICE_SECONDS:
                told = True
                logger.info("%s waits until it has been compiled", self._what)
        if told:
            logger.info("%s waited for %.1f s", self._what, time.perf_counter() - start)

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

    def _bound(
        self, variant: Variant, executable: Executable, overwritten: list[Cell]
    ) -> BoundExecutable:
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
            overwritten,
            [cell for cell in self._tables if is_large(cell)],
            variant.compiled,
        )

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

    def forget_lost(self) -> list[Operation]:
        """Drops the arrays that a failure of the device took along; the variables among them."""
        self._spare.forget()
        return forget_lost(self.state.cells())

    def _device_error(self, error: Exception) -> errors.OpError:
        """An error of the device, with the operations it happened in."""
        with self._task.lock:
            lost = self.forget_lost()
        return device_error(error, self.segment.nodes, self._compiler.device_name, lost)
