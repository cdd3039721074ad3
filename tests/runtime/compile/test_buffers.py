"""Stacks and TensorArrays in compiled steps: how large they are, and in which memory."""

import numpy as np
import pytest

import runnel as tf
from runnel.graph.shapes import TensorShape
from runnel.ops.stacks import stack_op, stack_pop_joined_op, stack_pop_op, stack_push_op
from runnel.ops.tensor_array_ops import gather_op, grad_with_shape_op, write_op
from runnel.runtime.compile import buffer_ops, buffers, segment_program
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.runtime.test_compiled_loops import segments

VALUES = np.linspace(-1, 1, 12).reshape(4, 3).astype("f")


# Arrays that grow ---------------------------------------------------------------------------------


def growing(size=0):
    return tf.TensorArray(tf.float32, size, dynamic_size=True, element_shape=[3])


def loop(first, goes_on, body, array):
    return tf.while_loop(lambda i, _: goes_on(i), body, [first, array])[1]


def by_the_shape(x):
    steps = tf.shape(x)[0]
    body = lambda i, a: (i + 1, a.write(i, tf.sin(x[i])))  # noqa: E731
    return loop(0, lambda i: i < steps, body, growing()).stack()


def in_two_loops(x):
    def times(factor):
        return lambda i, a: (i + 1, a.write(i, x[i % 4] * factor))

    array = loop(0, lambda i: i < 3, times(2.0), growing(2))
    array = loop(3, lambda i: i < 6, times(3.0), array)
    return array.stack() * tf.cast(array.size(), tf.float32)


def downwards(x):
    return loop(3, lambda i: i > 0, lambda i, a: (i - 1, a.write(i, x[i])), growing()).stack()


def without_a_loop(x):
    return growing().write(3, x[0]).write(1, x[1]).stack()


def unstacked(x):
    return growing(1).unstack(x).gather([2, 0])


def in_an_inner_loop(x):
    """An array of its own for each iteration; what is written comes from the outer loop."""

    def body(i, rows):
        own = loop(0, lambda j: j < 2, lambda j, a: (j + 1, a.write(j, x[i])), growing())
        return i + 1, rows.write(i, tf.reduce_sum(own.stack(), 0))

    return loop(0, lambda i: i < 4, body, growing()).stack()


def at_the_outer_counter(x):
    def body(i, a):
        return i + 1, loop(0, lambda j: j < 1, lambda j, b: (j + 1, b.write(i, x[i])), a)

    return loop(0, lambda i: i < 4, body, growing()).stack()


def never(x):
    none = loop(0, lambda i: i < 0, lambda i, a: (i + 1, a.write(i, x[i])), growing()).stack()
    return tf.concat([x, none], 0)


GROWING = {
    by_the_shape: np.sin(VALUES),
    in_two_loops: 6 * np.concatenate([2 * VALUES[:3], 3 * VALUES[3:], 3 * VALUES[:2]]),
    downwards: np.concatenate([np.zeros([1, 3]), VALUES[1:]]),
    without_a_loop: np.stack([np.zeros(3), VALUES[1], np.zeros(3), VALUES[0]]),
    unstacked: VALUES[[2, 0]],
    in_an_inner_loop: 2 * VALUES,
    at_the_outer_counter: VALUES,
    never: VALUES,
}


@pytest.mark.parametrize("program", GROWING, ids=lambda program: program.__name__)
def test_an_array_that_grows_to_a_known_size_is_compiled(program):
    x = tf.placeholder(tf.float32, [None, 3])
    y = program(x)
    found = run_both(y, {x: VALUES})
    np.testing.assert_allclose(found, GROWING[program], rtol=1e-6)
    with session(COMPILED) as sess:
        sess.run(y, {x: VALUES})
        assert segments(sess) == [True]


def test_the_gradient_of_a_growing_array_is_compiled_with_it():
    x = tf.placeholder(tf.float32, [None, 3])
    (gradient,) = tf.gradients(by_the_shape(x), x)
    np.testing.assert_allclose(run_both(gradient, {x: VALUES}), np.cos(VALUES), rtol=1e-6)
    with session(COMPILED) as sess:
        sess.run(gradient, {x: VALUES})
        assert segments(sess) == [True]


