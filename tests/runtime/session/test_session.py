"""Sessions: fetches, feeds, partial execution, options, life and threads."""

from __future__ import annotations

import collections
import threading

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, session


def test_fetches_keep_their_structure():
    a, b = tf.constant(1.0, name="a"), tf.constant([2, 3], name="b")
    Pair = collections.namedtuple("Pair", ["left", "right"])
    ordered = collections.OrderedDict([("z", a), ("y", b)])
    with tf.Session() as sess:
        assert sess.run(a) == 1.0
        assert sess.run([a]) == [1.0]
        assert sess.run([]) == []
        assert sess.run((a, [a, (a,)])) == (1.0, [1.0, (1.0,)])
        result = sess.run({"x": a, "nested": {"y": [b]}})
        np.testing.assert_array_equal(result["nested"]["y"][0], [2, 3])
        assert sess.run(Pair(a, a)) == Pair(1.0, 1.0)
        assert list(sess.run(ordered)) == ["z", "y"]
        assert sess.run("a:0") == 1.0
        assert sess.run(tf.no_op()) is None
        assert sess.run([tf.no_op(), a]) == [None, 1.0]


def test_scalars_come_back_as_numpy_scalars_and_arrays_as_writable_arrays():
    v = tf.constant([1.0, 2.0])
    x = tf.placeholder(tf.float32, [2])
    fed = np.ones(2, np.float32)
    with tf.Session() as sess:
        assert type(sess.run(tf.constant(1.0))) is np.float32
        for fetched in (sess.run(v), sess.run(x, {x: fed}), sess.run(tf.identity(x), {x: fed})):
            fetched += 1  # the caller's own
        np.testing.assert_array_equal(sess.run(v), [1, 2])
        np.testing.assert_array_equal(fed, [1, 1])


@pytest.mark.parametrize("bad", [None, 3.5, object(), ["a:0", None]])
def test_what_cannot_be_fetched_is_refused(bad):
    tf.constant(1.0, name="a")
    with tf.Session() as sess, pytest.raises((TypeError, ValueError)):
        sess.run(bad)


def test_fetching_from_another_graph_is_refused_and_the_session_stays_usable():
    a = tf.constant(1.0)
    with tf.Graph().as_default():
        foreign = tf.constant(2.0)
    with tf.Session() as sess:
        with pytest.raises(ValueError, match="not an element of this graph"):
            sess.run(foreign)
        with pytest.raises(TypeError, match="not an element of this graph"):
            sess.run(a, {foreign: 1.0})
        assert sess.run(a) == 1.0


def test_any_tensor_can_be_fed_and_what_lies_behind_does_not_run():
    x = tf.placeholder(tf.float32)
    y = x * 2.0
    z = y + 1.0
    with tf.Session() as sess:
        assert sess.run(z, {y: 10.0}) == 11.0
        assert sess.run([y, z], {y: 10.0}) == [10.0, 11.0]
        assert sess.run(z, {x: 1.0}) == 3.0
        assert sess.run(z, {"Placeholder:0": 2.0}) == 5.0


def test_a_placeholder_that_is_not_fed_is_named():
    x = tf.placeholder(tf.float32, [3], name="input")
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            with pytest.raises(tf.errors.InvalidArgumentError, match="must feed") as e:
                sess.run(tf.identity(x))
            assert e.value.op is x.op
            assert __file__ in str(e.value)


def test_feeds_of_the_wrong_shape_or_type_are_refused():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    i = tf.placeholder(tf.int32, [], name="i")
    with tf.Session() as sess:
        with pytest.raises(ValueError, match=r"shape \(2, 4\).*'x:0'.*\(\?, 3\)"):
            sess.run(x, {x: np.zeros((2, 4))})
        with pytest.raises(ValueError, match="'x:0'"):
            sess.run(x, {x: "text"})
        with pytest.raises(ValueError, match="'x:0'"):
            sess.run(x, {x: [[1, 2, 3], [4, 5]]})
        with pytest.raises(ValueError, match="range of int32"):
            sess.run(i, {i: 2**40})
        with pytest.raises(TypeError, match="cannot be a tensor"):
            sess.run(i, {i: tf.constant(1)})
        with pytest.raises(TypeError, match="feed_dict key"):
            sess.run(i, {3: 1})
        np.testing.assert_array_equal(sess.run(x, {x: [[1, 2, 3]]}), [[1, 2, 3]])


