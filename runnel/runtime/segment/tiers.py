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
from functools import partial
from typing import TYPE_CHECKING, Any

from runnel.graph import errors
from runnel.graph.device_set import local_device
from runnel.runtime.compile.unconfirmed import Unconfirmed
from runnel.runtime.devices.device_memory import is_device_error
from runnel.runtime.devices.transfer import sent_observed
from runnel.runtime.interpret.segment_state import Reshaped
from runnel.runtime.segment.beside import begin_beside
from runnel.runtime.segment.bound_segment import BoundSegment
from runnel.runtime.segment.changing_shapes import ChangingShapes
from runnel.runtime.segment.tier_trial import TierTrial
from runnel.runtime.segment.variants import Variant
from runnel.runtime.state.cell import as_numpy
from runnel.runtime.state.in_thread import in_thread
from runnel.runtime.state.observer import SegmentRun
from runnel.runtime.state.options import NEVER
from runnel.runtime.state.sent_ahead import SentStep
from runnel.runtime.state.step_context import LOOK_SECONDS, StepContext

if TYPE_CHECKING:
    from runnel.runtime.compile.bound_executable import BoundExecutable

logger = logging.getLogger("runnel")

_NOTICE_SECONDS = 1.0
"""For how long a step waits for a compilation before it says so."""


class SegmentRunner(BoundSegment):
    """A segment in the tier that pays."""

    def run(
        self,
        inputs: list[Any],
        context: StepContext,
        started: list[Unconfirmed] | None = None,
    ) -> list[Any]:
        """The outputs for ``inputs``; state is read and replaced.

        An observer sees each interpreted operation, and a compiled segment as a whole.
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
        changing = self._changing
        if changing is not None and self._variants.meet_many and changing.begin(variant, inputs):
            return self._run_watched(changing, inputs, context)
        if self.by_shapes is not None:
            return self.by_shapes.run(inputs, context)
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

    def _run_observed(self, inputs: list[Any], context: StepContext) -> list[Any]:
        """:meth:`run` in the same tier, waited for; what it takes counts for no decision."""
        if context.observer.by_operation and not self.choice.must_compile:
            return self._interpreted.run(inputs, context)
        if self.by_shapes is not None:
            return self.by_shapes.run(inputs, context)
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

    def _run_watched(
        self, changing: ChangingShapes, inputs: list[Any], context: StepContext
    ) -> list[Any]:
        """An interpreted run that tells which shapes change; after some, the segment is cut."""
        context.observer = changing
        try:
            outputs = self._interpreted.run(inputs, context)
        finally:
            context.observer = None
        if changing.is_known:
            self._changing = None
            nodes = changing.nodes()
            if nodes:
                self.by_shapes = self._cut(nodes)
                logger.info("%s runs in pieces: shapes in it change from step to step", self._what)
        return outputs

    # The compiled form ------------------------------------------------------------------

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

    # Which tier is faster ---------------------------------------------------------------

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

    # Steps sent ahead -------------------------------------------------------------------

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
        if context.deadline is not None or context.observer is not None or self.by_shapes:
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
