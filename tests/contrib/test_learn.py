"""``tf.contrib.learn``: estimators against NumPy, what watches them, experiments."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf

learn, layers = tf.contrib.learn, tf.contrib.layers
_CONFIG = learn.RunConfig(tf_random_seed=1, save_checkpoints_secs=None, save_checkpoints_steps=20)


@pytest.fixture(autouse=True)
def _no_open_writers():
    yield
    tf.summary.FileWriterCache.clear()


def _points(count=64, seed=0):
    """Points, and numbers that are nearly a linear function of them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 3)).astype(np.float32)
    return x, (x @ [1.0, -2.0, 0.5] + 0.25).astype(np.float32)


def _constant_input(x, y):
    return lambda: (tf.constant(x), tf.constant(y))


def _regression(features, labels, mode):
    """A model of the older kind: a function that returns three things."""
    predictions = tf.squeeze(layers.fully_connected(features, 1, None), [1])
    loss = tf.losses.mean_squared_error(labels, predictions)
    step = tf.contrib.framework.get_global_step()
    train = layers.optimize_loss(loss, step, 0.1, "SGD") if mode == learn.ModeKeys.TRAIN else None
    return {"value": predictions}, loss, train


# Linear and deep models --------------------------------------------------------------------------


def test_a_linear_regressor_takes_the_steps_that_numpy_takes(tmp_path):
    x, y = _points()
    model = learn.LinearRegressor(
        learn.infer_real_valued_columns_from_input(x),
        tmp_path,
        optimizer=tf.train.GradientDescentOptimizer(0.1),
        config=_CONFIG,
    )
    model.fit(x, y, steps=30)  # without a batch_size each step sees all rows
    weights, bias = np.zeros(3), 0.0
    for _ in range(30):
        error = x @ weights + bias - y
        weights = weights - 0.1 * 2 * (error @ x) / len(x)
        bias -= 0.1 * 2 * error.mean()
    np.testing.assert_allclose(model.get_variable_value("linear//weight")[:, 0], weights, rtol=1e-4)
    np.testing.assert_allclose(model.get_variable_value("linear/bias_weight"), [bias], rtol=1e-3)
    scores = np.array(list(model.predict(x)))
    np.testing.assert_allclose(scores, x @ weights + bias, rtol=1e-3, atol=1e-4)
    found = model.evaluate(x, y)
    assert found["loss"] == pytest.approx(np.mean((scores - y) ** 2), rel=1e-4)
    assert found["global_step"] == 30


def test_metrics_of_two_classes_are_numpys(tmp_path):
    x, y = _points(200)
    labels = (y > 0).astype(np.int64)
    labels[::7] = 1 - labels[::7]  # some cannot be learned
    model = learn.LinearClassifier([layers.real_valued_column("", 3)], tmp_path, config=_CONFIG)
    model.fit(x, labels, steps=40, batch_size=50)
    found = model.evaluate(x, labels, batch_size=64)
    chances = np.array(list(model.predict_proba(x)))
    np.testing.assert_allclose(chances.sum(1), 1.0, rtol=1e-6)
    guesses = chances.argmax(1)
    np.testing.assert_array_equal(list(model.predict(x)), guesses)
    right, said = (labels == 1) & (guesses == 1), guesses == 1
    assert found["accuracy"] == pytest.approx(np.mean(guesses == labels))
    assert found["accuracy/threshold_0.500000_mean"] == pytest.approx(np.mean(guesses == labels))
    precision, recall = right.sum() / said.sum(), right.sum() / labels.sum()
    assert found["precision/positive_threshold_0.500000_mean"] == pytest.approx(precision, rel=1e-4)
    assert found["recall/positive_threshold_0.500000_mean"] == pytest.approx(recall, rel=1e-4)
    assert found["labels/actual_label_mean"] == pytest.approx(labels.mean())
    assert found["labels/prediction_mean"] == pytest.approx(chances[:, 1].mean(), rel=1e-4)
    pairs = chances[labels == 1, 1][:, None] > chances[labels == 0, 1][None]
    assert found["auc"] == pytest.approx(pairs.mean(), abs=0.01)


def test_weights_of_examples_weigh_the_loss(tmp_path):
    x, y = _points()
    weights = np.linspace(0.0, 2.0, len(x)).astype(np.float32)
    features = {"x": x, "w": weights}
    model = learn.LinearRegressor(
        [layers.real_valued_column("x", 3)],
        tmp_path,
        weight_column_name="w",
        optimizer=tf.train.GradientDescentOptimizer(0.1),
        config=_CONFIG,
    )
    model.fit(features, y, steps=1)
    gradient = np.mean(weights[:, None] * -2 * y[:, None] * x, axis=0)
    found = model.get_variable_value("linear/x/weight")[:, 0]
    np.testing.assert_allclose(found, -0.1 * gradient, rtol=1e-4)
    errors = (np.array(list(model.predict(features))) - y) ** 2
    average = np.sum(errors * weights) / weights.sum()
    assert model.evaluate(features, y)["loss"] == pytest.approx(average, rel=1e-4)


