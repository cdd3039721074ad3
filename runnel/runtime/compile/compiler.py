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
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np

from runnel.graph.array_size import require_addressable
from runnel.graph.operation import Operation
from runnel.graph.registry import COMPILED, INTERPRETED
from runnel.graph.shapes import num_elements
from runnel.passes.program.kernel_call import bind, fail_now, select
from runnel.passes.program.program import Node
from runnel.passes.program.step_resources import RESOURCE_OPS
from runnel.passes.structure.structured import structure_of
from runnel.runtime.compile import buffer_ops, executable_cache
from runnel.runtime.compile.buffers import Effects, NotCompilable, host_memory
from runnel.runtime.compile.oversized import require_all_addressable
from runnel.runtime.compile.packed_variables import last_updates, other_updates, packs_in
from runnel.runtime.compile.pieces import run_in_pieces
from runnel.runtime.compile.repetition import Repetition, find_repetitions
from runnel.runtime.compile.rolled_trace import RolledTrace
from runnel.runtime.compile.rows import TracedRow, collected, taken_out, together, unpacked
from runnel.runtime.compile.structured_trace import StructuredTrace
from runnel.runtime.compile.watch import INLINE_SECONDS, LONG_SECONDS, SHARED_SECONDS, Asker
from runnel.runtime.compile.work_estimate import seconds_of
from runnel.runtime.devices.device_memory import needed_bytes
from runnel.runtime.interpret import verification
from runnel.runtime.interpret.code import Code, Instruction, require_assignable
from runnel.runtime.interpret.interpreter import as_op_error
from runnel.runtime.state import at_exit

logger = logging.getLogger("runnel")

_MAX_FOLDED_ELEMENTS = 1024
_MAX_EMBEDDED_BYTES = 1 << 16
_FEWEST_SAVED = {"cpu": 150}
_MANY_SAVED = 3_000
"""Instructions that a loop saves the compiler, for it to be made of equal blocks. An accelerator
starts a loop's kernels more slowly than those of a straight line."""

# Guards the number of compilations. Several segments are traced and compiled at a time.
_count_lock = threading.Lock()
compilations = 0

at_exit.install()  # steps end before JAX takes its devices down


class Checks:
    """Collects what kernels check while they are traced, and gates updates by it.

    An update is gated by the checks that were traced before it. When there turn out to be more
    (``gated_early``) the segment is traced again with ``all_hold``, the conjunction of all.
    ``before`` tells whether the step before succeeded, where that is not known: as if it were one
    more check, if there are any.
    """

    def __init__(self, all_hold: Any = None, before: Any = None) -> None:
        self._before = [] if before is None else [before]
        self.flags: list[Any] = []
        self.nodes: list[Node] = []
        self.node: Node | None = None
        self._all_hold = all_hold
        self._conjunction: tuple[int, Any] = (0, None)
        self._least_known: int | None = None

    def __call__(self, holds: Any, explain: Any) -> None:
        if isinstance(holds, bool | np.bool_ | np.ndarray) and bool(np.all(holds)):
            return
        import jax.numpy as jnp

        assert self.node is not None
        self.flags.append(jnp.all(jnp.asarray(holds)))
        self.nodes.append(self.node)

    def inside(self) -> Checks:
        """For a loop or a branch: what is checked there it hands out as one flag."""
        checks = Checks()
        checks.node = self.node
        return checks

    def hold(self) -> Any:
        """A scalar that is true when the checks so far hold; None where there are none."""
        import jax.numpy as jnp

        known, conjunction = self._conjunction
        if known < len(self.flags):
            conjunction = jnp.all(jnp.stack([*self._before, *self.flags]))
            self._conjunction = len(self.flags), conjunction
        return conjunction

    @property
    def gated_early(self) -> bool:
        """True when something was gated before the last check was known."""
        return self._least_known is not None and self._least_known < len(self.flags)

    def gate(self, new: Any, old: Any) -> Any:
        """``new``, or ``old`` when a check failed."""
        import jax.numpy as jnp

        holds = self.gating()
        return new if holds is None else jnp.where(holds, new, *taken_out([old]))

    def gate_indices(self, indices: Any, size: int) -> Any:
        """``indices``, or when a check failed ``size`` in their place, which scatters drop."""
        import jax.numpy as jnp

        return self.gate(indices, jnp.asarray(size, indices.dtype))

    def gating(self) -> Any:
        """What an update is gated by: a scalar, or None where nothing was checked before it."""
        if self._all_hold is not None:
            return self._all_hold
        if self._least_known is None:
            self._least_known = len(self.flags)  # which only grows
        return self.hold()


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


def _is_known(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic)


