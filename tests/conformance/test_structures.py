"""What a session takes and gives: structures of fetches and feeds, as TensorFlow has them."""

from __future__ import annotations

from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict, namedtuple
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tensorflow

import runnel

tensorflow.disable_v2_behavior()

Pair = namedtuple("Pair", "first second")


class Named(dict):
    """A dictionary of a user's own type, with an attribute."""

    title = ""


def in_both(program: Any) -> list[Any]:
    """What ``program(tf, session)`` returns, or the type of its error, in each library."""
    found = []
    for tf in (runnel, tensorflow):
        with tf.Graph().as_default(), tf.Session() as sess:
            try:
                found.append(program(tf, sess))
            except Exception as error:  # noqa: BLE001
                found.append(type(error))
    return found


def assert_same_structure(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs), (ours, theirs)
    if isinstance(ours, dict | UserDict):
        assert list(ours) == list(theirs)
        for key in ours:
            assert_same_structure(ours[key], theirs[key])
    elif isinstance(ours, list | tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same_structure(a, b)
    else:
        np.testing.assert_array_equal(ours, theirs)


FETCHES = {
    "a defaultdict": lambda a, b: _defaultdict(list, a=a, b=b),
    "a defaultdict without a factory": lambda a, b: _defaultdict(None, a=a),
    "a defaultdict inside": lambda a, b: {"x": [_defaultdict(int, a=a)], "y": b},
    "an OrderedDict": lambda a, b: OrderedDict([("b", a), ("a", b)]),
    "a UserDict": lambda a, b: UserDict(b=a, a=b),
    "a subclass of dict": lambda a, b: Named(a=a, b=b),
    "a namedtuple": lambda a, b: Pair(a, {"x": b}),
    "a subclass of list": lambda a, b: type("Listed", (list,), {})([a, b]),
    "an empty dict": lambda a, b: {},
    "a set": lambda a, b: {a, b},
    "a generator": lambda a, b: (t for t in (a, b)),
}


def _defaultdict(factory: Any, **items: Any) -> Any:
    made: Any = defaultdict(factory)
    made.update(items)
    return made


@pytest.mark.parametrize("fetches", FETCHES.values(), ids=FETCHES)
def test_fetches_come_back_in_their_structure(fetches):
    ours, theirs = in_both(
        lambda tf, sess: sess.run(fetches(tf.constant(1.0), tf.constant([2, 3])))
    )
    assert_same_structure(ours, theirs)
    if isinstance(ours, defaultdict):
        assert ours.default_factory is theirs.default_factory


def test_mappings_that_tensorflow_cannot_rebuild_come_back_too():
    with runnel.Graph().as_default(), runnel.Session() as sess:
        a, b = runnel.constant(1.0), runnel.constant(2.0)
        assert dict(sess.run(ChainMap({"a": a}, {"b": b}))) == {"a": 1.0, "b": 2.0}
        assert sess.run(MappingProxyType({"a": a})) == {"a": 1.0}
        assert sess.run(Counter(a=a)) == {"a": 1.0}
        named = Named(a=a)
        named.title = "kept"
        fetched = sess.run(named)
        assert fetched == {"a": 1.0} and fetched.title == "kept"
        assert named["a"] is a


def test_an_instance_of_an_attrs_class_comes_back():
    """The package attrs marks its classes in this way."""

    class State:
        __attrs_attrs__ = (SimpleNamespace(name="first"), SimpleNamespace(name="second"))

        def __init__(self, first: Any, second: Any) -> None:
            self.first, self.second = first, second

    with runnel.Graph().as_default(), runnel.Session() as sess:
        state = State(runnel.constant(1.0), [runnel.constant(2.0)])
        fetched = sess.run({"state": state})["state"]
        assert type(fetched) is State and fetched is not state
        assert (fetched.first, fetched.second) == (1.0, [2.0])


OBJECTS = {
    "floats": (np.float32, np.array([1, 2.5], object)),
    "integers": (np.int32, np.array([1, 2], object)),
    "whole floats": (np.int32, np.array([1.0, 2], object)),
    "booleans among numbers": (np.float32, np.array([True, 2], object)),
    "booleans": (np.bool_, np.array([True, False], object)),
    "complex": (np.complex64, np.array([1j, 2], object)),
    "rows": (np.float64, np.array([[1, 2.5], [np.float32(3), np.int8(4)]], object)),
}


@pytest.mark.parametrize(("dtype", "value"), OBJECTS.values(), ids=OBJECTS)
def test_an_array_of_python_numbers_is_fed(dtype, value):
    def program(tf, sess):
        x = tf.placeholder(dtype, None)
        return sess.run(tf.identity(x), {x: value})

    ours, theirs = in_both(program)
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


def _states(tf: Any) -> tuple[Any, Any]:
    c, h = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2])
    return c, h


