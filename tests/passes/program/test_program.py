"""Programs and their nodes: how passes make, copy and replace them."""

from __future__ import annotations

import numpy as np

import runnel as tf
from runnel.passes.program.program import Node, Program, Replacements, copied
from runnel.passes.program.prune import prune


def chain() -> tuple[Program, Node, Node, Node]:
    """A program of a negation, its square, and a sum that awaits the square."""
    x = tf.placeholder(tf.float32, [])
    square = tf.square(tf.negative(x))
    with tf.control_dependencies([square]):
        total = x + x
    program = prune([total], [], [x])
    negation, squared, added = program.nodes
    return program, negation, squared, added


def test_a_node_is_itself_until_something_that_it_takes_or_awaits_is_replaced():
    program, negation, squared, added = chain()
    replaced = Replacements()
    assert [replaced.applied(node) for node in program.nodes] == program.nodes
    replaced.values[negation.outputs[0]] = program.nodes[0].inputs[0]
    new_square = replaced.applied(squared)
    assert new_square.inputs == negation.inputs and new_square.outputs == squared.outputs
    new_total = replaced.applied(added)
    assert new_total.inputs == added.inputs and new_total.control == (new_square,)


def test_a_program_fetches_what_has_taken_a_value_s_place():
    program, _, squared, added = chain()
    replaced = Replacements()
    replaced.values[added.outputs[0]] = squared.outputs[0]
    assert replaced.program(program, program.nodes[:2]).fetches == squared.outputs


def test_copies_await_copies_only():
    _, negation, squared, added = chain()
    copies = copied([squared, added])
    assert copies[added].control == (copies[squared],) and copies[added] is not added
    assert copied([added])[added].control == ()
    assert negation not in copies


def test_a_constant_has_a_new_value_that_nobody_may_change():
    program, *_ = chain()
    known = len(program.infos)
    node = program.constant(program.nodes[0].op, np.arange(3, dtype=np.int32))
    assert node.outputs == (known,) and program.infos[known].dims == (3,)
    assert not node.attrs["value"].flags.writeable and node.dtype is tf.int32


def test_the_takers_of_a_value_are_there_once_for_each_time():
    x = tf.placeholder(tf.float32, [])
    program = prune([x * x], [], [x])
    [product] = program.nodes
    assert program.takers() == {product.inputs[0]: [product, product]}
