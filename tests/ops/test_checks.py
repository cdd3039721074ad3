"""Assertions and numeric checks: what fails, when, with which message; in both tiers."""

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session

LEVELS = pytest.mark.parametrize("level", [INTERPRETED, COMPILED])


@LEVELS
def test_assert(level):
    x = tf.placeholder(tf.int32, [None])
    check = tf.Assert(tf.reduce_all(x > 0), ["x must be positive:", x], summarize=2)
    with session(level) as sess:
        sess.run(check, {x: [1, 2]})
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            sess.run(check, {x: [0, 1, 2]})
        assert caught.value.message == "assertion failed: [x must be positive:] [0 1...]"
        assert caught.value.op is check
        assert "tf.Assert(tf.reduce_all(x > 0)" in str(caught.value)
        sess.run(check, {x: [3]})  # the session still works


@LEVELS
def test_a_failed_check_changes_no_variable(level):
    v = tf.Variable(1.0)
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([tf.Assert(x > 0, [x])]):
        update = tf.assign_add(v, x)
    with session(level) as sess:
        sess.run(v.initializer)
        sess.run(update, {x: 1.0})
        for bad in (-1.0, -2.0):
            with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
                sess.run(update, {x: bad})
        assert sess.run(v) == 2.0


def test_assert_takes_data():
    with pytest.raises(ValueError, match="at least one"):
        tf.Assert(True, [])
    with pytest.raises((TypeError, ValueError), match="bool"):
        tf.Assert(tf.constant(1), [1])


@LEVELS
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_check_numerics(level, kind):
    x = tf.placeholder(kind, [3])
    y = tf.check_numerics(x * 2, "the loss")
    with session(level) as sess:
        np.testing.assert_array_equal(sess.run(y, {x: [1, 2, 3]}), [2, 4, 6])
        with pytest.raises(tf.errors.InvalidArgumentError, match="the loss : Tensor had NaN") as e:
            sess.run(y, {x: [1, np.nan, 3]})
        assert "the first at [1]" in e.value.message
        with pytest.raises(tf.errors.InvalidArgumentError, match="Tensor had Inf and NaN"):
            sess.run(y, {x: [np.inf, np.nan, 3]})


def test_check_numerics_of_gradients():
    x = tf.placeholder(tf.float32, [])
    grad = tf.gradients(tf.check_numerics(tf.sqrt(x), "root"), x, grad_ys=[np.float32(np.inf)])[0]
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="in gradient"):
        sess.run(grad, {x: 1.0})


