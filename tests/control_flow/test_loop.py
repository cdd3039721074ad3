"""tf.while_loop."""

from collections import namedtuple

import numpy as np
import pytest

import runnel as tf

State = namedtuple("State", ["count", "total"])


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def run(fetches, feed_dict=None):
    with tf.Session() as sess:
        return sess.run(fetches, feed_dict)


def test_structures_of_loop_variables():
    def body(state, extra):
        following = State(state.count + 1, {"sum": state.total["sum"] + state.count})
        return following, [extra[0] * 2]

    state, extra = tf.while_loop(
        lambda state, _: state.count < 5, body, (State(0, {"sum": 0}), [tf.constant(1.0)])
    )
    assert run((state, extra)) == (State(5, {"sum": 10}), [32.0])


def test_one_variable_is_unpacked_unless_asked_otherwise():
    def double(x):
        return x * 2

    assert run(tf.while_loop(lambda x: x < 100, double, [tf.constant(3)])) == 192
    kept = tf.while_loop(
        lambda x: x < 100, lambda x: [x * 2], [tf.constant(3)], return_same_structure=True
    )
    assert isinstance(kept, list)
    assert run(kept) == [192]


@pytest.mark.parametrize(("limit", "expected"), [(0, 1), (3, 8), (100, 128)])
def test_maximum_iterations(limit, expected):
    n = tf.placeholder_with_default(limit, [])
    double = tf.while_loop(lambda x: x < 100, lambda x: x * 2, [1], maximum_iterations=n)
    assert run(double) == expected
    pair = tf.while_loop(
        lambda x, y: x < 100, lambda x, y: (x * 2, y + 1), [1, 0], maximum_iterations=limit
    )
    assert run(pair)[0] == expected


def test_a_shape_that_grows_needs_an_invariant():
    def body(i, x):
        return i + 1, tf.concat([x, x], 0)

    start = [tf.constant(0), tf.ones([2, 3])]
    with pytest.raises(ValueError, match=r"\(2, 3\), but has shape \(4, 3\).*shape_invariants"):
        tf.while_loop(lambda i, _: i < 3, body, start)
    _, grown = tf.while_loop(
        lambda i, _: i < 3,
        body,
        start,
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 3])],
    )
    assert grown.shape.as_list() == [None, 3]
    assert run(grown).shape == (16, 3)
    with pytest.raises(ValueError, match="not compatible with the initial shape"):
        tf.while_loop(lambda i, _: i < 3, body, start, shape_invariants=[(), (7, None)])


def test_loops_inside_loops_and_conds():
    def power(base, exponent):
        return tf.while_loop(lambda i, p: i < exponent, lambda i, p: (i + 1, p * base), [0, 1])[1]

    def body(i, total):
        term = tf.cond(tf.equal(i % 2, 0), lambda: power(i, 3), lambda: -power(i, 2))
        return i + 1, total + term

    n = tf.placeholder(tf.int32, [])
    _, total = tf.while_loop(lambda i, _: i < n, body, [0, 0])
    expected = sum(i**3 if i % 2 == 0 else -(i**2) for i in range(9))
    assert run(total, {n: 9}) == expected


def test_a_deep_nest():
    def nest(depth):
        if depth == 0:
            return tf.constant(1)
        return tf.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, s + nest(depth - 1)), [0, 0])[
            1
        ]

    assert run(nest(6)) == 2**6


def test_what_the_body_does_not_need_runs_once():
    ran = []
    x = tf.py_func(lambda: ran.append(1) or np.float32(2.0), [], tf.float32)
    x.set_shape([])
    _, y = tf.while_loop(lambda i, _: i < 5, lambda i, y: (i + 1, y * x), [0, 1.0])
    assert run(y) == 32.0
    assert len(ran) == 1


def test_the_body_runs_once_an_iteration_and_never_when_the_condition_fails_at_once():
    ran = []

    def body(i):
        return tf.py_func(lambda i: ran.append(int(i)) or np.int32(i + 1), [i], tf.int32)

    n = tf.placeholder(tf.int32, [])
    loop = tf.while_loop(lambda i: i < n, body, [0], shape_invariants=[tf.TensorShape(None)])
    with tf.Session() as sess:
        assert sess.run(loop, {n: 0}) == 0
        assert ran == []
        assert sess.run(loop, {n: 3}) == 3
    assert ran == [0, 1, 2]


def test_a_loop_waits_for_the_control_dependencies_around_it():
    v = tf.Variable(0, use_resource=True)
    with tf.control_dependencies([v.assign(7)]):
        last = tf.while_loop(lambda i: i < v.read_value(), lambda i: i + 1, [0])
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(last) == 7


def test_strings_go_around():
    _, text = tf.while_loop(
        lambda i, _: i < 3,
        lambda i, s: (i + 1, tf.cond(tf.equal(i, 1), lambda: tf.constant("mid"), lambda: s)),
        [0, "start"],
    )
    assert run(text) == b"mid"


class TestMistakes:
    def leak(self):
        inside = []

        def body(i):
            inside.append(i * 10)
            return i + 1

        tf.while_loop(lambda i: i < 3, body, [0])
        return inside[0]

    def test_a_tensor_used_outside_its_loop(self):
        leaked = self.leak()
        with pytest.raises(ValueError, match="(?s)inside the loop.*loop variable.*tf.while_loop"):
            leaked + 1  # noqa: B018
        with pytest.raises(ValueError, match="inside the loop"):
            tf.while_loop(lambda i: i < 3, lambda i: i + leaked, [0])
        with pytest.raises(ValueError, match="not fetchable"):
            run(leaked)

    def test_structures_that_differ(self):
        with pytest.raises(ValueError, match="2 and 1 elements"):
            tf.while_loop(lambda i, _: i < 3, lambda i, x: [i + 1], [0, 1.0])

    def test_types_that_differ(self):
        with pytest.raises(TypeError, match=r"int32.*float32.*tf\.cast"):
            tf.while_loop(lambda i: i < 3, lambda i: tf.cast(i, tf.float32), [0])

    def test_cond_must_give_a_scalar_bool(self):
        with pytest.raises(TypeError, match="scalar bool.*int32"):
            tf.while_loop(lambda i: i, lambda i: i + 1, [0])
        with pytest.raises(ValueError, match=r"scalar bool.*\(2,\)"):
            tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant([0, 1])])

    def test_arguments(self):
        with pytest.raises(ValueError, match="No loop variables"):
            tf.while_loop(lambda: True, lambda: 1, [])
        with pytest.raises(TypeError, match="cond must be callable"):
            tf.while_loop(True, lambda i: i, [0])
        with pytest.raises(TypeError, match="positive"):
            tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0], parallel_iterations=0)

    def test_the_error_of_an_iteration_names_the_operation(self):
        def body(i):
            with tf.control_dependencies([tf.assert_less(i, 3, message="too many")]):
                return tf.identity(i + 1, name="next")

        loop = tf.while_loop(lambda i: i < 10, body, [0])
        with pytest.raises(tf.errors.InvalidArgumentError, match="too many") as raised:
            run(loop)
        assert raised.value.op.name.startswith("while/")


def test_operations_of_an_initial_scope_are_outside_of_the_loop():
    made = []

    def body(i):
        with tf.init_scope():
            made.append(tf.constant(3) + 1)
        return i + made[0]

    result = tf.while_loop(lambda i: i < 10, body, [0])
    with tf.Session() as sess:
        assert sess.run([result, made[0]]) == [12, 4]
    assert not made[0].op.control_inputs and made[0].op.control_flow_context is None