@pytest.mark.parametrize("label_keys", [None, ["no", "yes", "perhaps"]])
def test_a_deep_classifier_learns_irises(tmp_path, label_keys):
    iris = learn.datasets.load_dataset("iris")
    labels = iris.target if label_keys is None else np.array(label_keys)[iris.target]
    columns = learn.infer_real_valued_columns_from_input(iris.data)
    model = learn.DNNClassifier(
        [10, 20, 10], columns, tmp_path, n_classes=3, config=_CONFIG, label_keys=label_keys
    )
    model.fit(iris.data, labels, steps=200)
    assert model.evaluate(iris.data, labels)["accuracy"] > 0.9
    guesses = np.array(list(model.predict_classes(iris.data)))
    wanted = labels if label_keys is None else np.char.encode(labels)
    assert np.mean(guesses == wanted) > 0.9


def test_both_parts_of_a_combined_model_count_steps_unless_told_otherwise(tmp_path):
    x, y = _points()

    def model(name, **options):
        return learn.DNNLinearCombinedRegressor(
            tmp_path / name,
            linear_feature_columns=[layers.real_valued_column("", 3)],
            dnn_feature_columns=[tf.feature_column.numeric_column("", 3)],
            dnn_hidden_units=[4],
            config=_CONFIG,
            **options,
        )

    twice = model("twice")
    twice.fit(x, y, steps=20)
    once = model("once", fix_global_step_increment_bug=True)
    once.fit(x, y, steps=10)
    # The same ten updates: the same loss.
    assert twice.evaluate(x, y) == {**once.evaluate(x, y), "global_step": 20}


def test_a_centred_bias_learns_how_often_there_is_a_class(tmp_path):
    x = np.zeros([40, 1], np.float32)
    y = (np.arange(40) % 4 == 0).astype(np.int64)
    model = learn.LinearClassifier(
        [layers.real_valued_column("", 1)],
        tmp_path,
        optimizer=tf.train.GradientDescentOptimizer(1e-9),
        enable_centered_bias=True,
        config=_CONFIG,
    )
    model.fit(x, y.astype(np.int64), steps=400)
    assert model.evaluate(x, y.astype(np.int64))["labels/prediction_mean"] == pytest.approx(
        0.25, 0.05
    )


def test_counts_and_several_labels_have_heads_of_their_own(tmp_path):
    x, y = _points()
    counts = np.random.default_rng(0).poisson(np.exp(0.2 * y)).astype(np.float32)
    columns = [layers.real_valued_column("", 3)]
    rate = tf.train.GradientDescentOptimizer(0.1)
    poisson = learn.LinearEstimator(
        columns, learn.poisson_regression_head(), tmp_path / "p", optimizer=rate, config=_CONFIG
    )
    poisson.fit(x, counts, steps=200)
    expected = learn.SKCompat(poisson).predict(x)["scores"]
    assert (expected > 0).all()
    np.testing.assert_allclose(np.mean(expected - counts), 0.0, atol=0.02)  # where the slope is 0
    several = np.stack([y > 0, y > 1], 1).astype(np.int64)
    labelled = learn.DNNEstimator(
        learn.multi_label_head(2), [8], columns, tmp_path / "m", config=_CONFIG
    )
    labelled.fit(x, several, steps=200)
    guesses = learn.SKCompat(labelled).predict(x)["classes"]
    assert labelled.evaluate(x, several)["accuracy"] == pytest.approx(np.mean(guesses == several))
    assert np.mean(guesses == several) > 0.9


# Models of one's own -----------------------------------------------------------------------------


def test_a_model_function_may_return_three_things_and_build_its_loss_always(tmp_path):
    def model_fn(features, targets):  # it has no mode: it asks for labels while it predicts
        predictions = layers.fully_connected(features, 1, None)[:, 0]
        loss = tf.losses.mean_squared_error(targets, predictions)
        step = tf.contrib.framework.get_global_step()
        return predictions, loss, layers.optimize_loss(loss, step, 0.1, "SGD")

    x, y = _points()
    model = learn.Estimator(model_fn, tmp_path, config=_CONFIG)
    assert model.fit(x, y, steps=100) is model
    np.testing.assert_allclose(list(model.predict(x)), y, atol=0.05)
    np.testing.assert_allclose(model.predict(x, as_iterable=False), y, atol=0.05)


