"""A compiled segment with the state that it reads and replaces: what a step calls.

A call *starts* under the locks of the variables that it updates, and gives them back at once: XLA
runs whatever follows after it. One question stays open then: did the checks hold? An
:class:`Unconfirmed` answers it later or, for a step that is sent ahead, a :class:`SentStep`.
Everything that can be done before the wait for the result is done before: it costs no time while
the device computes.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Protocol

import jax
import numpy as np

from runnel.graph.device_set import LogicalDevice
from runnel.passes.program.program import Node
from runnel.runtime.compile.executable import Executable
from runnel.runtime.compile.spare_buffers import SpareBuffers
from runnel.runtime.compile.unconfirmed import Unconfirmed
from runnel.runtime.compile.watch import CompiledRun, await_array, was_interrupted
from runnel.runtime.devices.devices import xla_device
from runnel.runtime.devices.transfer import put
from runnel.runtime.interpret.segment_state import Reshaped, SegmentState
from runnel.runtime.state.cell import Cell, Undo
from runnel.runtime.state.pack import Row
from runnel.runtime.state.reader_wait import COPIED_PER_SECOND, ReaderWait
from runnel.runtime.state.sent_ahead import Sender, SentStep
from runnel.runtime.state.step_context import StepContext
from runnel.wide_types import has_wide_types, restore_types

_held_by = attrgetter("held")
_value_of = attrgetter("value")
_UNUSUAL = frozenset({type(None), Row})
"""What a cell holds that has no value, or one that is packed with others."""

_alone = Cell()
_alone.held = object()
_UNSEEN = sys.getrefcount(_alone.held)
"""What the count of references is of something that only its cell refers to."""

Explain = Callable[[Executable, list[Any], StepContext], None]
Called = tuple[list[Any], Any, list[Undo]]
"""The outputs of a call, whether its checks hold, and what a failed one must take back."""


class CallCount(Protocol):
    """Where calls are counted."""

    calls: int


class BoundExecutable:
    """An executable, bound to the cells of a session.

    ``reshaped`` tells whether another step has given a variable another shape than it was compiled
    for, if that can be. ``borrows`` says whether inputs may be the caller's arrays, which must not
    be in use when a step ends; ``node`` is what an error names that comes before the call.
    ``overwritten`` are cells whose value a call takes only to leave it there if it fails;
    ``tables`` are those of large variables of which it changes rows. ``count`` is where
    calls are counted.
    """

    def __init__(
        self,
        executable: Executable,
        state: SegmentState,
        reshaped: Callable[[], bool] | None,
        spare: SpareBuffers,
        device: LogicalDevice | None,
        is_accelerator: bool,
        borrows: bool,
        node: Node,
        overwritten: Sequence[Cell],
        tables: Sequence[Cell],
        count: CallCount,
    ) -> None:
        self.executable = executable
        self._count = count
        self._state = state
        self._reshaped = reshaped
        self._spare = spare
        self._device = device
        self._is_accelerator = is_accelerator
        self._borrows = borrows
        self._node = node
        taken = [*state.load_cells, *overwritten]
        packs: list[Any] = [
            state.task.pack([taken[i] for i in positions], shapes)
            for positions, shapes in executable.all_packs
        ]
        packed = {taken[i] for positions, _ in executable.all_packs for i in positions}
        self._stored: list[Any] = [*packs, *(cell for cell in state.stored if cell not in packed)]
        """What gets the new states: packs, and the cells that are in none."""
        self._replaced: list[tuple[int, Cell]] = [
            (position, cell)
            for position, cell in enumerate(self._stored)
            if not executable.in_place[position]
        ]
        """What has to be taken back when a check fails; the rest is left by the call itself."""
        self._takes_back = bool(executable.checked and self._replaced)
        self._draws_by_data = None in executable.drawn
        self.can_be_sent = bool(
            executable.is_chained
            and executable.checked
            and state.stored  # what is run only to see whether it fails is waited for
            and not (self._replaced or self._draws_by_data or executable.asks)
        )
        """Whether a call can be left to itself, and the next call be told of its outcome."""
        self._success: Any = None
        """An outcome of a step before, where it is known: true."""
        self._was_called = False
        self._is_pure = not (state.loads or state.written)
        self._donated = [*packs, *(taken[i] for i in executable.donated)]
        self._kept = [taken[i] for i in executable.kept]
        self._overwritten = overwritten
        self._tables = [cell for cell in tables if cell in self._donated]

    def start(
        self, inputs: list[Any], explain: Explain, context: StepContext
    ) -> tuple[list[Any], Unconfirmed | None]:
        """Starts a call: its outputs, and what remains to be waited for.

        When a check turns out to have failed, ``explain`` raises the error for it.
        """
        executable = self.executable
        arguments = [inputs[i] for i in executable.argument_inputs]
        if self._is_accelerator:
            arguments = _transferred(arguments, self._device)
        if executable.is_chained:
            arguments.append(self._outcome(None))
        if executable.asks:
            return self._start_asking(arguments, inputs, explain, context)
        outputs, holds, undo = self._first_or_later_call(arguments, context, None)
        if executable.checked:
            check = partial(self._confirm, holds, undo, inputs, explain, context)
            return outputs, Unconfirmed(check)
        if self._borrows and any(isinstance(argument, np.ndarray) for argument in arguments):
            return outputs, Unconfirmed(None, arrays=[holds])  # which is there at the end
        return outputs, None

    @property
    def lacks_value(self) -> bool:
        """True when a cell no longer has such a value as when the segment was compiled."""
        if not self._overwritten:
            return False
        return any(cell.held is None or cell.changes_shape for cell in self._overwritten)

    def send(self, step: SentStep, sender: Sender) -> list[Any]:
        """Makes a call that nobody waits for, the next in the chain of ``sender``; its outputs."""
        arguments = [step.inputs[i] for i in self.executable.argument_inputs]
        if self._is_accelerator:
            target = self._xla_device
            arguments = [put(a, target) if isinstance(a, np.ndarray) else a for a in arguments]
        arguments.append(self._outcome(sender.outcome))
        sender.add(step)
        try:
            return self._first_or_later_call(arguments, step.context, step)[0]
        finally:
            if step.held is None:
                sender.withdraw(step)

    def _outcome(self, before: Any) -> Any:
        """The outcome of the step before as an operand: ``before``, where it is not known."""
        if before is not None:
            return before
        if self._success is None:
            self._success = put(np.True_, self._xla_device)
        return self._success

    def _first_or_later_call(
        self, arguments: list[Any], context: StepContext, step: SentStep | None
    ) -> Called:
        """Makes a call that asks nothing."""
        run = None if self._was_called else CompiledRun(context)
        try:
            outputs, holds, undo = self._called(arguments, run, context, step)
        finally:
            if run is not None:
                run.end()
        if run is not None and run.interrupt is not None:
            raise run.interrupt
        if self.executable.constant_outputs:
            outputs = self._with_constants(outputs)
        return outputs, holds, undo

    def _start_asking(
        self, arguments: list[Any], inputs: list[Any], explain: Explain, context: StepContext
    ) -> tuple[list[Any], Unconfirmed]:
        """Starts a call that asks whether to go on, and must be waited for."""
        run = CompiledRun(context)
        try:
            outputs, holds, undo = self._called([*arguments, run.number], run, context)
        except BaseException as error:
            run.end()
            if isinstance(error, Exception) and was_interrupted(error):
                raise KeyboardInterrupt from None
            raise
        if self.executable.constant_outputs:
            outputs = self._with_constants(outputs)
        check = partial(self._confirm_asking, run, holds, undo, inputs, explain)
        return outputs, Unconfirmed(check)

    def _called(
        self,
        arguments: list[Any],
        run: CompiledRun | None,
        context: StepContext,
        step: SentStep | None = None,
    ) -> Called:
        """Makes the call; ``run`` is told of an interrupt that came too late to prevent it.

        ``step`` gets the outcome, together with the cells that get their new values.
        """
        self._count.calls += 1
        if self._is_pure:
            return self._call(arguments, run, step)
        state, called = self._state, None
        if not self._takes_back and not self._draws_by_data:
            with state.task.lock:
                if not state.task.writing and not self._bytes_read():
                    called = self._call(arguments, run, step)
        if called is None:
            called = self._call_alone(arguments, run, context, step)
        if state.streams:
            context.drawn = [*context.drawn, *called[2][-len(state.streams) :]]
        return called

    def _call_alone(
        self,
        arguments: list[Any],
        run: CompiledRun | None,
        context: StepContext,
        step: SentStep | None,
    ) -> Called:
        """Makes the call when no other step is in the middle of writing the same state.

        What a failed check has to take back, and what the call itself says of random streams, is
        seen to before another step can write there: that waits for the call.
        """
        state = self._state
        release: Iterable[None] = ()
        if state.writers is not None:
            release = state.writers.acquire(context, self._node)
        try:
            outputs, holds, undo = self._call_unread(arguments, run, context, step)
            interrupts: list[BaseException] = []
            if self._takes_back or self._draws_by_data:
                interrupted = interrupts.append if run is None else run.interrupted
                await_array(outputs[-1] if holds is None else holds, interrupted)
            if self._draws_by_data:
                outputs = self._advance_streams(outputs, undo)
            if self._takes_back and not np.asarray(holds):
                self._state.task.take_back(undo)
            if interrupts:
                raise interrupts[0]
            return outputs, holds, undo
        finally:
            deque(release, 0)

    def _call_unread(
        self,
        arguments: list[Any],
        run: CompiledRun | None,
        context: StepContext,
        step: SentStep | None,
    ) -> Called:
        """Makes the call when no interpreted segment looks at a table of which it changes rows.

        XLA would leave the table to that segment and make a copy. It is not waited for longer than
        that takes.
        """
        task = self._state.task
        wait = ReaderWait(task, partial(context.require_time, self._node))
        try:
            while True:
                with task.lock:
                    read = self._bytes_read()
                    if not read or wait.is_over(read / COPIED_PER_SECOND):
                        return self._call(arguments, run, step)
                    wait.begin()
                wait.sleep()
        finally:
            wait.end()

    def _bytes_read(self) -> int:
        """The size of the tables that someone looks at beside their cell."""
        return sum(cell.held.nbytes for cell in self._tables if _is_looked_at(cell))

    def _call(self, arguments: list[Any], run: CompiledRun | None, step: SentStep | None) -> Called:
        """Makes the call, under the store's lock, and stores the new state."""
        executable, state = self.executable, self._state
        if self._reshaped is not None and self._reshaped():
            raise Reshaped
        # The variables' buffers are handed over under the lock: once a step has been
        # dispatched, the buffers that it updates in place are no longer anyone else's.
        donated = list(map(_held_by, self._donated))
        kept = list(map(_held_by, self._kept))
        if not (_UNUSUAL.isdisjoint(map(type, donated)) and _UNUSUAL.isdisjoint(map(type, kept))):
            state.require_values(list(map(_value_of, state.load_cells)))
            donated = list(map(_value_of, self._donated))
            kept = list(map(_value_of, self._kept))
            if self.lacks_value or any(value is None for value in donated):
                raise Reshaped
        before = [(position, cell, cell.value) for position, cell in self._replaced]
        cells: list[Any] = list(self._stored)
        moved, streams = [], None
        if state.streams:
            places = [cell.value for cell, _, _ in state.streams]
            streams = np.array([place.words() for place in places], np.uint32)
            if not self._draws_by_data:
                cells += state.written[len(state.stored) :]
                moved = [place.skip(n) for place, n in zip(places, executable.drawn, strict=True)]
        if step is not None:
            if moved:
                drawing = state.written[len(state.stored) :]
                step.undo = list(zip(drawing, places, moved, strict=True))
            cells = [*cells, step]
        lent = self._spare.take(executable, self._xla_device)
        operands = (donated, kept, streams, arguments, executable.constants, lent)
        is_built_in = self._was_called and (executable.asks_natively or not executable.asks)
        call = _call_and_store if is_built_in or self._is_pure else _call_uninterrupted
        new_states, outputs, holds, work = call(run, executable.call, cells, moved, operands)
        self._was_called = True
        if work:
            self._spare.keep(executable, tuple(work))
        undo: list[Undo] = [(cell, old, new_states[position]) for position, cell, old in before]
        if moved:
            undo += zip(state.written[len(state.stored) :], places, moved, strict=True)
        return outputs, holds, undo

    @property
    def _xla_device(self) -> Any:
        return None if self._device is None else xla_device(self._device)

    def _advance_streams(self, outputs: list[Any], undo: list[Undo]) -> list[Any]:
        """Moves the random streams on; returns ``outputs`` without what says by how much."""
        drawn_by = self.executable.drawn
        told = sum(drawn is None for drawn in drawn_by)
        counts = iter(outputs[len(outputs) - told :])
        for (cell, _, _), drawn in zip(self._state.streams, drawn_by, strict=True):
            old = cell.value
            cell.value = old.skip(int(next(counts)) if drawn is None else drawn)
            undo.append((cell, old, cell.value))
        return outputs[: len(outputs) - told] if told else outputs

    def _with_constants(self, outputs: list[Any]) -> list[Any]:
        constant = self.executable.constant_outputs
        remaining = iter(outputs)
        return [
            constant[i] if i in constant else next(remaining)
            for i in range(len(constant) + len(outputs))
        ]

    def _confirm(
        self,
        holds: Any,
        undo: list[Undo],
        inputs: list[Any],
        explain: Explain,
        context: StepContext,
    ) -> None:
        """Waits for the checks; a failed one is taken back and explained."""
        if np.asarray(holds):  # bool() of an array of JAX takes five times as long
            return
        self._state.task.take_back(undo)
        context.require_time(self.executable.checked[-1])
        explain(self.executable, inputs, context)

    def _confirm_asking(
        self, run: CompiledRun, holds: Any, undo: list[Undo], inputs: list[Any], explain: Explain
    ) -> None:
        """Waits for a call that asks; one that was stopped, or failed, is taken back."""
        await_array(holds, run.interrupted)
        run.end()
        succeeded = bool(np.asarray(holds))
        if not succeeded:
            self._state.task.take_back(undo)
        interrupt, run.interrupt = run.interrupt, None
        if interrupt is not None:
            raise interrupt
        if not succeeded:
            run.context.require_time(self.executable.checked[-1])
            explain(self.executable, inputs, run.context)


