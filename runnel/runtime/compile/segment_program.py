"""A segment as a function to compile: of variables, random streams and inputs.

The traced function takes the variables' values, the random streams and the inputs. It returns the
new values, the outputs and, where kernels check their data, a flag for each check. If a flag is
false, nothing has changed: dense updates select the old value, scattered ones drop every row
(``Checks.gate_indices``), and the caller finds the exact error by interpreting.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from runnel.graph.operation import Operation
from runnel.runtime.compile.buffers import Effects, host_memory
from runnel.runtime.compile.checks import Checks
from runnel.runtime.compile.executable import CompileOptions, Executable
from runnel.runtime.compile.gates import gates_of
from runnel.runtime.compile.joined_updates import JoinedTrace, JoinedUpdates, joined_updates
from runnel.runtime.compile.packed_variables import packs_in
from runnel.runtime.compile.pieces import is_divided, run_in_pieces
from runnel.runtime.compile.repetition import Repetition
from runnel.runtime.compile.rows import TracedRow, is_known, taken_out, together
from runnel.runtime.compile.segment_trace import SegmentTrace
from runnel.runtime.compile.watch import INLINE_SECONDS, LONG_SECONDS, SHARED_SECONDS, Asker
from runnel.runtime.compile.work_estimate import seconds_of
from runnel.runtime.interpret.code import Code
from runnel.runtime.state.flat_pack import parts_of

_MAX_EMBEDDED_BYTES = 1 << 16


def _precision(options: CompileOptions) -> AbstractContextManager[Any]:
    """Within the block, products of float32 have the precision that the user wants."""
    if options.tensor_float_32 or options.platform == "cpu":
        return nullcontext()
    return jax.default_matmul_precision("highest")


def _aval(value: Any) -> Any:
    return jax.ShapeDtypeStruct(np.shape(value), value.dtype)


def _packed_aval(values: Sequence[Any]) -> Any:
    return jax.ShapeDtypeStruct((len(values), *np.shape(values[0])), values[0].dtype)


def _flat_aval(values: Sequence[Any]) -> Any:
    size = sum(int(np.prod(np.shape(value))) for value in values)
    return jax.ShapeDtypeStruct((size,), values[0].dtype)


def _are_declared(
    joined: JoinedUpdates, states: Sequence[Any], load_of: Mapping[Operation, int]
) -> bool:
    """True when variables have the shapes that they were declared with: another step may have
    given one another."""
    return all(
        tuple([np.shape(states[load_of[variable]]) for variable in pack]) == joined.shapes
        for pack in joined.packs
    )


class SegmentProgram:
    """``code`` for these concrete shapes; the parameters are those of ``compile_segment``.

    It outlives the step that it is first compiled for, so it keeps none of that step's arrays but
    the specialised inputs. ``executable`` tells a call all that it must know, once :meth:`function`
    has been called and traced.
    """

    def __init__(
        self,
        code: Code,
        states: Sequence[Any],
        streams: Any,
        inputs: Sequence[Any],
        specialized: frozenset[int],
        options: CompileOptions,
        overwritten: Sequence[Operation],
        repetitions: Sequence[Repetition],
    ) -> None:
        self.code = code
        self._options = options
        self._platform = options.platform
        self._repetitions = repetitions
        self._loaded = [*(variable for variable, _, _ in code.loads), *overwritten]
        self._load_of = {variable: i for i, variable in enumerate(self._loaded)}
        gates = gates_of(code)
        self._packs, self._joined = self._found_packs(states, gates)
        flat = [pack for joined in self._joined for pack in joined.packs]
        packed = {variable for pack in (*self._packs, *flat) for variable in pack}
        self._stored = [v for v, _ in code.stores if v not in packed]
        self._known_inputs = {i: np.asarray(inputs[i]) for i in specialized}
        self.large = [
            i
            for i, value in enumerate(code.template)
            if isinstance(value, np.ndarray)
            and value.dtype != object
            and value.nbytes > _MAX_EMBEDDED_BYTES
        ]
        """The slots of large constants, which are passed in every call."""
        executable = self.executable = self._new_executable(packed)
        executable.argument_inputs = [i for i in range(len(inputs)) if i not in specialized]
        taken = set(self._load_of.values()).difference(executable.kept)
        self._gates = {i: v for i, v in gates.items() if self._load_of.get(v) in taken}
        # Shapes only: the arrays themselves may be taken by a concurrent step meanwhile.
        arguments = [_aval(inputs[i]) for i in executable.argument_inputs]
        if options.is_chained:
            arguments.append(jax.ShapeDtypeStruct((), np.bool_))
        held = [[states[self._load_of[v]] for v in pack] for pack in (*self._packs, *flat)]
        of_rows = len(self._packs)
        self._operands: tuple[Any, ...] = (
            [
                *map(_packed_aval, held[:of_rows]),
                *map(_flat_aval, held[of_rows:]),
                *(_aval(states[i]) for i in executable.donated),
            ],
            [_aval(states[i]) for i in executable.kept],
            None if streams is None else _aval(streams),
            arguments,
            [_aval(code.template[i]) for i in self.large],
        )
        self._run = jax.ShapeDtypeStruct((), np.int32)

    def _found_packs(
        self, states: Sequence[Any], gates: Mapping[int, Operation]
    ) -> tuple[list[tuple[Operation, ...]], list[JoinedUpdates]]:
        """The packs of rows, and the joined updates with their flat ones.

        Another step may have given a variable another shape than it was declared with.
        """
        code, load_of = self.code, self._load_of
        packs = [
            pack
            for pack in packs_in(code, self._repetitions, self._platform)
            if len({np.shape(states[load_of[variable]]) for variable in pack}) == 1
        ]
        joined = [] if self._repetitions else joined_updates(code, gates, self._platform)
        return packs, [found for found in joined if _are_declared(found, states, load_of)]

    def _new_executable(self, packed: set[Operation]) -> Executable:
        """What is known of the executable before the trace."""
        code, load_of, options = self.code, self._load_of, self._options
        # A buffer can be updated in place, or kept when a check fails, if its shape stays.
        donated = [load_of[v] for v in self._stored if v in load_of and v not in code.reshaped]
        taken = {*donated, *(load_of[v] for v in packed)}
        kept = [i for i in range(len(self._loaded)) if i not in taken]
        executable = Executable(donated, kept)
        executable.is_chained = options.is_chained
        executable.packs = [[load_of[variable] for variable in pack] for pack in self._packs]
        executable.flat_packs = [
            ([load_of[variable] for variable in pack], joined.shapes)
            for joined in self._joined
            for pack in joined.packs
        ]
        executable.in_place = [
            *(True for _ in executable.all_packs),
            *(load_of.get(v) in donated for v in self._stored),
        ]
        # A step that is whole and touches no state keeps nothing back, whichever thread runs it.
        is_pure = not (code.loads or code.stores or code.streams)
        executable.asks_natively = self._platform == "cpu" and not (options.is_whole and is_pure)
        return executable

    def anew(self) -> SegmentProgram:
        """The same, to be traced once more: ``executable`` is another one."""
        program = copy.copy(self)
        program.executable = replace(self.executable)
        return program

    @property
    def avals(self) -> tuple[Any, ...]:
        """The shapes and types of what a call takes, when ``executable`` is complete."""
        donated, kept, streams, arguments, constants = self._operands
        if self.executable.asks:
            arguments = [*arguments, self._run]
        return donated, kept, streams, arguments, constants, self.executable.work

    @property
    def donation(self) -> dict[str, Any]:
        """Which operands a call takes over, when ``executable`` is complete."""
        # Nothing reads what is lent: it is the memory of the buffers that are given back.
        if self.executable.work:
            return {"donate_argnums": (0, 5), "keep_unused": True}
        return {"donate_argnums": (0,)}

    def function(self) -> Callable[..., Any]:
        """What is to be compiled, for operands like :attr:`avals`; completes ``executable``."""
        executable, platform, step = self.executable, self._platform, self._step()
        called: Any = jax.jit(step)
        traced = called.trace(*self._operands, self._run)
        executable.work = tuple(traced.out_info[3])
        seconds = executable.seconds + seconds_of(traced.jaxpr.jaxpr, platform)
        if platform == "cpu" and not executable.asks_natively and seconds > INLINE_SECONDS:
            executable.asks_natively = True
            if executable.asks:
                called = jax.jit(partial(step, may_go_on=None))  # traced again, with that
        if seconds > (LONG_SECONDS if self._options.is_alone else SHARED_SECONDS):
            called = self._in_pieces() or called

        def function(d: Any, k: Any, s: Any, arguments: Any, c: Any, _: Any) -> Any:
            if not executable.asks:
                return called(d, k, s, arguments, c, np.int32(0))
            return called(d, k, s, arguments[:-1], c, arguments[-1])

        return function

    def _in_pieces(self) -> Callable[..., Any] | None:
        """The step as a function that asks between its pieces whether to go on.

        None where it is one piece: nothing is left to skip when that has been asked, and to choose
        between the old and the new variables costs another pass over both.
        """
        executable, platform = self.executable, self._platform
        go_on = jax.ShapeDtypeStruct((), np.bool_)
        traced = jax.jit(self._step()).trace(*self._operands, self._run, go_on)
        if not is_divided(traced.jaxpr, platform):
            return None
        executable.asks = True
        shape = jax.tree_util.tree_structure(traced.out_info)

        def in_pieces(*operands: Any) -> Any:
            arguments = jax.tree_util.tree_leaves(operands)
            asker = Asker(operands[-1], executable.asks_natively)
            results = run_in_pieces(traced.jaxpr, platform, arguments, asker)
            return jax.tree_util.tree_unflatten(shape, results)

        return in_pieces

    def _held(self, donated_values: Any) -> dict[Operation, Any]:
        """What the variables that are updated in place hold: of a pack, rows."""
        packs, count = self._packs, len(self.executable.all_packs)
        arrays, values = donated_values[: len(packs)], donated_values[count:]
        flat = iter(donated_values[len(packs) : count])
        donated = [self._loaded[i] for i in self.executable.donated]
        found = dict(zip(donated, values, strict=True))
        for pack, array in zip(packs, arrays, strict=True):
            found.update((v, TracedRow(array, row)) for row, v in enumerate(pack))
        for joined in self._joined:
            for pack in joined.packs:
                found.update(zip(pack, parts_of(next(flat), joined.shapes), strict=True))
        return found

    def _updates(self, donated_values: Any) -> list[JoinedTrace]:
        """The joined updates, to be traced with the arrays that they start from."""
        flat = iter(donated_values[len(self._packs) :])
        return [JoinedTrace(j, [next(flat) for _ in j.packs]) for j in self._joined]

    def _filled(
        self, donated_values: Any, kept_values: Any, streams: Any, arguments: Any, constants: Any
    ) -> list[Any]:
        """The slots before the first instruction."""
        code, executable = self.code, self.executable
        slots = list(code.template)
        for slot, value in zip(self.large, constants, strict=True):
            slots[slot] = value
        for variable, value in self._held(donated_values).items():
            if self._load_of[variable] < len(code.loads):
                slots[code.loads[self._load_of[variable]][1]] = value
        for i, value in zip(executable.kept, kept_values, strict=True):
            slots[code.loads[i][1]] = value
        for row, (_, slot, _) in enumerate(code.streams):
            slots[slot] = streams[row]
        for i, value in zip(executable.argument_inputs, arguments, strict=True):
            slots[code.inputs[i]] = value
        for i, value in self._known_inputs.items():
            slots[code.inputs[i]] = value
        return slots

    def _step(self) -> Callable[..., Any]:
        """The function to trace; another each time, for JAX remembers what it has traced."""

        def step(*operands: Any, **options: Any) -> Any:
            # Inside of what is traced: so a call need not say it again.
            with _precision(self._options):
                return self._traced(*operands, **options)

        return step

    def _traced(
        self,
        donated_values: Any,
        kept_values: Any,
        streams: Any,
        arguments: Any,
        constants: Any,
        run: Any,
        may_go_on: Any = None,
    ) -> Any:
        import jax.numpy as jnp

        code, platform, executable = self.code, self._platform, self.executable
        before = None
        if executable.is_chained:
            *arguments, before = arguments
        start = self._filled(donated_values, kept_values, streams, arguments, constants)
        old_values = self._held(donated_values)
        old = {index: old_values[variable] for index, variable in self._gates.items()}
        asker = Asker(run, executable.asks_natively)
        checks = Checks(before=before)
        if may_go_on is not None:
            checks.node = code.instructions[-1].node
            checks(may_go_on, lambda: "stopped")
        host = host_memory(platform)
        effects = Effects(asker, start, host)
        repetitions, updates = self._repetitions, self._updates(donated_values)
        trace = SegmentTrace(code, list(start), checks, platform, effects, repetitions)
        trace.run(old, updates=updates)
        holds = checks.hold()
        if checks.gated_early:
            # Once more, with updates gated by every check of the segment.
            again = Effects(asker, start, host)
            first = trace
            trace = SegmentTrace(code, list(start), Checks(holds), platform, again, repetitions)
            trace.run(old, first, updates)
        slots = trace.slots
        executable.checked, executable.saved = checks.nodes, trace.saved
        drawn = [slots[drawn] for _, _, drawn in code.streams]
        executable.drawn = [None if hasattr(count, "aval") else int(count) for count in drawn]
        new_states = self._new_states(slots, updates, old_values, holds)
        outputs = self._outputs(slots) + [count for count in drawn if hasattr(count, "aval")]
        if effects.asks:
            holds = holds & asker.is_started_elsewhere()
        if holds is None and platform == "cpu":
            holds = jnp.asarray(True)  # which is there when the call has ended
        executable.asks = effects.asks
        executable.seconds = effects.loop_seconds
        return new_states, outputs, holds, trace.effects.large_buffers(platform)

    def _new_states(
        self, slots: list[Any], updates: Sequence[JoinedTrace], old_values: Any, holds: Any
    ) -> list[Any]:
        """The arrays of packs, and the values of other variables, old ones where checks fail."""
        slot_of = dict(self.code.stores)
        states = [together([slots[slot_of[v]] for v in pack]).array() for pack in self._packs]
        states += (array for joined in updates for array in joined.packs)
        for variable in self._stored:
            (value,) = taken_out([slots[slot_of[variable]]])
            # The explicit type makes it strong: a weak one would be traced again next time.
            value = jax.numpy.asarray(value, value.dtype)
            if holds is not None and variable in self.code.structured and variable in old_values:
                value = jax.numpy.where(holds, value, old_values[variable])
            states.append(value)
        return states

    def _outputs(self, slots: list[Any]) -> list[Any]:
        """The outputs that depend on data; ``executable`` gets the others."""
        outputs, self.executable.constant_outputs = [], {}
        for position, slot in enumerate(self.code.outputs):
            (value,) = taken_out([slots[slot]])
            if is_known(value):
                self.executable.constant_outputs[position] = np.asarray(value)
            else:
                outputs.append(value)
        return outputs