def test_params_and_engineered_features_reach_the_model(tmp_path):
    def model_fn(features, labels, mode, params, config, model_dir):
        assert model_dir == config.model_dir == str(tmp_path)
        loss = tf.reduce_mean(features["twice"])
        return learn.ModelFnOps(
            mode,
            {"p": features["twice"] + params["shift"]},
            loss,
            tf.assign_add(tf.train.get_global_step(), 1),
            eval_metric_ops={"average": tf.metrics.mean(features["twice"])},
        )

    def engineer(features, labels):
        return {"twice": 2 * features["x"]}, labels

    model = learn.Estimator(
        model_fn, tmp_path, _CONFIG, {"shift": 1.0}, feature_engineering_fn=engineer
    )
    x = {"x": np.array([1.0, 3.0])}
    model.fit(x, np.zeros(2), steps=1)
    assert [row["p"].tolist() for row in model.predict(x)] == [[3.0], [7.0]]
    found = model.evaluate(x, np.zeros((2, 1)))
    assert found["loss"] == found["average"] == 4.0
    with pytest.raises(ValueError, match="does not have a params"):
        learn.Estimator(_regression, tmp_path, params={})


def test_metrics_say_which_predictions_they_are_of(tmp_path):
    x, y = _points()
    model = learn.Estimator(_regression, tmp_path, config=_CONFIG)
    model.fit(x, y, steps=20)
    errors = np.array([row["value"] for row in model.predict(x)]) - y
    streaming = tf.contrib.metrics.streaming_mean_absolute_error
    found = model.evaluate(
        x,
        y,
        metrics={
            "spec": learn.MetricSpec(streaming, prediction_key="value"),
            "only": learn.MetricSpec(streaming),
            ("pair", "value"): streaming,
            "own": learn.MetricSpec(lambda a, b: tf.metrics.mean(a - b), "value"),
        },
    )
    for name in ("spec", "only", "pair"):
        assert found[name] == pytest.approx(np.abs(errors).mean(), rel=1e-4)
    assert found["own"] == pytest.approx(errors.mean(), abs=1e-5)
    with pytest.raises(ValueError, match="use a MetricSpec"):
        model.evaluate(x, y, metrics={"bad": streaming})
    with pytest.raises(KeyError, match="no_such"):
        model.evaluate(x, y, metrics={"bad": learn.MetricSpec(streaming, "no_such")})


def test_input_that_never_changes_is_predicted_once(tmp_path, caplog):
    x, y = _points(8)
    model = learn.Estimator(_regression, tmp_path, config=_CONFIG)
    model.fit(input_fn=_constant_input(x, y), steps=3)
    assert len(list(model.predict(input_fn=_constant_input(x, y)))) == 8
    assert "yields forever" not in caplog.text
    rows = tf.data.Dataset.from_tensor_slices

    def in_batches():
        return rows((x, y)).batch(3).make_one_shot_iterator().get_next()

    assert len(list(model.predict(input_fn=in_batches))) == 8


def test_what_is_asked_of_a_model_is_checked(tmp_path):
    x, y = _points(8)
    model = learn.Estimator(_regression, tmp_path, config=_CONFIG)
    with pytest.raises(learn.NotFittedError, match="call fit first"):
        model.predict(x)
    with pytest.raises(ValueError, match="Either x or input_fn"):
        model.fit(steps=1)
    with pytest.raises(ValueError, match="both input_fn and x"):
        model.fit(x, y, input_fn=_constant_input(x, y), steps=1)
    with pytest.raises(ValueError, match="both steps and max_steps"):
        model.fit(x, y, steps=1, max_steps=1)
    with pytest.raises(TypeError, match="make an array"):
        model.fit(iter(x), y, steps=1)


def test_an_exported_model_reads_examples(tmp_path):
    x, y = _points(8)
    columns = [layers.real_valued_column("x", 3)]
    model = learn.LinearRegressor(columns, tmp_path / "model", config=_CONFIG)
    model.fit({"x": x}, y, steps=20)
    spec = layers.create_feature_spec_for_parsing(columns)
    folder = model.export_savedmodel(
        str(tmp_path / "out"), learn.build_parsing_serving_input_fn(spec)
    )
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.extend(x[0].tolist())
    served = tf.contrib.predictor.from_saved_model(folder.decode())
    [key] = served.feed_tensors
    found = served({key: [example.SerializeToString()]})
    np.testing.assert_allclose(next(iter(found.values())), list(model.predict({"x": x[:1]})))