def _is_looked_at(cell: Cell) -> bool:
    """Whether there is a view of the cell's array: such views refer to it."""
    return isinstance(cell.held, jax.Array) and sys.getrefcount(cell.held) > _UNSEEN


def _call_and_store(
    run: CompiledRun | None,
    call: Any,
    cells: Sequence[Cell | SentStep],
    more: list[Any],
    operands: tuple[Any, ...],
) -> Any:
    """Makes the call and stores the new states, as a whole even if the user interrupts.

    ``cells`` get what the call gives first, then ``more``, and then the outcome. From the call on,
    the donated buffers are gone: an interrupt that came before the new ones are stored would leave
    the variables without a value. It is raised afterwards, or left to ``run``.
    """
    results: list[Any] = []
    interrupt: BaseException | None = None
    types = has_wide_types()
    while True:
        try:
            if not results:
                with jax.enable_x64(True):
                    results.extend(map(call, *[(operand,) for operand in operands]))
            values = itertools.chain(results[0][0], more, results[0][2:3])
            deque(map(setattr, cells, itertools.repeat("held"), values), 0)
            break
        except BaseException as error:
            restore_types(types)
            if not results:
                if isinstance(error, Exception) and was_interrupted(error):
                    raise KeyboardInterrupt from None
                raise
            interrupt = error
    if interrupt is not None:
        if run is None:
            raise interrupt
        run.interrupted(interrupt)
    return results[0]


def _call_uninterrupted(run: CompiledRun | None, *arguments: Any) -> Any:
    """:func:`_call_and_store` for a call that JAX makes in Python code, such as a first one.

    Only the main thread is interrupted, and not only between calls of built-ins: so another makes
    that call. ``run`` is told of an interrupt.
    """
    if threading.current_thread() is not threading.main_thread():
        return _call_and_store(run, *arguments)
    assert run is not None  # it is a first call, or one that asks
    return run.result_of(partial(_call_and_store, None, *arguments))


def _transferred(arguments: list[Any], device: LogicalDevice | None) -> list[Any]:
    """``arguments`` on the accelerator: the caller's arrays are no longer needed."""
    target = None if device is None else xla_device(device)
    arrays = list(arguments)
    for position, argument in enumerate(arguments):
        if isinstance(argument, np.ndarray):
            arrays[position] = put(argument, target)
    for array, argument in zip(arrays, arguments, strict=True):
        if array is not argument:
            array.block_until_ready()
    return arrays
