"""``tf.estimator.Estimator``: the life of a model, against the same model in NumPy."""

from __future__ import annotations

import logging
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

import runnel as tf
from tests.estimator.linear_model import RATE, X, Y, all_rows, descended, estimator, model_fn


@pytest.fixture(autouse=True)
def writers_are_closed():
    yield
    tf.summary.FileWriterCache.clear()


def weights(made):
    return made.get_variable_value("w"), made.get_variable_value("b")


def require_weights(made, steps):
    for a, b in zip(weights(made), descended(steps), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert made.get_variable_value("global_step") == steps


def loss_after(steps):
    w, b = descended(steps)
    return np.mean((X @ w + b - Y) ** 2)


def test_training_goes_on_where_it_ended(tmp_path):
    made = estimator(tmp_path, save_checkpoints_steps=4)
    assert made.train(all_rows(None), steps=5) is made
    require_weights(made, 5)
    made.train(all_rows(None), steps=3)
    require_weights(made, 8)
    made.train(all_rows(None), max_steps=10)
    made.train(all_rows(None), max_steps=10)
    require_weights(made, 10)
    estimator(tmp_path).train(all_rows(epochs=2))  # the input ends it
    require_weights(made, 12)
    assert made.latest_checkpoint() == str(tmp_path / "model.ckpt-12")
    assert made.get_variable_names() == ["b", "global_step", "w"]


def test_a_folder_may_be_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = estimator("model")
    made.train(all_rows(None), steps=5)
    require_weights(made, 5)
    estimator("model").train(all_rows(None), steps=3)
    require_weights(made, 8)
    assert made.evaluate(all_rows(batch_size=10))["global_step"] == 8


def test_evaluation_gives_the_metrics_of_a_checkpoint(tmp_path):
    made = estimator(tmp_path, save_checkpoints_steps=5)
    made.train(all_rows(None), steps=10)
    w, b = descended(10)
    found = made.evaluate(all_rows(batch_size=10))
    assert found["global_step"] == 10
    assert found["loss"] == pytest.approx(loss_after(10), rel=1e-4)
    assert found["error"] == pytest.approx(np.abs(X @ w + b - Y).mean(), rel=1e-4)
    part = made.evaluate(all_rows(batch_size=10), steps=2, name="part")
    assert part["loss"] == pytest.approx(np.mean((X @ w + b - Y)[:20] ** 2), rel=1e-4)
    old = made.evaluate(all_rows(), checkpoint_path=tmp_path / "model.ckpt-5")
    assert old["loss"] == pytest.approx(loss_after(5), rel=1e-4) and old["global_step"] == 5
    written = {}
    for folder in ("eval", "eval_part"):
        [path] = (tmp_path / folder).glob("events.*")
        for event in tf.train.summary_iterator(str(path)):
            for value in event.summary.value:
                written[folder, value.tag, event.step] = value.simple_value
    assert written["eval", "loss", 10] == pytest.approx(found["loss"])
    assert written["eval_part", "error", 10] == pytest.approx(part["error"])


def test_a_new_model_can_be_evaluated_and_asked(tmp_path):
    made = estimator(tmp_path)
    assert made.evaluate(all_rows())["loss"] == pytest.approx(np.mean(Y**2), rel=1e-5)
    assert [p["y"] for p in made.predict(all_rows())] == [0.0] * 40


def test_predictions_come_row_by_row(tmp_path):
    made = estimator(tmp_path)
    made.train(all_rows(None), steps=10)
    w, b = descended(10)
    rows = list(made.predict(all_rows(batch_size=16)))
    np.testing.assert_allclose([row["y"] for row in rows], X @ w + b, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        [row["twice"] for row in rows], 2 * (X @ w + b), rtol=1e-4, atol=1e-5
    )
    batches = list(made.predict(all_rows(batch_size=16), ["y"], yield_single_examples=False))
    assert [len(batch["y"]) for batch in batches] == [16, 16, 8]
    assert all(batch.keys() == {"y"} for batch in batches)
    with pytest.raises(ValueError, match="at least one output"):
        next(made.predict(all_rows(), ["z"]))


def test_a_prediction_that_is_left_half_way_leaves_nothing_behind(tmp_path):
    made = estimator(tmp_path)
    before = tf.get_default_graph()
    rows = made.predict(all_rows(None))
    next(rows)
    assert tf.get_default_graph() is before
    rows.close()


def test_progress_is_logged_as_tensorflow_does(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "runnel"):
        made = estimator(tmp_path, log_step_count_steps=5)
        made.train(all_rows(None), steps=12)
        made.evaluate(all_rows(batch_size=10), steps=4)
    said = caplog.text
    for part in ("Calling model_fn.", "loss = ", "step = 1", "global_step/sec", "Evaluation [4/4]"):
        assert part in said, part
    assert "Loss for final step: " in said and "Saving dict for global step 12: " in said


def test_a_loss_that_is_no_number_ends_training(tmp_path):
    made = tf.estimator.Estimator(model_fn, tmp_path, params={"rate": 1e30})
    with pytest.raises(tf.estimator.NanLossDuringTrainingError):
        made.train(all_rows(None), steps=50)


def test_hooks_and_listeners_are_called(tmp_path):
    seen = []

    class Watch(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            seen.append("step")

    class Listen(tf.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            seen.append(global_step_value)

    made = estimator(tmp_path, save_checkpoints_steps=2)
    made.train(all_rows(None), [Watch()], steps=4, saving_listeners=[Listen()])
    assert seen.count("step") == 4 and [s for s in seen if s != "step"] == [0, 2, 4]
    with pytest.raises(TypeError, match="SessionRunHook"):
        made.train(all_rows(), hooks=[3])


def test_another_model_begins_with_the_values_of_one(tmp_path):
    estimator(tmp_path / "one").train(all_rows(None), steps=20)
    config = tf.estimator.RunConfig(save_checkpoints_steps=1)
    warm = tf.estimator.WarmStartSettings(str(tmp_path / "one"), vars_to_warm_start="w")
    made = tf.estimator.Estimator(
        model_fn, tmp_path / "two", config, {"rate": 0.0}, warm_start_from=warm
    )
    made.train(all_rows(None), steps=1)
    w, b = weights(made)
    np.testing.assert_allclose(w, descended(20)[0], rtol=1e-4)
    assert b == 0.0


@pytest.mark.parametrize("kind", ["make_one_shot_iterator", "make_initializable_iterator"])
def test_input_may_be_anything_that_makes_an_iterator(tmp_path, kind):
    class Iterator:
        def __init__(self):
            self.count = tf.get_variable("count", initializer=0, trainable=False)
            self.initializer = tf.assign(self.count, 7)

        def get_next(self):
            with tf.control_dependencies([tf.assert_greater_equal(self.count, least)]):
                return {"x": tf.constant(X)}, tf.constant(Y)

    class Dataset:
        pass

    least = 7 if kind == "make_initializable_iterator" else 0
    setattr(Dataset, kind, lambda self: Iterator())
    made = estimator(tmp_path)
    made.train(lambda mode, params: Dataset() if mode == "train" and params else None, steps=3)
    require_weights(made, 3)


def export_of(made, folder, **options):
    receive = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.constant(X)})
    return made.export_saved_model(folder, receive, **options)


def test_an_exported_model_is_loaded_and_gives_the_same(tmp_path):
    made = estimator(tmp_path / "model")
    made.train(all_rows(None), steps=10)
    (tmp_path / "notes.txt").write_text("notes")
    with tf.Graph().as_default():
        extra = {"sub/notes.txt": tmp_path / "notes.txt"}
        path = export_of(made, tmp_path / "exports", assets_extra=extra)
        again = export_of(made, tmp_path / "exports", as_text=True)
    assert isinstance(path, bytes) and path != again
    folder = Path(path.decode())
    assert folder.parent == tmp_path / "exports" and folder.name.isdigit()
    assert (folder / "assets.extra" / "sub" / "notes.txt").read_text() == "notes"
    assert sorted(p.name.isdigit() for p in folder.parent.iterdir()) == [True, True]
    w, b = descended(10)
    for one in (path, again):
        with tf.Graph().as_default(), tf.Session() as sess:
            model = tf.saved_model.load(sess, ["serve"], one)
            signature = model.signature_def["serving_default"]
            found = sess.run(signature.outputs["y"].name, {signature.inputs["x"].name: X[:7]})
        np.testing.assert_allclose(found, X[:7] @ w + b, rtol=1e-4, atol=1e-5)


def test_an_export_that_fails_leaves_nothing(tmp_path):
    made = estimator(tmp_path / "model")
    with pytest.raises(ValueError, match="Couldn't find trained model"):
        export_of(made, tmp_path / "exports")
    made.train(all_rows(None), steps=1)
    with pytest.raises(FileNotFoundError), tf.Graph().as_default():
        export_of(made, tmp_path / "exports", assets_extra={"a": tmp_path / "none"})
    assert list((tmp_path / "exports").iterdir()) == []


def test_training_and_evaluation_take_turns(tmp_path):
    made = estimator(tmp_path, save_checkpoints_steps=4)
    with tf.Graph().as_default():
        receive = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.constant(X)})
        exporters = [
            tf.estimator.LatestExporter("latest", receive, exports_to_keep=2),
            tf.estimator.FinalExporter("final", receive),
            tf.estimator.BestExporter("best", receive),
        ]
        metrics, exports = tf.estimator.train_and_evaluate(
            made,
            tf.estimator.TrainSpec(all_rows(None), max_steps=14),
            tf.estimator.EvalSpec(all_rows(), exporters=exporters, throttle_secs=0),
        )
    assert metrics["global_step"] == 14
    assert metrics["loss"] == pytest.approx(loss_after(14), rel=1e-4)
    assert len(exports) == 3 and all(exports)
    counts = {
        name: len(list((tmp_path / "export" / name).iterdir()))
        for name in ("latest", "final", "best")
    }
    assert counts == {"latest": 2, "final": 1, "best": 4}
    [path] = (tmp_path / "eval").glob("events.*")
    steps = {e.step for e in tf.train.summary_iterator(str(path)) if e.summary.value}
    assert steps == {4, 8, 12, 14}


