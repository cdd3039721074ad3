"""Mistakes, and what the user is told about them.

An error names the operation, the line of the user's program that made it, what was given and
what was expected; and the session can be used as before, its variables unchanged.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, session

BOTH_TIERS = pytest.mark.parametrize("level", [INTERPRETED, COMPILED])


def here(offset: int = 0) -> str:
    """``file:line`` of the caller, as errors cite it."""
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return f"{__file__}:{frame.f_back.f_lineno + offset}"


@contextlib.contextmanager
def refused(kind: Any, *said: str, op: Any = None) -> Iterator[None]:
    """The block raises an error of that kind whose text holds all of ``said``."""
    with pytest.raises(kind) as caught:
        yield
    text = str(caught.value)
    for part in said:
        assert part in text, f"{part!r} is not in:\n{text}"
    if op is not None:
        assert caught.value.op is op
        assert repr(op.name) in text and op.type in text


class TestWhileBuilding:
    """Shapes and types that cannot be right are refused where the operation is made."""

    def test_shapes_that_do_not_multiply(self):
        a, a_line = tf.zeros([2, 3], name="a"), here()
        b, b_line = tf.zeros([4, 5], name="b"), here()
        with refused(ValueError, "3 and 4", "MatMul", "(2, 3)", "(4, 5)", a_line, b_line):
            tf.matmul(a, b)

    def test_shapes_that_do_not_broadcast(self):
        a, b = tf.zeros([2, 3]), tf.zeros([4])
        with refused(ValueError, "(2, 3)", "(4,)", "broadcast", "AddV2", here(-1)):
            a + b

    def test_a_reshape_to_another_number_of_elements(self):
        x, line = tf.zeros([6]), here()
        with refused(ValueError, "6 elements", "[4, 2]", "8 elements", "Reshape", line):
            tf.reshape(x, [4, 2])

    def test_an_assignment_of_another_shape(self):
        v, line = tf.Variable(tf.zeros([2]), name="v"), here()
        with refused(ValueError, "(2,)", "(3,)", "Assign", line):
            tf.assign(v, tf.zeros([3]))

    def test_types_that_do_not_match(self):
        x = tf.constant(1.0)
        i, line = tf.constant(1, name="i"), here()
        with refused(TypeError, "'y' of AddV2", "float32", "i:0", "int32", line, "tf.cast"):
            x + i

    def test_a_type_that_an_operation_does_not_take(self):
        i, line = tf.constant(1, name="i"), here()
        with refused(TypeError, "'x' of Exp", "int32", "i:0", line, "float32, float64", "tf.cast"):
            tf.exp(i)

    def test_a_number_that_does_not_fit_the_type_beside_it(self):
        with refused(TypeError, "Expected int32", "1.5", "float"):
            tf.constant(1) + 1.5

    def test_tensors_of_two_graphs(self):
        a = tf.constant(1.0, name="a")
        with tf.Graph().as_default():
            b = tf.constant(1.0)
            with refused(ValueError, "different graph"):
                a + b

    def test_a_python_condition_on_a_tensor(self):
        x = tf.constant(True, name="x")
        with refused(TypeError, "x:0", "tf.cond", "session.run"):
            if x:
                pass

    def test_what_failed_leaves_the_graph_as_it_was(self):
        graph = tf.get_default_graph()
        a, b = tf.zeros([2, 3]), tf.zeros([4, 5])
        before = graph.version
        with pytest.raises(ValueError):
            tf.matmul(a, b)
        assert graph.version == before


@BOTH_TIERS
class TestWhileRunning:
    """What only a step can know is refused by the operation that cannot go on."""

    def test_shapes_that_do_not_broadcast(self, level):
        x, y = tf.placeholder(tf.float32, None, "x"), tf.placeholder(tf.float32, None, "y")
        z, line = tf.add(x, y, name="total"), here()
        with session(level) as sess:
            with refused(tf.errors.InvalidArgumentError, "(2, 3)", "(4,)", line, op=z.op):
                sess.run(z, {x: np.zeros((2, 3)), y: np.zeros(4)})
            assert sess.run(z, {x: 1.0, y: 2.0}) == 3.0

    def test_shapes_that_do_not_multiply(self, level):
        x, y = tf.placeholder(tf.float32, None), tf.placeholder(tf.float32, None)
        z, line = tf.matmul(x, y), here()
        with session(level) as sess:
            with refused(tf.errors.InvalidArgumentError, "(2, 3)", "(4, 5)", line, op=z.op):
                sess.run(z, {x: np.zeros((2, 3)), y: np.zeros((4, 5))})
            assert sess.run(z, {x: np.ones((2, 3)), y: np.ones((3, 5))}).shape == (2, 5)

    def test_a_reshape_to_another_number_of_elements(self, level):
        x = tf.placeholder(tf.float32, None)
        y, line = tf.reshape(x, [4, 2]), here()
        with session(level) as sess:
            with refused(tf.errors.InvalidArgumentError, "6 elements", "[4, 2]", line, op=y.op):
                sess.run(y, {x: np.zeros(6)})
            assert sess.run(y, {x: np.zeros(8)}).shape == (4, 2)

    @pytest.mark.parametrize("use_resource", [False, True])
    def test_an_assignment_of_another_shape(self, level, use_resource):
        v = tf.Variable([1.0, 2.0], use_resource=use_resource)
        x = tf.placeholder(tf.float32, None)
        assign, line = v.assign(x), here()
        with session(level) as sess:
            sess.run(v.initializer)
            with refused(tf.errors.InvalidArgumentError, "(3,)", "(2,)", line):
                sess.run(assign, {x: [1.0, 2.0, 3.0]})
            np.testing.assert_array_equal(sess.run(v), [1.0, 2.0])

    @pytest.mark.parametrize("use_resource", [False, True])
    def test_an_uninitialised_variable(self, level, use_resource):
        v, line = tf.Variable(1.0, name="weights", use_resource=use_resource), here()
        y = v * 2.0
        with session(level) as sess:
            for fetch in (y, v, v.assign_add(1.0)):
                with refused(
                    tf.errors.FailedPreconditionError,
                    "uninitialized value weights",
                    line,
                    "tf.global_variables_initializer()",
                ):
                    sess.run(fetch)
            sess.run(v.initializer)
            assert sess.run(y) == 2.0

    def test_a_placeholder_that_is_not_fed(self, level):
        x, line = tf.placeholder(tf.float32, [3], name="batch"), here()
        y = x * 2.0
        with session(level) as sess:
            with refused(
                tf.errors.InvalidArgumentError,
                "feed",
                "float32",
                "(3,)",
                line,
                "feed_dict",
                op=x.op,
            ):
                sess.run(y)
            np.testing.assert_array_equal(sess.run(y, {x: [1, 2, 3]}), [2, 4, 6])

    def test_a_nan_that_check_numerics_finds(self, level):
        v = tf.Variable([1.0, 1.0])
        x = tf.placeholder(tf.float32, [2], name="x")
        checked, line = tf.check_numerics(tf.log(x), "the loss went wrong"), here()
        step = v.assign_add(checked)
        with session(level) as sess:
            sess.run(v.initializer)
            sess.run(step, {x: [1.0, 1.0]})
            with refused(
                tf.errors.InvalidArgumentError,
                "the loss went wrong",
                "NaN",
                "1 of 2 elements, the first at [1]",
                line,
                op=checked.op,
            ):
                sess.run(step, {x: [1.0, -1.0]})
            np.testing.assert_array_equal(sess.run(v), [1.0, 1.0])
            np.testing.assert_array_equal(sess.run(step, {x: [1.0, 1.0]}), [1.0, 1.0])

    @pytest.mark.parametrize("bad", [4, -1])
    def test_an_index_out_of_range(self, level, bad):
        table = tf.Variable(np.arange(8.0).reshape(4, 2))
        count = tf.Variable(0)
        ids = tf.placeholder(tf.int32, [None], name="ids")
        row, line = tf.gather(table, ids, name="row"), here()
        step = tf.group(
            tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(row)),
            count.assign_add(1),
        )
        with session(level) as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(step, {ids: [0, 1]})
            before = sess.run([table, count])
            with refused(
                tf.errors.InvalidArgumentError, f"indices[1] = {bad} is not in [0, 4)", line
            ):
                sess.run(step, {ids: [0, bad]})
            for a, b in zip(sess.run([table, count]), before, strict=True):
                np.testing.assert_array_equal(a, b)
            sess.run(step, {ids: [3, 3]})
            assert sess.run(count) == 2

    def test_an_index_out_of_range_in_a_scattered_update(self, level):
        table = tf.Variable(tf.zeros([4, 2]))
        rows = tf.placeholder(tf.int32, [2])
        update, line = tf.scatter_add(table, rows, tf.ones([2, 2]), name="update"), here()
        with session(level) as sess:
            sess.run(table.initializer)
            with refused(
                tf.errors.InvalidArgumentError,
                "indices[0] = 7 is not in [0, 4)",
                line,
                op=update.op,
            ):
                sess.run(update, {rows: [7, 1]})
            assert not sess.run(table).any()
            assert sess.run(update, {rows: [0, 1]}).sum() == 4

    def test_an_assertion(self, level):
        v = tf.Variable(1.0)
        x = tf.placeholder(tf.float32, [])
        with tf.control_dependencies([tf.Assert(x > 0.0, ["x must be positive:", x])]):
            step = v.assign_add(x)
        with session(level) as sess:
            sess.run(v.initializer)
            with refused(tf.errors.InvalidArgumentError, "x must be positive", "-3", __file__):
                sess.run(step, {x: -3.0})
            assert sess.run(step, {x: 1.0}) == 2.0

    def test_a_cycle(self, level):
        a, line = tf.constant(1.0, name="a") + 0.0, here()
        b = tf.identity(a, name="b")
        a.op._add_control_input(b.op)
        fine = tf.constant(2.0)
        with session(level) as sess:
            with refused(tf.errors.InvalidArgumentError, "cycle", "'b'", repr(a.op.name), line):
                sess.run(b)
            assert sess.run(fine) == 2.0

    def test_an_exception_in_a_python_function(self, level):
        def fails(value):
            raise KeyError("no such thing")

        x = tf.placeholder(tf.float32, [])
        y, line = tf.py_func(fails, [x], tf.float32), here()
        with session(level) as sess:
            with refused(
                tf.errors.UnknownError, "KeyError", "no such thing", "fails", line, op=y.op
            ):
                sess.run(y, {x: 1.0})
            assert sess.run(x, {x: 1.0}) == 1.0


@BOTH_TIERS
class TestFeedsAndFetches:
    """A call of ``run`` that cannot be right is refused before anything runs."""

    def test_a_feed_of_the_wrong_shape(self, level):
        x, line = tf.placeholder(tf.float32, [None, 3], name="x"), here()
        with session(level) as sess:
            with refused(ValueError, "(2, 4)", "'x:0'", "(?, 3)", line):
                sess.run(x, {x: np.zeros((2, 4))})
            assert sess.run(x, {x: np.zeros((2, 3))}).shape == (2, 3)

    @pytest.mark.parametrize(
        ("dtype", "value", "said"),
        [
            (tf.float32, "text", "strings"),
            (tf.float32, [[1, 2], [3]], "inhomogeneous"),
            (tf.float32, [1 + 2j], "complex"),
            (tf.float32, None, "Python objects"),
            (tf.int32, [1.5], "1.5"),
            (tf.int32, [np.nan], "nan"),
            (tf.int32, np.array([2**40]), str(2**40)),
            (tf.int32, 2**40, "range of int32"),
            (tf.uint8, [-1], "-1"),
        ],
    )
    def test_a_feed_of_the_wrong_type(self, level, dtype, value, said):
        x, line = tf.placeholder(dtype, None, name="x"), here()
        with session(level) as sess:
            with refused(ValueError, "'x:0'", dtype.name, said, line):
                sess.run(x, {x: value})
            assert sess.run(x, {x: 1}) == 1

    def test_integers_that_are_whole_floats_can_be_fed(self, level):
        x = tf.placeholder(tf.int32, [2])
        with session(level) as sess:
            np.testing.assert_array_equal(sess.run(x, {x: np.array([1.0, 2.0])}), [1, 2])

    def test_a_tensor_as_the_value_of_a_feed(self, level):
        x, y = tf.placeholder(tf.float32, name="x"), tf.constant(1.0, name="y")
        with session(level) as sess, refused(TypeError, "y:0", "x:0", "session.run"):
            sess.run(x, {x: y})

    def test_a_fetch_of_another_graph(self, level):
        a = tf.constant(1.0)
        with tf.Graph().as_default():
            foreign, line = tf.constant(2.0, name="foreign"), here()
        with session(level) as sess:
            with refused(ValueError, "foreign:0", "another", line, "tf.Session(graph=...)"):
                sess.run(foreign)
            assert sess.run(a) == 1.0

    def test_a_feed_of_another_graph(self, level):
        a = tf.constant(1.0)
        with tf.Graph().as_default():
            foreign, line = tf.constant(2.0, name="foreign"), here()
        with session(level) as sess:
            with refused(TypeError, "foreign:0", "another", line, "tf.Session(graph=...)"):
                sess.run(a, {foreign: 2.0})
            assert sess.run(a) == 1.0

    def test_a_tensor_that_may_not_be_fed(self, level):
        a, line = tf.constant(1.0, name="a"), here()
        tf.get_default_graph().prevent_feeding(a)
        with session(level) as sess:
            with refused(ValueError, "a:0", "may not be fed", line):
                sess.run(a, {a: 2.0})
            assert sess.run(a) == 1.0

    def test_an_operation_that_may_not_be_fetched(self, level):
        a = tf.constant(1.0, name="a")
        tf.get_default_graph().prevent_fetching(a.op)
        with session(level) as sess:
            with refused(ValueError, "a", "not fetchable"):
                sess.run(a)
            assert sess.run(a + 1.0) == 2.0

    @pytest.mark.parametrize(
        ("fetch", "said"),
        [
            ("nothing:0", "'nothing:0'"),
            ("a:5", "only 1 outputs"),
            (None, "None"),
            (3.5, "float"),
            ([["a:0", 7]], "int"),
        ],
    )
    def test_what_is_not_in_the_graph(self, level, fetch, said):
        tf.constant(1.0, name="a")
        with session(level) as sess:
            with refused((TypeError, ValueError), said):
                sess.run(fetch)
            assert sess.run("a:0") == 1.0

    def test_a_session_that_is_closed(self, level):
        a = tf.constant(1.0)
        sess = session(level)
        call = sess.make_callable(a)
        sess.close()
        for use in (lambda: sess.run(a), call, lambda: sess.make_callable(a)):
            with refused(RuntimeError, "closed Session"):
                use()


class TestGradients:
    """A derivative that does not exist is refused by name."""

    def test_of_strings(self):
        text = tf.constant("a", name="text")
        with refused(TypeError, "text:0", "string"):
            tf.gradients(text, text)

    def test_of_an_operation_without_one(self):
        x = tf.constant(1.0)
        op_def = tf.register_op("NoGradientHere", inputs="x: float", outputs="y: float")
        op_def.shape(lambda x: x.dims)
        y, line = op_def(x), here()
        with refused(LookupError, "NoGradientHere", line, "tf.RegisterGradient", "stop_gradient"):
            tf.gradients(y, x)

    def test_a_function_that_returns_too_few(self):
        op_def = tf.register_op("TwoInputs", inputs="x: float, y: float", outputs="z: float")
        op_def.shape(lambda x, y: x.dims)
        op_def.gradient(lambda op, grad: [grad])
        x = tf.constant(1.0)
        with refused(ValueError, "TwoInputs", "1 gradients for 2 inputs"):
            tf.gradients(op_def(x, x), x)

    def test_weights_of_another_shape(self):
        x = tf.ones([2])
        with refused(ValueError, "grad_ys[0]", "(3,)", "(2,)"):
            tf.gradients(x * 2.0, x, grad_ys=tf.ones([3]))
