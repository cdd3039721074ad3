"""tf.cond and tf.case."""

from collections import namedtuple

import numpy as np
import pytest

import runnel as tf

Pair = namedtuple("Pair", ["left", "right"])


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def run(fetches, feed_dict=None):
    with tf.Session() as sess:
        return sess.run(fetches, feed_dict)


@pytest.mark.parametrize("taken", [True, False])
def test_structures_of_results(taken):
    p = tf.placeholder(tf.bool, [])

    def branch(n):
        return {"a": (tf.constant(n), [tf.constant(n + 1)]), "b": Pair(n + 2, tf.constant(n + 3))}

    result = tf.cond(p, lambda: branch(10), lambda: branch(20))
    n = 10 if taken else 20
    assert run(result, {p: taken}) == {"a": (n, [n + 1]), "b": Pair(n + 2, n + 3)}


def test_a_single_result_is_unpacked_unless_strict():
    p = tf.constant(True)
    assert isinstance(tf.cond(p, lambda: [tf.constant(1)], lambda: [tf.constant(2)]), tf.Tensor)
    strict = tf.cond(p, lambda: [tf.constant(1)], lambda: [tf.constant(2)], strict=True)
    assert isinstance(strict, list)
    assert run(strict) == [1]


def test_branches_that_return_outer_tensors_as_they_are():
    x, y = tf.constant(1.0), tf.constant(2.0)
    p = tf.placeholder(tf.bool, [])
    result = tf.cond(p, lambda: x, lambda: y)
    with tf.Session() as sess:
        assert [sess.run(result, {p: taken}) for taken in (True, False)] == [1.0, 2.0]


def test_an_operation_as_a_result():
    v = tf.Variable(0.0)
    p = tf.placeholder(tf.bool, [])
    done = tf.cond(p, lambda: tf.assign(v, 5.0).op, tf.no_op)
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run(done, {p: False})
        assert sess.run(v) == 0.0
        sess.run(done, {p: True})
        assert sess.run(v) == 5.0


def test_the_old_names_of_the_branches():
    assert run(tf.cond(tf.constant(False), fn1=lambda: 1, fn2=lambda: 2)) == 2
    with pytest.raises(TypeError, match="simultaneously"):
        tf.cond(tf.constant(False), lambda: 1, lambda: 2, fn1=lambda: 3)
    with pytest.raises(TypeError, match="false_fn argument required"):
        tf.cond(tf.constant(False), lambda: 1)


def test_conds_inside_conds_run_one_branch_of_the_one_taken():
    ran = []

    def noted(label, tensor):
        return tf.py_func(lambda t: ran.append(label) or t, [tensor], tf.float32)

    x = tf.placeholder(tf.float32, [])
    y = tf.cond(
        x > 0,
        lambda: tf.cond(x > 10, lambda: noted("large", x), lambda: noted("small", x)),
        lambda: noted("negative", x),
    )
    with tf.Session() as sess:
        for value in (20.0, 5.0, -1.0):
            assert sess.run(y, {x: value}) == value
    assert ran == ["large", "small", "negative"]


def test_what_is_in_a_branch_can_be_neither_fetched_nor_fed():
    inside = []
    x = tf.constant(1.0)
    tf.cond(x > 0, lambda: inside.append(x * 2) or inside[0], lambda: x)
    with pytest.raises(ValueError, match="not fetchable"):
        run(inside[0])
    with pytest.raises(ValueError, match="may not be fed"):
        run(x, {inside[0]: 3.0})


def test_the_static_shape_is_what_both_branches_have():
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.zeros([2, 3]), lambda: tf.zeros([2, 4]))
    assert y.shape.as_list() == [2, None]
    assert run(y, {p: False}).shape == (2, 4)


