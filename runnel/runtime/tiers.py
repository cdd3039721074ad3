"""Running a segment of a plan in the tier that pays: interpreted at first, compiled when hot.

A segment is compiled for a signature (the shapes of its inputs) once the time spent
interpreting it exceeds what compiling is expected to cost, and only if a step takes longer
than a compiled call's overhead. On an accelerator it is compiled from the start.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import deque
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from runnel.graph import errors
from runnel.graph.device_set import LogicalDevice
from runnel.graph.operation import Operation
from runnel.graph.registry import COMPILED, INTERPRETED
from runnel.ops.philox import STREAM_WORDS
from runnel.passes.cluster import Segment
from runnel.passes.program import Program
from runnel.passes.state_access import StateAccess
from runnel.passes.structured import structure_of
from runnel.runtime.buffers import NotCompilable, new_buffers
from runnel.runtime.code import Code, lower
from runnel.runtime.device_memory import device_error, forget_lost, require_memory
from runnel.runtime.devices import xla_device
from runnel.runtime.interpreter import (
    interpret,
    interpret_until,
    missing_variable,
    require_time,
)
from runnel.runtime.loop_watch import watched
from runnel.runtime.random_streams import RandomStreams
from runnel.runtime.state import Cell, StateStore, WriterLocks, as_numpy, owned, store_all
from runnel.runtime.step_watch import StepWatch
from runnel.runtime.unconfirmed import Unconfirmed
from runnel.runtime.variants import Variant, Variants

logger = logging.getLogger("runnel")

AUTO, NEVER, ALWAYS = "auto", "never", "always"

_value_of = attrgetter("value")
_NOTHING = type(None)

# What compiling costs and what a compiled call costs, roughly, on a laptop's core.
_COMPILE_SECONDS = 0.03
_COMPILE_SECONDS_PER_NODE = 0.002
_DISPATCH_SECONDS = 40e-6
_DISPATCH_SECONDS_PER_ARRAY = 1.5e-6


class _Reshaped(Exception):
    """Another step has given a variable another shape meanwhile."""


class SegmentRunner:
    """A segment bound to the state of a session."""

    def __init__(
        self,
        program: Program,
        segment: Segment,
        access: StateAccess,
        store: StateStore,
        device: str,
        mode: str,
        streams: RandomStreams,
    ) -> None:
        self.segment = segment
        self._program = program
        self._access = access
        self._store = store
        self._device = device if segment.device is None else segment.device.device_type
        self._mode = mode if segment.compilable else NEVER
        self._compiled_code: Code | None = None
        self._can_interpret = True
        try:
            self._code = lower(program, segment, access, self._device, INTERPRETED)
        except errors.UnimplementedError:
            # A kernel that exists only compiled: so is the segment, always.
            if self._mode == NEVER:
                raise
            self._mode, self._can_interpret = ALWAYS, False
            self._code = self._compiled_code = lower(
                program, segment, access, self._device, COMPILED
            )
        # One thread compiles; others that need the same executable wait for it.
        self._compile_lock = threading.Lock()
        code = self._code
        self._loads = [(store.cell(v), slot, v, node) for v, slot, node in code.loads]
        # What a branch or a loop uses may be without a value, if that branch is not taken.
        self._optional = [cell for cell, _, _, node in self._loads if node is None]
        self._has_branches = any(structure_of(node) is not None for node in segment.nodes)
        self._stored = [store.cell(v) for v, _ in code.stores]
        self._store_slots = [slot for _, slot in code.stores]
        store.note_shape_changes([store.cell(v) for v in code.reshaped])
        self._streams = [(streams.cell(op), slot, drawn) for op, slot, drawn in code.streams]
        written = [*self._stored, *(cell for cell, *_ in self._streams)]
        self._writers = WriterLocks(written) if written else None
        # The usual case of a small step, for which the lock itself serves.
        self._only_writer = written[0].writer if len(set(written)) == 1 else None
        self._load_cells = [cell for cell, *_ in self._loads]
        loads = [(cell, variable) for cell, _, variable, _ in self._loads]
        self._variants = Variants(program, segment, loads, store)
        self.is_heavy = any(node.op_def.heavy for node in segment.nodes)
        self._spare: tuple[Any, tuple[Any, ...]] | None = None
        """An executable and the buffers in which it worked last; used under the store's lock."""
        self.borrows = True
        """Whether inputs may be the caller's arrays, which must not be in use when a step ends."""
        nodes = len(segment.nodes)
        self._compile_seconds = _COMPILE_SECONDS + _COMPILE_SECONDS_PER_NODE * nodes
        arrays = len(self._loads) + len(self._stored) + len(segment.inputs) + len(segment.outputs)
        self._dispatch_seconds = _DISPATCH_SECONDS + _DISPATCH_SECONDS_PER_ARRAY * arrays

    # Choosing a tier ------------------------------------------------------------------------

    @property
    def has_effects(self) -> bool:
        """True when running the segment may leave a trace: in state, or outside."""
        return self._writers is not None or not self.segment.compilable

    def start(
        self, inputs: list[Any], deadline: float | None = None, observer: Any = None
    ) -> tuple[list[Any], Unconfirmed | None]:
        """Like :meth:`run`, but what remains to be waited for is handed to the caller."""
        started: list[Unconfirmed] = []
        outputs = self.run(inputs, deadline, observer, started)
        return outputs, started[0] if started else None

    def run(
        self,
        inputs: list[Any],
        deadline: float | None = None,
        observer: Any = None,
        started: list[Unconfirmed] | None = None,
    ) -> list[Any]:
        """The outputs for ``inputs``; state is read and replaced.

        An observer sees each operation, unless the segment must be compiled: then it sees the
        segment as a whole. With ``started``, the end of a compiled segment is not waited for.
        """
        if self._mode == NEVER:
            return self._interpret(inputs, deadline, observer)
        if deadline is not None:
            require_time(deadline, self.segment.nodes[0])
        if observer is not None:
            return self._run_observed(inputs, deadline, observer)
        variant = self._variants.find(inputs)
        if variant is None or self._lacks_value(inputs):
            return self._interpret(inputs, deadline, None)
        executable = variant.executable
        if executable is None and self._pays(variant):
            executable = self._compile(variant, inputs)
        if executable is not None:
            try:
                if self._code.watch is None:
                    return self._run_compiled(executable, variant, inputs, started)
                watch = StepWatch(self._store, deadline, None)
                with watched(watch) as number:
                    watched_inputs = [*inputs, number]
                    return self._run_compiled(executable, variant, watched_inputs, started, watch)
            except _Reshaped:
                return self.run(inputs, deadline, None, started)
        start = time.perf_counter()
        outputs = self._interpret(inputs, deadline, None)
        seconds = time.perf_counter() - start
        variant.seconds += seconds
        variant.fastest = min(variant.fastest, seconds)
        variant.runs += 1
        return outputs

    def _lacks_value(self, inputs: list[Any]) -> bool:
        """True when something has no value that only an untaken branch would need."""
        if any(cell.value is None for cell in self._optional):
            return True
        return self._has_branches and any(value is None for value in inputs)

    def _must_compile(self) -> bool:
        return self._mode == ALWAYS or self._device != "CPU"

    def _pays(self, variant: Variant) -> bool:
        if self.is_heavy or self._must_compile():
            return not variant.refused
        if variant.refused or variant.seconds <= self._compile_seconds:
            return False
        # A busy machine makes single runs of a tiny step long, but neither the shortest nor, by
        # far, the average. (A loop that the data end may be short once and long otherwise.)
        average = variant.seconds / variant.runs
        return max(variant.fastest, average / 10) > self._dispatch_seconds

    def _run_observed(self, inputs: list[Any], deadline: float | None, observer: Any) -> list[Any]:
        if not self._must_compile():
            return self._interpret(inputs, deadline, observer)
        start = time.perf_counter_ns()
        outputs = self.run(inputs, deadline)
        for output in outputs:
            if hasattr(output, "block_until_ready"):
                output.block_until_ready()
        observer.segment(self.segment.nodes, start, time.perf_counter_ns(), outputs)
        return outputs

    # Interpreting ---------------------------------------------------------------------------

    def _interpret(self, inputs: list[Any], deadline: float | None, observer: Any) -> list[Any]:
        if self._writers is None:
            return self._interpret_locked(inputs, deadline, observer)
        if self._only_writer is not None:
            with self._only_writer:
                return self._interpret_locked(inputs, deadline, observer)
        release = self._writers.acquire()
        try:
            return self._interpret_locked(inputs, deadline, observer)
        finally:
            deque(release, 0)

    def _interpret_locked(
        self, inputs: list[Any], deadline: float | None, observer: Any
    ) -> list[Any]:
        code = self._code
        slots = self._interpreted_slots(inputs, deadline, observer)
        if self._stored:
            values = [owned(slots[slot]) for slot in self._store_slots]
            with self._store.lock:
                store_all(self._stored, values)
        for cell, _, drawn in self._streams:
            cell.value = cell.value.skip(slots[drawn])
        return [slots[slot] for slot in code.outputs]

    def _interpreted_slots(
        self, inputs: list[Any], deadline: float | None, observer: Any
    ) -> list[Any]:
        """The slots after the instructions have run; no state has changed yet."""
        code = self._code
        slots = code.template.copy()
        for slot, value in zip(code.inputs, inputs, strict=True):
            slots[slot] = value if isinstance(value, np.ndarray) else as_numpy(value)
        if self._loads:
            # Looking at a buffer that another step donates meanwhile is safe: JAX leaves a
            # buffer that someone is looking at alone, and gives that step a copy.
            with self._store.lock:
                for cell, slot, variable, node in self._loads:
                    value = cell.value
                    if value is None:
                        if node is not None:
                            raise missing_variable(variable, node)
                        continue
                    slots[slot] = as_numpy(value)
        for cell, slot, _ in self._streams:
            slots[slot] = cell.value.words()
        if code.watch is not None:
            slots[code.watch] = StepWatch(self._store, deadline, observer)
        with np.errstate(all="ignore"):
            if deadline is None and observer is None:
                interpret(code.instructions, slots)
            else:
                limit = float("inf") if deadline is None else deadline
                interpret_until(code.instructions, slots, limit, observer)
        return slots

    # Compiling ------------------------------------------------------------------------------

    def _compile(self, variant: Variant, inputs: list[Any]) -> Any:
        """The executable for ``variant``; None when there is none, but interpreting works."""
        failure: Exception | None = None
        with self._compile_lock:
            if variant.executable is None and not variant.refused:
                try:
                    variant.executable = self._compiled(inputs)
                    self._variants.note_compiled(variant)
                except NotCompilable as reason:
                    variant.refused = True
                    logger.info("A step with a loop stays interpreted: %s", reason)
                except Exception as error:  # noqa: BLE001 (dealt with below)
                    failure = error
        if failure is None:
            return variant.executable
        if isinstance(failure, errors.ResourceExhaustedError):
            raise failure
        if self._must_compile() or variant.runs == 0:
            # Tracing meets a wrong shape before any check of values; the interpreter finds the
            # first mistake, and the words are the same in both tiers.
            self._raise_if_interpreting_fails(inputs)
            raise failure
        # These very shapes have been interpreted; so they are from now on.
        variant.refused = True
        logger.warning("A step stays interpreted: compiling it failed: %s", failure)
        return None

    def _compiled(self, inputs: list[Any]) -> Any:
        from runnel.runtime import compiler

        if self._compiled_code is None:
            self._compiled_code = lower(
                self._program, self.segment, self._access, self._device, COMPILED
            )
        code = self._compiled_code
        if code.watch is not None:
            if code.watch not in code.inputs:
                code.inputs.append(code.watch)
            inputs = [*inputs, np.int32(0)]
        with self._store.lock:
            states = list(map(_value_of, self._load_cells))
            self._require_values(states)
        streams = None
        if self._streams:
            streams = np.zeros((len(self._streams), STREAM_WORDS), np.uint32)
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

    def _require_values(self, values: list[Any]) -> None:
        """An error that names the first variable that has none and needs one."""
        for value, (_, _, variable, node) in zip(values, self._loads, strict=True):
            if value is None and node is not None:
                raise missing_variable(variable, node)

    def _run_compiled(
        self,
        executable: Any,
        variant: Variant,
        inputs: list[Any],
        started: list[Unconfirmed] | None = None,
        watch: StepWatch | None = None,
    ) -> list[Any]:
        import jax

        release = self._writers.acquire() if self._writers is not None else ()
        try:
            with jax.enable_x64(True):
                return self._run_compiled_locked(executable, variant, inputs, started, watch)
        except jax.errors.JaxRuntimeError as error:
            raise self._device_error(error) from error
        finally:
            deque(release, 0)

    def _run_compiled_locked(
        self,
        executable: Any,
        variant: Variant,
        inputs: list[Any],
        started: list[Unconfirmed] | None,
        watch: StepWatch | None,
    ) -> list[Any]:
        streams = None
        if self._streams:
            streams = np.array([cell.value.words() for cell, _, _ in self._streams], np.uint32)
        arguments = [inputs[i] for i in executable.argument_inputs]
        if self._device != "CPU":
            arguments = _transferred(arguments, self.segment.device)
        with self._store.lock:
            if variant.state_shapes and variant.state_shapes != self._variants.state_shapes():
                raise _Reshaped
            # The variables' buffers are handed over under the lock: once a step has been
            # dispatched, the buffers that it updates in place are no longer anyone else's.
            values = list(map(_value_of, self._load_cells))
            if _NOTHING in set(map(type, values)):
                self._require_values(values)
            donated = [values[i] for i in executable.donated]
            kept = [values[i] for i in executable.kept]
            before = list(map(_value_of, self._stored))
            lent = self._lent(executable)
            new_states, outputs, holds, work = self._dispatch(
                executable.call, donated, kept, streams, arguments, executable.constants, lent
            )
            if work:
                self._spare = executable, tuple(work)
        if started is not None:
            check = None
            if holds is not None:
                drawn_from = [cell.value for cell, _, _ in self._streams]
                check = partial(
                    self._confirm, executable, inputs, before, new_states, drawn_from, holds
                )
            if any(isinstance(argument, np.ndarray) for argument in arguments):
                started.append(Unconfirmed(check, outputs, self._stored))
            elif check is not None:
                started.append(Unconfirmed(check))
        elif holds is not None:
            if not np.asarray(holds):  # bool() of an array of JAX takes five times as long
                self._restore(executable, before)
                if watch is not None:
                    watch.require_time(self.segment.nodes[-1])
                self._explain_failure(executable, inputs)
        elif self.borrows and any(isinstance(argument, np.ndarray) for argument in arguments):
            # The caller's arrays are in use until the step has run; then they are the caller's.
            for array in (*new_states, *outputs):
                array.block_until_ready()
        if self._streams:
            outputs = self._advance_streams(executable, outputs)
        if executable.constant_outputs:
            remaining = iter(outputs)
            constant = executable.constant_outputs
            return [
                constant[i] if i in constant else next(remaining)
                for i in range(len(self.segment.outputs))
            ]
        return outputs

    def _advance_streams(self, executable: Any, outputs: list[Any]) -> list[Any]:
        """Moves the random streams on; returns ``outputs`` without what says by how much."""
        told = sum(drawn is None for drawn in executable.drawn)
        counts = iter(outputs[len(outputs) - told :])
        for (cell, _, _), drawn in zip(self._streams, executable.drawn, strict=True):
            cell.value = cell.value.skip(int(next(counts)) if drawn is None else drawn)
        return outputs[: len(outputs) - told] if told else outputs

    def _confirm(
        self,
        executable: Any,
        inputs: list[Any],
        before: list[Any],
        new_states: list[Any],
        drawn_from: list[Any],
        holds: Any,
    ) -> None:
        """Looks at the checks of a segment that was started; a failed one is taken back."""
        if np.asarray(holds):
            return
        with self._store.lock:
            for cell, old, new, in_place in zip(
                self._stored, before, new_states, executable.in_place, strict=True
            ):
                if not in_place and cell.value is new:  # and not what another step has left
                    cell.value = old
            for (cell, _, _), position in zip(self._streams, drawn_from, strict=True):
                cell.value = position
        self._explain_failure(executable, inputs)

    def _lent(self, executable: Any) -> tuple[Any, ...]:
        """Buffers for the call to work in: those of the last one, if it was of the same shapes."""
        spare, self._spare = self._spare, None
        if not executable.work:
            return ()
        if spare is not None and spare[0] is executable:
            return spare[1]
        return new_buffers(executable.work, self._pinned())

    def _dispatch(self, call: Any, *operands: Any) -> Any:
        """Makes the call and stores the new states, as a whole even if the user interrupts.

        From the call on, the donated buffers are gone: an interrupt that came before the new
        ones are stored would leave the variables without a value.
        """
        results: list[Any] = []
        interrupt: BaseException | None = None
        while True:
            try:
                if not results:
                    results.extend(map(call, *[(operand,) for operand in operands]))
                deque(map(setattr, self._stored, itertools.repeat("value"), results[0][0]), 0)
                break
            except BaseException as error:
                if not results:
                    raise
                interrupt = error
        if interrupt is not None:
            raise interrupt
        return results[0]

    def _restore(self, executable: Any, before: list[Any]) -> None:
        """Takes back the stores of a failed step; what was updated in place is as it was."""
        with self._store.lock:
            for cell, value, in_place in zip(
                self._stored, before, executable.in_place, strict=True
            ):
                if not in_place:
                    cell.value = value

    def _explain_failure(self, executable: Any, inputs: list[Any]) -> None:
        """Raises the error that the interpreter finds; the state is what it was before."""
        inputs = inputs[: len(self.segment.inputs)]  # without the number of the run
        self._raise_if_interpreting_fails(inputs)
        names = ", ".join(repr(node.op.name) for node in executable.checked)
        why = "but does not fail when interpreted" if self._can_interpret else "at run time"
        raise errors.InvalidArgumentError(
            None,
            executable.checked[0].op,
            f"A check in this compiled step failed, {why} (one of: {names})",
        )

    def _raise_if_interpreting_fails(self, inputs: list[Any]) -> None:
        if self._can_interpret:
            self._interpreted_slots(inputs, None, None)

    def cells(self) -> list[tuple[Cell, Operation]]:
        """The variables that the segment touches."""
        touched = {cell: variable for cell, _, variable, _ in self._loads}
        variables = [variable for variable, _ in self._code.stores]
        touched.update(zip(self._stored, variables, strict=True))
        return list(touched.items())

    @property
    def _device_name(self) -> str:
        device = self.segment.device
        return f"the {self._device}" if device is None else device.name

    def _device_error(self, error: Exception) -> errors.OpError:
        """An error of the device, with the operations it happened in."""
        with self._store.lock:
            lost = forget_lost(self.cells())
        return device_error(error, self.segment.nodes, self._device_name, lost)


def _transferred(arguments: list[Any], device: LogicalDevice | None) -> list[Any]:
    """``arguments`` on the accelerator: the caller's arrays are no longer needed."""
    import jax

    target = None if device is None else xla_device(device)
    arrays = list(arguments)
    for position, argument in enumerate(arguments):
        if isinstance(argument, np.ndarray):
            arrays[position] = jax.device_put(argument, target)
    for array, argument in zip(arrays, arguments, strict=True):
        if array is not argument:
            array.block_until_ready()
    return arrays
