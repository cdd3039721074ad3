"""Counts of opened scopes against a plain dictionary, and what building many variables costs."""

import sys

from hypothesis import given
from hypothesis import strategies as st

import runnel as tf
from runnel.variables.opened_scopes import OpenedScopes

names = st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map("/".join)
actions = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["note", "forget"]), names), st.sampled_from(["begin", "restore"])
    ),
    max_size=30,
)


@given(actions)
def test_counts_are_those_of_a_dictionary_that_is_copied_and_searched(taken):
    opened, expected = OpenedScopes(), {}
    begun, copies = [], []
    for action in taken:
        if action == "begin":
            begun.append(opened.begin())
            copies.append(dict(expected))
        elif action == "restore":
            if begun:
                opened.restore(begun.pop())
                expected = copies.pop()
        elif action[0] == "note":
            opened.note(action[1])
            expected[action[1]] = expected.get(action[1], 0) + 1
        else:
            opened.forget_inside(action[1])
            expected = {n: c for n, c in expected.items() if not n.startswith(action[1] + "/")}
        for name in {*expected, "a", "a/b", "b/a/a"}:
            assert opened.count(name) == expected.get(name, 0)


def calls_to_build(number):
    """How many functions are called to describe a program with that many variables."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    with tf.Graph().as_default():
        before = sys.getprofile()
        sys.setprofile(count)
        try:
            variables = [tf.get_variable(f"v{i}", [8]) for i in range(number)]
            with tf.variable_scope("scope") as scope:
                pass
            for variable in variables:
                with tf.variable_scope(scope), tf.variable_scope(None, "inner"):
                    tf.square(variable)
            loss = tf.add_n([tf.reduce_sum(tf.square(v)) for v in variables])
            tf.train.AdamOptimizer().minimize(loss)
        finally:
            sys.setprofile(before)
    return calls


def test_building_four_times_as_many_variables_takes_four_times_the_calls():
    calls_to_build(10)
    few, many = calls_to_build(50), calls_to_build(200)
    assert many < 4.5 * few
