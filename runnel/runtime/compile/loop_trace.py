"""The compiled tier of a loop: ``lax.while_loop``, which carries what the body changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from runnel.graph.operation import Operation
from runnel.passes.clusters.known_values import FEW_ITERATIONS
from runnel.passes.program.program import Node
from runnel.passes.structure.counters import Counters
from runnel.passes.structure.structured import Loop, nested_nodes
from runnel.runtime.compile.buffers import ArrayHandle, Effects, Handle, NotCompilable, StackHandle
from runnel.runtime.compile.rows import is_known
from runnel.runtime.compile.watch import LONG_SECONDS, stoppable_loop
from runnel.runtime.compile.work_estimate import seconds_of

_MOST_ITERATIONS = 1 << 40
"""More are no limit: what is known of a number may be just its type."""


@dataclass
class ProgramState:
    """What runs through a program beside its values: variables, random streams, what was drawn."""

    variables: dict[Operation, Any]
    words: dict[Operation, Any]
    drawn: dict[Operation, Any] = field(default_factory=dict)


def counted_loop(times: int, body: Callable[[Any], Any], start: Any) -> Any:
    """``body`` applied ``times`` to ``start``, such that XLA knows how often.

    An accelerator is then sent all iterations at once; of another loop the host reads, after each,
    whether there is one more.
    """
    import jax.numpy as jnp
    from jax import lax

    state, _ = lax.while_loop(
        lambda carry: carry[1] < times,
        lambda carry: (body(carry[0]), carry[1] + 1),
        (start, jnp.zeros((), np.int32)),
    )
    return state


class _KeptInLoop:
    """How many elements a loop's stacks and arrays have, in any iteration and at its end."""

    def __init__(
        self, effects: Effects, after: dict[Handle, Any], times: int | None, exact: bool
    ) -> None:
        """``after`` has what each holds after one iteration; there are at most ``times``."""
        self._effects = effects
        self._after = after
        self._times = times if exact else None
        self._start = {handle: effects.contents[handle] for handle in after}
        stacks = [handle for handle in after if isinstance(handle, StackHandle)]
        self._growth = {h: max(0, after[h].bound - self._start[h].bound) for h in stacks}
        self._moves = {h: after[h].least - self._start[h].least for h in stacks}
        self._total = {h: self._start[h].bound + self._growth[h] * (times or 0) for h in stacks}
        self._arrays = [handle for handle in after if isinstance(handle, ArrayHandle)]

    def begin_iteration(self) -> None:
        """Has stacks and arrays be as they may be when any of the iterations begins."""
        contents, times = self._effects.contents, self._times
        for stack, total in self._total.items():
            content, move = contents[stack], self._moves[stack]
            content.bound = total - self._growth[stack]
            content.least = self._start[stack].least
            if move < 0:  # as few as before the last iteration
                content.least += move * (times - 1) if times else -content.bound
        for array in self._arrays:  # which may have grown in an iteration before
            contents[array].bound = self._after[array].bound

    def end_loop(self, loop: LoopTrace) -> None:
        """Has them be as they are when ``loop`` has ended."""
        contents = self._effects.contents
        for stack, total in self._total.items():
            content, move = contents[stack], self._moves[stack]
            content.bound, content.least = total, self._start[stack].least
            if self._times:
                content.least += move * self._times
            elif move < 0:
                content.least = 0
        for array in self._arrays:
            content = self._after[array].with_arrays(contents[array].arrays)
            complete = self._times is not None
            contents[array] = content.after_loop(self._start[array], loop, complete)


