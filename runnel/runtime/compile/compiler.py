"""The compiled tier: a segment traced with jax.numpy and compiled by XLA into one call.

The traced function takes the variables' values, the random streams and the inputs, and returns
the new values, the outputs and, where kernels check their data, a flag for each check. When a
flag is false nothing was changed: dense updates select the old value, scattered ones drop
every row (``Checks.gate_indices``), and the caller finds the exact error by interpreting.

64-bit types need JAX's x64 mode; it is switched on for the duration of our own calls only.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np

from runnel.graph.operation import Operation
from runnel.passes.program.program import Node
from runnel.runtime.compile import executable_cache
from runnel.runtime.compile.buffers import Effects, host_memory
from runnel.runtime.compile.checks import Checks
from runnel.runtime.compile.gates import gates_of
from runnel.runtime.compile.oversized import require_all_addressable
from runnel.runtime.compile.packed_variables import packs_in
from runnel.runtime.compile.pieces import run_in_pieces
from runnel.runtime.compile.repetition import Repetition
from runnel.runtime.compile.rows import TracedRow, taken_out, together
from runnel.runtime.compile.segment_trace import SegmentTrace, is_known
from runnel.runtime.compile.watch import INLINE_SECONDS, LONG_SECONDS, SHARED_SECONDS, Asker
from runnel.runtime.compile.work_estimate import seconds_of
from runnel.runtime.devices.device_memory import needed_bytes
from runnel.runtime.interpret.code import Code
from runnel.runtime.state import at_exit

logger = logging.getLogger("runnel")

_MAX_EMBEDDED_BYTES = 1 << 16

# Guards the number of compilations. Several segments are traced and compiled at a time.
_count_lock = threading.Lock()
compilations = 0

at_exit.install()  # steps end before JAX takes its devices down


@dataclass(slots=True)
class Executable:
    """A compiled segment for one signature."""

    call: Any
    """The jitted function itself: a built-in, so that an interrupt cannot come between the moment
    at which the donated buffers are gone and the moment at which the new ones are returned.
    (The first call is Python code of JAX.)"""
    donated: list[int]
    """Positions in ``code.loads`` of the variables that are updated in place, and not packed."""
    kept: list[int]
    in_place: list[bool]
    """For each of the packs, and of ``code.stores`` that are in none, whether it is updated in
    place."""
    constant_outputs: dict[int, np.ndarray]
    """Outputs that do not depend on data, by position."""
    drawn: list[int | None]
    """For each of ``code.streams``, the counters by which a call advances it; None where that
    depends on data (a loop's iterations): those come after the outputs."""
    checked: list[Node]
    argument_inputs: list[int]
    """Positions of the segment's inputs that are passed (the others are specialised)."""
    constants: list[Any]
    """Large constants, kept on the device and passed in every call."""
    work: tuple[Any, ...] = ()
    """Shapes and types of the buffers that a call is lent and gives back."""
    seconds: float = 0.0
    """How long a call runs, as estimated."""
    asks: bool = False
    """True when a call asks whether to go on: the number of its run is its last argument."""
    asks_natively: bool = False
    """If it does not, a call that asks is Python code of JAX."""
    needed_bytes: int = 0
    """The memory that a call takes beyond its arguments."""
    lower: Any = None
    """Makes the program that XLA was given, to be shown."""
    packs: list[list[int]] = field(default_factory=list)
    """Positions in ``code.loads`` of variables whose values are the rows of one array."""
    saved: int = 0
    """The instructions that were not compiled, being repetitions of others."""
    is_chained: bool = False
    """True when the outcome of the step before is the last argument but for the run's number."""


def _precision(tensor_float_32: bool, platform: str) -> AbstractContextManager[Any]:
    """Within the block, products of float32 have the precision that the user wants."""
    if tensor_float_32 or platform == "cpu":
        return nullcontext()
    return jax.default_matmul_precision("highest")


def _aval(value: Any) -> Any:

    return jax.ShapeDtypeStruct(np.shape(value), value.dtype)


def _packed_aval(values: Sequence[Any]) -> Any:
    return jax.ShapeDtypeStruct((len(values), *np.shape(values[0])), values[0].dtype)


def compile_segment(
    code: Code,
    states: Sequence[Any],
    streams: Any,
    inputs: Sequence[Any],
    specialized: frozenset[int],
    platform: str,
    device: Any = None,
    is_whole: bool = True,
    is_chained: bool = False,
    tensor_float_32: bool = True,
    overwritten: Sequence[Operation] = (),
    repetitions: Sequence[Repetition] = (),
) -> Executable:
    """Compiles ``code`` for these concrete shapes (and the values of specialised inputs).

    ``is_whole`` says that it is a whole step; one of many segments asks earlier whether to go on.
    One that ``is_chained`` takes the outcome of the step before, and where that has failed, or
    anything else in a chain of steps, it fails too. Without ``tensor_float_32`` an accelerator
    multiplies float32 with all its bits. ``overwritten`` are variables that the code stores without
    having loaded them, and that have a value, the last of ``states``: they keep it in a step that
    fails. ``repetitions`` are traced as loops where that is possible.
    """
    global compilations
    import jax.numpy as jnp

    loaded = [*(variable for variable, _, _ in code.loads), *overwritten]
    load_of = {variable: i for i, variable in enumerate(loaded)}
    packs = [
        pack
        for pack in packs_in(code, repetitions, platform)
        # Another step may have given a variable another shape than it was declared with.
        if len({np.shape(states[load_of[variable]]) for variable in pack}) == 1
    ]
    packed = {variable for pack in packs for variable in pack}
    stored = [variable for variable, _ in code.stores if variable not in packed]
    # A buffer can be updated in place, or kept when a check fails, if its shape stays.
    donated = [load_of[v] for v in stored if v in load_of and v not in code.reshaped]
    taken = {*donated, *(load_of[v] for v in packed)}
    kept = [i for i in range(len(loaded)) if i not in taken]
    argument_inputs = [i for i in range(len(inputs)) if i not in specialized]
    # The function below outlives this call; it must not keep the first step's arrays alive.
    known_inputs = {i: np.asarray(inputs[i]) for i in specialized}
    large = [
        i
        for i, value in enumerate(code.template)
        if isinstance(value, np.ndarray)
        and value.dtype != object
        and value.nbytes > _MAX_EMBEDDED_BYTES
    ]
    in_place = [*(True for _ in packs), *(load_of.get(v) in donated for v in stored)]
    gates = {
        i: variable for i, variable in gates_of(code).items() if load_of.get(variable) in taken
    }
    executable = Executable(None, donated, kept, in_place, {}, [], [], argument_inputs, [])
    executable.is_chained = is_chained
    executable.packs = [[load_of[variable] for variable in pack] for pack in packs]
    # A step that is whole and touches no state keeps nothing back, on whichever thread it runs.
    is_pure = not (code.loads or code.stores or code.streams)
    executable.asks_natively = platform == "cpu" and not (is_whole and is_pure)

    def held(donated_values: Any) -> dict[Operation, Any]:
        """What the variables that are updated in place hold: of a pack, rows."""
        arrays, values = donated_values[: len(packs)], donated_values[len(packs) :]
        found = dict(zip([loaded[i] for i in donated], values, strict=True))
        for pack, array in zip(packs, arrays, strict=True):
            found.update((v, TracedRow(array, row)) for row, v in enumerate(pack))
        return found

    def filled(
        donated_values: Any, kept_values: Any, streams: Any, arguments: Any, constants: Any
    ) -> list[Any]:
        """The slots before the first instruction."""
        slots = list(code.template)
        for slot, value in zip(large, constants, strict=True):
            slots[slot] = value
        for variable, value in held(donated_values).items():
            if load_of[variable] < len(code.loads):
                slots[code.loads[load_of[variable]][1]] = value
        for i, value in zip(kept, kept_values, strict=True):
            slots[code.loads[i][1]] = value
        for row, (_, slot, _) in enumerate(code.streams):
            slots[slot] = streams[row]
        for i, value in zip(argument_inputs, arguments, strict=True):
            slots[code.inputs[i]] = value
        for i, value in known_inputs.items():
            slots[code.inputs[i]] = value
        return slots

    def step(*operands: Any, **options: Any) -> Any:
        # Inside of what is traced: so a call need not say it again.
        with _precision(tensor_float_32, platform):
            return traced_step(*operands, **options)

    def traced_step(
        donated_values: Any,
        kept_values: Any,
        streams: Any,
        arguments: Any,
        constants: Any,
        run: Any,
        may_go_on: Any = None,
    ) -> Any:
        before = None
        if is_chained:
            *arguments, before = arguments
        start = filled(donated_values, kept_values, streams, arguments, constants)
        old_values = held(donated_values)
        old = {index: old_values[variable] for index, variable in gates.items()}
        asker = Asker(run, executable.asks_natively)
        checks = Checks(before=before)
        if may_go_on is not None:
            checks.node = code.instructions[-1].node
            checks(may_go_on, lambda: "stopped")
        host = host_memory(platform)
        effects = Effects(asker, start, host)
        trace = SegmentTrace(code, list(start), checks, platform, effects, repetitions)
        trace.run(old)
        holds = checks.hold()
        if checks.gated_early:
            # Once more, with updates gated by every check of the segment.
            again = Effects(asker, start, host)
            first = trace
            trace = SegmentTrace(code, list(start), Checks(holds), platform, again, repetitions)
            trace.run(old, first)
        slots = trace.slots
        executable.checked, executable.saved = checks.nodes, trace.saved
        drawn = [slots[drawn] for _, _, drawn in code.streams]
        executable.drawn = [None if hasattr(count, "aval") else int(count) for count in drawn]
        slot_of = dict(code.stores)
        new_states = [together([slots[slot_of[v]] for v in pack]).array() for pack in packs]
        for variable in stored:
            (value,) = taken_out([slots[slot_of[variable]]])
            # The explicit type makes it strong: a weak one would be traced again next time.
            value = jnp.asarray(value, value.dtype)
            if holds is not None and variable in code.structured and variable in old_values:
                value = jnp.where(holds, value, old_values[variable])
            new_states.append(value)
        outputs = []
        executable.constant_outputs = {}
        for position, slot in enumerate(code.outputs):
            (value,) = taken_out([slots[slot]])
            if is_known(value):
                executable.constant_outputs[position] = np.asarray(value)
            else:
                outputs.append(value)
        outputs += [count for count in drawn if hasattr(count, "aval")]
        if effects.asks:
            holds = holds & asker.is_started_elsewhere()
        if holds is None and platform == "cpu":
            holds = jnp.asarray(True)  # which is there when the call has ended
        executable.asks = effects.asks
        executable.seconds = effects.loop_seconds
        return new_states, outputs, holds, trace.effects.large_buffers(platform)

    with jax.enable_x64(True):
        executable.constants = [jax.device_put(code.template[i], device) for i in large]
        placed: Any = {}
        if device is not None:
            sharding = jax.sharding.SingleDeviceSharding(device)
            placed = {"in_shardings": sharding, "out_shardings": sharding}
        # Shapes only: the arrays themselves may be taken by a concurrent step meanwhile.
        avals = (
            [
                *(_packed_aval([states[load_of[v]] for v in pack]) for pack in packs),
                *(_aval(states[i]) for i in donated),
            ],
            [_aval(states[i]) for i in kept],
            None if streams is None else _aval(streams),
            [_aval(inputs[i]) for i in argument_inputs],
            [_aval(c) for c in executable.constants],
        )
        if is_chained:
            avals[3].append(jax.ShapeDtypeStruct((), np.bool_))
        run = jax.ShapeDtypeStruct((), np.int32)
        inner = jax.jit(step)
        traced = inner.trace(*avals, run)
        executable.work = tuple(traced.out_info[3])
        seconds = executable.seconds + seconds_of(traced.jaxpr.jaxpr, platform)
        if platform == "cpu" and not executable.asks_natively and seconds > INLINE_SECONDS:
            executable.asks_natively = True
            if executable.asks:
                inner = jax.jit(partial(step, may_go_on=None))  # traced again, with that
        # Nothing reads what is lent: it is the memory of the buffers that are given back.
        lent: Any = {"donate_argnums": (0,)}
        if executable.work:
            lent = {"donate_argnums": (0, 5), "keep_unused": True}
        if seconds > (LONG_SECONDS if is_whole else SHARED_SECONDS):
            called = _in_pieces(step, avals, run, platform, executable)
        else:
            called = inner
        if executable.asks:
            avals[3].append(run)

        def function(d: Any, k: Any, s: Any, arguments: Any, c: Any, _: Any) -> Any:
            if not executable.asks:
                return called(d, k, s, arguments, c, np.int32(0))
            return called(d, k, s, arguments[:-1], c, arguments[-1])

        jitted = jax.jit(function, **lent, **placed)
        traced = jitted.trace(*avals, executable.work)
        require_all_addressable(traced.jaxpr, [i.node for i in code.instructions])
        compiled = executable_cache.compiled(traced.lower())  # which JAX remembers for the call
        work_bytes = sum(shape.size * shape.dtype.itemsize for shape in executable.work)
        executable.needed_bytes = needed_bytes(compiled) + work_bytes
        executable.call, executable.lower = jitted, traced.lower
    with _count_lock:
        compilations += 1
    return executable


def _in_pieces(step: Any, avals: Any, run: Any, platform: str, executable: Executable) -> Any:
    """The function ``step`` as one that asks between its pieces whether to go on."""
    import jax

    traced = jax.jit(step).trace(*avals, run, jax.ShapeDtypeStruct((), np.bool_))
    executable.asks = True
    shape = jax.tree_util.tree_structure(traced.out_info)

    def in_pieces(*operands: Any) -> Any:
        arguments = jax.tree_util.tree_leaves(operands)
        asker = Asker(operands[-1], executable.asks_natively)
        results = run_in_pieces(traced.jaxpr, platform, arguments, asker)
        return jax.tree_util.tree_unflatten(shape, results)

    return in_pieces
