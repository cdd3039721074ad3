"""Printing from a graph, and the text of tensors."""

import sys

import numpy as np
import pytest

import runnel as tf
from runnel.ops.tensor_summary import summarize, summarize_edges

CUBE = np.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (1.5, 3, "[1.5]"),
        ([1, 2, 3], 3, "[1 2 3]"),
        ([1, 2, 3, 4], 3, "[1 2 3...]"),
        ([[0, 1, 2], [3, 4, 5]], 3, "[[0 1 2]...]"),
        (CUBE, 5, "[[[0 1 2 3][4...]]...]"),
        ([True, False], 3, "[1 0]"),
        (np.array([b"a", b"b"], object), 3, "[a b]"),
        (np.float32(0.1), 3, "[0.1]"),
        (np.float32(1 / 3), 3, "[0.333333343]"),
        (np.zeros((2, 0)), 3, "[]"),
    ],
)
def test_first_elements(value, limit, text):
    assert summarize(value, limit) == text


def test_edges():
    assert summarize_edges(np.arange(8)) == "[0 1 2 ... 5 6 7]"
    assert summarize_edges(np.arange(4).reshape(2, 2)) == "[[0 1]\n [2 3]]"
    assert summarize_edges(np.arange(8), -1) == "[0 1 2 3 4 5 6 7]"
    assert summarize_edges(np.array([b'a"'], object)) == '["a\\""]'


def test_print_passes_its_input_on(capsys):
    x = tf.placeholder(tf.float32, [2])
    y = tf.Print(x, [x, tf.shape(x)], message="x: ", first_n=2)
    with tf.Session() as sess:
        for _ in range(4):
            np.testing.assert_array_equal(sess.run(y * 2, {x: [1.0, 2.0]}), [2, 4])
    assert capsys.readouterr().err == "x: [1 2][2]\n" * 2
    assert tf.gradients(y, x)[0] is not None


def test_print_v2(capsys):
    x = tf.constant([1, 2])
    with tf.Session() as sess:
        sess.run(tf.print("x is", x, {"a": x}, sep="|", end="!\n", output_stream=sys.stdout))
        sess.run(tf.print(tf.constant("plain")))
    captured = capsys.readouterr()
    assert captured.out == "x is|[1 2]|{'a': [1 2]}!\n"
    assert captured.err == "plain\n"
    with pytest.raises(ValueError, match="output_stream"):
        tf.print(x, output_stream="nowhere")
    with pytest.raises(ValueError, match="Unrecognized keyword"):
        tf.print(x, color="red")


def test_braces_in_the_text_are_not_placeholders(capsys):
    with tf.Session() as sess:
        sess.run(tf.print("{} {{}}", tf.constant(1)))
    assert capsys.readouterr().err == "{} {{}} 1\n"


def test_format():
    from runnel.ops.printing import string_format

    with tf.Session() as sess:
        assert (
            sess.run(string_format("{} and {}", [tf.constant(1), tf.constant([2])])) == b"1 and [2]"
        )
    with pytest.raises(ValueError, match="placeholder"):
        string_format("{}", [tf.constant(1), tf.constant(2)])
