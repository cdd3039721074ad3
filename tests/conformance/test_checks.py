"""Assertions, printing and Python functions against TensorFlow: messages and behaviour."""

import re
import sys

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as reference

import runnel
from tests.both_tiers import COMPILED, INTERPRETED, session
from tests.conformance.side_by_side import compare

reference.disable_v2_behavior()


def failures(program):
    """The error and its own message in TensorFlow, and in runnel in both tiers."""
    found = []
    for tf, make in (
        (reference, reference.Session),
        (runnel, lambda: session(INTERPRETED)),
        (runnel, lambda: session(COMPILED)),
    ):
        with tf.Graph().as_default(), make() as sess:
            fetch, feed = program(tf)
            with pytest.raises(tf.errors.OpError) as caught:
                sess.run(fetch, feed)
            message = caught.value.message
            if tf is reference:
                message = re.search(r"\nNode: .*?\n(.*?)\n?\t? ?\[\[\{\{node", message, re.S)[1]
            found.append((type(caught.value).__name__, message.strip()))
    return found


@pytest.mark.parametrize(
    "data",
    [
        lambda tf: [tf.constant([1, 2, 3, 4, 5]), "text", tf.constant(2.5)],
        lambda tf: [tf.constant(np.arange(24).reshape(2, 3, 4))],
        lambda tf: [tf.constant([True, False]), tf.constant(["a", "b"]), 0.1],
    ],
)
def test_assertion_messages(data):
    def program(tf):
        x = tf.placeholder(tf.bool, [])
        return tf.Assert(x, data(tf)), {x: False}

    theirs, *ours = failures(program)
    assert ours == [theirs, theirs]


@pytest.mark.parametrize("bad", [[np.nan, 1], [np.inf, 1], [-np.inf, np.nan]])
@pytest.mark.parametrize("op_type", ["CheckNumerics", "CheckNumericsV2"])
def test_check_numerics_messages(bad, op_type):
    def program(tf):
        x = tf.placeholder(tf.float32, [2])
        if tf is reference:
            return getattr(tf.raw_ops, op_type)(tensor=x, message="the loss"), {x: bad}
        return tf.get_op_def(op_type)(x, message="the loss"), {x: bad}

    theirs, *ours = failures(program)
    for kind, message in ours:
        assert kind == theirs[0]
        assert message.startswith(theirs[1])


def test_check_numerics_gradient():
    compare(lambda tf, x: tf.check_numerics(x * 2.0, "fine"), np.array([1.0, 2.0]), order=1)
    compare(lambda tf, x: tf.verify_tensor_all_finite(x, "fine"), np.array([1.0, 2.0]), order=0)


ASSERTIONS = {
    "assert_equal": ([1, 2], [1, 3]),
    "assert_none_equal": ([1, 2], [3, 2]),
    "assert_less": ([1, 2], [2, 2]),
    "assert_less_equal": ([1, 3], [2, 2]),
    "assert_greater": ([3, 2], [2, 2]),
    "assert_greater_equal": ([3, 1], [2, 2]),
    "assert_positive": ([1, 0],),
    "assert_negative": ([-1, 0],),
    "assert_non_negative": ([1, -1],),
    "assert_non_positive": ([-1, 1],),
    "assert_near": ([1.0, 2.0], [1.0, 2.1]),
}


@pytest.mark.parametrize("name", ASSERTIONS)
def test_failing_assertions(name):
    arrays = [np.asarray(a) for a in ASSERTIONS[name]]

    def program(tf):
        inputs = [tf.placeholder(a.dtype, [None], name="xy"[i]) for i, a in enumerate(arrays)]
        feed = dict(zip(inputs, arrays, strict=True))
        return getattr(tf, name)(*inputs, message="I said"), feed

    (kind, theirs), *ours = failures(program)
    for ours_kind, message in ours:
        assert ours_kind == kind
        # TensorFlow 2.21 words some of them anew; the values shown are the same.
        shown = re.findall(r"\[[-\d. ]+\]", theirs)
        assert shown and re.findall(r"\[[-\d. ]+\]", message) == shown
        assert "I said" in message


