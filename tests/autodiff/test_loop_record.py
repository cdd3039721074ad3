"""What differentiation knows of loops: one record for each, kept by the graph, never mixed up."""

import gc
import threading
import weakref

import numpy as np
import pytest

import runnel as tf
from runnel.autodiff.loop_record import record_of, records_of
from runnel.control_flow.context import while_context_of, while_context_of_output

POINT = [0.6, -0.4]


def power(x, n):
    """``x`` to the power of ``n + 1``, by a loop."""
    return tf.while_loop(lambda i, _: i < n, lambda i, s: (i + 1, s * x), [0, x])[1]


def loops(graph):
    """All loops of a graph, outermost or not, in the order in which they were made."""
    found = (while_context_of(op) for op in graph.get_operations())
    return list(dict.fromkeys(loop for loop in found if loop is not None))


def stacks(graph):
    """For each stack of a graph the name of the loop that pushes to it, by the records."""
    records = records_of(graph)
    made = [op.outputs[0] for op in graph.get_operations() if op.type == "StackV2"]
    pushing = {stack.op.name: records.pushing_to(stack) for stack in made}
    return {name: loop.name for name, loop in pushing.items() if loop is not None}


# What a record says -----------------------------------------------------------------------------


def test_the_record_of_a_gradient_leads_to_the_loop_whose_gradient_it_is():
    with tf.Graph().as_default() as graph:
        x = tf.constant(POINT)
        y = power(x, 3)
        forward = while_context_of(y.op)
        first = tf.gradients(y, x)[0]
        gradient = loops(graph)[-1]
        tf.gradients(first, x)
    assert record_of(forward).gradient_of is None
    assert record_of(gradient).gradient_of is record_of(forward)
    of_gradient = [loop for loop in loops(graph) if record_of(loop).gradient_of is not None]
    differentiated = [record_of(loop).gradient_of.loop for loop in of_gradient]
    # The second call goes through the first gradient, and once more through the loop itself.
    assert differentiated == [forward, gradient, forward]


def test_a_loop_is_counted_once_however_often_it_is_differentiated():
    with tf.Graph().as_default():
        x = tf.constant(POINT)
        y = power(x, 3)
        record = record_of(while_context_of(y.op))
        assert record.counter is None
        first = tf.gradients(y, x)[0]
        counter = record.counter
        assert counter is not None
        again = tf.gradients(tf.sin(y), x)[0]
        assert record.counter is counter
        with tf.Session() as sess:
            count, *values = sess.run([counter.count, first, again])
    point = np.array(POINT)
    assert count == 3
    np.testing.assert_allclose(values[0], 4 * point**3, rtol=1e-5)
    np.testing.assert_allclose(values[1], np.cos(point**4) * 4 * point**3, rtol=1e-5)


def test_every_push_of_a_loop_is_in_its_record():
    with tf.Graph().as_default() as graph:
        x = tf.constant(POINT)
        y = tf.while_loop(
            lambda i, _: i < 2, lambda i, s: (i + 1, tf.sin(power(s, 2) * x)), [0, x]
        )[1]
        tf.gradients(tf.gradients(y, x), x)
    pushes = {op for op in graph.get_operations() if op.type == "StackPushV2"}
    recorded = [push for loop in loops(graph) for push in record_of(loop).pushes]
    assert len(recorded) == len(set(recorded))
    assert set(recorded) == pushes
    for loop in loops(graph):
        assert all(while_context_of_output(push) is loop for push in record_of(loop).pushes)


def test_loops_of_an_imported_graph_get_the_same_records():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.while_loop(
            lambda i, _: i < 2, lambda i, s: (i + 1, tf.sin(power(s, 2) * x)), [0, x]
        )[1]
        tf.gradients(y, x)
    with tf.Graph().as_default() as copy:
        tf.import_graph_def(graph.as_graph_def(), name="")
        assert stacks(copy) == {}
        x = copy.get_tensor_by_name("x:0")
        assert tf.gradients(x, x) is not None  # recovers the loops, and adds none
    assert stacks(copy) == stacks(graph) != {}
    pushes = [
        {loop.name: [push.name for push in record_of(loop).pushes] for loop in loops(g)}
        for g in (graph, copy)
    ]
    assert pushes[0] == pushes[1]


# How long it lives ------------------------------------------------------------------------------


def differentiated():
    """A graph with loops, conditionals and arrays in it, differentiated twice."""
    with tf.Graph().as_default() as graph:
        x = tf.constant(POINT)
        y = tf.map_fn(lambda e: tf.cond(e > 0, lambda: power(e, 2), lambda: tf.sin(e)), x)
        tf.gradients(tf.gradients(y, x), x)
    return graph


def imported():
    with tf.Graph().as_default() as graph:
        x = tf.constant(POINT, name="x")
        tf.identity(power(x, 2), name="y")
    with tf.Graph().as_default() as copy:
        elements = tf.import_graph_def(graph.as_graph_def(), return_elements=["x:0", "y:0"])
        tf.gradients(elements[1], elements[0])
    return copy


def without_gradient(x):
    """``x``, through which no gradient goes: asking for one is an error."""
    with tf.get_default_graph().gradient_override_map({"Identity": "GradientOfNothing"}):
        return tf.identity(x)


def failed():
    with tf.Graph().as_default() as graph:
        x = tf.constant(POINT)
        y = power(without_gradient(x), 2)
        with pytest.raises(LookupError, match="No gradient is defined"):
            tf.gradients(y, x)
    return graph


