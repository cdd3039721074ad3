"""Finding equal blocks in instructions that were written down by hand."""

import numpy as np

from runnel.graph import dtypes
from runnel.graph.registry import get_op_def
from runnel.passes.program.program import Node, ValueInfo
from runnel.runtime.compile.repetition import Source, find_repetitions
from runnel.runtime.interpret.code import Code, Instruction


class Written:
    """Code in the making; every value has a slot of its own."""

    def __init__(self):
        self.code = Code(template=[None])

    def slot(self, content=None):
        self.code.template.append(content)
        return len(self.code.template) - 1

    def __call__(self, name, *args, dims=(4,), outputs=1):
        first = len(self.code.infos)
        self.code.infos += [ValueInfo(dtypes.float32, dims)] * outputs
        values = tuple(range(first, first + outputs))
        node = Node(None, get_op_def(name), (), values, (), {})
        out = tuple([self.slot() for _ in values])
        out = out if outputs > 1 else out[0]
        self.code.instructions.append(Instruction(None, args, out, node))
        return out

    def found(self, *outputs, apart=(), fewest=4):
        self.code.outputs = list(outputs)
        return find_repetitions(self.code, apart, fewest)


def spans(found):
    return [(r.start, r.length, r.times) for r in found]


def test_a_chain_of_equal_blocks_is_found_with_what_it_carries_and_takes():
    written = Written()
    value, shared = written.slot(), written.slot()
    weights = [written.slot() for _ in range(6)]
    for weight in weights:
        value = written("Tanh", written("AddV2", written("Mul", value, weight), shared))
    (found,) = written.found(value)
    assert (found.start, found.length, found.times) == (0, 3, 6)
    assert found.sources == (
        (Source(2, 0, True), None),
        (Source(0, 0, False), None),
        (Source(1, 0, False),),
    )
    assert found.used == {(2, 0): (5,)}
    assert found.saved == 15


def chain_with_squares(written, times=5):
    """The end of a chain, and a result of each of its blocks."""
    value, squares = written.slot(), []
    for _ in range(times):
        value = written("Tanh", value)
        squares.append(written("Square", value))
    return value, squares


def test_what_is_used_after_the_blocks_is_known_by_block():
    written = Written()
    value, squares = chain_with_squares(written)
    (found,) = written.found(squares[1], squares[3], value)
    assert found.used == {(0, 0): (4,), (1, 0): (1, 3)}


def test_results_that_are_only_added_up_are_known():
    written = Written()
    _, squares = chain_with_squares(written)
    total = written("AddN", *squares)
    (found,) = written.found(total)
    assert found.summed == {(1, 0)}
    (found,) = written.found(total, squares[2])
    assert not found.summed


def test_a_backward_chain_reads_the_forward_one_in_the_other_direction():
    written = Written()
    value = written.slot()
    forward = []
    for _ in range(8):
        value = written("Tanh", written("Square", value))
        forward.append(value)
    gradient = written("Sum", value, written.slot(), dims=())
    for value in reversed(forward):
        gradient = written("Neg", written("TanhGrad", value, gradient))
    found = written.found(gradient)
    assert spans(found) == [(0, 2, 8), (17, 2, 8)]
    assert found[1].sources[0] == (None, Source(1, 0, True))
    assert found[0].used == {(1, 0): tuple(range(8))}


def test_an_irregular_block_ends_a_repetition():
    written = Written()
    start = value = written.slot()
    for block in range(12):
        before = value
        value = written("Tanh", value)
        # In the sixth block the second operation takes something else.
        value = written("Mul", value, start if block == 6 else before)
    assert spans(written.found(value)) == [(0, 2, 6), (12, 2, 6)]


def test_what_all_blocks_take_of_the_first_is_from_outside_the_others():
    written = Written()
    value, shared = written.slot(), None
    for _ in range(8):
        value = written("Tanh", value)
        square = written("Square", value)
        shared = square if shared is None else shared
        value = written("Mul", square, shared)
    assert spans(written.found(value)) == [(3, 3, 7)]


def test_blocks_of_other_shapes_or_with_other_settings_are_not_equal():
    written = Written()
    value = written.slot()
    for width in range(8):
        value = written("Tanh", value, dims=(width,))
    assert not written.found(value)
    written = Written()
    value = written.slot()
    for axis in range(8):
        value = written("Sum", value, written.slot(np.array(axis, np.int32)))
    assert not written.found(value)


def test_equal_constants_in_different_slots_are_the_same_setting():
    written = Written()
    value = written.slot()
    for _ in range(8):
        value = written("Sum", value, written.slot(np.array(0, np.int32)))
    assert spans(written.found(value)) == [(0, 1, 8)]


def test_what_must_stay_apart_and_what_has_effects_is_in_no_block():
    written = Written()
    value = written.slot()
    for _ in range(12):
        value = written("Tanh", value)
    assert spans(written.found(value, apart={5})) == [(0, 1, 5), (6, 1, 6)]
    written = Written()
    value, shape = written.slot(), written.slot()
    for _ in range(8):
        value = written("Mul", value, written("Print", shape))
    assert not written.found(value)


def test_nothing_is_found_where_little_would_be_saved():
    written = Written()
    value = written.slot()
    for _ in range(8):
        value = written("Tanh", value)
    assert not written.found(value, fewest=8)


def test_the_smallest_period_is_found_and_stretches_do_not_overlap():
    written = Written()
    value = written.slot()
    for name in ("Tanh", "Square"):
        for _ in range(10):
            value = written(name, written("Neg", value))
    found = written.found(value)
    assert [r.length for r in found] == [2, 2]
    assert all(a.end <= b.start for a, b in zip(found, found[1:], strict=False))
    assert sum(r.times for r in found) >= 18


def test_slots_that_are_used_again_do_not_mix_values_up():
    written = Written()
    a, b = written.slot(), written.slot()
    instructions = written.code.instructions
    for _ in range(8):
        written("Tanh", a)
        instructions[-1] = instructions[-1]._replace(out=b)
        written("Neg", b)
        instructions[-1] = instructions[-1]._replace(out=a)
    (found,) = written.found(a)
    assert found.sources == ((Source(1, 0, True),), (Source(0, 0, False),))
    assert found.used == {(1, 0): (7,)}
