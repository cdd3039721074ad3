"""Examples that are read at once are read as each alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runnel as tf
from runnel.ops.parsing.example_layout import whole_group
from runnel.ops.parsing.example_template import AlikeExamples
from runnel.ops.parsing.example_waves import ExampleWaves

train = tf.train
INT64 = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 200)
FLOAT32 = st.floats(width=32, allow_nan=False)
FEATURES = {
    "a": tf.VarLenFeature(tf.float32),
    "b": tf.VarLenFeature(tf.int64),
    "c": tf.VarLenFeature(tf.string),
    "d": tf.FixedLenFeature([2], tf.float32, [0.5, 1.5]),
    "e": tf.FixedLenFeature([], tf.int64, -1),
    "f": tf.FixedLenSequenceFeature([], tf.string, allow_missing=True),
}


@st.composite
def examples(draw):
    values = {
        "a": draw(st.lists(FLOAT32, max_size=4)),
        "b": draw(st.lists(INT64, max_size=4)),
        "c": draw(st.lists(st.binary(max_size=4), max_size=3)),
        "d": draw(st.lists(FLOAT32, min_size=2, max_size=2)),
        "e": draw(st.lists(INT64, min_size=1, max_size=1)),
        "f": draw(st.lists(st.binary(max_size=3), max_size=2)),
    }
    kept = draw(st.lists(st.sampled_from(sorted(values)), unique=True))
    made = train.Example()
    for key in kept:
        feature = made.features.feature[key]
        if key in "ad":
            feature.float_list.value.extend(values[key])
        elif key in "be":
            feature.int64_list.value.extend(values[key])
        else:
            feature.bytes_list.value.extend(values[key])
    return made.SerializeToString()


def parsed(contents):
    with tf.Graph().as_default(), tf.Session() as sess:
        return sess.run(tf.parse_example(list(contents), FEATURES))


@given(st.lists(examples(), min_size=1, max_size=3), st.data())
@settings(deadline=None, max_examples=60)
def test_many_are_read_as_few(kinds, data):
    """Fewer than eight are read one by one: the same ones in small parts are the oracle."""
    contents = data.draw(st.lists(st.sampled_from(kinds), min_size=8, max_size=20))
    whole = parsed(contents)
    few = [parsed(contents[i : i + 4]) for i in range(0, len(contents), 4)]
    for key in ("d", "e"):
        assert whole[key].tolist() == np.concatenate([part[key] for part in few]).tolist()
    for key in ("a", "b", "c"):
        assert whole[key].values.tolist() == [v for part in few for v in part[key].values.tolist()]
        rows = [r + 4 * i for i, part in enumerate(few) for r in part[key].indices[:, 0].tolist()]
        assert whole[key].indices[:, 0].tolist() == rows


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**40, 2**63 - 1, -1, -(2**63)])
def test_numbers_of_every_width(value):
    made = train.Example()
    made.features.feature["b"].int64_list.value.extend([value, 5, value])
    contents = [made.SerializeToString()] * 9
    assert whole_group(contents) is not None
    assert parsed(contents)["b"].values.tolist() == [value, 5, value] * 9


def test_those_that_differ_in_values_alone_are_one_group():
    contents = []
    for i in range(20):
        made = train.Example()
        made.features.feature["d"].float_list.value.extend([i, -i])
        made.features.feature["e"].int64_list.value.append(i)
        made.features.feature["f"].bytes_list.value.append(b"%02d" % i)
        contents.append(made.SerializeToString(deterministic=True))
    assert whole_group(contents) is not None
    found = parsed(contents)
    assert found["d"].tolist() == [[i, -i] for i in range(20)]
    assert found["e"].tolist() == list(range(20))
    assert found["f"].ravel().tolist() == [b"%02d" % i for i in range(20)]


def of_lengths(count):
    """Messages that differ in the lengths of everything, in one order."""
    random = np.random.default_rng(0)
    contents = []
    for _ in range(count):
        made = train.Example()
        feature = made.features.feature
        feature["a"].float_list.value.extend(random.random(random.integers(0, 90)))
        feature["b"].int64_list.value.extend(random.integers(-9, 1 << 40, random.integers(0, 9)))
        feature["c"].bytes_list.value.extend([bytes(n) for n in random.integers(0, 300, 2)])
        feature["e"].int64_list.value.append(int(random.integers(0, 1 << 60)))
        contents.append(made.SerializeToString(deterministic=True))
    return contents


OTHERS = of_lengths(9)


def test_those_that_differ_in_length_are_read_together():
    contents = of_lengths(50)
    assert ExampleWaves(contents).usual.all()
    found = parsed(contents)
    made = [train.Example.FromString(content).features.feature for content in contents]
    for key, field in (("a", "float_list"), ("b", "int64_list"), ("c", "bytes_list")):
        values = [v for one in made for v in getattr(one[key], field).value]
        assert found[key].values.tolist() == values
    assert found["e"].tolist() == [one["e"].int64_list.value[0] for one in made]
    assert (found["d"] == [0.5, 1.5]).all()


def test_an_unusual_message_among_others_is_read_all_the_same():
    contents = of_lengths(10)
    # A list of numbers that is not packed, and a key that is written twice: the last one counts.
    contents[3] = bytes.fromhex("0a0d0a0b0a016212061a0408070808")
    entry = bytes.fromhex("0a0a0a016512051a030a0105")
    contents[6] = b"\x0a" + bytes([2 * len(entry)]) + entry * 2
    found = parsed(contents)
    alone = [parsed([content]) for content in contents]
    assert found["b"].values.tolist() == [v for one in alone for v in one["b"].values.tolist()]
    assert found["e"].tolist() == [one["e"][0] for one in alone]


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_bytes_that_were_changed_are_read_or_refused(data):
    content = bytearray(data.draw(examples()) or b"\x0a\x00")
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    outcomes = []
    for contents in ([bytes(content)], [bytes(content)] * 9, [bytes(content), *OTHERS]):
        try:
            found = parsed(contents)
            outcomes.append(repr([found["d"][0].tolist(), found["e"][0].tolist()]))
        except tf.errors.InvalidArgumentError:
            outcomes.append("refused")
    assert outcomes[0] == outcomes[1] == outcomes[2]


def one(a, b, c, e):
    made = train.Example()
    feature = made.features.feature
    feature["a"].float_list.value.extend(a)
    feature["b"].int64_list.value.extend(b)
    feature["c"].bytes_list.value.append(c)
    feature["e"].int64_list.value.append(e)
    return made.SerializeToString(deterministic=True)


@given(
    st.lists(
        st.tuples(
            st.lists(FLOAT32, min_size=1, max_size=5),
            st.lists(INT64, min_size=1, max_size=5),
            st.binary(max_size=100),
            INT64,
        ),
        min_size=8,
        max_size=12,
    ),
    st.integers(0, 60),
)
@settings(deadline=None, max_examples=30)
def test_features_in_one_order_are_found_by_their_lengths(values, longer):
    """Lists of up to 60 floats more are too long for a length of one byte, in every message."""
    contents = [one([*a, *[0.5] * longer], b, c, e) for a, b, c, e in values]
    if longer == 0:
        assert AlikeExamples.of(contents) is not None
    found = parsed(contents)
    assert found["a"].values.tolist() == [x for a, *_ in values for x in [*a, *[0.5] * longer]]
    assert found["b"].values.tolist() == [x for _, b, *_ in values for x in b]
    assert found["c"].values.tolist() == [c for *_, c, _ in values]
    assert found["e"].tolist() == [e for *_, e in values]


def test_long_features_of_one_length_are_alike():
    contents = [one([i] * 50, [i], bytes(i), i) for i in range(1, 20)]
    assert AlikeExamples.of(contents) is not None
    assert parsed(contents)["a"].values.tolist() == [i for i in range(1, 20) for _ in range(50)]


ALIKE = [one([1.5], [3, 300], b"text", i) for i in range(8)] + [one([2], [1], b"", 2**40)]


@given(st.data())
@settings(deadline=None, max_examples=50)
def test_a_changed_byte_among_messages_that_are_alike_is_seen(data):
    place = data.draw(st.integers(0, len(ALIKE) - 1))
    changed = bytearray(ALIKE[place])
    changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    expected = outcome([bytes(changed)])
    if expected != "refused":
        unchanged = outcome(ALIKE)
        expected = [*unchanged[:place], *expected, *unchanged[place + 1 :]]
    found = outcome([*ALIKE[:place], bytes(changed), *ALIKE[place + 1 :]])
    assert repr(found) == repr(expected)


def outcome(contents):
    """What is found in each message, or that there is an error."""
    try:
        found = parsed(contents)
    except tf.errors.InvalidArgumentError:
        return "refused"
    rows = [[found["d"][i].tolist(), found["e"][i].tolist()] for i in range(len(contents))]
    for key in "abc":
        for row in rows:
            row.append([])
        indices, values, _ = found[key]
        for (i, _), value in zip(indices.tolist(), values.tolist(), strict=True):
            rows[i][-1].append(value)
    return rows