def in_a_branch(x):
    def body(i, a):
        return i + 1, tf.cond(i < 3, lambda: a.write(i, x[i]), lambda: a)

    return loop(0, lambda i: i < 4, body, growing()).stack()


def until_data_says_so(x):
    body = lambda i, s, a: (i + 1, s + 1.0, a.write(i, x[i]))  # noqa: E731
    start = [0, tf.zeros([]), growing()]
    return tf.while_loop(lambda i, s, _: s < 2.5, body, start)[2].stack()


def at_a_computed_index(x):
    body = lambda i, a: (i + 1, a.write(3 - i, x[i]))  # noqa: E731
    return loop(0, lambda i: i < 4, body, growing()).stack()


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (in_a_branch, VALUES[:3]),
        (until_data_says_so, VALUES[:3]),
        (at_a_computed_index, VALUES[::-1]),
    ],
)
def test_one_that_grows_to_an_unknown_size_is_not(program, expected):
    x = tf.placeholder(tf.float32, [None, 3])
    y = program(x)
    np.testing.assert_allclose(run_both(y, {x: VALUES}), expected, rtol=1e-6)
    with session(COMPILED) as sess:
        sess.run(y, {x: VALUES})
        assert segments(sess) != [True]


def test_gradients_with_an_axis_in_front():
    x = tf.placeholder(tf.float32, [3, 2])
    array = tf.TensorArray(tf.float32, 3).unstack(x)
    handle, flow = grad_with_shape_op(array.handle, array.flow, [4], source="gradients")
    for _ in range(2):
        flow = write_op(handle, 1, tf.ones([4, 2]), flow)
    found = run_both(gather_op(handle, [0, 1], flow, dtype=tf.float32), {x: np.ones([3, 2])})
    np.testing.assert_array_equal(found, np.stack([np.zeros([4, 2]), np.full([4, 2], 2.0)]))
    with session(COMPILED) as sess:
        sess.run(flow, {x: np.ones([3, 2])})
        assert segments(sess) == [True]


# Stacks -------------------------------------------------------------------------------------------


def pushed(x, limit=-1):
    """A stack with the slices of ``x``, which are there for what is made after this."""
    stack = stack_op(limit, elem_type=tf.float32)

    def body(i):
        with tf.control_dependencies([stack_push_op(stack, x[i])]):
            return i + 1

    return stack, tf.while_loop(lambda i: i < 3, body, [0])


def popped(stack, end):
    with tf.control_dependencies([end]):
        return stack_pop_op(stack, elem_type=tf.float32)


def popped_joined(stack, end, count):
    rest = TensorShape([4])
    with tf.control_dependencies([end]):
        return stack_pop_joined_op(
            stack, count, elem_type=tf.float32, element_shape_except0=rest, name="joined"
        )


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_popping_several_elements_joined(count):
    x = tf.placeholder(tf.float32, [3, 2, 4])
    values = np.arange(24.0, dtype="f").reshape(3, 2, 4)
    stack, end = pushed(x)
    joined = popped_joined(stack, end, count)
    fetches = [joined] if count == 3 else [joined, popped(stack, joined)]
    found = run_both(fetches, {x: values})
    np.testing.assert_array_equal(found[0], values[3 - count :].reshape(-1, 4))
    if count < 3:
        np.testing.assert_array_equal(found[1], values[2 - count])
    with session(COMPILED) as sess:
        sess.run(fetches, {x: values})
        assert segments(sess) == [True]


def test_popping_more_than_there_is_joined():
    x = tf.placeholder(tf.float32, [3, 2, 4])
    joined = popped_joined(*pushed(x), 4)
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess, pytest.raises(tf.errors.OutOfRangeError, match="3 elements"):
            sess.run(joined, {x: np.zeros([3, 2, 4])})


def test_a_stack_of_limited_size():
    x = tf.placeholder(tf.float32, [3, 2])
    values = np.arange(6.0, dtype="f").reshape(3, 2)
    last = popped(*pushed(x, limit=3))
    np.testing.assert_array_equal(run_both(last, {x: values}), values[2])
    with session(COMPILED) as sess:
        sess.run(last, {x: values})
        assert segments(sess) == [True]
    last = popped(*pushed(x, limit=2))
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess, pytest.raises(tf.errors.InvalidArgumentError, match="full"):
            sess.run(last, {x: values})