def test_an_unfeedable_tensor_is_refused():
    a = tf.constant(1.0)
    tf.get_default_graph().prevent_feeding(a)
    with tf.Session() as sess, pytest.raises(ValueError, match="may not be fed"):
        sess.run(a, {a: 2.0})


def test_an_unfetchable_operation_is_refused():
    a = tf.constant(1.0)
    tf.get_default_graph().prevent_fetching(a.op)
    with tf.Session() as sess, pytest.raises(ValueError, match="not fetchable"):
        sess.run(a)


def test_the_graph_can_grow_between_runs():
    a = tf.constant(1.0)
    with tf.Session() as sess:
        assert sess.run(a) == 1.0
        b = a + 1.0
        assert sess.run(b) == 2.0


def test_only_what_is_needed_runs():
    ran = []

    def note(x):
        ran.append(float(x))
        return x

    x = tf.constant(1.0)
    needed, other = tf.py_func(note, [x], tf.float32), tf.py_func(note, [x + 1.0], tf.float32)
    del other
    with tf.Session() as sess:
        sess.run(needed)
    assert ran == [1.0]


def test_make_callable():
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    with tf.Session() as sess:
        add = sess.make_callable(x + y, feed_list=[x, y])
        assert add(1.0, 2.0) == 3.0
        both = sess.make_callable({"sum": x + y, "none": tf.no_op()}, feed_list=[x, y])
        assert both(1.0, 2.0) == {"sum": 3.0, "none": None}
        with pytest.raises(ValueError, match="takes 2 arguments"):
            add(1.0)
        with pytest.raises(ValueError):
            add("a", 1.0)
        assert sess.make_callable(tf.constant(7))() == 7
    with pytest.raises(RuntimeError, match="closed"):
        add(1.0, 2.0)


def test_partial_run():
    a, b, c = (tf.placeholder(tf.float32, [], name=n) for n in "abc")
    calls = []

    def count(v):
        calls.append(1)
        return v

    r1 = tf.py_func(count, [a + b], tf.float32)
    r2 = r1 * c
    with tf.Session() as sess:
        handle = sess.partial_run_setup([r1, r2], [a, b, c])
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be fed"):
            sess.partial_run(handle, r2, {})
        assert sess.partial_run(handle, r1, {a: 1.0, b: 2.0}) == 3.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="already been fetched"):
            sess.partial_run(handle, r1)
        with pytest.raises(tf.errors.InvalidArgumentError, match="already been fed"):
            sess.partial_run(handle, r2, {a: 5.0})
        assert sess.partial_run(handle, r2, {c: 10.0}) == 30.0
        assert len(calls) == 1  # each operation of the step ran once
        other = sess.partial_run_setup([r1], [a, b])
        with pytest.raises(tf.errors.InvalidArgumentError, match="not listed"):
            sess.partial_run(other, r2)


def test_a_closed_session_cannot_be_used():
    a = tf.constant(1.0)
    sess = tf.Session()
    sess.close()
    sess.close()
    with pytest.raises(RuntimeError, match="closed"):
        sess.run(a)


def test_default_sessions():
    a = tf.constant(4.0)
    with pytest.raises(ValueError, match="without a session"):
        a.eval()
    with tf.Session() as sess:
        assert tf.get_default_session() is sess
        assert a.eval() == 4.0
        assert a.eval({a: 5.0}) == 5.0
        a.op.run()
        inner = tf.Session()
        with inner.as_default():
            assert tf.get_default_session() is inner
        inner.run(a)  # as_default does not close
    assert tf.get_default_session() is None
    with tf.Graph().as_default(), tf.Session(), pytest.raises(ValueError, match="another"):
        a.eval()


def test_interactive_session():
    sess = tf.InteractiveSession()
    try:
        assert tf.constant(3).eval() == 3
    finally:
        sess.close()
    assert tf.get_default_session() is None