def _aval(value: Any) -> Any:

    return jax.ShapeDtypeStruct(np.shape(value), value.dtype)


def _packed_aval(values: Sequence[Any]) -> Any:
    return jax.ShapeDtypeStruct((len(values), *np.shape(values[0])), values[0].dtype)


class _Trace:
    """One pass over the instructions with tracers (and NumPy values where all is known)."""

    def __init__(
        self,
        code: Code,
        slots: list[Any],
        checks: Checks,
        platform: str,
        effects: Effects | None = None,
        repetitions: Sequence[Repetition] = (),
    ) -> None:
        self.code = code
        self.slots = slots
        self._repetitions = {repetition.start: repetition for repetition in repetitions}
        self.checks = checks
        self.platform = platform
        self.effects = Effects() if effects is None else effects
        self.recorded: dict[int, tuple[list[Any], Any, dict[Any, Any] | None]] = {}
        """What each instruction took, gave and left in stacks and arrays."""
        self.saved = 0
        """The instructions in blocks that were not traced, being like others."""
        self._rolled: dict[int, tuple[list[Any], list[tuple[int, Any]], list[Any]]] = {}
        """What each repetition took, gave and filled, by its first instruction."""

    def run_inside(self, code: Code, slots: list[Any], checks: Checks) -> list[Any]:
        """Traces the code of a program inside a structured node; returns its slots."""
        _Trace(code, slots, checks, self.platform, self.effects).run({})
        return slots

    def run(self, kept_on_failure: Mapping[int, Any], before: _Trace | None = None) -> None:
        """Traces; the result of an instruction that is a key gives way to the value there
        when a check fails. What takes the same as in the trace ``before`` gives the
        same: only what depends on gated values is traced again."""
        slots, end = self.slots, 0
        for index, instruction in enumerate(self.code.instructions):
            if index < end:
                continue  # in a repetition
            if index in self._repetitions and self._roll(
                self._repetitions[index], kept_on_failure, before
            ):
                end = self._repetitions[index].end
                continue
            _, args, out, node = instruction
            values = [slots[a] for a in args]
            earlier = None if before is None else before.recorded.get(index)
            if earlier is not None and self._is_same(node, values, earlier[0]):
                _, result, contents = earlier
                if contents is not None:
                    self.effects.contents = dict(contents)
            else:
                result = self.result(instruction, list(values))
            touches = structure_of(node) is not None or node.op_def.name in RESOURCE_OPS
            left = dict(self.effects.contents) if touches else None
            self.recorded[index] = (values, result, left)
            if index in kept_on_failure:
                result = self.checks.gate(result, kept_on_failure[index])
            if type(out) is int:
                slots[out] = result
            else:
                for slot, value in zip(out, result, strict=True):
                    slots[slot] = value

    def _roll(
        self, repetition: Repetition, kept_on_failure: Mapping[int, Any], before: _Trace | None
    ) -> bool:
        """Traces the blocks of a repetition as a loop, if that is possible."""
        rolled = RolledTrace(self, repetition, kept_on_failure)
        taken = rolled.taken()
        earlier = None if before is None else before._rolled.get(repetition.start)
        indices = range(repetition.start, repetition.start + repetition.length)
        is_gated = any(index in kept_on_failure for index in indices)
        if (
            earlier is not None
            and not is_gated
            and all(a is b for a, b in zip(taken, earlier[0], strict=True))
        ):
            _, left, arrays = earlier
        else:
            try:
                left, arrays = rolled.run()
            except Exception as reason:  # which the unrolled blocks have too, if it is an error
                logger.debug("%d equal blocks stay unrolled: %s", repetition.times, reason)
                return False
        self._rolled[repetition.start] = taken, left, arrays
        self.saved += repetition.saved
        self.effects.note_arrays(arrays)
        for slot, value in left:
            self.slots[slot] = value
        return True

    def inside(self, checks: Checks) -> _Trace:
        """What traces single instructions of a block, with ``checks`` of its own."""
        return _Trace(self.code, [], checks, self.platform, self.effects)

    def result(self, instruction: Instruction, values: list[Any]) -> Any:
        """What an instruction makes of ``values``."""
        import jax.numpy as jnp

        call, _, out, node = instruction
        self.checks.node = node
        try:
            result = collected(node, values)
            if result is None and self._repetitions:
                result = unpacked(node, values)
                if result is not None:
                    return result
            if result is None:
                values = taken_out(values)
                result = self._evaluate(call, node, values, jnp)
            if call.assigned_dims is not None:
                require_assignable(np.shape(result), call.assigned_dims)
            for value in (result,) if type(out) is int else result:
                if hasattr(value, "aval"):
                    require_addressable(value.shape, value.dtype.itemsize)
            if verification.enabled and structure_of(node) is None:
                verification.verify(node, call.outputs, result)
        except NotCompilable as reason:
            reason.node = node  # at last the outermost that it is in
            raise
        except Exception as error:
            raise as_op_error(error, node, values) from error
        return result

    @staticmethod
    def _is_same(node: Node, values: list[Any], before: list[Any]) -> bool:
        same = all(a is b for a, b in zip(values, before, strict=True))
        return same and not node.op_def.self_gated

    def _evaluate(self, call: Any, node: Node, values: list[Any], jnp: Any) -> Any:
        op_def = node.op_def
        if structure_of(node) is not None:
            return StructuredTrace(self, call, node).evaluate(values)
        if op_def.name in RESOURCE_OPS:
            return buffer_ops.evaluate(self.effects, node, values, self.checks)
        if (
            not op_def.stateful
            and (op_def.known_from_shapes or all(map(_is_known, values)))
            and (call.must_know or self._is_small(node, values))
        ):
            kernel = select(node, call.device, INTERPRETED)
            with np.errstate(all="ignore"):
                return bind(kernel, node, np, fail_now)(*values)
        for position in op_def.updates:
            # A variable's value, even one that is known, is an array of JAX for its update.
            values[position] = jnp.asarray(values[position])
        kernel = select(node, call.device, COMPILED)
        result = bind(kernel, node, jnp, self.checks, self.platform)(*values)
        if op_def.name == "Minimum" and not np.shape(result):
            self._note_limit(result, values)
        return result

    def _note_limit(self, result: Any, values: list[Any]) -> None:
        """The minimum of a number that is known and one that is not has a known limit."""
        known = [found for v in values if (found := self.effects.range_of(v)) is not None]
        if known and np.issubdtype(result.dtype, np.integer):
            least = int(np.iinfo(result.dtype).min)
            self.effects.note_range(result, least, min(greatest for _, greatest in known))

    @staticmethod
    def _is_small(node: Node, values: list[Any]) -> bool:
        if node.op_def.known_from_shapes:
            return True
        if any(np.size(v) > _MAX_FOLDED_ELEMENTS for v in values):
            return False
        for tensor in node.op.outputs:
            if (num_elements(tensor.dims) or 0) > _MAX_FOLDED_ELEMENTS:
                return False
        return True