# The memory of the host ---------------------------------------------------------------------------


@pytest.fixture
def host_memory(monkeypatch):
    """As on an accelerator, the host has another memory. What is moved there."""
    moved = []

    def to_host(value):
        moved.append(value.shape)
        return buffers.to_host(value)

    monkeypatch.setattr(segment_program, "host_memory", lambda platform: buffers.HostMemory())
    monkeypatch.setattr(buffers, "_SWAPPED", 64)
    monkeypatch.setattr(buffer_ops, "to_host", to_host)
    return moved


def swapping_loops(x, swap_memory):
    """Pushes in a branch, in an inner loop, of two values of one shape."""

    def inner(s):
        return tf.while_loop(
            lambda j, _: j < 2, lambda j, t: (j + 1, tf.sin(t) * s), [0, s], swap_memory=swap_memory
        )[1]

    def body(i, s):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.tanh(s) * s, lambda: inner(s))

    _, last = tf.while_loop(lambda i, _: i < 4, body, [0, x], swap_memory=swap_memory)
    return tf.gradients(tf.reduce_sum(last), x)[0]


def test_what_a_loop_keeps_is_in_the_memory_of_the_host(host_memory):
    x = tf.placeholder(tf.float32, [4, 8])
    values = np.linspace(-1, 1, 32).reshape(4, 8).astype("f")
    found = []
    for swap_memory in (False, True):
        gradient = swapping_loops(x, swap_memory)
        with session(COMPILED) as sess:
            found.append(sess.run(gradient, {x: values}))
            assert segments(sess) == [True]
        assert bool(host_memory) == swap_memory
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
    assert set(host_memory) == {(4, 8)}  # and not the predicates


def test_no_two_buffers_on_the_host_look_alike(host_memory, monkeypatch):
    """XLA would make one of them, and copy it."""
    made = []
    put = buffers.to_host
    monkeypatch.setattr(buffers, "to_host", lambda value: made.append(value.shape) or put(value))
    x = tf.placeholder(tf.float32, [4, 8])
    a, b = x, x
    _, a, b = tf.while_loop(
        lambda i, *_: i < 50, lambda i, a, b: (i + 1, a * b, tf.sin(b)), [0, a, b], swap_memory=True
    )
    with session(COMPILED) as sess:
        sess.run(tf.gradients(tf.reduce_sum(a), x), {x: np.ones((4, 8), "f")})
    rooms = {shape[0] for shape in made if len(shape) == 3 and shape[0] >= 50}
    assert rooms == {50, 51}


# Which elements are written, and which have been read ---------------------------------------------


def unstacked_rows(x, clears=True):
    return tf.TensorArray(tf.float32, 4, element_shape=[3], clear_after_read=clears).unstack(x)


def over(x, body, times=4, start=0):
    """``body(i, total)`` for each counter, added up."""
    count = lambda i, total: (i + 1, total + body(i))  # noqa: E731
    return tf.while_loop(lambda i, _: i < start + times, count, [start, tf.zeros([3])])[1]


def written(x, index_of=lambda i: i, size=4, times=4):
    array = tf.TensorArray(tf.float32, size, element_shape=[3])
    body = lambda i, a: (i + 1, a.write(index_of(i), x[i]))  # noqa: E731
    return tf.while_loop(lambda i, _: i < times, body, [0, array])[1]


def read_in_two_loops(x, clears):
    array = unstacked_rows(x, clears)
    first = over(x, array.read, 2)
    return first + over(x, array.read, 2, start=2)


def read_again(x, clears):
    array = unstacked_rows(x, clears)
    first = over(x, array.read)
    with tf.control_dependencies([first]):
        return first + over(x, array.read)


def read_twice_at_once(x, clears):
    array = unstacked_rows(x, clears)

    def body(i):
        first = array.read(i)
        with tf.control_dependencies([first]):
            return first + array.read(i)

    return over(x, body)