# Monitors and experiments ------------------------------------------------------------------------


def test_monitors_are_told_of_each_step(tmp_path):
    told = []

    class Telling(learn.monitors.EveryN):
        def every_n_step_begin(self, step):
            return ["fully_connected/weights:0"]

        def every_n_step_end(self, step, outputs):
            told.append((step, outputs["fully_connected/weights:0"].shape))

    x, y = _points()
    seen = learn.monitors.CaptureVariable("fully_connected/biases:0", every_n=5, first_n=2)
    model = learn.Estimator(_regression, tmp_path, config=_CONFIG)
    monitors = [Telling(every_n_steps=4), seen, learn.monitors.StopAtStep(num_steps=9)]
    model.fit(x, y, monitors=monitors)
    assert told == [(1, (3, 1)), (5, (3, 1)), (9, (3, 1))]
    assert sorted(seen.values) == [1, 2, 7]
    assert model.get_variable_value("global_step") == 9


def test_a_validation_monitor_ends_training_that_gets_no_better(tmp_path):
    x, y = _points()
    monitor = learn.monitors.ValidationMonitor(
        x, -y, every_n_steps=10, early_stopping_rounds=40, name="held_out"
    )
    model = learn.Estimator(_regression, tmp_path, config=_CONFIG)
    model.fit(x, y, steps=2000, monitors=[monitor])
    assert monitor.early_stopped
    assert model.get_variable_value("global_step") < 200
    assert monitor.best_metrics["loss"] == monitor.best_value
    assert (tmp_path / "eval_held_out").is_dir()


@pytest.mark.parametrize("of_core", [False, True])
def test_an_experiment_trains_evaluates_and_exports(tmp_path, of_core):
    x, y = _points()
    if of_core:
        columns = [tf.feature_column.numeric_column("x", 3)]
        config = tf.estimator.RunConfig(save_checkpoints_steps=20)
        model = tf.estimator.LinearRegressor(columns, tmp_path, config=config)
    else:
        columns = [layers.real_valued_column("x", 3)]
        model = learn.LinearRegressor(columns, tmp_path, config=_CONFIG)
    evaluations = []

    class Counting(tf.train.SessionRunHook):
        def end(self, session):
            evaluations.append(1)

    spec = {"x": tf.FixedLenFeature([3], tf.float32)}
    export = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)

    def make(output_dir):
        return learn.Experiment(
            model,
            train_input_fn=lambda: ({"x": tf.constant(x)}, tf.constant(y)),
            eval_input_fn=lambda: ({"x": tf.constant(x)}, tf.constant(y)),
            train_steps=60,
            eval_steps=2,
            eval_hooks=[Counting()],
            min_eval_frequency=10,
            export_strategies=[learn.make_export_strategy(export)],
        )

    metrics, exports = learn.learn_runner.run(make, str(tmp_path))
    assert metrics["global_step"] == 60
    assert len(evaluations) >= 3  # at checkpoints, too
    assert tf.saved_model.loader.maybe_saved_model_directory(exports[0].decode())
    with pytest.raises(ValueError, match="non-existent task"):
        learn.learn_runner.run(make, str(tmp_path), schedule="fly")


# Data --------------------------------------------------------------------------------------------


def test_irises_are_fishers():
    iris = learn.datasets.load_iris()
    assert iris.data.shape == (150, 4)
    np.testing.assert_array_equal(np.bincount(iris.target), [50, 50, 50])
    # The means and the range that Fisher's table gives for the lengths of sepals.
    means = [iris.data[iris.target == kind, 0].mean() for kind in range(3)]
    np.testing.assert_allclose(means, [5.006, 5.936, 6.588])
    assert (iris.data.min(), iris.data.max()) == (0.1, 7.9)


def test_tables_are_read_from_files(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("2,3,no,yes\n1.5,2,3,0\n4,5,6.5,1\n")
    base = learn.datasets.base
    found = base.load_csv_with_header(str(table), np.int64, np.float32)
    np.testing.assert_array_equal(found.data, [[1.5, 2, 3], [4, 5, 6.5]])
    np.testing.assert_array_equal(found.target, [0, 1])
    (tmp_path / "bare.csv").write_text("7,a\n8,b\n")
    bare = base.load_csv_without_header(
        str(tmp_path / "bare.csv"), np.int32, np.str_, target_column=0
    )
    assert bare.data.tolist() == [["a"], ["b"]]
    assert bare.target.tolist() == [7, 8]
    table.write_text("9,3\n1,2,3,0\n")
    with pytest.raises(ValueError, match="says that it has 9 rows"):
        base.load_csv_with_header(str(table), np.int64, np.float32)
