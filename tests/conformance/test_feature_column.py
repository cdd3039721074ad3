"""``tf.feature_column`` against TensorFlow: variables, their names, values and gradients."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import runnel
from runnel.ops.parsing.feature_kinds import FixedLenFeature
from tests.conformance.same_network import compare_network

AGES = np.array([[17.0], [40.0], [65.0], [30.0]], np.float32)
POINTS = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def _features(tf, ages, points):
    return {
        "age": ages,
        "points": points,
        "job": tf.constant([["nurse"], ["smith"], [""], ["baker"]]),
        "tags": tf.SparseTensor(
            [[0, 0], [0, 1], [2, 0], [3, 1]],
            tf.constant(["red", "blue", "red", "unknown"]),
            [4, 2],
        ),
        "weights": tf.SparseTensor(
            [[0, 0], [0, 1], [2, 0], [3, 1]], tf.constant([0.5, 2.0, 1.0, 3.0]), [4, 2]
        ),
        "number": tf.constant([[3], [1], [9], [-1]], tf.int64),
        "plain": tf.constant([5, 6, 7, 8]),
    }


def _columns(tf, folder):
    fc = tf.feature_column
    (folder / "jobs").write_text("nurse\nbaker\n")
    age = fc.numeric_column("age", normalizer_fn=lambda x: x / 10.0)
    tags = fc.categorical_column_with_vocabulary_list("tags", ["red", "green", "blue"])
    return {
        "age": age,
        "points": fc.numeric_column("points", shape=[3]),
        "plain": fc.numeric_column("plain", dtype=tf.int32),
        "ranges": fc.bucketized_column(age, [2.0, 4.0, 6.0]),
        "several_ranges": fc.bucketized_column(fc.numeric_column("points", 3), [-0.5, 0.5]),
        "job": fc.categorical_column_with_hash_bucket("job", 7),
        "hashed_number": fc.categorical_column_with_hash_bucket("number", 5, tf.int64),
        "tags": tags,
        "oov": fc.categorical_column_with_vocabulary_list(
            "tags", ("red", "green"), num_oov_buckets=3
        ),
        "default": fc.categorical_column_with_vocabulary_list("tags", ["red"], default_value=0),
        "file": fc.categorical_column_with_vocabulary_file("job", str(folder / "jobs"), 2, 2),
        "number": fc.categorical_column_with_identity("number", 5, default_value=0),
        "weighted": fc.weighted_categorical_column(tags, "weights"),
        "crossed": fc.crossed_column(["job", fc.bucketized_column(age, [3.0])], 11),
    }


CATEGORICAL = [
    *("ranges", "several_ranges", "job", "hashed_number", "tags", "oov", "default", "file"),
    *("number", "weighted", "crossed"),
]


def test_dense_columns_side_by_side(tmp_path):
    def build(tf, ages, points):
        made = _columns(tf, tmp_path)
        columns = [made[name] for name in ("points", "age", "ranges", "plain", "several_ranges")]
        return tf.feature_column.input_layer(_features(tf, ages, points), columns)

    compare_network(build, AGES, POINTS, shapes=[(None, 1), (4, 3)])


@pytest.mark.parametrize("name", CATEGORICAL)
def test_categories_as_indicators_and_as_embeddings(name, tmp_path):
    def build(tf, ages, points):
        fc = tf.feature_column
        column = _columns(tf, tmp_path)[name]
        features = _features(tf, ages, points)
        return fc.input_layer(
            features,
            [fc.indicator_column(column), fc.embedding_column(column, 2, combiner="sqrtn")],
        )

    compare_network(build, AGES, POINTS, gradients=False)


@pytest.mark.parametrize("combiner", ["sum", "mean"])
def test_linear_models(combiner, tmp_path):
    def build(tf, ages, points):
        made = _columns(tf, tmp_path)
        columns = [made[name] for name in ("age", "ranges", "job", "number", "crossed")]
        return tf.feature_column.linear_model(
            _features(tf, ages, points), columns, units=2, sparse_combiner=combiner
        )

    compare_network(build, AGES, POINTS)


def test_columns_share_a_table():
    def build(tf, ages, points):
        fc = tf.feature_column
        columns = fc.shared_embedding_columns(
            [
                fc.categorical_column_with_identity("a", 4),
                fc.categorical_column_with_identity("b", 4),
            ],
            2,
        )
        features = {"a": tf.constant([[1], [2], [3], [0]]), "b": tf.constant([[3], [2], [1], [1]])}
        return fc.input_layer(features, columns) * tf.reduce_mean(ages)

    compare_network(build, AGES, POINTS)


def test_how_examples_are_parsed(tmp_path):
    import tensorflow.compat.v1 as tensorflow

    def spec(tf):
        found = tf.feature_column.make_parse_example_spec(list(_columns(tf, tmp_path).values())[:6])
        return {key: (type(kind).__name__, kind.dtype.name) for key, kind in found.items()}

    assert spec(runnel) == spec(tensorflow)
    made = runnel.feature_column.numeric_column("x", 2, default_value=[0.5, 1.5])
    assert made.parse_example_spec == {"x": FixedLenFeature((2,), runnel.float32, (0.5, 1.5))}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda fc: fc.numeric_column("x", shape=0), "greater than 0"),
        (lambda fc: fc.bucketized_column(fc.numeric_column("x"), [2, 1]), "sorted"),
        (lambda fc: fc.categorical_column_with_vocabulary_list("x", ["a", "a"]), "Duplicate"),
        (lambda fc: fc.categorical_column_with_hash_bucket("x", 0), "at least 1"),
        (lambda fc: fc.crossed_column(["x"], 3), "length > 1"),
        (lambda fc: fc.input_layer({}, []), "must not be empty"),
        (
            lambda fc: fc.input_layer({"x": [1]}, [fc.categorical_column_with_identity("x", 2)]),
            "indicator_column",
        ),
        (lambda fc: fc.input_layer({"y": [1.0]}, [fc.numeric_column("x")]), "x is not in features"),
    ],
)
def test_errors_say_what_is_wrong(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong(runnel.feature_column)
