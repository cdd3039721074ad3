"""Traces a repetition of a segment as one ``lax.scan``: the compiler sees a block once.

An input of a block from outside is the same for all blocks, or a row of an array for each. Inputs
from the block before are carried. Of a block's results those that are used later are kept: all of
them as rows of one array, or only the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from runnel.runtime.compile.repetition import Repetition, Source
from runnel.runtime.compile.rows import Total, TracedRow, TracedRows, is_known, together
from runnel.runtime.compile.watch import LONG_SECONDS
from runnel.runtime.compile.work_estimate import seconds_of
from runnel.runtime.interpret.code import Instruction

_MOST_STACKED_BYTES = 1 << 14
"""Of arrays that are not yet rows of one: copying larger ones costs more than calls."""
_MOST_KEPT_BYTES = 1 << 20
"""Of a result of a block that is used later: it is copied into the array of all of them."""

Place = tuple[int, int]


class CannotRoll(Exception):
    """The blocks turn out to be different, or a loop over them to be worse than all of them."""


class RolledTrace:
    """Traces the blocks of a repetition; ``owner`` is the trace of the segment."""

    def __init__(
        self, owner: Any, repetition: Repetition, kept_on_failure: Mapping[int, Any]
    ) -> None:
        self._owner = owner
        self._kept_on_failure = kept_on_failure
        self._gated: dict[int, TracedRows] = {}
        """What takes the place of an instruction's result when a check fails."""
        self._holds: Any = None
        self._repetition = repetition
        start, length = repetition.start, repetition.length
        self._instructions: list[Instruction] = owner.code.instructions[start : repetition.end]
        self._block = self._instructions[:length]
        self._given: dict[Place, Any] = {}
        """Inputs from outside, by instruction and argument: a value, or rows."""
        self._carried: dict[Any, tuple[Place, Any]] = {}
        """The carried results, and what the first block takes in the place of each."""
        self._carry_of: dict[Place, Any] = {}
        """The key of what is carried, by instruction and argument."""
        self._constant: dict[Any, Any] = {}
        """The carried values that are known and stay the same."""
        self._made: dict[Place, Any] = {}
        """What the last trace of a block has made."""
        self._checks: Any = None

    def taken(self) -> list[Any]:
        """Everything that the blocks take from outside."""
        sources = self._repetition.sources
        slots, length = self._owner.slots, self._repetition.length
        return [
            slots[slot]
            for number, instruction in enumerate(self._instructions)
            for slot, source in zip(instruction.args, sources[number % length], strict=True)
            if source is None or (source.is_carried and number < length)
        ]

    def run(self) -> tuple[list[tuple[int, Any]], list[Any]]:
        """Slots with what the blocks leave in them, and the arrays that the blocks fill."""
        import jax.numpy as jnp
        from jax import lax

        self._find_given()
        repetition, outer = self._repetition, self._owner.checks
        jaxpr, results = self._settled()
        if repetition.times * seconds_of(jaxpr.jaxpr, self._owner.platform) > LONG_SECONDS:
            raise CannotRoll("it runs so long that it must be stopped in between")
        keys = [key for key in self._carried if key not in self._constant]
        carried = {self._carried[key][0]: place for place, key in enumerate(keys)}
        varying = {p: b for p, b in repetition.used.items() if not is_known(self._made[p])}
        ends = [p for p, blocks in varying.items() if blocks == (repetition.times - 1,)]
        last = [p for p in ends if p not in carried]
        factors = self._products([p for p in repetition.summed if p in varying])
        added = [p for p in repetition.summed if p in varying and p not in factors]
        rows = [p for p in varying if p not in ends and p not in repetition.summed]
        rows += {f for pair in factors.values() for f in pair if type(f) is tuple} - set(rows)
        if any(_bytes_of(results[p]) > _MOST_KEPT_BYTES for p in rows):
            raise CannotRoll("large results of the blocks are used later")
        start = [jnp.asarray(v, v.dtype) for v in (self._carried[key][1] for key in keys)]
        self._require_equal(start, [results[self._carried[key][0]] for key in keys])
        empty = [jnp.zeros(results[p].shape, results[p].dtype) for p in (*last, *added)]

        def block(carry: Any, number: Any) -> Any:
            values, others, holds = carry
            made, checked = self._traced(dict(zip(keys, values, strict=True)), number)
            values = [made[self._carried[key][0]] for key in keys]
            sums = [a + made[p] for a, p in zip(others[len(last) :], added, strict=True)]
            others = [*(made[p] for p in last), *sums]
            holds = holds if checked is None else holds & checked
            return (_strong(values), _strong(others), holds), _strong([made[p] for p in rows])

        numbers = jnp.arange(repetition.times, dtype=np.int32)
        carry = (start, empty, jnp.asarray(True))
        (values, others, holds), stacks = lax.scan(block, carry, numbers)
        if self._checks.nodes:
            outer.node = self._checks.nodes[0]
            outer(holds, lambda: "checked by the interpreter")
        final = {p: values[carried[p]] for p in ends if p in carried}
        final.update(zip(last, others, strict=False))
        arrays: dict[Place, Any] = dict(zip(rows, stacks, strict=True))
        for place, pair in factors.items():
            a, b = (arrays[f] if type(f) is tuple else f.array() for f in pair)
            attrs = self._block[place[0]].node.attrs
            product = _sum_of_products(a, b, attrs["transpose_a"], attrs["transpose_b"])
            arrays[place] = Total(product)
        arrays.update(zip(added, map(Total, others[len(last) :]), strict=True))
        return self._left(final, arrays), list(stacks)

    def _products(self, summed: Sequence[Place]) -> dict[Place, tuple[Any, Any]]:
        """Of what is added up, products of matrices that may be one product after the loop.

        For each, its factors: the place of a result of the block, or rows from outside. Neither is
        larger than the product, which each block would else write, or read and add to.
        """
        found: dict[Place, tuple[Any, Any]] = {}
        for place in summed:
            position, _ = place
            node = self._block[position].node
            if node.op_def.name != "MatMul":
                continue
            factors = []
            for argument, source in enumerate(self._repetition.sources[position]):
                factor: Any = self._given.get((position, argument))
                if source is not None and not source.is_carried:
                    factor = (source.position, source.output)
                    if is_known(self._made[factor]):
                        factor = None
                if isinstance(factor, TracedRows | tuple):
                    factors.append(factor)
            product = self._made[place]
            if len(factors) == 2 and all(self._size(f) <= product.size for f in factors):
                found[place] = factors[0], factors[1]
        return found

    def _size(self, factor: Any) -> int:
        if isinstance(factor, TracedRows):
            return int(np.prod(factor.stack.shape[1:]))
        return int(self._made[factor].size)

    # What blocks take -----------------------------------------------------------------------

    def _find_given(self) -> None:
        slots, repetition = self._owner.slots, self._repetition
        found: dict[tuple[int, ...], Any] = {}
        for position, sources in enumerate(repetition.sources):
            for argument, source in enumerate(sources):
                place = position, argument
                if source is None:
                    taken = [
                        instruction.args[argument]
                        for instruction in self._instructions[position :: repetition.length]
                    ]
                    values = [slots[slot] for slot in taken]
                    key = tuple(map(id, values))
                    if key not in found:
                        found[key] = self._as_given(values)
                    self._given[place] = found[key]
                elif source.is_carried:
                    first = slots[self._block[position].args[argument]]
                    first = first.value() if type(first) is TracedRow else first
                    key = (source.position, source.output, id(first))
                    self._carried[key] = (source.position, source.output), first
                    self._carry_of[place] = key

        for position in range(repetition.length):
            indices = range(repetition.start + position, repetition.end, repetition.length)
            if indices[0] in self._kept_on_failure:
                self._holds = self._owner.checks.gating()
                if self._holds is not None:
                    self._gated[position] = together([self._kept_on_failure[i] for i in indices])

    def _as_given(self, values: Sequence[Any]) -> Any:
        """One value for all blocks, or rows."""
        first = values[0]
        if all(value is first for value in values):
            return first.value() if type(first) is TracedRow else first
        if any(value is None or not hasattr(value, "dtype") for value in values):
            raise CannotRoll("a block takes what is no array")
        if len({(tuple(value.shape), value.dtype) for value in values}) > 1:
            raise CannotRoll("blocks take arrays of different shapes")
        if all(map(is_known, values)):
            if all(_is_same(value, first) for value in values):
                return first
            if first.dtype.kind in "iub":
                raise CannotRoll("blocks take different numbers that may have to be known")
        apart = sum(type(value) is not TracedRow for value in values)
        if apart > 2 and _bytes_of(first) > _MOST_STACKED_BYTES:
            raise CannotRoll("blocks take large arrays that are apart")
        return together(values)

    # A block --------------------------------------------------------------------------------

    def _settled(self) -> tuple[Any, dict[Place, Any]]:
        """The jaxpr of a block, and the shapes and types of its results.

        Carried values that are known count as constant until a round changes them.
        """
        import jax

        self._constant = {
            key: value for key, (_, value) in self._carried.items() if is_known(value)
        }
        shapes: dict[Any, Any] = {
            key: jax.ShapeDtypeStruct(np.shape(value), value.dtype)
            for key, (_, value) in self._carried.items()
        }
        while True:
            varying = {k: s for k, s in shapes.items() if k not in self._constant}

            def once(carried: list[Any], number: Any, keys: Any = tuple(varying)) -> Any:
                made, _ = self._traced(dict(zip(keys, carried, strict=True)), number)
                self._made = made
                return {str(p): v for p, v in made.items() if not is_known(v)}

            number = jax.ShapeDtypeStruct((), np.int32)
            jaxpr, traced = jax.make_jaxpr(once, return_shape=True)(list(varying.values()), number)
            changed = [
                key
                for key, value in self._constant.items()
                if not _is_same(self._made[self._carried[key][0]], value)
            ]
            if not changed:
                break
            for key in changed:
                del self._constant[key]
        results = {
            p: jax.ShapeDtypeStruct(np.shape(v), v.dtype) if is_known(v) else traced[str(p)]
            for p, v in self._made.items()
        }
        return jaxpr, results

    def _traced(self, carried: dict[Any, Any], number: Any) -> tuple[dict[Place, Any], Any]:
        """The results of one block, and whether its checks hold; None where it has none."""
        import jax.numpy as jnp

        checks = self._checks = self._owner.checks.inside()
        trace = self._owner.inside(checks)
        made: dict[Place, Any] = {}
        rows: dict[int, Any] = {}
        for position, instruction in enumerate(self._block):
            sources = self._repetition.sources[position]
            values = [
                self._argument((position, argument), source, made, carried, number, rows)
                for argument, source in enumerate(sources)
            ]
            result = trace.result(instruction, values)
            if position in self._gated:
                result = jnp.where(self._holds, result, self._gated[position].at(number))
            results = result if type(instruction.out) is tuple else (result,)
            for output, value in enumerate(results):
                # By how much a random stream moves is a number.
                made[position, output] = np.int64(value) if type(value) is int else value
        return made, checks.hold()

    def _argument(
        self,
        place: Place,
        source: Source | None,
        made: dict[Place, Any],
        carried: dict[Any, Any],
        number: Any,
        rows: dict[int, Any],
    ) -> Any:
        if source is None:
            given = self._given[place]
            if not isinstance(given, TracedRows):
                return given
            if id(given) not in rows:
                rows[id(given)] = given.at(number)
            return rows[id(given)]
        if source.is_carried:
            key = self._carry_of[place]
            return self._constant[key] if key in self._constant else carried[key]
        return made[source.position, source.output]

    @staticmethod
    def _require_equal(start: Sequence[Any], results: Sequence[Any]) -> None:
        for value, result in zip(start, results, strict=True):
            if value.shape != result.shape or value.dtype != result.dtype:
                raise CannotRoll("what is carried changes its shape")

    # After the blocks -----------------------------------------------------------------------

    def _left(self, final: dict[Place, Any], arrays: dict[Place, Any]) -> list[tuple[int, Any]]:
        """What the slots hold after the blocks: values, or rows of arrays."""
        left = []
        for place, blocks in self._repetition.used.items():
            position, output = place
            for block in blocks:
                slot = self._instructions[block * self._repetition.length + position].outs[output]
                if place in final:
                    left.append((slot, final[place]))
                elif place in arrays:
                    left.append((slot, TracedRow(arrays[place], block)))
                else:
                    left.append((slot, self._made[place]))  # which is known
        return left


def _sum_of_products(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    """The sum of the products of the matrices in two arrays, as one product."""
    from jax import lax

    contracted = ((0, 1 if transpose_a else 2), (0, 2 if transpose_b else 1))
    return lax.dot_general(a, b, (contracted, ((), ())))


def _bytes_of(array: Any) -> int:
    return int(np.prod(array.shape)) * int(array.dtype.itemsize)


def _is_same(value: Any, other: Any) -> bool:
    """True when ``value`` is known, and in every bit what ``other`` is."""
    if not is_known(value) or value.dtype != other.dtype or value.shape != other.shape:
        return False
    return bool(value.tobytes() == other.tobytes())


def _strong(values: Sequence[Any]) -> list[Any]:
    """``values`` with types that do not depend on what they meet."""
    import jax.numpy as jnp

    return [jnp.asarray(value, value.dtype) for value in values]
