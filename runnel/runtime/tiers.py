"""Running a segment of a plan in the tier that pays: interpreted at first, compiled when hot.

A segment is compiled for a signature (the shapes of its inputs) once the time spent
interpreting it exceeds what compiling is expected to cost, and only if a step takes longer
than a compiled call's overhead. On an accelerator it is compiled from the start.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import numpy as np

from runnel.graph import errors
from runnel.graph.operation import Operation
from runnel.graph.registry import COMPILED, INTERPRETED
from runnel.graph.shapes import is_fully_defined
from runnel.ops.philox import STREAM_WORDS
from runnel.passes.cluster import Segment
from runnel.passes.program import Program
from runnel.passes.state_access import StateAccess
from runnel.runtime.code import Code, lower
from runnel.runtime.interpreter import interpret, interpret_until, missing_variable
from runnel.runtime.random_streams import RandomStreams
from runnel.runtime.state import Cell, StateStore, as_numpy, owned

logger = logging.getLogger("runnel")

AUTO, NEVER, ALWAYS = "auto", "never", "always"

# What compiling costs and what a compiled call costs, roughly, on a laptop's core.
_COMPILE_SECONDS = 0.03
_COMPILE_SECONDS_PER_NODE = 0.002
_DISPATCH_SECONDS = 40e-6
_DISPATCH_SECONDS_PER_ARRAY = 1.5e-6
_MANY_SIGNATURES = 8
_MAX_SIGNATURES = 1 << 12
_MAX_SPECIALIZED_BYTES = 1 << 12


class _Variant:
    """What is known of a segment for one signature."""

    __slots__ = ("runs", "seconds", "executable")

    def __init__(self) -> None:
        self.runs = 0
        self.seconds = 0.0
        self.executable: Any = None


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
        self._device = device
        self._mode = mode if segment.compilable else NEVER
        self._compiled_code: Code | None = None
        try:
            self._code = lower(program, segment, access, device, INTERPRETED)
        except errors.UnimplementedError:
            # A kernel that exists only compiled: so is the segment, always.
            if self._mode == NEVER:
                raise
            self._mode = ALWAYS
            self._code = self._compiled_code = lower(program, segment, access, device, COMPILED)
        # One thread compiles; others that need the same executable wait for it.
        self._compile_lock = threading.Lock()
        self._loads = [(store.cell(v), slot, v, node) for v, slot, node in self._code.loads]
        self._stores = [(store.cell(v), slot) for v, slot in self._code.stores]
        self._streams = [(streams.cell(op), slot, drawn) for op, slot, drawn in self._code.streams]
        writers = {cell for cell, _ in self._stores} | {cell for cell, *_ in self._streams}
        self._writers: list[Cell] = sorted(writers, key=lambda cell: cell.number)
        self._variants: dict[Any, _Variant] = {}
        self._told = False
        self.is_heavy = any(node.op_def.heavy for node in segment.nodes)
        nodes = len(segment.nodes)
        self._compile_seconds = _COMPILE_SECONDS + _COMPILE_SECONDS_PER_NODE * nodes
        arrays = len(self._loads) + len(self._stores) + len(segment.inputs) + len(segment.outputs)
        self._dispatch_seconds = _DISPATCH_SECONDS + _DISPATCH_SECONDS_PER_ARRAY * arrays
        # Variables whose shape may change from step to step are part of the signature.
        self._shapeless = [
            cell
            for cell, _, variable, _ in self._loads
            if not is_fully_defined(variable.attrs["shape"]._dims)
        ]
        self._specialized = [
            i for i, value in enumerate(segment.inputs) if value in segment.specialized
        ]

    # Choosing a tier ------------------------------------------------------------------------

    def run(
        self, inputs: list[Any], deadline: float | None = None, observe: Any = None
    ) -> list[Any]:
        """The outputs for ``inputs``; state is read and replaced."""
        if self._mode == NEVER or observe is not None:
            return self._interpret(inputs, deadline, observe)
        key: Any = tuple([np.shape(value) for value in inputs])
        if self._specialized:
            values = [as_numpy(inputs[i]) for i in self._specialized]
            if any(v.nbytes > _MAX_SPECIALIZED_BYTES for v in values):
                return self._interpret(inputs, deadline, None)
            key = (key, *[v.tobytes() for v in values])
        if self._shapeless:
            key = (key, tuple([np.shape(cell.value) for cell in self._shapeless]))
        variant = self._variants.get(key)
        if variant is None:
            if len(self._variants) >= _MAX_SIGNATURES:
                self._variants.pop(next(iter(self._variants)), None)
            variant = self._variants[key] = _Variant()
        if variant.executable is not None:
            return self._run_compiled(variant, inputs)
        if self._pays(variant):
            with self._compile_lock:
                if variant.executable is None:
                    self._compile(variant, inputs)
            return self._run_compiled(variant, inputs)
        start = time.perf_counter()
        outputs = self._interpret(inputs, deadline, None)
        variant.seconds += time.perf_counter() - start
        variant.runs += 1
        return outputs

    def _pays(self, variant: _Variant) -> bool:
        if self._mode == ALWAYS or self.is_heavy or self._device != "CPU":
            return True
        return (
            variant.seconds > self._compile_seconds
            and variant.seconds > variant.runs * self._dispatch_seconds
        )

    # Interpreting ---------------------------------------------------------------------------

    def _interpret(self, inputs: list[Any], deadline: float | None, observe: Any) -> list[Any]:
        for cell in self._writers:
            cell.writer.acquire()
        try:
            return self._interpret_locked(inputs, deadline, observe)
        finally:
            for cell in self._writers:
                cell.writer.release()

    def _interpret_locked(
        self, inputs: list[Any], deadline: float | None, observe: Any
    ) -> list[Any]:
        code = self._code
        slots = code.template.copy()
        for slot, value in zip(code.inputs, inputs, strict=True):
            slots[slot] = value if isinstance(value, np.ndarray) else as_numpy(value)
        if self._loads:
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
        if deadline is None and observe is None:
            with np.errstate(all="ignore"):
                interpret(code.instructions, slots)
        else:
            limit = float("inf") if deadline is None else deadline
            with np.errstate(all="ignore"):
                interpret_until(code.instructions, slots, limit, observe)
        if self._stores:
            with self._store.lock:
                for cell, slot in self._stores:
                    cell.value = owned(slots[slot])
        for cell, _, drawn in self._streams:
            cell.value = cell.value.skip(slots[drawn])
        return [slots[slot] for slot in code.outputs]

    # Compiling ------------------------------------------------------------------------------

    def _compile(self, variant: _Variant, inputs: list[Any]) -> None:
        from runnel.runtime import compiler

        if self._compiled_code is None:
            self._compiled_code = lower(
                self._program, self.segment, self._access, self._device, COMPILED
            )
        states = self._current_states()
        streams = np.zeros((len(self._streams), STREAM_WORDS), np.uint32)
        start = time.perf_counter()
        variant.executable = compiler.compile_segment(
            self._compiled_code,
            states,
            streams,
            inputs,
            frozenset(self._specialized),
            self._device.lower(),
        )
        logger.debug(
            "compiled %d operations in %.2f s", len(self.segment.nodes), time.perf_counter() - start
        )
        self._tell_if_many()

    def _tell_if_many(self) -> None:
        compiled = [k for k, v in self._variants.items() if v.executable is not None]
        if self._told or len(compiled) < _MANY_SIGNATURES:
            return
        self._told = True
        if self._shapeless:
            compiled = [key[0] for key in compiled]
        shapes = [key[0] if self._specialized else key for key in compiled]
        varying = [
            self._input_name(i)
            for i in range(len(self.segment.inputs))
            if len({shape[i] for shape in shapes}) > 1
        ]
        logger.warning(
            "A step has been compiled for %d different signatures; what varies is the shape of %s. "
            "Padding or bucketing it to fewer shapes avoids compiling.",
            len(compiled),
            ", ".join(varying) or "a value that shapes depend on",
        )

    def _input_name(self, position: int) -> str:
        value = self.segment.inputs[position]
        for tensor, number in self._program.feeds.items():
            if number == value:
                return tensor.name
        for node in self._program.nodes:
            if value in node.outputs:
                return f"{node.op.name}:{node.outputs.index(value)}"
        return f"input {position}"

    def _current_states(self) -> list[Any]:
        with self._store.lock:
            states = []
            for cell, _, variable, node in self._loads:
                if cell.value is None and node is not None:
                    raise missing_variable(variable, node)
                states.append(cell.value)
            return states

    def _run_compiled(self, variant: _Variant, inputs: list[Any]) -> list[Any]:
        import jax

        for cell in self._writers:
            cell.writer.acquire()
        try:
            with jax.enable_x64(True):
                return self._run_compiled_locked(variant.executable, inputs)
        except jax.errors.JaxRuntimeError as error:
            raise self._device_error(error) from error
        finally:
            for cell in self._writers:
                cell.writer.release()

    def _device_error(self, error: Exception) -> errors.OpError:
        """An error of the device as TensorFlow would class it, with the step it happened in."""
        op = self.segment.nodes[-1].op
        text = str(error)
        count = len(self.segment.nodes)
        what = f"A compiled step of {count} operations on {self._device}, ending in {op.name!r}"
        if "RESOURCE_EXHAUSTED" in text or "Out of memory" in text:
            advice = "Use a smaller batch, or split the step over devices."
            return errors.ResourceExhaustedError(
                None, op, f"{what}, ran out of memory. {advice} {text}"
            )
        return errors.InternalError(None, op, f"{what}, failed: {text}")

    def _run_compiled_locked(self, executable: Any, inputs: list[Any]) -> list[Any]:
        streams = np.empty((len(self._streams), STREAM_WORDS), np.uint32)
        for row, (cell, _, _) in enumerate(self._streams):
            streams[row] = cell.value.words()
        arguments = [inputs[i] for i in executable.argument_inputs]
        loads = self._loads
        with self._store.lock:
            # The variables' buffers are handed over under the lock: once a step has been
            # dispatched, the buffers that it updates in place are no longer anyone else's.
            donated, kept = [], []
            for i in executable.donated:
                donated.append(self._value_of(loads[i]))
            for i in executable.kept:
                kept.append(self._value_of(loads[i]))
            new_states, outputs, holds = executable.call(
                donated, kept, streams, arguments, executable.constants
            )
            in_place = executable.in_place
            for (cell, _), value, keep in zip(self._stores, new_states, in_place, strict=True):
                if keep or holds is None:
                    cell.value = value
        if holds is not None:
            if not holds:
                self._explain_failure(executable, inputs)
            with self._store.lock:
                for (cell, _), value, kept_place in zip(
                    self._stores, new_states, in_place, strict=True
                ):
                    if not kept_place:
                        cell.value = value
        for (cell, _, _), drawn in zip(self._streams, executable.drawn, strict=True):
            cell.value = cell.value.skip(drawn)
        if executable.constant_outputs:
            remaining = iter(outputs)
            constant = executable.constant_outputs
            return [
                constant[i] if i in constant else next(remaining)
                for i in range(len(self.segment.outputs))
            ]
        return outputs

    @staticmethod
    def _value_of(load: tuple[Cell, int, Operation, Any]) -> Any:
        cell, _, variable, node = load
        if cell.value is None and node is not None:
            raise missing_variable(variable, node)
        return cell.value

    def _explain_failure(self, executable: Any, inputs: list[Any]) -> None:
        """Raises the error that the interpreter finds; the state is what it was before."""
        saved = [(cell, cell.value) for cell in self._writers]
        try:
            self._interpret_locked(inputs, None, None)
        except errors.OpError:
            raise
        finally:
            for cell, value in saved:
                cell.value = value
        node = executable.checked[0]
        raise errors.InvalidArgumentError(
            None,
            node.op,
            "A check in this compiled step failed, but does not fail when interpreted "
            f"(one of: {', '.join(n.op.name for n in executable.checked)})",
        )