def test_config_and_options_of_the_wrong_type_are_refused():
    a = tf.constant(1.0)
    with pytest.raises(TypeError, match="ConfigProto"):
        tf.Session(config=5)
    with pytest.raises(TypeError, match=r"tf\.Graph"):
        tf.Session(graph=5)
    with tf.Session() as sess, pytest.raises(TypeError, match="RunOptions"):
        sess.run(a, options=5)


def test_a_timeout_stops_a_step_and_names_where():
    slow = threading.Event()

    def wait(x):
        slow.wait(0.05)
        return x

    x = tf.constant(1.0)
    for _ in range(50):
        x = tf.py_func(wait, [x], tf.float32)
    with tf.Session() as sess:
        with pytest.raises(tf.errors.DeadlineExceededError, match="ran out of time") as e:
            sess.run(x, options=tf.RunOptions(timeout_in_ms=20))
        assert e.value.op is not None
        slow.set()
        assert sess.run(x, options=tf.RunOptions(timeout_in_ms=60_000)) == 1.0


def test_run_metadata_has_a_time_for_each_operation():
    y = tf.identity(tf.constant([1.0, 2.0], name="c"), name="y")
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        sess.run(
            y, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata
        )
    (device,) = metadata.step_stats.dev_stats
    names = [n.node_name for n in device.node_stats]
    assert "y" in names
    stats = device.node_stats[names.index("y")]
    assert stats.all_start_micros > 1e15 and stats.all_end_rel_micros >= 1
    assert [d.size for d in stats.output[0].tensor_description.shape.dim] == [2]


def test_errors_carry_op_node_def_message_and_code():
    x = tf.placeholder(tf.float32, name="needed")
    with tf.Session() as sess, pytest.raises(tf.errors.OpError) as e:
        sess.run(x)
    error = e.value
    assert error.op is x.op
    assert error.node_def.name == "needed" and error.node_def.op == "Placeholder"
    assert error.error_code == tf.errors.INVALID_ARGUMENT
    assert "must feed" in error.message


def test_sessions_have_variables_of_their_own_and_reset_clears_containers():
    with tf.container("one"):
        a = tf.Variable(1.0)
    b = tf.Variable(2.0)
    init = tf.global_variables_initializer()
    first, second = tf.Session(), tf.Session()
    first.run(init)
    assert first.run([a, b]) == [1.0, 2.0]
    with pytest.raises(tf.errors.FailedPreconditionError):
        second.run(a)
    tf.Session.reset("", ["one"])
    with pytest.raises(tf.errors.FailedPreconditionError, match=a.op.name):
        first.run(a)
    assert first.run(b) == 2.0
    tf.Session.reset("")
    with pytest.raises(tf.errors.FailedPreconditionError):
        first.run(b)


def test_a_thread_for_each_of_many_runs():
    x = tf.placeholder(tf.float32, [None])
    y = x * 2.0 + 1.0
    failures = []
    with tf.Session() as sess:

        def work(seed):
            rng = np.random.default_rng(seed)
            for _ in range(50):
                value = rng.random(rng.integers(1, 6)).astype(np.float32)
                result = sess.run(y, {x: value})
                if not np.allclose(result, value * 2 + 1):
                    failures.append((value, result))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_fetches_and_feeds_of_registered_types():
    class Wrapped:
        def __init__(self, tensor):
            self.tensor = tensor

    tf.register_session_run_conversion_functions(
        Wrapped,
        fetch_function=lambda w: ([w.tensor], lambda values: ("wrapped", values[0])),
        feed_function=lambda w, value: [(w.tensor, value)],
    )
    w = Wrapped(tf.placeholder(tf.float32))
    with tf.Session() as sess:
        assert sess.run(w, {w: 3.0}) == ("wrapped", 3.0)
    with pytest.raises(ValueError, match="already"):
        tf.register_session_run_conversion_functions(Wrapped)


def test_sparse_tensors_are_fed_in_parts():
    sparse = tf.sparse_placeholder(tf.float32, [2, 3])
    total = tf.sparse_reduce_sum(sparse)
    value = tf.SparseTensorValue([[0, 1], [1, 2]], [2.0, 3.0], [2, 3])
    with tf.Session() as sess:
        handle = sess.partial_run_setup([total], [sparse])
        assert sess.partial_run(handle, total, {sparse: value}) == 5.0