def _gates(code: Code) -> dict[int, Operation]:
    """The instructions whose results are gated, with the variable that each is for.

    For a variable that is updated as a whole it is the one that makes the value to assign rather
    than the assignment, so that whatever else uses that value uses the gated one and XLA computes
    it once: Adam's new moments are both stored and used.
    """
    maker_of: dict[int, int] = {}
    copied_from: dict[int, int] = {}
    for index, (_, args, out, node) in enumerate(code.instructions):
        for slot in (out,) if type(out) is int else out:
            maker_of[slot] = index
        if node.op_def.overwrites and type(out) is int:
            maker = maker_of.get(args[-1])
            if maker is not None and _can_be_gated(code.instructions[maker]):
                copied_from[index] = maker
    gates: dict[int, Operation] = {}
    for variable, slot in code.stores:
        if variable in code.replaced and variable not in code.structured:
            update = maker_of[slot]
            maker = copied_from.get(update, update)
            gates[update if maker in gates else maker] = variable
    return gates


def repetitions_in(code: Code, platform: str) -> list[Repetition]:
    """The equal blocks of ``code`` that are compiled once."""
    gates, packable = _gates(code), last_updates(code, platform)
    variables = set(packable.values())
    apart = other_updates(code, packable)
    apart.update(index for index, variable in gates.items() if variable not in variables)
    fewest = _FEWEST_SAVED.get(platform, _MANY_SAVED)
    return find_repetitions(code, apart, fewest, gates.keys())


def _can_be_gated(instruction: Instruction) -> bool:
    """True for one result that nothing needs to know while the segment is traced."""
    return type(instruction.out) is int and not instruction.call.must_know


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
    gates = {i: variable for i, variable in _gates(code).items() if load_of.get(variable) in taken}
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
        trace = _Trace(code, list(start), checks, platform, effects, repetitions)
        trace.run(old)
        holds = checks.hold()
        if checks.gated_early:
            # Once more, with updates gated by every check of the segment.
            again = Effects(asker, start, host)
            first = trace
            trace = _Trace(code, list(start), Checks(holds), platform, again, repetitions)
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
            if _is_known(value):
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


def traced_alone(checks: Checks, effects: Effects, platform: str) -> Any:
    """What traces a loop or conditional that is compiled by itself."""
    return _Trace(Code(), [], checks, platform, effects)