class TestMistakes:
    def test_structures_that_differ(self):
        with pytest.raises(ValueError, match=r"same structure.*\[·, ·\].*\[·\]"):
            tf.cond(tf.constant(True), lambda: [1, 2], lambda: [1], strict=True)
        with pytest.raises(ValueError, match="keys"):
            tf.cond(tf.constant(True), lambda: {"a": 1, "b": 2}, lambda: {"a": 1, "c": 2})
        with pytest.raises(TypeError, match="a list and the other a tuple"):
            tf.cond(tf.constant(True), lambda: [1, 2], lambda: (1, 2))

    def test_types_that_differ(self):
        with pytest.raises(ValueError, match="same type.*int32.*float32"):
            tf.cond(tf.constant(True), lambda: tf.constant(1), lambda: tf.constant(1.0))

    def test_nothing_returned(self):
        with pytest.raises(ValueError, match="true_fn must have a return value"):
            tf.cond(tf.constant(True), lambda: None, lambda: tf.constant(1.0))
        with pytest.raises(ValueError, match="false_fn must have a return value"):
            tf.cond(tf.constant(True), lambda: tf.constant(1.0), lambda: None)

    def test_pred_must_be_a_scalar_bool_tensor(self):
        with pytest.raises(TypeError, match="Python bool"):
            tf.cond(True, lambda: 1, lambda: 2)
        with pytest.raises(TypeError, match="must be a bool.*float32"):
            tf.cond(tf.constant(1.0), lambda: 1, lambda: 2)
        with pytest.raises(ValueError, match=r"must be a scalar.*\(2,\)"):
            tf.cond(tf.constant([True, False]), lambda: 1, lambda: 2)

    def test_branches_must_be_callable(self):
        with pytest.raises(TypeError, match="true_fn must be callable"):
            tf.cond(tf.constant(True), 1, lambda: 2)

    def test_the_context_is_left_when_a_branch_fails(self):
        with pytest.raises(ZeroDivisionError):
            tf.cond(tf.constant(True), lambda: 1 / 0, lambda: 2)
        assert tf.get_default_graph()._get_control_flow_context() is None


class TestCase:
    def cases(self, x, **options):
        return tf.case(
            [(x < 0, lambda: tf.constant("negative")), (x < 10, lambda: tf.constant("small"))],
            **options,
        )

    def test_the_first_that_holds(self):
        x = tf.placeholder(tf.int32, [])
        y = self.cases(x, default=lambda: tf.constant("large"))
        with tf.Session() as sess:
            found = [sess.run(y, {x: value}) for value in (-1, 5, 50)]
        assert found == [b"negative", b"small", b"large"]

    def test_without_a_default_one_must_hold(self):
        x = tf.placeholder(tf.int32, [])
        y = self.cases(x)
        with tf.Session() as sess:
            assert sess.run(y, {x: 5}) == b"small"
            with pytest.raises(tf.errors.InvalidArgumentError, match="None of conditions"):
                sess.run(y, {x: 50})

    def test_exclusive(self):
        x = tf.placeholder(tf.int32, [])
        y = self.cases(x, default=lambda: tf.constant("large"), exclusive=True)
        with tf.Session() as sess:
            assert sess.run(y, {x: 5}) == b"small"
            with pytest.raises(tf.errors.InvalidArgumentError, match="More than one"):
                sess.run(y, {x: -1})

    def test_mistakes(self):
        with pytest.raises(TypeError, match="2-tuple"):
            tf.case([lambda: 1])
        with pytest.raises(TypeError, match="pred must be a Tensor"):
            tf.case([(True, lambda: 1)])
        with pytest.raises(TypeError, match="callable"):
            tf.case([(tf.constant(True), 1)])


def test_indexed_slices_as_results():
    p = tf.placeholder(tf.bool, [])

    def slices(n):
        return tf.IndexedSlices(tf.constant([[n]]), tf.constant([1]), tf.constant([3, 1]))

    dense = tf.convert_to_tensor(tf.cond(p, lambda: slices(1.0), lambda: slices(2.0)))
    np.testing.assert_array_equal(run(dense, {p: False}), [[0.0], [2.0], [0.0]])


def test_an_integer_chooses_a_branch():
    index = tf.placeholder(tf.int32, [])
    x = tf.constant(2.0)
    functions = [lambda: x, lambda: x * x, lambda: x * x * x]
    listed = tf.switch_case(index, functions)
    paired = tf.switch_case(index, {0: functions[2], 5: functions[1]}, default=lambda: -x)
    slope = tf.gradients(listed, x)[0]
    with tf.Session() as sess:
        found = [sess.run([listed, slope, paired], {index: i}) for i in (0, 1, 2, 5, -1)]
    expected = [[2, 1, 8], [4, 4, -2], [8, 12, -2], [8, 12, 4], [8, 12, -2]]
    assert [list(values) for values in found] == expected


@pytest.mark.parametrize(
    "functions, error",
    [([], ValueError), ([(0, abs, 1)], TypeError), ([(1.5, abs)], TypeError), (abs, TypeError)],
)
def test_branches_that_an_integer_cannot_choose(functions, error):
    with pytest.raises(error):
        tf.switch_case(tf.constant(0), functions)
