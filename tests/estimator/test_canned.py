"""Canned estimators: what they learn, what they say of it, and the names of their variables."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf

fc = tf.feature_column
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(96, 2)).astype(np.float32)
KIND = np.where(X[:, 0] > 0, "up", "down")
CLASSES = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0)
LINE = (X @ [[2.0], [-1.0]] + 0.5).astype(np.float32)


@pytest.fixture(autouse=True)
def writers_are_closed():
    yield
    tf.summary.FileWriterCache.clear()


def rows(labels, epochs=None, shuffle=False):
    features = {"a": X[:, 0], "b": X[:, 1], "kind": KIND}
    return tf.estimator.inputs.numpy_input_fn(
        features, labels, batch_size=32, num_epochs=epochs, shuffle=shuffle
    )


def numbers():
    return [fc.numeric_column("a"), fc.numeric_column("b")]


def kinds():
    return fc.categorical_column_with_vocabulary_list("kind", ["up", "down"])


def config(folder):
    return tf.estimator.RunConfig(str(folder), tf_random_seed=1)


def test_a_linear_regressor_finds_the_line(tmp_path):
    made = tf.estimator.LinearRegressor(
        numbers(), config=config(tmp_path), optimizer=tf.train.AdamOptimizer(0.1)
    )
    made.train(rows(LINE), steps=150)
    names = [f"linear/linear_model/{n}" for n in ("a/weights", "b/weights", "bias_weights")]
    found = [made.get_variable_value(name).item() for name in names]
    np.testing.assert_allclose(found, [2.0, -1.0, 0.5], atol=0.05)
    metrics = made.evaluate(rows(LINE, 1))
    said = np.concatenate([row["predictions"] for row in made.predict(rows(None, 1))])
    errors = (said - LINE[:, 0]) ** 2
    assert metrics["average_loss"] == pytest.approx(errors.mean(), rel=1e-3)
    assert metrics["loss"] == pytest.approx(errors.sum() / 3, rel=1e-3), "a sum for each batch"
    assert metrics["label/mean"] == pytest.approx(LINE.mean(), rel=1e-3)
    assert metrics["prediction/mean"] == pytest.approx(said.mean(), rel=1e-3)
    assert metrics["global_step"] == 150


def test_a_binary_classifier_with_words_for_labels(tmp_path):
    made = tf.estimator.LinearClassifier(
        numbers(), config=config(tmp_path), label_vocabulary=["down", "up"]
    )
    made.train(rows(KIND), steps=60)
    metrics = made.evaluate(rows(KIND, 1))
    said = list(made.predict(rows(None, 1)))
    words = np.array([row["classes"][0] for row in said]).astype(str)
    likely = np.array([row["probabilities"] for row in said])
    up = np.array([row["logistic"][0] for row in said])
    np.testing.assert_allclose(likely, np.stack([1 - up, up], 1), atol=1e-5)
    assert metrics["accuracy"] == pytest.approx((words == KIND).mean(), abs=1e-5)
    assert metrics["accuracy"] > 0.9
    share = (KIND == "up").mean()
    assert metrics["accuracy_baseline"] == pytest.approx(max(share, 1 - share), abs=1e-5)
    right = (words == "up") & (KIND == "up")
    assert metrics["precision"] == pytest.approx(right.sum() / (words == "up").sum(), abs=1e-5)
    assert metrics["recall"] == pytest.approx(right.sum() / (KIND == "up").sum(), abs=1e-5)
    assert metrics["auc"] > 0.95 and metrics["auc_precision_recall"] > 0.95
    assert list(said[0]["all_classes"]) == [b"down", b"up"]


def test_a_deep_classifier_of_several_classes(tmp_path):
    made = tf.estimator.DNNClassifier(
        [16, 8],
        [*numbers(), fc.embedding_column(kinds(), 2)],
        n_classes=3,
        config=config(tmp_path),
        batch_norm=True,
        dropout=0.1,
        optimizer="Adam",
    )
    made.train(rows(CLASSES), steps=100)
    metrics = made.evaluate(rows(CLASSES, 1))
    said = np.array([row["class_ids"][0] for row in made.predict(rows(None, 1))])
    assert metrics["accuracy"] == pytest.approx((said == CLASSES).mean(), abs=1e-5)
    assert metrics["accuracy"] > 0.8
    table = "dnn/input_from_feature_columns/input_layer/kind_embedding/embedding_weights"
    assert {table, "dnn/hiddenlayer_0/kernel", "dnn/logits/bias"} <= {*made.get_variable_names()}
    assert made.get_variable_value("dnn/hiddenlayer_1/batchnorm_1/moving_mean").any()


def test_wide_and_deep(tmp_path):
    signs = fc.bucketized_column(fc.numeric_column("b"), [0.0])
    made = tf.estimator.DNNLinearCombinedClassifier(
        config=config(tmp_path),
        linear_feature_columns=[kinds(), fc.crossed_column(["kind", signs], 20)],
        linear_optimizer=tf.train.FtrlOptimizer(0.2),
        dnn_feature_columns=numbers(),
        dnn_optimizer=tf.train.AdagradOptimizer(0.05),
        dnn_hidden_units=[8],
        n_classes=3,
    )
    made.train(rows(CLASSES, shuffle=True), steps=100)
    assert made.evaluate(rows(CLASSES, 1))["accuracy"] > 0.9
    assert "linear/linear_model/kind/weights" in made.get_variable_names()
    columns = [*numbers(), fc.indicator_column(kinds())]
    spec = fc.make_parse_example_spec(columns)
    path = made.export_savedmodel(
        str(tmp_path / "export"), tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    )
    assert tf.saved_model.contains_saved_model(path)


@pytest.mark.parametrize(
    ("part", "combined", "rate"),
    [("linear", False, 0.2), ("linear", True, 0.005), ("dnn", False, 0.05), ("dnn", True, 0.001)],
)
def test_an_optimizer_that_is_named_has_the_rate_of_tensorflow(tmp_path, part, combined, rate):
    column = [fc.numeric_column("a")]
    if combined:
        dnn = {"dnn_hidden_units": [2]} if part == "dnn" else {}
        given = {f"{part}_feature_columns": column, f"{part}_optimizer": "SGD", **dnn}
        made = tf.estimator.DNNLinearCombinedRegressor(config=config(tmp_path), **given)
    elif part == "linear":
        made = tf.estimator.LinearRegressor(column, optimizer="SGD", config=config(tmp_path))
    else:
        made = tf.estimator.DNNRegressor([2], column, optimizer="SGD", config=config(tmp_path))
    # Of a feature that is 0, every model makes 0: the loss 3 ** 2 has the derivative -6 there.
    features = {"a": np.zeros(1, np.float32)}
    labels = np.full(1, 3.0, np.float32)
    made.train(
        tf.estimator.inputs.numpy_input_fn(features, labels, 1, None, shuffle=False), steps=1
    )
    bias = "linear/linear_model/bias_weights" if part == "linear" else "dnn/logits/bias"
    np.testing.assert_allclose(made.get_variable_value(bias), [6 * rate], rtol=1e-5)


def test_examples_count_as_much_as_their_weights_say(tmp_path):
    features = {"a": np.zeros(2, np.float32), "w": np.array([3.0, 1.0], np.float32)}
    labels = np.array([1.0, 5.0], np.float32)
    made = tf.estimator.DNNRegressor(
        [2],
        [fc.numeric_column("a")],
        config=config(tmp_path),
        weight_column="w",
        optimizer=lambda: tf.train.AdamOptimizer(0.1),
    )
    made.train(
        tf.estimator.inputs.numpy_input_fn(features, labels, 2, None, shuffle=False), steps=150
    )
    asked = tf.estimator.inputs.numpy_input_fn(features, batch_size=2, shuffle=False)
    (first, _) = made.predict(asked)
    assert first["predictions"][0] == pytest.approx(2.0, abs=0.05)


def test_errors_say_what_is_missing(tmp_path):
    with pytest.raises(ValueError, match="must be defined"):
        tf.estimator.DNNLinearCombinedRegressor(str(tmp_path))
    with pytest.raises(ValueError, match="2 entries for 3 classes"):
        tf.estimator.LinearClassifier(numbers(), n_classes=3, label_vocabulary=["a", "b"])
    made = tf.estimator.LinearClassifier(numbers(), str(tmp_path))
    with pytest.raises(ValueError, match="labels"):
        made.train(rows(None), steps=1)
    with pytest.raises(ValueError, match="label_vocabulary"):
        made.train(rows(KIND), steps=1)


class Frame(dict):
    """What is asked of a pandas ``DataFrame``."""

    columns = property(lambda self: list(self))
    index = np.arange(96)


def test_the_columns_of_a_table_are_features(tmp_path):
    class Series(np.ndarray):
        index = np.arange(96)

    frame, labels = Frame(a=X[:, 0], b=X[:, 1]), LINE[:, 0].view(Series)
    made = tf.estimator.LinearRegressor(numbers(), config=config(tmp_path))
    made.train(
        tf.estimator.inputs.pandas_input_fn(
            frame, labels, batch_size=48, num_epochs=1, shuffle=True
        )
    )
    assert made.get_variable_value("global_step") == 2
    with pytest.raises(ValueError, match="target column"):
        tf.estimator.inputs.pandas_input_fn(Frame(target=X[:, 0]), labels, shuffle=False)
