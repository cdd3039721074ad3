"""Items of raising: what they wait for, in which order they run, what becomes of them together."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.passes.program.checker import check_program
from runnel.passes.program.prune import prune
from runnel.passes.structure.raise_items import (
    Item,
    NotWellFormed,
    Raising,
    effect_order,
    in_order,
)
from runnel.passes.structure.structured import Conditional, structure_of, touched_by


class Step:
    """A step as items in the order of construction, asked by tensor or operation."""

    def __init__(self, fetches, feeds=(), targets=()):
        self.program = prune(fetches, targets, feeds)
        self.raising = Raising(self.program, True)
        self._items = {}
        for rank, node in enumerate(self.program.nodes):
            if node.op_def.variable:
                self.raising.variables[node.outputs[0]] = node
                self.raising.of_variable.add(node.outputs[0])
            item = self._items[node.op] = Item(node, rank)
            item.control = [self._items[control.op] for control in node.control]

    def __getitem__(self, thing) -> Item:
        return self._items[getattr(thing, "op", thing)]

    def items(self, *things):
        return [self[thing] for thing in things]

    def number(self, tensor):
        fed = self.program.feeds.get(tensor)
        return self[tensor].outputs[tensor.value_index] if fed is None else fed

    def after(self):
        """For each operation that touches state, those that it comes after."""
        found = effect_order(self.raising, self._items.values())
        return {item.node.op: {other.node.op for other in others} for item, others in found.items()}


# What an item waits for -------------------------------------------------------------------------


def test_an_item_needs_its_inputs_and_what_decides_whether_it_runs():
    x = tf.constant(1.0)
    step = Step([tf.sin(x)])
    item = step._items[next(op for op in step._items if op.type == "Sin")]
    value = step.number(x)
    assert item.needs() == (value,)
    item.status = ((100, 1), (200, 0))
    assert item.needs() == (value, 100, 200)
    assert item.needs(depth=1) == (value, 200), "the outer branch has been entered"
    item.decided_by = 300
    assert item.needs(depth=2) == (value, 300)


def test_effects_are_what_the_outside_or_a_variable_sees():
    v = tf.Variable(1.0)
    update = tf.assign_add(v, 2.0)
    told = tf.py_func(lambda x: x, [tf.constant(1.0)], tf.float32)
    drawn = tf.random_uniform([])
    nothing = tf.no_op()
    pure = tf.sin(drawn)
    step = Step([update, told, pure], targets=[nothing])
    assert step[update].has_effect and step[told].has_effect
    # What a random op draws depends on its stream alone, whenever it runs.
    for harmless in (v, drawn, nothing, pure):
        assert not step[harmless].has_effect


def test_values_are_seen_through_what_passes_them_on():
    raising = Step([tf.constant(1.0)]).raising
    raising.alias.update({3: 2, 2: 1})
    assert [raising.seen_through(value) for value in (1, 2, 3, 4)] == [1, 1, 1, 4]
    raising.stands_for[1] = 9
    assert raising.taken(3) == 9, "a variable in place of its read"
    assert raising.taken(4) == 4


# Order ----------------------------------------------------------------------------------------


def test_reads_stay_between_the_effects_around_them():
    v = tf.Variable(1.0)
    before = v.op.outputs[0] + 1.0
    first = tf.assign(v, 2.0)
    one, other = tf.sin(v.op.outputs[0]), tf.cos(v.op.outputs[0])
    second = tf.assign(v, 3.0)
    told = tf.py_func(lambda: np.float32(0), [], tf.float32)
    last = tf.tanh(v.op.outputs[0])
    after = Step([before, first, one, other, second, told, last]).after()
    assert after[before.op] == set()
    assert after[first.op] == {before.op}
    assert after[one.op] == after[other.op] == {first.op}, "reads have no order among themselves"
    assert after[second.op] == {first.op, one.op, other.op}
    assert after[told.op] == {second.op}, "what the outside sees is an effect like another"
    assert after[last.op] == {told.op}


def test_what_touches_no_state_is_free():
    v = tf.Variable(1.0)
    pure = tf.sin(tf.constant(1.0))
    step = Step([pure, tf.assign(v, pure)])
    assert pure.op not in step.after()


def test_order_is_that_of_construction_where_nothing_contradicts():
    x = tf.constant(1.0)
    a, b, c = tf.sin(x), tf.cos(x), tf.tanh(x)
    step = Step([a, b, c])
    assert in_order(step.items(c, x, b, a), {}) == step.items(x, a, b, c)


def test_a_later_item_comes_first_where_its_value_its_end_or_its_effect_is_awaited():
    x = tf.constant(1.0)
    a, b, c, d = tf.sin(x), tf.cos(x), tf.tanh(x), tf.exp(x)
    step = Step([a, b, c, d])
    value, end, effect = (Step([a, b, c, d]) for _ in range(3))
    value[a].inputs = (value.number(c),)
    assert in_order(value.items(a, b, c), {}) == value.items(c, a, b)
    end[b].control = [end[d]]
    assert in_order(end.items(a, b, d), {}) == end.items(a, d, b)
    after = {effect[a]: [effect[b]]}
    assert in_order(effect.items(a, b), after) == effect.items(b, a)
    decided = step[a]
    decided.status = ((step.number(b), 1),)
    assert in_order(step.items(a, b), {}) == step.items(b, a), "what decides comes before"


def test_what_is_not_among_the_items_is_not_waited_for():
    x = tf.constant(1.0)
    a, b = tf.sin(x), tf.cos(x)
    step = Step([a, b])
    step[a].control = [step[b]]
    assert in_order(step.items(a), {}) == step.items(a)


def test_items_that_wait_for_each_other_are_not_well_formed():
    x = tf.constant(1.0)
    a, b = tf.sin(x, name="a"), tf.cos(x, name="b")
    step = Step([a, b])
    step[a].control, step[b].control = [step[b]], [step[a]]
    with pytest.raises(NotWellFormed, match="'[ab]' waits for itself"):
        in_order(step.items(a, b), {})


@pytest.mark.parametrize("seed", range(40))
def test_random_items_agree_with_what_they_await_and_move_only_if_they_must(seed):
    rng = np.random.default_rng(seed)
    x = tf.constant(1.0)
    tensors = [tf.sin(x) for _ in range(12)]
    step = Step(tensors)
    items = step.items(*tensors)
    hidden = rng.permutation(len(items))  # an order in which everything can be had
    after: dict[Item, list[Item]] = {}
    awaits: dict[Item, set[Item]] = {item: set() for item in items}
    for _ in range(14):
        i, j = sorted(rng.integers(len(items), size=2))
        if i == j:
            continue
        first, later = items[hidden[i]], items[hidden[j]]
        awaits[later].add(first)
        kind = rng.integers(4)
        if kind == 0:
            later.inputs = (*later.inputs, *first.outputs)
        elif kind == 1:
            later.control.append(first)
        elif kind == 2:
            after.setdefault(later, []).append(first)
        else:
            later.decided_by = first.outputs[0] if later.decided_by is None else later.decided_by
            awaits[later] = awaits[later] - {first} | {
                item for item in items if later.decided_by in item.outputs
            }
    found = in_order([items[i] for i in rng.permutation(len(items))], after)
    assert sorted(found, key=lambda item: item.rank) == items, "each once"
    place = {item: i for i, item in enumerate(found)}
    for item in items:
        assert all(place[other] < place[item] for other in awaits[item])
    needed = {item: set(awaits[item]) for item in items}
    for _ in items:
        for item in items:
            needed[item] |= set().union(*(needed[other] for other in needed[item]))
    for early in items:
        for late in items:
            if early.rank < late.rank and place[late] < place[early]:
                assert any(late in needed[c] for c in items if c.rank <= early.rank)


# Items together ---------------------------------------------------------------------------------


def conditional(step, when_true, when_false, parameters):
    programs = [
        step.raising.finish(items, parameters, [results])
        for items, results in (when_true, when_false)
    ]
    return Conditional(tuple(parameters), *programs)


def test_what_comes_from_elsewhere_is_captured_once_and_variables_are_not():
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    v = tf.Variable(1.0)
    inner = x * y + x
    update = tf.assign_add(v, inner)
    step = Step([update], [x, y])
    members = [item for item in step._items.values() if not item.node.op_def.variable]
    numbers = [step.number(x), step.number(y)]
    assert step.raising.captured(members, []) == numbers
    assert step.raising.captured([], [step.number(y), None]) == numbers[1:]
    only_last = step.items(update)
    assert step.raising.captured(only_last, []) == [step.number(inner)]


def test_a_program_names_its_variables_and_keeps_the_edges_between_its_items():
    x = tf.placeholder(tf.float32, [])
    v = tf.Variable(1.0)
    outside = tf.cos(x)
    with tf.control_dependencies([outside]):
        first = tf.sin(x)
    with tf.control_dependencies([first]):
        update = tf.assign_add(v, x)
    step = Step([update], [x])
    number = step.number(x)
    program = step.raising.finish(step.items(first, update), [number], [step.number(first)])
    check_program(program, "raising")
    assert program.feeds == {0: number} and program.fetches == (step.number(first),)
    by_op = {node.op: node for node in program.nodes}
    assert v.op in by_op and outside.op not in by_op
    assert by_op[update.op].control == (by_op[first.op],)
    assert not by_op[first.op].control, "what is outside is waited for outside"


def test_one_item_in_place_of_several_waits_for_what_they_waited_for():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    before = tf.cos(x)
    with tf.control_dependencies([before]):
        one = tf.sin(x)
    with tf.control_dependencies([one, before]):
        other = tf.exp(x)
    with tf.control_dependencies([other]):
        after = tf.tanh(x)
    step = Step([after], [p, x])
    value = step.number(x)
    structure = conditional(
        step,
        (step.items(one), step.number(one)),
        (step.items(other), step.number(other)),
        [value],
    )
    members = step.items(one, other)
    inputs = (step.number(p), value)
    item = step.raising.absorb(members, other.op, structure, inputs, step[other].outputs, 2.5)
    assert structure_of(item.node) is structure and item.rank == 2.5
    assert item.control == step.items(before), "once, and not themselves"
    assert all(member.present() is item for member in members)
    assert in_order([*step.items(after, before), item], {}) == [step[before], item, step[after]]
    whole = step.raising.absorb([item], other.op, structure, inputs, step[other].outputs, 3)
    assert step[one].present() is whole, "also where that has become part of another"


def test_what_an_update_leaves_is_a_value_once_it_is_inside():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    v = tf.Variable(1.0)
    update = tf.assign_add(v, x)
    step = Step([update], [p, x])
    outputs = step[update].outputs
    assert step.program.infos[outputs[0]].dtype.is_ref_dtype
    value = step.number(x)
    structure = conditional(step, (step.items(update), outputs[0]), ([], value), [value])
    item = step.raising.absorb(
        step.items(update), update.op, structure, (step.number(p), value), outputs, 0
    )
    assert not step.program.infos[outputs[0]].dtype.is_ref_dtype
    assert touched_by(item.node).writes == (v.op,)
    assert item.has_effect, "it changes a variable in one of its branches"
