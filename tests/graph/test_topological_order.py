"""Ordering operations when the order of construction does not do."""

from __future__ import annotations

import pytest

import runnel as tf
from runnel.graph.topological_order import topological_order


def sources(op):
    return [*(t.op for t in op.inputs), *op.control_inputs]


def test_the_order_of_construction_is_kept_where_edges_allow():
    ops = [tf.no_op(name=n) for n in "abcd"]
    a, b, c, d = ops
    assert topological_order(ops, sources) == ops
    a._add_control_input(c)
    assert topological_order(ops, sources) == [b, c, a, d]


def test_sources_that_are_not_among_the_operations_are_no_concern():
    a, b = tf.no_op(), tf.no_op()
    a._add_control_input(b)
    assert topological_order([a], sources) == [a]


def test_a_cycle_is_named_from_one_operation_around_to_itself():
    ops = [tf.no_op(name=n) for n in ("lead_in", "p", "q", "r")]
    _, p, q, r = ops
    p._add_control_input(r)
    q._add_control_input(p)
    r._add_control_input(q)
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        topological_order(ops, sources)
    for part in ("'p' <- 'r'", "'q' <- 'p'", "'r' <- 'q'"):
        assert part in e.value.message or part.split(" <- ")[0] == e.value.message.split()[-1]
    assert "lead_in" not in e.value.message


def test_a_long_chain_needs_no_recursion():
    ops = [tf.no_op() for _ in range(20_000)]
    for later, earlier in zip(ops, ops[1:], strict=False):
        later._add_control_input(earlier)
    assert topological_order(ops, sources) == ops[::-1]