@pytest.mark.parametrize("name", [n for n in ASSERTIONS if n != "assert_near"])
def test_assertions_that_fail_at_once(name):
    for tf in (reference, runnel):
        with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError):
            getattr(tf, name)(*(tf.constant(a) for a in ASSERTIONS[name]))


def test_order_of_elements():
    for x in ([1, 2, 2, 5], [1, 2, 3], [3, 1], [7], []):
        compare(
            lambda tf, t: [tf.is_non_decreasing(t), tf.is_strictly_increasing(t)],
            np.array(x, np.float32),
            order=0,
        )


PRINTED = [
    1.5,
    [1, 2, 3],
    [1, 2, 3, 4, 5],
    np.arange(24).reshape(2, 3, 4),
    ["a", "b\n\t\\", 'q"'],
    "s",
    [True, False],
    [1.0, 2.5e-10, 1e30, float("nan"), float("inf")],
    np.array([0.1, 1 / 3, 1234567.0]),
    np.array([0.1], np.float16),
    np.zeros((2, 0)),
]


def printed(capfd, run):
    capfd.readouterr()
    run()
    sys.stderr.flush()
    return "\n".join(
        line
        for line in capfd.readouterr().err.splitlines()
        if not re.match(r"[IWE]\d{4} |WARNING", line)
    )


@pytest.mark.parametrize("limit", [None, 5, 100, -1])
def test_print(capfd, limit):
    texts = []
    for tf in (reference, runnel):
        with tf.Graph().as_default(), tf.Session() as sess:
            values = [tf.constant(v) for v in PRINTED]
            x = tf.Print(tf.constant(1.0), values, message="M:", summarize=limit)
            texts.append(printed(capfd, lambda sess=sess, x=x: sess.run(x)))
    assert texts[0] == texts[1] != ""


@pytest.mark.parametrize("limit", [3, 1, -1])
def test_print_v2(capfd, limit):
    texts = []
    for tf in (reference, runnel):
        with tf.Graph().as_default(), tf.Session() as sess:
            op = tf.print(
                "hello",
                *(tf.constant(v) for v in PRINTED[:-1]),
                {"a": tf.constant([1, 2]), "b": 3},
                [tf.constant(2), "x"],
                np.float32(0.5),
                summarize=limit,
                output_stream=sys.stderr,
            )
            texts.append(printed(capfd, lambda sess=sess, op=op: sess.run(op)))
    assert texts[0] == texts[1] != ""


def test_print_to_a_file(tmp_path):
    contents = []
    for tf, name in ((reference, "theirs"), (runnel, "ours")):
        path = tmp_path / name
        with tf.Graph().as_default(), tf.Session() as sess:
            x = tf.constant([1, 2])
            sess.run(tf.print(x, x, sep="-", end="!", output_stream=f"file://{path}"))
        contents.append(path.read_text())
    assert contents[0] == contents[1]


def test_python_functions():
    def double(x):
        return x * 2

    compare(
        lambda tf, x: [
            tf.py_func(double, [x], tf.float32),
            *tf.py_func(lambda a: (a, np.int64(a.size)), [x], [tf.float32, tf.int64]),
            tf.numpy_function(lambda a, s: a + len(s), [x, "abc"], tf.float32),
        ],
        np.array([1.0, 2.0], np.float32),
        order=0,
    )


@pytest.mark.parametrize(
    "error",
    [ValueError, TypeError, KeyError, StopIteration, NotImplementedError, ZeroDivisionError],
)
def test_errors_of_python_functions(error):
    def fail(x):
        raise error("boom")

    def program(tf):
        x = tf.placeholder(tf.float32, [])
        return tf.py_func(fail, [x], tf.float32), {x: 1.0}

    (kind, theirs), *ours = failures(program)
    for ours_kind, message in ours:
        assert ours_kind == kind
        assert theirs.splitlines()[0] == message.splitlines()[0]
        assert 'raise error("boom")' in message


@pytest.mark.parametrize("result", [lambda x: np.float64(1.5), lambda x: (x, x)])
def test_python_functions_that_return_something_else(result):
    def program(tf):
        x = tf.placeholder(tf.float32, [])
        return tf.py_func(result, [x], tf.float32), {x: 1.0}

    (kind, _), *ours = failures(program)
    assert [k for k, _ in ours] == [kind, kind]
