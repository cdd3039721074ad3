"""Traces a segment's instructions with jax.numpy; values known while tracing stay NumPy."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from runnel.graph.array_size import require_addressable
from runnel.graph.registry import COMPILED
from runnel.graph.shapes import num_elements
from runnel.passes.program.kernel_call import bind, interpreted, select
from runnel.passes.program.program import Node
from runnel.passes.program.step_resources import RESOURCE_OPS
from runnel.passes.structure.structured import structure_of
from runnel.runtime.compile import buffer_ops
from runnel.runtime.compile.buffers import Effects, Handle, NotCompilable
from runnel.runtime.compile.checks import Checks
from runnel.runtime.compile.joined_updates import JoinedTrace
from runnel.runtime.compile.repetition import Repetition
from runnel.runtime.compile.rolled_trace import RolledTrace
from runnel.runtime.compile.rows import collected, is_known, taken_out, unpacked
from runnel.runtime.compile.structured_trace import StructuredTrace
from runnel.runtime.interpret import verification
from runnel.runtime.interpret.code import Code, Instruction, require_assignable
from runnel.runtime.interpret.interpreter import as_op_error

logger = logging.getLogger("runnel")

_SHIFTS = {"Add": 1, "AddV2": 1, "Sub": -1}
"""Operations that move a counter by a number; and in which direction."""
_MAX_FOLDED_ELEMENTS = 1024


class _Recorded(NamedTuple):
    """What an instruction took, found in stacks and arrays, gave, and left in them."""

    values: list[Any]
    found: dict[Handle, Any]
    result: Any
    left: dict[Handle, Any]


class SegmentTrace:
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
        self.recorded: dict[int, _Recorded] = {}
        self.saved = 0
        """The instructions in blocks that were not traced, being like others."""
        self._rolled: dict[int, tuple[list[Any], list[tuple[int, Any]], list[Any]]] = {}
        """What each repetition took, gave and filled, by its first instruction."""

    def run_inside(self, code: Code, slots: list[Any], checks: Checks) -> list[Any]:
        """Traces the code of a program inside a structured node; returns its slots."""
        SegmentTrace(code, slots, checks, self.platform, self.effects).run({})
        return slots

    def run(
        self,
        kept_on_failure: Mapping[int, Any],
        before: SegmentTrace | None = None,
        updates: Sequence[JoinedTrace] = (),
    ) -> None:
        """Traces; the result of an instruction that is a key gives way to the value there
        when a check fails. What takes the same as in the trace ``before`` gives the
        same: only what depends on gated values is traced again. ``updates`` are joined."""
        slots, end = self.slots, 0
        joined: dict[int, Any] = {}
        for index, instruction in enumerate(self.code.instructions):
            for update in updates:
                if update.first == index:
                    joined |= update.run(
                        self.code.instructions, slots, self.checks, kept_on_failure, self._joined
                    )
            if index in joined:
                slots[instruction.out] = joined[index]
                continue
            if index < end:
                continue  # in a repetition
            if index in self._repetitions and self._roll(
                self._repetitions[index], kept_on_failure, before
            ):
                end = self._repetitions[index].end
                continue
            _, args, out, node = instruction
            values = [slots[a] for a in args]
            touches = structure_of(node) is not None or node.op_def.name in RESOURCE_OPS
            found = dict(self.effects.contents) if touches else {}
            earlier = None if before is None else before.recorded.get(index)
            if earlier is not None and self._is_same(node, values, found, earlier):
                result = earlier.result
                if touches:
                    self.effects.contents = dict(earlier.left)
            else:
                result = self.result(instruction, list(values))
            left = dict(self.effects.contents) if touches else {}
            self.recorded[index] = _Recorded(values, found, result, left)
            if index in kept_on_failure:
                result = self.checks.gate(result, kept_on_failure[index])
            if type(out) is int:
                slots[out] = result
            else:
                for slot, value in zip(out, result, strict=True):
                    slots[slot] = value

    def _joined(self, instruction: Instruction, values: list[Any]) -> Any:
        """What an instruction makes of ``values``, the elements of many arrays."""
        import jax.numpy as jnp

        return self._evaluate(instruction.call, instruction.node, values, jnp)

    def _roll(
        self,
        repetition: Repetition,
        kept_on_failure: Mapping[int, Any],
        before: SegmentTrace | None,
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

    def inside(self, checks: Checks) -> SegmentTrace:
        """What traces single instructions of a block, with ``checks`` of its own."""
        return SegmentTrace(self.code, [], checks, self.platform, self.effects)

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
    def _is_same(
        node: Node, values: list[Any], found: dict[Handle, Any], before: _Recorded
    ) -> bool:
        same = all(a is b for a, b in zip(values, before.values, strict=True))
        same = same and found.keys() == before.found.keys()
        same = same and all(content is before.found[handle] for handle, content in found.items())
        return same and not node.op_def.self_gated

    def _evaluate(self, call: Any, node: Node, values: list[Any], jnp: Any) -> Any:
        op_def = node.op_def
        if structure_of(node) is not None:
            return StructuredTrace(self, call, node).evaluate(values)
        if op_def.name in RESOURCE_OPS:
            return buffer_ops.evaluate(self.effects, node, values, self.checks)
        if (
            not op_def.stateful
            and (op_def.known_from_shapes or all(map(is_known, values)))
            and (call.must_know or self._is_small(node, values))
        ):
            with np.errstate(all="ignore"):
                return interpreted(node, call.device)(*values)
        for position in op_def.updates:
            # A variable's value, even one that is known, is an array of JAX for its update.
            values[position] = jnp.asarray(values[position])
        kernel = select(node, call.device, COMPILED)
        result = bind(kernel, node, jnp, self.checks, self.platform)(*values)
        if op_def.name == "Minimum" and not np.shape(result):
            self._note_limit(result, values)
        elif op_def.name in _SHIFTS and not np.shape(result):
            self._note_shifted(result, values, _SHIFTS[op_def.name])
        return result

    def _note_shifted(self, result: Any, values: list[Any], sign: int) -> None:
        """A counter and a number that is known make another counter."""
        counter, number = values
        if sign > 0 and is_known(counter):
            counter, number = number, counter
        known, loop = self.effects.range_of(counter), self.effects.counted_by(counter)
        if known is None or loop is None or not is_known(number):
            return
        ends = [end + sign * int(number) for end in known]
        limits = np.iinfo(result.dtype)
        if limits.min <= ends[0] and ends[1] <= limits.max:
            self.effects.note_range(result, ends[0], ends[1], loop)

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
