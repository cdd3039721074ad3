"""Training that ends when evaluations no longer improve."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.estimator.linear_model import X, Y, all_rows, estimator, model_fn

experimental = tf.estimator.experimental


@pytest.fixture(autouse=True)
def writers_are_closed():
    yield
    tf.summary.FileWriterCache.clear()


def evaluated(folder, losses):
    """Event files of evaluations that gave ``losses``, by step."""
    writer = tf.summary.FileWriter(str(folder))
    for step, loss in losses.items():
        value = tf.Summary.Value(tag="loss", simple_value=loss)
        writer.add_summary(tf.Summary(value=[value]), step)
    writer.close()


@pytest.mark.parametrize(
    ("hook", "bound", "steps"),
    [
        ("stop_if_higher_hook", 4.5, 1),
        ("stop_if_higher_hook", 5.0, 6),
        ("stop_if_lower_hook", 2.5, 1),
        ("stop_if_lower_hook", 2.0, 6),
        ("stop_if_no_decrease_hook", 30, 1),
        ("stop_if_no_decrease_hook", 31, 6),
        ("stop_if_no_increase_hook", 40, 1),
        ("stop_if_no_increase_hook", 41, 6),
    ],
)
def test_a_metric_ends_training(tmp_path, hook, bound, steps):
    evaluated(tmp_path / "eval", {10: 5.0, 20: 2.0, 30: 4.0, 40: 3.0, 50: 4.9})
    made = estimator(tmp_path)
    every = {"run_every_secs": None, "run_every_steps": 1}
    ending = getattr(experimental, hook)(made, "loss", bound, **every)
    made.train(all_rows(None), steps=6, hooks=[ending])
    assert made.get_variable_value("global_step") == steps
    assert made.get_variable_value("signal_early_stopping/STOP") == (steps == 1)


def test_only_evaluations_from_a_step_on_count(tmp_path):
    evaluated(tmp_path / "elsewhere", {1: 9.0, 8: 1.0})
    made = estimator(tmp_path)
    ending = experimental.stop_if_higher_hook(
        made, "loss", 5.0, str(tmp_path / "elsewhere"), 2, run_every_secs=None, run_every_steps=1
    )
    made.train(all_rows(None), steps=4, hooks=[ending])
    assert made.get_variable_value("global_step") == 4


def test_a_function_decides_every_few_steps(tmp_path):
    made = estimator(tmp_path)
    asked = []

    def should_stop():
        asked.append(len(asked))
        return len(asked) == 3

    hook = experimental.make_early_stopping_hook(
        made, should_stop, run_every_secs=None, run_every_steps=2
    )
    made.train(all_rows(None), steps=20, hooks=[hook])
    assert made.get_variable_value("global_step") == 5  # asked after the steps 1, 3 and 5
    with pytest.raises(ValueError, match="Only one of"):
        experimental.make_early_stopping_hook(made, should_stop, run_every_steps=2)
    with pytest.raises(TypeError, match=r"tf\.estimator\.Estimator"):
        experimental.make_early_stopping_hook(model_fn, should_stop)


def test_metrics_are_added(tmp_path):
    made = estimator(tmp_path)
    made.train(all_rows(None), steps=2)

    def more(labels, features):
        return {"labels": tf.metrics.mean(labels), "first": tf.metrics.mean(features["x"][:, 0])}

    found = tf.estimator.add_metrics(made, more).evaluate(all_rows(1))
    assert found["loss"] == made.evaluate(all_rows(1))["loss"]
    np.testing.assert_allclose(found["labels"], Y.mean(), rtol=1e-5)
    np.testing.assert_allclose(found["first"], X[:, 0].mean(), rtol=1e-5)
    with pytest.raises(ValueError, match="not expected args"):
        tf.estimator.add_metrics(made, lambda labels, other: {})


def test_features_are_forwarded(tmp_path):
    made = estimator(tmp_path)
    made.train(all_rows(None), steps=2)
    forwarding = tf.contrib.estimator.forward_features(made, "x")
    rows = list(forwarding.predict(all_rows(1)))
    np.testing.assert_array_equal([row["x"] for row in rows], X)
    plain = list(made.predict(all_rows(1)))
    name = next(iter(plain[0]))
    np.testing.assert_array_equal([row[name] for row in rows], [row[name] for row in plain])
    with pytest.raises(ValueError, match="'y'"):
        next(tf.contrib.estimator.forward_features(made, ["y"]).predict(all_rows(1)))