@pytest.mark.parametrize("made", [differentiated, imported, failed])
def test_records_die_with_their_graph(made):
    graph = made()
    assert loops(graph)
    died = [weakref.ref(graph), weakref.ref(records_of(graph)), weakref.ref(loops(graph)[0])]
    del graph
    gc.collect()
    assert [reference() for reference in died] == [None, None, None]


def test_a_call_that_failed_leaves_nothing_to_the_next_one():
    with tf.Graph().as_default():
        x = tf.constant(POINT)
        y = tf.map_fn(lambda e: power(e, 2), x)
        with pytest.raises(LookupError, match="No gradient is defined"):
            tf.gradients(tf.map_fn(lambda e: power(without_gradient(e), 2), x), x)
        found = tf.gradients(y, x)[0]
        with tf.Session() as sess:
            np.testing.assert_allclose(sess.run(found), 3 * np.array(POINT) ** 2, rtol=1e-5)


def test_a_gradient_function_may_ask_for_gradients_of_loops_itself():
    @tf.custom_gradient
    def cubed(x):
        def gradient(dy):
            with tf.name_scope("inner"):
                return dy * tf.gradients(tf.map_fn(lambda e: power(e, 2), x), x)[0]

        return x * x * x, gradient

    with tf.Graph().as_default():
        x = tf.constant(POINT)
        y = tf.map_fn(lambda e: tf.cond(e > 0, lambda: power(e, 2), lambda: tf.sin(e)), cubed(x))
        found = tf.gradients(y, x)[0]
        with tf.Session() as sess:
            value = sess.run(found)
    a, b = POINT
    np.testing.assert_allclose(value, [9 * a**8, np.cos(b**3) * 3 * b**2], rtol=1e-5)


# Several threads --------------------------------------------------------------------------------


def run_together(*functions):
    """What the functions return, each called in a thread of its own; or the first error."""
    results = [None] * len(functions)
    errors = []

    def call(index, function):
        try:
            results[index] = function()
        except BaseException as error:  # (handed on to the test)
            errors.append(error)

    threads = [threading.Thread(target=call, args=pair) for pair in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]
    return results


def meeting(barrier):
    """The identity, in whose gradient a thread waits for the others: all are in tf.gradients."""

    @tf.custom_gradient
    def meet(x):
        def gradient(dy):
            barrier.wait(60)
            return dy

        return tf.identity(x), gradient

    return meet


def program(x, n, meet):
    """A loop with an inner loop in a branch and an array around: ``x ** (n + 2)``, if positive."""

    def element(e):
        return tf.cond(e > 0, lambda: meet(power(e, n) * e), lambda: meet(tf.sin(e)))

    return tf.map_fn(element, x)


def expected(n):
    """The first and the second derivative of the program."""
    a, b = POINT
    first = [(n + 2) * a ** (n + 1), np.cos(b)]
    return first, [(n + 2) * (n + 1) * a**n, -np.sin(b)]


def check(graph, derivatives, n):
    with tf.Session(graph=graph) as sess:
        found = sess.run(derivatives)
    np.testing.assert_allclose(found, expected(n), rtol=1e-4)


def derive(x, y):
    first = tf.gradients(y, x)[0]
    return [first, tf.gradients(first, x)[0]]


def test_gradients_built_at_once_on_two_graphs_do_not_mix_their_records():
    meet = meeting(threading.Barrier(2))

    def build(n):
        with tf.Graph().as_default() as graph:
            x = tf.constant(POINT)
            derivatives = derive(x, program(x, n, meet))
        return graph, derivatives

    built = run_together(lambda: build(1), lambda: build(3))
    for (graph, derivatives), n in zip(built, (1, 3), strict=True):
        records = [record_of(loop) for loop in loops(graph)]
        for record in records:
            assert record.loop.graph is graph
            assert record.gradient_of is None or record.gradient_of.loop.graph is graph
            assert all(push.graph is graph for push in record.pushes)
        check(graph, derivatives, n)
    alone = [op.type for op in built[0][0].get_operations()]
    again, _ = build_alone(1)
    assert alone == [op.type for op in again.get_operations()]


def build_alone(n):
    meet = meeting(threading.Barrier(1))
    with tf.Graph().as_default() as graph:
        x = tf.constant(POINT)
        return graph, derive(x, program(x, n, meet))


def test_gradients_built_by_two_threads_on_one_graph_do_not_mix_their_records():
    """Under a lock around each call, as a program that shares a graph must build it."""
    graph, lock = tf.Graph(), threading.Lock()
    barrier = threading.Barrier(2)

    def build(n):
        def locked(function):
            barrier.wait(60)  # the calls of the two threads take turns
            with lock, graph.as_default():
                return function()

        x = locked(lambda: tf.constant(POINT))
        y = locked(lambda: program(x, n, meeting(threading.Barrier(1))))
        first = locked(lambda: tf.gradients(y, x)[0])
        return [first, locked(lambda: tf.gradients(first, x)[0])]

    built = run_together(lambda: build(1), lambda: build(3))
    for derivatives, n in zip(built, (1, 3), strict=True):
        check(graph, derivatives, n)
    makers = {loop: record_of(loop).gradient_of for loop in loops(graph)}
    assert all(record is None or record.loop in makers for record in makers.values())
    recorded = [push for loop in loops(graph) for push in record_of(loop).pushes]
    assert len(recorded) == len(set(recorded))
