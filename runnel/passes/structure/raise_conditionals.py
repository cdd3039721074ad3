"""Makes conditionals of the branches in which the nodes of a frame run.

The nodes of one predicate need not be one conditional: the gradient of a branch runs after the code
that took the branch's result, and uses values of the branch itself. So the nodes of a predicate go
into *levels*, such that nothing leaves a level and comes back, and each level is one conditional. A
conditional hands out the values that a later level uses.
"""

from __future__ import annotations

import numpy as np

from runnel.passes.structure.raise_items import Item, NotWellFormed, Raising, effect_order, in_order
from runnel.passes.structure.structured import Conditional

Merges = dict[Item, tuple[int, tuple[int, int], tuple[int, int]]]
"""What ends conditionals: the predicate of each; when that is false and when it is true, the value
that the Merge gives, and the place of this among its inputs (both values may be the same one)."""


def raise_conditionals(
    raising: Raising,
    merges: Merges,
    items: list[Item],
    depth: int,
    wanted: frozenset[int] = frozenset(),
    after: dict[Item, list[Item]] | None = None,
) -> list[Item]:
    """``items``, whose status agrees up to ``depth``, with a node for what is deeper.

    ``wanted`` are values that are used elsewhere, in the same branches; ``after`` is the order of
    effects, where it is known.
    """
    after = effect_order(raising, items) if after is None else after
    items = in_order(items, after)
    while True:
        deeper = next((item for item in items if len(item.status) > depth), None)
        if deeper is None:
            merge = next((item for item in items if item in merges), None)
            if merge is None:
                return items
            predicate = merges[merge][0]
        else:
            predicate = deeper.status[depth][0]
        try:
            items = _Predicate(raising, merges, items, depth, predicate, wanted, after).raised()
        except NotWellFormed as reason:
            reason.predicate = predicate  # at last the outermost
            raise


class _Predicate:
    """The conditionals on one predicate among the items of a frame or a branch."""

    def __init__(
        self,
        raising: Raising,
        merges: Merges,
        items: list[Item],
        depth: int,
        predicate: int,
        wanted: frozenset[int],
        after: dict[Item, list[Item]],
    ) -> None:
        self._raising = raising
        self._merges = merges
        self._items = items
        self._depth = depth
        self._predicate = predicate
        self._wanted = wanted
        self._after = after

    def _is_merge(self, item: Item) -> bool:
        found = self._merges.get(item)
        at_depth = len(item.status) == self._depth
        return found is not None and found[0] == self._predicate and at_depth

    def _is_member(self, item: Item) -> bool:
        depth = self._depth
        within = len(item.status) > depth and item.status[depth][0] == self._predicate
        return within or self._is_merge(item)

    def _levels(self) -> dict[int, list[Item]]:
        level: dict[Item, int] = {}
        producer = {value: item for item in self._items for value in item.outputs}
        members: dict[int, list[Item]] = {}
        for item in self._items:
            sources = [producer[value] for value in item.needs() if value in producer]
            awaited = (*item.control, *self._after.get(item, ()))
            sources += [c for c in map(Item.present, awaited) if c in level]
            inside = self._is_member(item)
            found = 0
            for source in sources:
                # What was merged has left; a branch on the same predicate may take it in again.
                leaves = self._is_merge(source) or (not inside and self._is_member(source))
                found = max(found, level[source] + leaves)
            level[item] = found
            if inside:
                members.setdefault(found, []).append(item)
        return members

    def raised(self) -> list[Item]:
        levels = self._levels()
        users: dict[int, set[Item]] = {}
        for item in self._items:
            for value in item.needs(self._depth + 1):
                users.setdefault(value, set()).add(item)
        made = []
        absorbed: set[Item] = set()
        for number in sorted(levels):
            members = levels[number]
            item = self._conditional(members, users)
            earlier = [c.present() for member in members for c in self._after.get(member, ())]
            self._after[item] = [c for c in dict.fromkeys(earlier) if c is not item]
            made.append(item)
            absorbed.update(members)
        return in_order([*(i for i in self._items if i not in absorbed), *made], self._after)

    def _conditional(self, members: list[Item], users: dict[int, set[Item]]) -> Item:
        raising = self._raising
        own = set(members)
        merges = [item for item in members if self._is_merge(item)]
        inside = [item for item in members if not self._is_merge(item)]
        sides: list[list[Item]] = [[], []]
        for item in inside:
            sides[item.status[self._depth][1]].append(item)
        outputs: list[int] = []
        results: list[list[int | None]] = [[], []]
        for item in merges:
            _, values, places = self._merges[item]
            outputs.append(item.outputs[0])
            for side in (0, 1):
                results[side].append(values[side])
            if len(item.outputs) > 1 and item.outputs[1] in raising.used:
                outputs.append(item.outputs[1])
                for side in (0, 1):
                    index = self._index_constant(item, places[side])
                    sides[side].append(index)
                    results[side].append(index.outputs[0])
        for side in (0, 1):
            for item in sides[side]:
                for value in item.outputs:
                    if value in self._wanted or not users.get(value, own) <= own:
                        outputs.append(value)
                        results[side].append(value)
                        results[1 - side].append(None)
        parts = [
            raise_conditionals(
                raising,
                self._merges,
                sides[side],
                self._depth + 1,
                frozenset(v for v in results[side] if v is not None),
            )
            for side in (0, 1)
        ]
        captured = [
            value for side in (0, 1) for value in raising.captured(parts[side], results[side])
        ]
        parameters = tuple(dict.fromkeys(captured))
        programs = [raising.finish(parts[side], parameters, results[side]) for side in (0, 1)]
        structure = Conditional(parameters, programs[1], programs[0])
        rank = max(item.rank for item in (inside or merges))
        op, inputs = (merges or inside)[0].node.op, (self._predicate, *parameters)
        return raising.absorb(members, op, structure, inputs, tuple(outputs), rank)

    def _index_constant(self, merge: Item, place: int) -> Item:
        """``place``, of an input of the Merge, as a constant of its branch."""
        index = np.array(place, np.int32)
        return Item(self._raising.program.constant(merge.node.op, index), merge.rank)