class LoopTrace:
    """Traces one loop."""

    def __init__(self, around: Any, loop: Loop) -> None:
        self._around = around
        self._loop = loop
        self._effects = around.effects
        self._condition, self._body = around.call.inside
        self._counters: Counters = around.call.counters
        self._extra = len(loop.condition.fetches)
        self._nodes: dict[Node, None] = {}
        self.is_exact = False
        """Whether it is known how often the loop runs."""
        self._always_ends = False
        """Whether an iteration ends by itself, also on what an iteration that failed has left."""

    def run(self, inputs: list[Any], state: ProgramState) -> list[Any]:
        import jax
        import jax.numpy as jnp

        around, loop = self._around, self._loop
        count = len(loop.variables)
        firsts, self._invariants = inputs[:count], inputs[count:]
        exact, times = self._iterations(firsts, state)
        self.is_exact = exact
        if exact and times == 0:
            return [firsts[position] for position in loop.exits]
        firsts = [jnp.asarray(value, value.dtype) for value in firsts]
        self._ranges = self._known_ranges(inputs, times)

        seconds = 0.0

        def attempt() -> None:
            nonlocal seconds
            before, open_before = self._effects.loop_seconds, self._effects.open_loops
            iteration = lambda: self._iteration(firsts, around.copied(state))  # noqa: E731
            traced, self._shapes = jax.make_jaxpr(iteration, return_shape=True)()
            seconds = seconds_of(traced.jaxpr, around.owner.platform)
            seconds += self._effects.loop_seconds - before
            self._always_ends = self._effects.open_loops == open_before

        few = times is not None and times <= FEW_ITERATIONS
        handles = around.settle(attempt, times if few or self._counters.exact else None)
        after = around.outcome(attempt, handles)
        self._require_same_shapes(firsts)
        checked = bool(self._nodes)
        kept = _KeptInLoop(self._effects, after, times, exact)

        def body(carry: Any) -> Any:
            variables, carried, held = carry
            own = around.copied(state)
            with self._effects.set_aside():
                around.restore(carried, own, handles)
                kept.begin_iteration()
                following, holds = self._iteration(variables, own)
                return following, around.carried(own, handles), held & holds

        def goes_on(carry: Any) -> Any:
            variables, carried, holds = carry
            own = around.copied(state)
            with self._effects.set_aside():
                around.restore(carried, own, handles)
                checks = around.owner.checks.inside()
                results = self._run_condition(variables, own, checks)
                if checks.nodes:
                    raise NotCompilable("a condition that checks its data")
                return results[0] & holds if checked else results[0]

        start = (firsts, around.carried(state, handles), jnp.asarray(True))
        variables, carried, holds = self._looped(goes_on, body, start, times, seconds)
        around.restore(carried, state, handles)
        kept.end_loop(self)
        if self._condition_has_effects():
            self._run_condition(variables, state, around.owner.checks)  # the one that was false
        if checked:
            around.owner.checks(holds, lambda: "checked by the interpreter")
        return self._exits(inputs, variables, exact, times)

    def _looped(
        self, goes_on: Any, body: Any, start: Any, times: int | None, seconds: float
    ) -> Any:
        """What ``start`` becomes. A loop that may run long asks now and then whether to go on.

        There are at most ``times`` iterations, each of which takes ``seconds``, as estimated.
        """
        from jax import lax

        effects = self._effects
        inside = effects.loop_seconds
        if times is not None and times * seconds <= LONG_SECONDS:
            if self.is_exact and self._always_ends:
                end = counted_loop(times, body, start)
            else:
                end = lax.while_loop(goes_on, body, start)
                effects.open_loops += 1
            inside += times * seconds
        elif effects.asker is None:
            raise NotCompilable("a loop that runs long, or has no known end")
        else:
            end, stopped = stoppable_loop(goes_on, body, start, effects.asker, seconds)
            self._around.owner.checks(~stopped, lambda: "stopped")
            effects.asks = True
            effects.open_loops += 1
        effects.loop_seconds = inside
        return end

    def _condition_has_effects(self) -> bool:
        nodes = nested_nodes(self._loop.condition.nodes)
        return any(node.op_def.stateful and not node.op_def.variable for node in nodes)

    def _exits(self, inputs: list[Any], variables: Any, exact: bool, times: int | None) -> Any:
        results = []
        for position in self._loop.exits:
            first, step = inputs[position], self._counters.steps.get(position)
            if exact and times is not None and step is not None and is_known(first):
                last = int(first) + step * times  # a counter, whose end is known
                results.append(np.asarray(last).astype(np.asarray(first).dtype))
            else:
                results.append(variables[position])
        return results

    # One iteration --------------------------------------------------------------------------

    def _run_condition(
        self, variables: Sequence[Any], state: ProgramState, checks: Any
    ) -> list[Any]:
        inputs = [*variables, *self._invariants]
        with self._effects.swept_by(None):
            results = self._around.run_program(self._condition, inputs, state, checks)
        return results[: self._extra]

    def _iteration(self, variables: Sequence[Any], state: ProgramState) -> Any:
        """The variables of the next iteration, and whether the checks of this one hold."""
        import jax.numpy as jnp

        around = self._around
        checks = around.owner.checks.inside()
        for position, (least, greatest) in self._ranges.items():
            self._effects.note_range(variables[position], least, greatest, self)
        _, *extras = self._run_condition(variables, state, around.owner.checks.inside())
        inputs = [*variables, *self._invariants, *extras]
        with self._effects.swept_by(self):
            following = around.run_program(self._body, inputs, state, checks)
        self._nodes.update(dict.fromkeys(checks.nodes))
        holds = checks.hold()
        holds = jnp.asarray(True) if holds is None else holds
        return [jnp.asarray(value, value.dtype) for value in following], holds

    def _require_same_shapes(self, firsts: Sequence[Any]) -> None:
        following, _ = self._shapes
        for value, after in zip(firsts, following, strict=True):
            if value.shape != after.shape or value.dtype != after.dtype:
                raise NotCompilable("a loop variable changes its shape")

    # How often ------------------------------------------------------------------------------

    def _iterations(self, firsts: Sequence[Any], state: ProgramState) -> tuple[bool, int | None]:
        """Whether the number of iterations is known exactly; it, or the most there can be."""
        counters = self._counters
        if not counters.bounds:
            return False, None
        around = self._around
        import jax

        limits: list[Any] = []

        def look() -> None:
            inputs = [*firsts, *self._invariants]
            own = around.copied(state)
            checks = around.owner.checks.inside()
            found = around.run_program(self._condition, inputs, own, checks)
            limits.extend(found[self._extra :])

        with self._effects.set_aside():
            jax.eval_shape(look)
        most: int | None = None
        exact = counters.exact
        for counter, limit in zip(counters.bounds, limits, strict=True):
            last = self._effects.range_of(limit)
            first = self._effects.range_of(firsts[counter.variable])
            if last is None or first is None:
                exact = False
                continue
            exact = exact and last[0] == last[1] and first[0] == first[1]
            rises = counter.relation.startswith("Less")
            found = counter.iterations(first[not rises], last[rises])
            if found is None or found > _MOST_ITERATIONS:
                exact = False
            elif most is None or found < most:
                most = found
        return exact and most is not None, most

    def _known_ranges(self, firsts: Sequence[Any], times: int | None) -> dict[int, tuple[int, int]]:
        """The values that counters have in the body."""
        found = {}
        for position, step in self._counters.steps.items():
            first = firsts[position]
            if times is not None and times > 0 and is_known(first):
                ends = (int(first), int(first) + step * (times - 1))
                found[position] = (min(ends), max(ends))
        return found
