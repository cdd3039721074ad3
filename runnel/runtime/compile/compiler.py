"""The compiled tier: traces a segment with jax.numpy, and has XLA compile it into one call.

The traced function is a :class:`runnel.runtime.compile.segment_program.SegmentProgram`. A segment
that this process or another compiled before is neither traced nor compiled: runnel keeps its
executable and the findings of its trace, by a key of everything that they depend on.

64-bit types need JAX's x64 mode, which runnel switches on only for the duration of its own calls.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax

from runnel.graph.collection_pause import collection_paused
from runnel.graph.operation import Operation
from runnel.runtime.compile import executable_cache
from runnel.runtime.compile.entry_store import executables
from runnel.runtime.compile.executable import CompileOptions, Executable
from runnel.runtime.compile.oversized import require_all_addressable
from runnel.runtime.compile.repetition import Repetition
from runnel.runtime.compile.segment_key import Indescribable, segment_key
from runnel.runtime.compile.segment_program import SegmentProgram
from runnel.runtime.compile.segment_record import SegmentRecord, read_record, write_record
from runnel.runtime.compile.stand_in import StandIn
from runnel.runtime.devices.device_memory import needed_bytes
from runnel.runtime.interpret import verification
from runnel.runtime.interpret.code import Code

logger = logging.getLogger("runnel")

# Guards the number of compilations. Several segments are traced and compiled at a time.
_count_lock = threading.Lock()
compilations = 0


def compile_segment(
    code: Code,
    states: Sequence[Any],
    streams: Any,
    inputs: Sequence[Any],
    specialized: frozenset[int],
    options: CompileOptions,
    device: Any = None,
    overwritten: Sequence[Operation] = (),
    repetitions: Sequence[Repetition] = (),
) -> Executable:
    """Compiles ``code`` for these concrete shapes (and the values of specialised inputs).

    ``overwritten`` are variables that the code stores without having loaded them, and that have a
    value, the last of ``states``: they keep it in a step that fails. ``repetitions`` are traced as
    loops where that is possible.
    """
    global compilations
    program = SegmentProgram(
        code, states, streams, inputs, specialized, options, overwritten, repetitions
    )
    placed: dict[str, Any] = {}
    if device is not None:
        sharding = jax.sharding.SingleDeviceSharding(device)
        placed = {"in_shardings": sharding, "out_shardings": sharding}
    with jax.enable_x64(True):
        key = None
        # What is verified is verified while it is traced.
        if not verification.enabled and executables() is not None:
            try:
                with collection_paused():
                    key = segment_key(
                        *(code, states, streams, inputs, specialized, device),
                        *(repetitions, overwritten, program.large, options),
                    )
            except Indescribable as reason:
                logger.debug("A segment is traced each time, because of %s", reason)
        record = None if key is None else read_record(key)
        executable = None if record is None else _loaded(program, record, placed)
        if executable is None:
            executable = _compiled(program, key, placed)
        executable.constants = [jax.device_put(code.template[i], device) for i in program.large]
    with _count_lock:
        compilations += 1
    return executable


def _compiled(program: SegmentProgram, key: str | None, placed: dict[str, Any]) -> Executable:
    """The segment traced, and compiled or loaded."""
    executable, code = program.executable, program.code
    jitted = jax.jit(program.function(), **program.donation, **placed)
    traced = jitted.trace(*program.avals)
    require_all_addressable(traced.jaxpr.jaxpr, [i.node for i in code.instructions])
    made = executable_cache.made(traced.lower())  # which JAX remembers for the call
    _finish(executable, jitted, made.compiled, traced.lower)
    if key is not None:
        write_record(key, made.kept, traced.out_info, executable, code)
    return executable


def _loaded(
    program: SegmentProgram, record: SegmentRecord, placed: dict[str, Any]
) -> Executable | None:
    """The segment as it was kept; None where that cannot be loaded."""
    known = program.anew()
    executable = known.executable
    try:
        record.complete(executable, known.code)
        flat, tree = jax.tree_util.tree_flatten(known.avals)
        leaves, shape = jax.tree_util.tree_flatten(record.results)
        taken = record.program.operands

        def traced_after_all() -> Callable[..., Any]:
            function = program.anew().function()

            def of_flat(*operands: Any) -> list[Any]:
                # JAX has found that nothing depends on the others.
                arguments = [jax.numpy.zeros(aval.shape, aval.dtype) for aval in flat]
                for position, operand in zip(taken, operands, strict=True):
                    arguments[position] = operand
                results = function(*jax.tree_util.tree_unflatten(tree, arguments))
                return jax.tree_util.tree_leaves(results)

            return of_flat

        stand_in = StandIn(leaves, traced_after_all)

        def function(*operands: Any) -> Any:
            given = jax.tree_util.tree_leaves(operands)
            if any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(given, flat)):
                return program.anew().function()(*operands)
            results = stand_in(*[given[position] for position in taken])
            return jax.tree_util.tree_unflatten(shape, results)

        jitted = jax.jit(function, **known.donation, **placed)
        lowered = jitted.trace(*known.avals).lower()  # which JAX remembers for the call
        stand_in.is_loading = False
    except Exception as error:  # noqa: BLE001 (whatever it is, tracing helps)
        logger.info("A segment that was kept cannot be loaded: %s", error)
        return None
    compiled = executable_cache.loaded(lowered, record.program)
    if compiled is None:
        return None

    def lower() -> Any:
        again = program.anew()
        return jax.jit(again.function(), **again.donation, **placed).trace(*again.avals).lower()

    _finish(executable, jitted, compiled, lower)
    return executable


def _finish(executable: Executable, jitted: Any, compiled: Any, lower: Callable[[], Any]) -> None:
    work_bytes = sum(shape.size * shape.dtype.itemsize for shape in executable.work)
    executable.needed_bytes = needed_bytes(compiled) + work_bytes
    executable.call, executable.lower, executable.compiled = jitted, lower, compiled