def test_only_better_models_are_exported_also_by_a_program_that_begins_again(tmp_path):
    class Stub:
        model_dir = str(tmp_path)

        def export_saved_model(self, folder, *rest):
            place = Path(folder) / str(len(list(Path(folder).glob("*"))))
            place.mkdir(parents=True)
            return str(place)

    def exporter():
        return tf.estimator.BestExporter("best", lambda: None, exports_to_keep=None)

    folder = str(tmp_path / "best")
    first = exporter()
    results = [
        first.export(Stub(), folder, "", {"loss": loss, "global_step": step}, False)
        for step, loss in enumerate([3.0, 4.0, 2.0])
    ]
    assert [result is not None for result in results] == [True, False, True]
    writer = tf.summary.FileWriter(str(tmp_path / "eval"))
    value = tf.Summary.Value(tag="loss", simple_value=2.0)
    writer.add_summary(tf.Summary(value=[value]), 2)
    writer.close()
    again = exporter()
    assert again.export(Stub(), folder, "", {"loss": 2.5, "global_step": 3}, False) is None
    assert again.export(Stub(), folder, "", {"loss": 1.5, "global_step": 4}, False) is not None


def test_mistakes_are_told(tmp_path):
    mode = tf.estimator.ModeKeys
    one = tf.constant(1.0)
    spec = tf.estimator.EstimatorSpec
    for call, said in [
        (lambda: spec(mode.TRAIN, loss=one), "Missing train_op"),
        (lambda: spec(mode.EVAL), "Missing loss"),
        (lambda: spec(mode.PREDICT), "Missing predictions"),
        (lambda: spec(mode.EVAL, loss=tf.constant([1.0, 2.0])), "must be scalar"),
        (lambda: spec(mode.EVAL, loss=one, eval_metric_ops={"a": one}), "metric_value, update_op"),
        (lambda: spec(mode.EVAL, loss=one, training_hooks=[1]), "SessionRunHook"),
        (lambda: tf.estimator.Estimator(lambda x: x, tmp_path), "must include features"),
        (lambda: tf.estimator.Estimator(lambda features: 1, tmp_path, params={}), "params"),
        (lambda: estimator(tmp_path, save_checkpoints_steps=1, save_checkpoints_secs=1), "both"),
        (lambda: estimator(tmp_path).train(all_rows(), steps=1, max_steps=1), "both steps"),
        (lambda: estimator(tmp_path).train(lambda: (1, 2, 3)), "len 2 tuple"),
        (lambda: tf.estimator.inputs.numpy_input_fn(X), "shuffle must be provided"),
        (
            lambda: tf.estimator.inputs.numpy_input_fn({"x": X}, Y[1:], shuffle=False),
            "mismatched.*40.*39",
        ),
    ]:
        with pytest.raises((ValueError, TypeError), match=said):
            call()


