"""Variables and random numbers in branches and loops: order, atomicity, streams."""

import numpy as np
import pytest

import runnel as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def variable(use_resource, value=0.0, name=None):
    return tf.Variable(value, use_resource=use_resource, name=name)


KINDS = pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])


@KINDS
def test_a_branch_updates_only_when_it_is_taken(use_resource):
    v = variable(use_resource)
    p = tf.placeholder(tf.bool, [])
    step = tf.cond(p, lambda: tf.group(v.assign_add(1.0)), lambda: tf.group(v.assign_sub(10.0)))
    with tf.Session() as sess:
        sess.run(v.initializer)
        seen = []
        for taken in (True, True, False):
            sess.run(step, {p: taken})
            seen.append(float(sess.run(v)))
    assert seen == [1.0, 2.0, -8.0]


@KINDS
def test_a_branch_reads_what_it_has_written(use_resource):
    v = tf.Variable([1.0, 2.0], use_resource=use_resource)
    p = tf.placeholder(tf.bool, [])

    def update():
        with tf.control_dependencies([v.assign_add([10.0, 10.0])]):
            return tf.constant([0.5, 0.5]) + v

    y = tf.cond(p, update, lambda: v * 1.0)
    with tf.Session() as sess:
        sess.run(v.initializer)
        np.testing.assert_array_equal(sess.run(y, {p: False}), [1.0, 2.0])
        np.testing.assert_array_equal(sess.run(y, {p: True}), [11.5, 12.5])


@KINDS
def test_effects_in_and_outside_of_branches_on_one_predicate_keep_their_order(use_resource):
    v = tf.Variable([1.0, 2.0], use_resource=use_resource)
    x = tf.placeholder(tf.float32, [2])
    p = tf.reduce_sum(x) > 0
    first = tf.cond(p, lambda: v.assign_add(x) * 1.0, lambda: v.assign_sub(x) * 1.0)
    doubled = v.assign(v * 2.0) + 0.0
    second = tf.cond(p, lambda: x + v, lambda: x - v)
    gradient = tf.gradients(second, x)[0]
    with tf.Session() as sess:
        sess.run(v.initializer)
        found = sess.run([first, doubled, second, gradient], {x: [1.0, 2.0]})
    np.testing.assert_array_equal(found, [[2.0, 4.0], [4.0, 8.0], [5.0, 10.0], [1.0, 1.0]])


@KINDS
def test_a_variable_decides_and_is_changed_by_what_it_decides(use_resource):
    on = variable(use_resource, False)
    count = variable(use_resource, 0)

    def turn(value, amount):
        with tf.control_dependencies([on.assign(value), count.assign_add(amount)]):
            return tf.constant(amount) * 2

    y = tf.cond(on, lambda: turn(False, 1), lambda: turn(True, 10))
    with tf.Session() as sess:
        sess.run([on.initializer, count.initializer])
        assert [int(sess.run(y)) for _ in range(3)] == [20, 2, 20]
        assert sess.run([on, count]) == [True, 21]


@KINDS
def test_a_loop_reads_what_earlier_iterations_wrote(use_resource):
    v = variable(use_resource, 1.0)

    def body(i, total):
        present = v.read_value() if use_resource else tf.assign_add(v, 0.0)
        with tf.control_dependencies([v.assign(present * 2)]):
            now = v.read_value() if use_resource else tf.assign_add(v, 0.0)
            return i + 1, total + now

    _, total = tf.while_loop(lambda i, _: i < 3, body, [0, 0.0])
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(total) == 2 + 4 + 8
        assert sess.run(v) == 8.0


@KINDS
def test_the_order_of_construction_holds_around_a_loop(use_resource):
    v = variable(use_resource)

    def read():
        return v.read_value() if use_resource else tf.identity(v._ref())

    before = read()
    loop = tf.while_loop(
        lambda i: i < 3, lambda i: tf.tuple([i + 1], control_inputs=[v.assign_add(1.0)])[0], [0]
    )
    after = read()
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run([before, loop, after]) == [0.0, 3, 3.0]
        assert sess.run(v) == 3.0


@KINDS
def test_a_failed_step_changes_nothing(use_resource):
    v = variable(use_resource)
    r = tf.random_uniform([], seed=3)
    x = tf.placeholder(tf.float32, [])

    def body(i, s):
        with tf.control_dependencies([v.assign_add(1.0)]):
            checked = tf.check_numerics(x / tf.cast(2 - i, tf.float32), "too far", name="check")
        return i + 1, s + checked

    _, total = tf.while_loop(lambda i, _: i < 4, body, [0, r])
    with tf.Session() as sess:
        sess.run(v.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match="too far") as raised:
            sess.run(total, {x: 1.0})
        assert raised.value.op.name == "while/check"
        assert sess.run(v) == 0.0
        first = sess.run(r)
    with tf.Session() as sess:
        assert sess.run(r) == first  # the failed step drew nothing


def test_uninitialized_variables_are_named():
    v = tf.Variable(1.0, name="weights")
    y = tf.cond(tf.constant(True), lambda: v * 2, lambda: v)
    failure = pytest.raises(tf.errors.FailedPreconditionError, match="weights")
    with tf.Session() as sess, failure:
        sess.run(y)


def test_random_ops_draw_anew_in_each_iteration():
    """A loop of four draws gives what four steps of one draw give: the stream is the op's."""

    def draw(i, values):
        return i + 1, tf.concat([values, tf.random_uniform([1], seed=7)], 0)

    def drawn(how_many, steps):
        with tf.Graph().as_default():
            _, values = tf.while_loop(
                lambda i, _: i < how_many,
                draw,
                [0, tf.zeros([0])],
                shape_invariants=[(), (None,)],
            )
            with tf.Session() as sess:
                return np.concatenate([sess.run(values) for _ in range(steps)])

    by_loop = drawn(4, 2)
    assert len(set(by_loop.tolist())) == 8
    np.testing.assert_array_equal(by_loop, drawn(1, 8))


def test_concurrent_loops_do_not_lose_updates():
    import threading

    v = tf.Variable(0.0, use_resource=True)
    loop = tf.while_loop(
        lambda i: i < 5, lambda i: tf.tuple([i + 1], control_inputs=[v.assign_add(1.0)])[0], [0]
    )
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run(loop)
        threads = [
            threading.Thread(target=lambda: [sess.run(loop) for _ in range(10)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sess.run(v) == 5.0 * 41


def test_a_fetched_variable_is_read_at_the_end():
    v = tf.Variable(2.0)
    update = tf.cond(tf.constant(True), lambda: tf.assign_add(v, 1.0), lambda: tf.assign(v, 0.0))
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run([v, update]) == [3.0, 3.0]