def test_verify_and_check_everything():
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.verify_tensor_all_finite(tf.log(x, name="logarithm"), "not finite")
    check = tf.add_check_numerics_ops()
    assert run_both(y, {x: [1.0, 1.0]}).tolist() == [0, 0]
    with tf.Session() as sess:
        sess.run(check, {x: [1.0, 2.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="not finite"):
            sess.run(y, {x: [1.0, 0.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="logarithm:0|not finite"):
            sess.run(check, {x: [1.0, 0.0]})


ASSERTIONS = {
    tf.assert_equal: ([1, 2], [1, 2], [1, 3]),
    tf.assert_none_equal: ([1, 2], [2, 3], [3, 2]),
    tf.assert_less: ([1, 2], [2, 3], [2, 2]),
    tf.assert_less_equal: ([1, 2], [1, 2], [0, 2]),
    tf.assert_greater: ([1, 2], [0, 1], [1, 1]),
    tf.assert_greater_equal: ([1, 2], [1, 2], [2, 2]),
    tf.assert_near: ([1.0, 2.0], [1.0, 2.0], [1.0, 2.1]),
}


@LEVELS
@pytest.mark.parametrize("function", ASSERTIONS, ids=lambda f: f.__name__)
def test_comparisons(level, function):
    x_value, good, bad = (np.asarray(a) for a in ASSERTIONS[function])
    x, y = tf.placeholder(x_value.dtype, [2]), tf.placeholder(x_value.dtype, [2])
    check = function(x, y, message="said so")
    with session(level) as sess:
        sess.run(check, {x: x_value, y: good})
        with pytest.raises(tf.errors.InvalidArgumentError, match="said so"):
            sess.run(check, {x: x_value, y: bad})
    with pytest.raises(tf.errors.InvalidArgumentError, match="said so"):
        function(tf.constant(x_value), tf.constant(bad), message="said so")  # known at once
    assert function(tf.constant(x_value), tf.constant(good)).type == "NoOp"


SIGNS = {
    tf.assert_positive: (1, 0),
    tf.assert_negative: (-1, 0),
    tf.assert_non_negative: (0, -1),
    tf.assert_non_positive: (0, 1),
}


@pytest.mark.parametrize("function", SIGNS, ids=lambda f: f.__name__)
def test_signs(function):
    good, bad = SIGNS[function]
    x = tf.placeholder(tf.float32, [])
    check = function(x)
    with tf.Session() as sess:
        sess.run(check, {x: good})
        with pytest.raises(tf.errors.InvalidArgumentError, match="did not hold"):
            sess.run(check, {x: bad})


def test_assertions_carry_their_own_data():
    x = tf.placeholder(tf.int32, [])
    check = tf.assert_equal(x, 1, data=["see", x])
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        sess.run(check, {x: 7})
    assert caught.value.message == "assertion failed: [] [see] [7]"


def test_ranks():
    x = tf.zeros([2, 3])
    for good in (
        tf.assert_rank(x, 2),
        tf.assert_rank_at_least(x, 1),
        tf.assert_rank_in(x, [1, 2]),
    ):
        assert good.type == "NoOp"
    for bad in (
        lambda: tf.assert_rank(x, 1, message="hm"),
        lambda: tf.assert_rank_at_least(x, 3, message="hm"),
        lambda: tf.assert_rank_in(x, [0, 1], message="hm"),
    ):
        with pytest.raises(ValueError, match="hm.*must have rank.*Received rank 2"):
            bad()
    unknown = tf.placeholder(tf.float32)
    checks = [
        tf.assert_rank(unknown, 2),
        tf.assert_rank_at_least(unknown, 2),
        tf.assert_rank_in(unknown, [2, 3]),
    ]
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            sess.run(checks, {unknown: [[1.0]]})
            for check in checks:
                with pytest.raises(tf.errors.InvalidArgumentError, match="must have rank"):
                    sess.run(check, {unknown: [1.0]})


def test_types():
    tf.assert_type(tf.constant(1.0), tf.float32)
    tf.assert_integer(tf.constant(1))
    with pytest.raises(TypeError, match="must be of type int32, not float32"):
        tf.assert_type(tf.constant(1.0), tf.int32)
    with pytest.raises(TypeError, match="integer"):
        tf.assert_integer(tf.constant(1.0))
    assert tf.assert_scalar(3.0).shape == ()
    with pytest.raises(ValueError, match="Expected a scalar"):
        tf.assert_scalar([1.0])
    half = tf.constant(1.0, tf.float16)
    assert tf.assert_same_float_dtype([half, None], tf.float16) == tf.float16
    assert tf.assert_same_float_dtype() == tf.float32
    with pytest.raises(ValueError, match="float32, but Const.* is float16"):
        tf.assert_same_float_dtype([tf.constant(1.0), half])
    with pytest.raises(ValueError, match="floating point type, got int32"):
        tf.assert_same_float_dtype([tf.constant(1)])
    tf.assert_proper_iterable([half])
    for one in (half, 3, "text"):
        with pytest.raises(TypeError, match="iterable"):
            tf.assert_proper_iterable(one)
    assert tf.debugging.is_numeric_tensor(tf.constant(1))
    assert not tf.debugging.is_numeric_tensor(tf.constant("a"))


def test_order():
    cases = {(1, 2, 2): (True, False), (1, 2, 3): (True, True), (2, 1): (False, False), (): (1, 1)}
    for values, want in cases.items():
        x = tf.constant(np.array(values, np.int32))
        found = run_both([tf.is_non_decreasing(x), tf.is_strictly_increasing(x)])
        assert tuple(map(bool, found)) == tuple(map(bool, want))