def read_with_the_one_before(x, clears):
    array = unstacked_rows(x, clears)

    def body(i):
        first = array.read(i)
        with tf.control_dependencies([first]):
            return first + array.read(tf.maximum(i - 1, 0))

    return over(x, body)


def read_by_two_counters(x, clears):
    array = unstacked_rows(x, clears)
    body = lambda i, j, total: (i + 1, j - 1, total + array.read(i) * 2.0 + array.read(j))  # noqa: E731
    return tf.while_loop(lambda i, *_: i < 2, body, [0, 3, tf.zeros([3])])[2]


def read_where_data_say(x, clears):
    array = unstacked_rows(x, clears)
    read = lambda i: tf.cond(x[i, 0] > 0, lambda: array.read(i), lambda: tf.ones([3]))  # noqa: E731
    first = over(x, read)
    with tf.control_dependencies([first]):
        return first + array.read(0)  # which was not read


def read_in_an_inner_loop(x, clears):
    array = unstacked_rows(x, clears)
    return over(x, lambda i: over(x, lambda j: array.read(j) * tf.cast(i, tf.float32)), 2)


def read_by_the_outer_counter(x, clears):
    array = unstacked_rows(x, clears)
    return over(x, lambda i: over(x, lambda j: array.read(i) + 0.0 * tf.cast(j, tf.float32), 2))


def one_of_all_and_each(x, clears):
    array = unstacked_rows(x, clears)
    return over(x, lambda i: array.read(i + 1) + array.read(0), 3)


def all_after_some(x, clears):
    array = unstacked_rows(x, clears)
    some = over(x, array.read, 2)
    with tf.control_dependencies([some]):
        return some + tf.reduce_sum(array.gather([1, 2]), 0)


def written_then_read(x, clears):
    array = tf.TensorArray(tf.float32, 4, element_shape=[3], clear_after_read=clears)

    def body(i, a, total):
        a = a.write(i, x[i])
        return i + 1, a, total + a.read(i)

    _, array, total = tf.while_loop(lambda i, *_: i < 4, body, [0, array, tf.zeros([3])])
    return total + array.read(2)


def written_downwards(x, clears):
    array = tf.TensorArray(tf.float32, 4, element_shape=[3], clear_after_read=clears)
    body = lambda i, a: (i - 1, a.write(i - 1, x[i - 1]))  # noqa: E731
    array = tf.while_loop(lambda i, _: i > 0, body, [4, array])[1]
    return over(x, array.read)


def written_to_one_place(x, clears):
    return written(x, index_of=lambda i: tf.minimum(i, 2)).stack()


def written_in_two_loops(x, clears):
    array = written(x)
    body = lambda i, a: (i + 1, a.write(i, x[i]))  # noqa: E731
    return tf.while_loop(lambda i, _: i < 4, body, [0, array])[1].stack()


def written_beyond_the_end(x, clears):
    return written(x, index_of=lambda i: i + 1).stack()


def some_written(x, clears):
    return written(x, times=3).stack()  # the last is zeros


USES = [
    read_in_two_loops,
    read_again,
    read_twice_at_once,
    read_with_the_one_before,
    read_by_two_counters,
    read_where_data_say,
    read_in_an_inner_loop,
    read_by_the_outer_counter,
    one_of_all_and_each,
    all_after_some,
    written_then_read,
    written_downwards,
    written_to_one_place,
    written_in_two_loops,
    written_beyond_the_end,
    some_written,
]


@pytest.mark.parametrize("clears", [True, False], ids=["read once", "kept"])
@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_what_may_be_read_and_written_is_known_compiled_as_interpreted(use, clears):
    x = tf.placeholder(tf.float32, [4, 3])
    value = use(x, clears)
    fetches = (
        [value, *(g for g in tf.gradients(value, x) if g is not None)] if not clears else value
    )
    found = []
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            try:
                found.append(
                    np.concatenate([np.ravel(v) for v in sess.run([fetches], {x: VALUES})[0]])
                )
            except tf.errors.InvalidArgumentError as error:
                found.append(error.message)
    assert type(found[0]) is type(found[1])
    if isinstance(found[0], str):
        assert found[0] == found[1]
    else:
        np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
