"""``tf.contrib.layers``' feature columns, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf

layers = tf.contrib.layers


def _sparse(rows):
    """A sparse tensor of lists of different lengths."""
    indices = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    values = [value for row in rows for value in row]
    return tf.SparseTensor(indices, values, [len(rows), max(len(row) for row in rows)])


def _evaluated(build):
    """What ``build`` makes in a graph of its own, after initialisation."""
    with tf.Graph().as_default(), tf.Session() as sess:
        made = build()
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return sess.run(made)


def _filled(name, values):
    """Sets the only variable whose name has ``name``."""
    [variable] = [v for v in tf.global_variables() if name in v.name]
    return variable.assign(values)


def test_columns_are_joined_in_the_order_of_their_kinds_and_then_names():
    def build():
        a = layers.real_valued_column("a")
        return layers.input_from_feature_columns(
            {
                "b": tf.constant([[1.0, 2.0], [3.0, 4.0]]),
                "a": tf.constant([10.0, 30.0]),
                "kind": tf.constant(["y", "x"]),
            },
            [
                layers.real_valued_column("b", dimension=2, normalizer=lambda x: x * 2),
                a,
                layers.bucketized_column(a, [10.0, 20.0]),
                layers.one_hot_column(layers.sparse_column_with_keys("kind", ["x", "y", "z"])),
            ],
        )

    found = _evaluated(build)
    buckets, one_hot = [[0, 1, 0], [0, 0, 1]], [[0, 1, 0], [1, 0, 0]]
    numbers = [[10, 2, 4], [30, 6, 8]]
    np.testing.assert_array_equal(found, np.concatenate([buckets, one_hot, numbers], axis=1))


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_a_weighted_sum_combines_the_values_of_each_column_as_it_says(combiner):
    rows, table = [["a", "b"], ["c"], ["b", "b", "z"]], np.array([[1.0], [10.0], [100.0]])
    with tf.Graph().as_default(), tf.Session() as sess:
        column = layers.sparse_column_with_keys("w", ["a", "b", "c"], combiner=combiner)
        logits, variables, bias = layers.weighted_sum_from_feature_columns(
            {"w": _sparse(rows), "x": tf.constant([[1.0], [2.0], [3.0]])},
            [column, layers.real_valued_column("x")],
            num_outputs=1,
        )
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        [weights] = variables[column]
        assert weights.name == "weighted_sum_from_feature_columns/w/weights:0"
        sess.run([weights.assign(table), bias.assign([0.5])])
        sess.run(_filled("x/weight", [[2.0]]))
        found = sess.run(logits)
    known = [[0, 1], [2], [1, 1]]  # "z" is in no list: it counts for nothing
    power = {"sum": 0.0, "mean": 1.0, "sqrtn": 0.5}[combiner]
    sums = np.array([[table[ids].sum() / len(ids) ** power] for ids in known])
    np.testing.assert_allclose(found, sums + 2.0 * np.array([[1], [2], [3]]) + 0.5, rtol=1e-6)


def test_integers_wrap_around_and_weights_count():
    with tf.Graph().as_default(), tf.Session() as sess:
        column = layers.weighted_sparse_column(
            layers.sparse_column_with_integerized_feature("id", bucket_size=3), "much"
        )
        logits, variables, _ = layers.weighted_sum_from_feature_columns(
            {"id": _sparse([[1, 5], [3]]), "much": _sparse([[0.5, 2.0], [4.0]])}, [column], 1
        )
        sess.run(tf.global_variables_initializer())
        sess.run(variables[column][0].assign([[1.0], [10.0], [100.0]]))
        np.testing.assert_allclose(sess.run(logits), [[0.5 * 10 + 2.0 * 100], [4.0]])


def _columns_to_cross():
    words = layers.sparse_column_with_keys("w", ["x", "y", "z"])
    others = layers.sparse_column_with_hash_bucket("w2", 7)
    ids = layers.sparse_column_with_integerized_feature("id", 4)
    ages = layers.bucketized_column(layers.real_valued_column("age"), [10, 30])
    return words, others, ids, ages


def _two(words, others, ids, ages):
    return layers.crossed_column([words, others], 50)


def _with_ages(words, others, ids, ages):
    return layers.crossed_column([words, others, ages], 50)


def _nested(words, others, ids, ages):
    return layers.crossed_column([layers.crossed_column([words, others], 50), ids], 70)


def _numbered(words, others, ids, ages):
    return layers.crossed_column([ids, words], 60)


def _keyed(words, others, ids, ages):
    return layers.crossed_column([words, others], 50, hash_key=0xDECAFCAFFE)


@pytest.mark.parametrize(
    ("cross", "name", "categories"),
    [
        (_two, "w_X_w2", [27, 3, 49, 21, 3, 14]),
        (_with_ages, "age_bucketized_X_w_X_w2", [3, 33, 4, 32, 1, 24]),
        (_nested, "id_X_w_X_w2", [28, 14, 22, 40, 65, 67, 44, 45]),
        (_numbered, "id_X_w", [7, 54, 15, 2, 52, 12, 4]),
        (_keyed, "w_X_w2", [39, 32, 32, 4, 32, 25]),
    ],
)
def test_crossed_columns_have_the_categories_of_tensorflow(cross, name, categories):
    """Its weights are found by these numbers; TensorFlow 1.15.5 gave them."""
    column = cross(*_columns_to_cross())
    assert column.name == name
    with tf.Graph().as_default(), tf.Session() as sess:
        ids = layers.transform_features(
            {
                "w": _sparse([["x", "y"], ["z"], ["y", "q"]]),
                "w2": _sparse([["u"], ["v", "u"], ["u"]]),
                "id": _sparse([[1, 5], [0], [3]]),
                "age": tf.constant([1.0, 20.0, 35.0]),
            },
            [column],
        )[column]
        np.testing.assert_array_equal(sess.run(ids.values), categories)


def test_the_weights_of_all_columns_may_be_one_variable():
    with tf.Graph().as_default(), tf.Session() as sess:
        w, number = (
            layers.sparse_column_with_keys("w", ["a", "b"]),
            layers.sparse_column_with_integerized_feature("id", 3),
        )
        logits, variables, _ = layers.joint_weighted_sum_from_feature_columns(
            {"w": _sparse([["b"], ["z"]]), "id": _sparse([[2], [0, 1]])}, [w, number], 1
        )
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        [table] = variables[w]
        assert table.name == "joint_weighted_sum_from_feature_columns/linear_weights/weights:0"
        assert variables[number] == [table]
        sess.run(table.assign([[1.0], [10.0], [100.0], [1000.0], [10000.0]]))
        np.testing.assert_allclose(sess.run(logits), [[10100.0], [11.0]])
        with pytest.raises(ValueError, match="combiner 'sum'"):
            mean = layers.sparse_column_with_keys("w", ["a"], combiner="mean")
            layers.joint_weighted_sum_from_feature_columns({"w": _sparse([["a"]])}, [mean], 1)


def test_a_column_of_numbers_may_leave_its_dimension_to_the_feature():
    def build():
        column = layers.real_valued_column("")
        return layers.input_from_feature_columns({"": tf.constant([[1.0, 2.0]])}, [column])

    np.testing.assert_array_equal(_evaluated(build), [[1.0, 2.0]])


def test_embeddings_may_share_a_table():
    with tf.Graph().as_default(), tf.Session() as sess:
        one, two = (layers.sparse_column_with_keys(n, ["a", "b"]) for n in ("one", "two"))
        columns = layers.shared_embedding_columns([one, two], dimension=2, combiner="sum")
        net = layers.input_from_feature_columns(
            {"one": _sparse([["a"], ["b"]]), "two": _sparse([["b", "a"], ["b"]])}, columns
        )
        [table] = tf.trainable_variables()
        scope = "input_from_feature_columns/one_shared_embedding"
        assert table.name == f"{scope}/one_two_shared_embedding:0"
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        sess.run(table.assign([[1.0, 2.0], [10.0, 20.0]]))
        np.testing.assert_allclose(sess.run(net), [[1, 2, 11, 22], [10, 20, 10, 20]])


def test_an_embedding_begins_narrower_where_there_are_more_categories():
    def build():
        column = layers.sparse_column_with_integerized_feature("id", 10000)
        features = {"id": tf.constant([[1], [2]])}
        layers.input_from_feature_columns(features, [layers.embedding_column(column, 16)])
        [table] = tf.trainable_variables()
        assert table.name == "input_from_feature_columns/id_embedding/weights:0"
        return table

    deviation = _evaluated(build).std()
    # A normal distribution cut at two deviations has 0.8796 of its deviation.
    assert deviation == pytest.approx(0.8796 / np.sqrt(10000), rel=0.02)


def test_what_columns_read_from_examples():
    columns = [
        layers.real_valued_column("x", dimension=2, default_value=[0.0, 1.0]),
        layers.sparse_column_with_hash_bucket("w", 10),
    ]
    spec = layers.create_feature_spec_for_parsing(columns)
    assert spec == {
        "x": tf.FixedLenFeature((2,), tf.float32, (0.0, 1.0)),
        "w": tf.VarLenFeature(tf.string),
    }
    example = tf.train.Example()
    example.features.feature["w"].bytes_list.value.append(b"a")
    with tf.Graph().as_default(), tf.Session() as sess:
        parsed = layers.parse_feature_columns_from_examples([example.SerializeToString()], columns)
        found = sess.run(parsed)
        np.testing.assert_array_equal(found["x"], [[0.0, 1.0]])
        np.testing.assert_array_equal(found["w"].values, [b"a"])
        placeholders = layers.make_place_holder_tensors_for_base_features(columns)
        assert placeholders["x"].shape.as_list() == [None, 2]
        assert isinstance(placeholders["w"], tf.SparseTensor)


def test_columns_are_inferred_from_dense_features():
    with tf.Graph().as_default():
        found = layers.infer_real_valued_columns(
            {"b": tf.zeros([4, 3]), "a": tf.zeros([4], "int32")}
        )
        assert [(c.name, c.dimension, c.dtype) for c in found] == [
            ("a", 1, tf.int32),
            ("b", 3, tf.float32),
        ]
        [only] = layers.infer_real_valued_columns(tf.zeros([4, 5]))
        assert (only.name, only.dimension) == ("", 5)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: layers.real_valued_column("x", dimension=0), "greater than 0"),
        (lambda: layers.real_valued_column("x", dtype=tf.string), "convertible to float"),
        (lambda: layers.sparse_column_with_hash_bucket("x", 9, combiner="max"), "Combiner"),
        (lambda: layers.bucketized_column(layers.real_valued_column("x"), [2, 1]), "sorted"),
        (
            lambda: layers.crossed_column([layers.sparse_column_with_keys("x", "a")], 9),
            "at least 2",
        ),
        (
            lambda: layers.check_feature_columns([layers.real_valued_column("x")] * 2),
            "Duplicate feature column key found for column: x",
        ),
    ],
)
def test_wrong_columns_are_refused(make, says):
    with pytest.raises((ValueError, TypeError), match=says):
        make()


def test_a_sparse_column_is_no_input_of_a_dense_layer():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="use embedding_column"):
        column = layers.sparse_column_with_keys("x", ["a"])
        layers.input_from_feature_columns({"x": tf.constant(["a"])}, [column])