def test_rows_are_shuffled_anew_in_each_epoch():
    numbers = np.arange(10)
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.set_random_seed(3)
        read = tf.estimator.inputs.numpy_input_fn(numbers, None, 4, 2, shuffle=True)()
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        batches = [sess.run(read) for _ in range(5)]
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(read)
        coordinator.request_stop()
        coordinator.join(threads)
    rows = np.concatenate(batches)
    assert sorted(rows[:10]) == sorted(rows[10:]) == list(range(10))
    assert list(rows[:10]) != list(rows[10:]) and [len(b) for b in batches] == [4] * 5


def test_a_configuration_is_replaced_in_parts():
    config = tf.estimator.RunConfig(save_checkpoints_steps=3, tf_random_seed=RATE)
    other = config.replace(save_checkpoints_secs=10)
    assert other.save_checkpoints_secs == 10 and other.save_checkpoints_steps is None
    assert other.tf_random_seed == RATE and config.save_checkpoints_steps == 3
    with pytest.raises(ValueError, match="nothing"):
        config.replace(nothing=1)


def test_all_modes_in_one_saved_model(tmp_path):
    def model_fn(features, labels, mode):
        predicted = tf.reduce_sum(features["x"] * tf.get_variable("w", [2]), 1)
        if mode == "infer":
            return tf.estimator.EstimatorSpec(mode, {"y": predicted})
        loss = tf.reduce_mean(tf.square(predicted - labels))
        step = tf.train.get_or_create_global_step()
        train_op = tf.train.AdamOptimizer(0.1).minimize(loss, step)
        metrics = {"error": tf.metrics.mean(loss)}
        return tf.estimator.EstimatorSpec(mode, {"y": predicted}, loss, train_op, metrics)

    def data():
        return {"x": tf.ones([4, 2])}, tf.ones([4])

    estimator = tf.estimator.Estimator(model_fn, tmp_path / "model")
    estimator.train(data, steps=2)
    assert estimator.eval_dir() == str(tmp_path / "model" / "eval")
    assert estimator.eval_dir("other") == str(tmp_path / "model" / "eval_other")
    x, y = np.ones([3, 2], np.float32), np.ones([3], np.float32)
    export = tf.estimator.export
    Receiver = namedtuple("Receiver", ["features", "labels", "receiver_tensors"])

    def supervised():
        fed = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None])
        return Receiver({"x": fed[0]}, fed[1], {"x": fed[0], "label": fed[1]})

    with pytest.raises(ValueError, match="needs modes"):
        estimator.experimental_export_all_saved_models(tmp_path, {"cooking": supervised})
    folder = estimator.experimental_export_all_saved_models(
        tmp_path / "export",
        {
            "infer": export.build_raw_serving_input_receiver_fn({"x": tf.constant(x)}),
            "eval": supervised,
            "train": supervised,
        },
    ).decode()
    found = {}
    for tag, key in (("serve", "serving_default"), ("eval", "eval"), ("train", "train")):
        with tf.Graph().as_default(), tf.Session() as sess:
            signature = tf.saved_model.load(sess, [tag], folder).signature_def[key]
            given = {"x": x, "label": y}
            feed = {info.name: given[name] for name, info in signature.inputs.items()}
            names = {name: info.name for name, info in signature.outputs.items()}
            found[tag] = sess.run(names, feed)
    w = estimator.get_variable_value("w")
    np.testing.assert_allclose(found["serve"]["y"], x @ w, rtol=1e-6)
    for tag in ("eval", "train"):
        np.testing.assert_allclose(found[tag]["predictions/y"], x @ w, rtol=1e-6)
        np.testing.assert_allclose(found[tag]["loss"], np.mean((x @ w - y) ** 2), rtol=1e-5)
    assert {"metrics/error/value", "metrics/error/update_op"} <= found["eval"].keys()
