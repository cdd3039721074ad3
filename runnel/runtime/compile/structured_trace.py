"""The compiled tier of loops and conditionals: ``lax.while_loop`` and ``lax.cond``.

They carry explicitly everything that the programs inside change besides their results: variables,
positions of random streams, stacks and arrays, and whether every check has held. Before a loop or a
conditional is traced for good, it is evaluated abstractly, to learn what it changes and with which
shapes. A loop variable that does not keep its shape makes the loop :class:`NotCompilable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from runnel.passes.program.program import Node
from runnel.passes.structure.structured import Conditional, Loop, structure_of, touched_by
from runnel.runtime.compile.buffers import (
    ArrayContent,
    ArrayHandle,
    Effects,
    Handle,
    NotCompilable,
    StackHandle,
)
from runnel.runtime.compile.loop_trace import LoopTrace, ProgramState
from runnel.runtime.compile.rows import is_known
from runnel.runtime.interpret.code import Code, TracedCall
from runnel.runtime.state.random_streams import skipped

_MAX_ROUNDS = 8


class StructuredTrace:
    """Traces one structured node; ``owner`` is the trace of the program that it is in."""

    def __init__(self, owner: Any, call: TracedCall, node: Node) -> None:
        self.owner = owner
        self.call = call
        self._node = node
        self.effects: Effects = owner.effects
        self._touched = touched_by(node)

    def evaluate(self, values: Sequence[Any]) -> Any:
        """New values of variables, outputs, and what was drawn; as one if it is one."""
        touched = self._touched
        count = len(self._node.inputs)
        variables = touched.variables
        states = dict(zip(variables, values[count : count + len(variables)], strict=True))
        words = dict(zip(touched.random, values[count + len(variables) :], strict=True))
        state = ProgramState(states, words, dict.fromkeys(touched.random, 0))
        structure = structure_of(self._node)
        inputs = list(values[:count])
        if isinstance(structure, Loop):
            outputs = LoopTrace(self, structure).run(inputs, state)
        else:
            assert isinstance(structure, Conditional)
            outputs = self._conditional(structure, inputs, state)
        results = [
            *(state.variables[v] for v in touched.writes),
            *outputs,
            *(state.drawn[op] for op in touched.random),
        ]
        return results[0] if len(results) == 1 else results

    # Programs -------------------------------------------------------------------------------

    def run_program(
        self, code: Code, inputs: Sequence[Any], state: ProgramState, checks: Any
    ) -> Any:
        """The outputs of ``code``; ``state`` is changed as it says."""
        slots = list(code.template)
        for slot, value in zip(code.inputs, inputs, strict=True):
            slots[slot] = value
        for variable, slot, _ in code.loads:
            slots[slot] = state.variables[variable]
        for op, slot, _ in code.streams:
            slots[slot] = state.words[op]
        slots = self.owner.run_inside(code, slots, checks)
        for variable, slot in code.stores:
            state.variables[variable] = slots[slot]
        for op, _, drawn in code.streams:
            state.drawn[op] = state.drawn[op] + slots[drawn]
            state.words[op] = skipped(state.words[op], slots[drawn])
        return [slots[slot] for slot in code.outputs]

    def carried(self, state: ProgramState, handles: Sequence[Handle]) -> list[Any]:
        """What runs through a program, as a list of arrays; :meth:`restore` is the inverse."""
        import jax.numpy as jnp

        touched = self._touched
        flat = [state.variables[v] for v in touched.writes]
        flat += [state.words[op] for op in touched.random]
        flat += [jnp.asarray(state.drawn[op], np.int64) for op in touched.random]
        for handle in handles:
            flat += self.effects.contents[handle].arrays
        return [jnp.asarray(value, value.dtype) for value in flat]

    def restore(self, flat: Sequence[Any], state: ProgramState, handles: Sequence[Handle]) -> None:
        touched = self._touched
        rest = iter(flat)
        for variable in touched.writes:
            state.variables[variable] = next(rest)
        for op in touched.random:
            state.words[op] = next(rest)
        for op in touched.random:
            state.drawn[op] = next(rest)
        contents = self.effects.contents
        for handle in handles:
            arrays = [next(rest) for _ in contents[handle].arrays]
            contents[handle] = contents[handle].with_arrays(arrays)

    def copied(self, state: ProgramState) -> ProgramState:
        return ProgramState(dict(state.variables), dict(state.words), dict(state.drawn))

    # Learning what changes ------------------------------------------------------------------

    def settle(self, attempt: Callable[[], None], times: int | None) -> list[Handle]:
        """Makes room for what ``attempt``, run ``times``, changes; returns the handles of that.

        ``attempt`` is evaluated abstractly until a round finds nothing new.
        """
        effects = self.effects
        for _ in range(_MAX_ROUNDS):
            before = dict(effects.contents)
            seconds = effects.loop_seconds
            attempt()
            after = effects.contents
            effects.contents = dict(before)
            effects.loop_seconds = seconds
            changed: list[Handle] = []
            settled = True
            for handle, content in after.items():
                known = before.get(handle)
                if known is None:
                    if self._is_gradient(handle, before):
                        settled = False
                        effects.contents[handle] = _like(content, content)
                    continue  # made inside, and gone with the iteration
                if known is content:
                    continue
                changed.append(handle)
                if isinstance(handle, StackHandle):
                    growth = content.bound - known.bound
                    if growth > 0 and times is None:
                        raise NotCompilable("a loop with no known limit pushes on a stack")
                    if content.known is not None:
                        if known.known is None:
                            settled = False
                            effects.contents[handle] = known.knowing(content.known)
                        continue
                    room = known.bound + max(0, growth) * (times or 0)
                    has = 0 if known.buffer is None else known.buffer.shape[0]
                    if content.buffer is not None and (known.buffer is None or has < room):
                        settled = False
                        element = _element(content.buffer)
                        made = known.like(content).with_room(max(room, 1), element)
                        effects.contents[handle] = made
                elif content.buffer is not None and (
                    known.buffer is None or known.buffer.shape[0] < content.buffer.shape[0]
                ):
                    settled = False
                    effects.contents[handle] = _like(content, known)
                elif known.has_known_marks and not _has_marks_of(known, content):
                    settled = False
                    effects.contents[handle] = known.with_traced_marks()
            if settled:
                return changed
        raise NotCompilable("the shapes that it keeps do not settle")

    def outcome(self, attempt: Callable[[], None], handles: Sequence[Handle]) -> dict[Handle, Any]:
        """What each stack and array holds after one run of ``attempt``."""
        effects = self.effects
        before, seconds = dict(effects.contents), effects.loop_seconds
        attempt()
        after = effects.contents
        effects.contents, effects.loop_seconds = before, seconds
        return {handle: after[handle] for handle in handles}

    @staticmethod
    def _is_gradient(handle: Handle, known: dict[Handle, Any]) -> bool:
        """True for the gradients of an array that was there before."""
        return any(
            handle in other.gradients.values() for other in known if isinstance(other, ArrayHandle)
        )

    # Conditionals ---------------------------------------------------------------------------

    def _conditional(self, found: Conditional, inputs: list[Any], state: ProgramState) -> list[Any]:
        import jax
        import jax.numpy as jnp
        from jax import lax

        predicate, *parameters = inputs
        codes, programs, outer = self.call.inside, found.programs, self.owner.checks
        if np.shape(predicate):
            raise NotCompilable("a predicate that is not a scalar")
        if is_known(predicate):
            side = 0 if predicate else 1
            values = iter(self.run_program(codes[side], parameters, state, outer))
            return [None if v is None else next(values) for v in programs[side].fetches]
        gives: list[list[bool]] = [[], []]
        nodes: dict[Node, None] = {}

        def branch(side: int, handles: Sequence[Handle]) -> Any:
            own = self.copied(state)
            checks = outer.inside()
            with self.effects.swept_by(None):  # an iteration may leave it out
                values = self.run_program(codes[side], parameters, own, checks)
            nodes.update(dict.fromkeys(checks.nodes))
            # A conditional inside whose predicate is known may leave a value out.
            given = iter(values)
            fetched = [v is not None and next(given) is not None for v in programs[side].fetches]
            gives[side] = fetched
            holds = checks.hold()
            holds = jnp.asarray(True) if holds is None else holds
            arrays = [jnp.asarray(v, v.dtype) for v in values if v is not None]
            return arrays, self.carried(own, handles), holds

        shapes: list[Any] = [None, None]
        effects = self.effects

        def attempt() -> None:
            merged = before = dict(effects.contents)
            for side in (0, 1):
                with effects.set_aside():
                    shapes[side] = jax.eval_shape(lambda s=side: branch(s, ()))
                    merged = _joined(merged, effects.contents, before)
            effects.contents = merged

        handles = self.settle(attempt, 1)
        after = self.outcome(attempt, handles)
        slots = self._branch_results(gives, shapes)

        def traced(side: int) -> Any:
            with effects.set_aside():
                arrays, carried, holds = branch(side, handles)
            given = iter(arrays)
            results: list[Any] = []
            for is_given, aval in zip(gives[side], slots, strict=True):
                if is_given or aval is None:
                    results.append(next(given) if is_given else None)
                else:
                    results.append(jnp.zeros(aval.shape, aval.dtype))
            return results, carried, holds

        results, carried, holds = lax.cond(predicate, lambda: traced(0), lambda: traced(1))
        self.restore(carried, state, handles)
        for handle in handles:
            content = self.effects.contents[handle]
            content.bound, content.least = after[handle].bound, after[handle].least
        if nodes:
            outer(holds, lambda: "checked by the interpreter")
        return results

    def _branch_results(self, gives: list[list[bool]], shapes: list[Any]) -> list[Any]:
        """The shape and type of each output, on which both branches must agree.

        None for what neither of them ``gives``.
        """
        given = [iter(shapes[0][0]), iter(shapes[1][0])]
        avals = []
        for both in zip(*gives, strict=True):
            sides = [next(given[side]) for side, is_given in enumerate(both) if is_given]
            if len(sides) == 2 and (
                sides[0].shape != sides[1].shape or sides[0].dtype != sides[1].dtype
            ):
                raise NotCompilable("the branches give different shapes")
            avals.append(sides[0] if sides else None)
        for a, b in zip(shapes[0][1], shapes[1][1], strict=True):
            if a.shape != b.shape:
                raise NotCompilable("the branches leave different shapes")
        return avals


def _element(buffer: Any) -> Any:
    import jax

    return jax.ShapeDtypeStruct(buffer.shape[1:], buffer.dtype)


def _like(content: Any, known: Any) -> Any:
    """The array ``known``, with room for the elements that ``content`` turned out to have."""
    import jax.numpy as jnp

    if content.buffer is None:
        return content
    if known.buffer is None or known is content:
        known = known.with_arrays([jnp.zeros(a.shape, a.dtype) for a in content.arrays])
        if content.has_known_marks:
            known.marks = np.zeros_like(content.marks)
    return known.with_room(content.buffer.shape[0])


def _has_marks_of(known: ArrayContent, content: ArrayContent) -> bool:
    """True when an array has the marks that it had before, but for those that a loop sweeps."""
    return content.has_known_marks and np.array_equal(content.marks, known.marks)


def _joined(merged: dict[Handle, Any], after: dict[Handle, Any], before: dict[Handle, Any]) -> Any:
    """What is known after one branch or the other: the changed, and the larger, content."""
    result = dict(merged)
    for handle, content in after.items():
        if handle not in before or result[handle] is before[handle]:
            result[handle] = content
        elif content is not before[handle]:
            result[handle] = max(result[handle], content, key=lambda found: found.bound)
    for handle, content in before.items():
        if result[handle] is not content:
            # In the branch that leaves it alone there may be fewer, or more, than in the other.
            least = min(content.least, merged[handle].least, after[handle].least)
            joined = replace(result[handle], least=least)
            if isinstance(handle, ArrayHandle):
                joined.reached = content.reached
            result[handle] = joined
    return result
