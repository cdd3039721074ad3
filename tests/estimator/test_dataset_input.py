"""Estimators that datasets feed, and models that are served with examples."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf

WEIGHTS = np.array([[1.0], [-2.0]], np.float32)


@pytest.fixture(autouse=True)
def writers_are_closed():
    yield
    tf.summary.FileWriterCache.clear()


def model(features, labels, mode):
    prediction = tf.layers.dense(features["x"], 1, use_bias=False, name="dense")
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"serving_default": tf.estimator.export.PredictOutput({"y": prediction})}
        return tf.estimator.EstimatorSpec(mode, {"y": prediction}, export_outputs=outputs)
    loss = tf.reduce_mean(tf.square(prediction - labels))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(
        loss, global_step=tf.train.get_global_step()
    )
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


def examples(count=64):
    rng = np.random.default_rng(0)
    for _ in range(count):
        x = rng.normal(size=2).astype(np.float32)
        example = tf.train.Example()
        example.features.feature["x"].float_list.value.extend(x)
        example.features.feature["y"].float_list.value.extend(x @ WEIGHTS)
        yield example.SerializeToString()


def test_a_dataset_trains_and_examples_are_served(tmp_path):
    path = str(tmp_path / "train.tfrecord")
    with tf.python_io.TFRecordWriter(path) as writer:
        for example in examples():
            writer.write(example)
    spec = {"x": tf.FixedLenFeature([2], tf.float32), "y": tf.FixedLenFeature([1], tf.float32)}

    def parse(texts):
        found = tf.parse_example(texts, spec)
        return {"x": found["x"]}, found["y"]

    def read(repeat):
        return tf.data.TFRecordDataset(path).repeat(repeat).batch(16).map(parse).prefetch(1)

    estimator = tf.estimator.Estimator(model, str(tmp_path / "model"))
    estimator.train(lambda: read(None), steps=80)
    assert estimator.evaluate(lambda: read(1))["loss"] < 1e-3
    predicted = list(estimator.predict(lambda: read(1).map(lambda features, label: features)))
    assert len(predicted) == 64

    receive = tf.estimator.export.build_parsing_serving_input_receiver_fn({"x": spec["x"]})
    exported = estimator.export_saved_model(str(tmp_path / "exported"), receive)
    with tf.Graph().as_default(), tf.Session() as sess:
        loaded = tf.saved_model.load(sess, ["serve"], exported)
        signature = loaded.signature_def["serving_default"]
        texts = list(examples(3))
        served = sess.run(signature.outputs["y"].name, {signature.inputs["examples"].name: texts})
    np.testing.assert_allclose(served, [p["y"] for p in predicted[:3]], rtol=1e-5)


def test_a_feature_that_is_missing_is_refused_when_it_is_served():
    receive = tf.estimator.export.build_parsing_serving_input_receiver_fn(
        {"z": tf.FixedLenFeature([2], tf.float32)}
    )
    receiver = receive()
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="required"):
        sess.run(receiver.features, {receiver.receiver_tensors["examples"]: list(examples(1))})
