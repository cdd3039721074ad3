"""Counters of loops: finds how often a loop runs from its condition.

If a loop variable grows by a constant in each iteration and is compared with a limit that stays the
same, that bounds the number of iterations. If the condition is nothing but such comparisons, the
number is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from runnel.passes.program.program import Node, Program
from runnel.passes.structure.structured import Loop

_MIRRORED = {
    "Less": "Greater",
    "LessEqual": "GreaterEqual",
    "Greater": "Less",
    "GreaterEqual": "LessEqual",
}


@dataclass(frozen=True, slots=True)
class Bound:
    """The loop goes on only while ``variable relation limit``; ``step`` is added each time.

    ``variable`` is a position among the loop's variables; ``limit`` is a value of the condition's
    program that is the same in every iteration.
    """

    variable: int
    step: int
    relation: str
    limit: int

    def iterations(self, first: int, limit: int) -> int | None:
        """How many iterations there can be; None when this does not bound them."""
        distance, step, relation = limit - first, self.step, self.relation
        if relation in ("Greater", "GreaterEqual"):
            distance, step = -distance, -step
        if step <= 0:
            passes = distance > 0 or (distance == 0 and relation.endswith("Equal"))
            return None if passes else 0
        if relation.endswith("Equal"):
            return max(0, distance // step + 1)
        return max(0, -(-distance // step))


@dataclass(frozen=True, slots=True)
class Counters:
    """What bounds a loop; ``exact`` if nothing else ends it. ``steps`` has every variable that
    grows by a constant, by position."""

    bounds: tuple[Bound, ...]
    exact: bool
    steps: dict[int, int]


def counters_of(loop: Loop) -> Counters:
    """The counters of ``loop``."""
    steps = _steps(loop)
    producers = loop.condition.producers()
    varying = _varying(loop)
    positions = {value: k for k, value in enumerate(loop.variables)}
    bounds: list[Bound] = []
    exact = True
    pending = [loop.condition.fetches[0]]
    while pending:
        value = _source(pending.pop(), producers)
        node = producers.get(value)
        if node is not None and node.op_def.name == "LogicalAnd":
            pending += node.inputs
            continue
        found = None
        if node is not None and node.op_def.name in _MIRRORED:
            one, other = (_source(v, producers) for v in node.inputs)
            relation = node.op_def.name
            if one not in positions:
                one, other, relation = other, one, _MIRRORED[relation]
            if positions.get(one) in steps and other not in varying:
                found = Bound(positions[one], steps[positions[one]], relation, other)
        if found is None:
            exact = False
        else:
            bounds.append(found)
    return Counters(tuple(bounds), exact and bool(bounds), steps)


def _source(value: int, producers: dict[int, Node]) -> int:
    """What ``value`` is a copy of."""
    node = producers.get(value)
    while node is not None and node.op_def.name == "Identity":
        value = node.inputs[0]
        node = producers.get(value)
    return value


def _steps(loop: Loop) -> dict[int, int]:
    """What is added in each iteration to variables that grow by an integer constant."""
    producers = loop.body.producers()
    infos = loop.body.infos
    steps: dict[int, int] = {}
    for position, (variable, following) in enumerate(
        zip(loop.variables, loop.body.fetches, strict=True)
    ):
        if not infos[variable].dtype.is_integer or infos[variable].dims != ():
            continue
        node = producers.get(_source(following, producers))
        if node is None or node.op_def.name not in ("AddV2", "Add", "Sub"):
            continue
        one, other = (_source(value, producers) for value in node.inputs)
        if other == variable and node.op_def.name != "Sub":
            one, other = other, one
        added = producers.get(other)
        if one == variable and added is not None and added.op_def.name == "Const":
            amount = int(added.attrs["value"])
            steps[position] = -amount if node.op_def.name == "Sub" else amount
    return steps


def _varying(loop: Loop) -> set[int]:
    """Values of the condition that may differ from one iteration to the next."""
    varying = set(loop.variables)
    program: Program = loop.condition
    for node in program.nodes:
        if node.op_def.stateful or not varying.isdisjoint(node.inputs):
            varying.update(node.outputs)
    return varying