STRUCTURES = {
    "a tuple": lambda tf, c, h: {(c, h): (np.ones(2), np.zeros(2))},
    "a namedtuple": lambda tf, c, h: {Pair(c, h): Pair(np.ones(2), np.zeros(2))},
    "nested tuples": lambda tf, c, h: {((c,), (h,)): ((np.ones(2),), (np.zeros(2),))},
    "a list of values": lambda tf, c, h: {(c, h): [np.ones(2), np.zeros(2)]},
    "too few values": lambda tf, c, h: {(c, h): ([1, 2],)},
    "one array for two": lambda tf, c, h: {(c, h): np.zeros((2, 2))},
    "one of them twice": lambda tf, c, h: {(c, h): (np.ones(2), np.zeros(2)), c: [0, 0]},
    "a list": lambda tf, c, h: [(c, [1, 2]), (h, [3, 4])],
    "a tuple of pairs": lambda tf, c, h: ((c, [1, 2]), (h, [3, 4])),
    "a set": lambda tf, c, h: {c, h},
    "a mapping": lambda tf, c, h: MappingProxyType({c: [1, 2], h: [3, 4]}),
    "items": lambda tf, c, h: {c: [1, 2], h: [3, 4]}.items(),
}


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("feeds", STRUCTURES.values(), ids=STRUCTURES)
def test_structures_are_fed_or_refused(feeds, times):
    def program(tf, sess):
        c, h = _states(tf)
        total = c + 10.0 * h
        sess.run(total, {c: [0, 0], h: [0, 0]})  # a plan for these very keys exists
        return [sess.run(total, feeds(tf, c, h)) for _ in range(times)]

    ours, theirs = in_both(program)
    assert_same_structure(ours, theirs)


def test_the_state_of_an_lstm_is_fed_from_the_one_fetched():
    def states(tf):
        with tf.Graph().as_default() as graph:
            tf.set_random_seed(1)
            cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.LSTMCell(3) for _ in range(2)])
            initial = cell.zero_state(2, tf.float32)
            x = tf.placeholder(tf.float32, [2, 4])
            _, final = cell(x, initial)
            with tf.Session(graph=graph) as sess:
                sess.run(tf.global_variables_initializer())
                state = sess.run(initial)
                for _ in range(3):
                    state = sess.run(final, {initial: state, x: np.ones((2, 4))})
        return state

    state = states(runnel)
    assert type(state[0]) is runnel.nn.rnn_cell.LSTMStateTuple
    assert np.abs(state[1].h).max() > 0


@pytest.mark.parametrize(
    "build",
    {
        "of an integer": lambda tf, i, f: ([i * 2], [i]),
        "of integers and floats": lambda tf, i, f: ([tf.cast(f, tf.int32), f * 2.0], [f, i]),
        "through an integer": lambda tf, i, f: ([tf.cast(tf.cast(f, tf.int32), tf.float32)], [f]),
        "with respect to an integer": lambda tf, i, f: ([tf.cast(i, tf.float32) * 2.0], [i]),
        "of a comparison": lambda tf, i, f: ([f > 2.0], [f]),
        "of itself": lambda tf, i, f: ([i], [i]),
        "of a string": lambda tf, i, f: ([tf.constant("a")], [f]),
        "in a loop": lambda tf, i, f: (
            [tf.while_loop(lambda k, s: k < 3, lambda k, s: (k + 1, s + i), [0, i])[1]],
            [i],
        ),
    }.values(),
)
def test_a_gradient_of_integers_is_none(build):
    def program(tf, sess):
        ys, xs = build(tf, tf.constant(3), tf.constant(3.0))
        found = tf.gradients(ys, xs)
        return [None if g is None else sess.run(g) for g in found]

    ours, theirs = in_both(program)
    assert ours == theirs
