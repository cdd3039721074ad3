"""``tf.contrib.tpu``: programs for TPUs as they run without one."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf


@pytest.fixture(autouse=True)
def writers_are_closed():
    yield
    tf.summary.FileWriterCache.clear()


ROWS = np.arange(12, dtype=np.float32)


def _model(features, labels, mode, params):
    seen = params["batch_size"]
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    values = features["x"] * weight
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.contrib.tpu.TPUEstimatorSpec(mode, predictions={"y": values + float(seen)})
    errors = tf.square(values - labels)
    loss = tf.reduce_mean(errors)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.contrib.tpu.TPUEstimatorSpec(
            mode,
            loss=loss,
            eval_metrics=(
                lambda errors, sizes: {
                    "error": tf.metrics.mean(errors),
                    "s": tf.metrics.mean(sizes),
                },
                {"errors": errors, "sizes": tf.shape(values)},
            ),
        )
    step = tf.train.get_or_create_global_step()
    runs = tf.get_variable("runs", [], tf.int32, tf.zeros_initializer(), trainable=False)
    optimizer = tf.contrib.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.01))
    return tf.contrib.tpu.TPUEstimatorSpec(
        mode,
        loss=loss,
        train_op=optimizer.minimize(loss, step),
        host_call=(lambda by: tf.assign_add(runs, by), [tf.constant(2)]),
        scaffold_fn=lambda: tf.train.Scaffold(saver=tf.train.Saver()),
    )


def _input(params):
    rows = tf.data.Dataset.from_tensor_slices(({"x": ROWS}, 3 * ROWS))
    return rows.repeat(3).batch(params["batch_size"])


def _estimator(folder, **given):
    config = tf.contrib.tpu.RunConfig(
        model_dir=str(folder),
        save_checkpoints_steps=5,
        cluster=None,
        master=None,
        tpu_config=tf.contrib.tpu.TPUConfig(
            iterations_per_loop=10,
            num_shards=8,
            per_host_input_for_training=tf.contrib.tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    return tf.contrib.tpu.TPUEstimator(_model, config=config, use_tpu=False, **given)


def test_a_program_for_tpus_trains_evaluates_and_predicts(tmp_path):
    made = _estimator(tmp_path, train_batch_size=4, eval_batch_size=6, predict_batch_size=12)
    made.train(_input)
    weight = 0.0
    for batch in np.tile(ROWS, 3).reshape(-1, 4):
        weight -= 0.01 * float(np.mean(2 * batch * (weight * batch - 3 * batch)))
    assert made.get_variable_value("weight") == pytest.approx(weight, rel=1e-4)
    assert made.get_variable_value("runs") == 2 * 9, "the host call ran with each step"
    metrics = made.evaluate(_input)
    assert metrics["s"] == 6
    assert metrics["error"] == pytest.approx(
        np.mean((ROWS * (weight - 3)) ** 2), rel=1e-3, abs=1e-8
    )
    assert isinstance(made.config.replace(save_summary_steps=1), tf.contrib.tpu.RunConfig)
    first = next(iter(made.predict(_input)))
    assert first["y"] == 12


def test_what_needs_a_tpu_is_refused(tmp_path):
    with pytest.raises(ValueError, match="use_tpu=False"):
        tf.contrib.tpu.TPUEstimator(_model, str(tmp_path))
    with pytest.raises(ValueError, match="reserved"):
        _estimator(tmp_path, params={"batch_size": 3})
    with pytest.raises(ValueError, match="leave master"):
        tf.contrib.tpu.RunConfig(master="grpc://somewhere:1")
    with tf.Graph().as_default(), pytest.raises(TypeError, match="eval_metrics should be a tuple"):
        tf.contrib.tpu.TPUEstimatorSpec("eval", loss=tf.constant(1.0), eval_metrics=tf.metrics.mean)


def test_the_names_are_the_public_ones():
    for name in ("InputPipelineConfig", "RunConfig", "TPUConfig", "TPUEstimator"):
        assert getattr(tf.estimator.tpu, name) is getattr(tf.contrib.tpu, name)
    assert tf.tpu.CrossShardOptimizer is tf.contrib.tpu.CrossShardOptimizer
    assert tf.compat.v1.estimator.tpu.TPUEstimatorSpec is tf.contrib.tpu.TPUEstimatorSpec


def test_variables_of_bfloat16_are_stored_as_float32():
    with tf.tpu.bfloat16_scope():
        half = tf.get_variable("half", [2], tf.bfloat16, tf.constant_initializer(1.0 / 3.0))
        whole = tf.get_variable("whole", [2], tf.float32, tf.constant_initializer(1.0 / 3.0))
    assert (half.dtype, whole.dtype.base_dtype) == (tf.bfloat16, tf.float32)
    assert [v.op.name for v in tf.global_variables()] == ["half", "whole"]
    assert {v.dtype.base_dtype for v in tf.global_variables()} == {tf.float32}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        # bfloat16 keeps 8 bits: 1/3 is 171/512 in it.
        np.testing.assert_array_equal(sess.run(tf.cast(half, tf.float32)), [171 / 512] * 2)
        np.testing.assert_array_equal(sess.run(whole), [np.float32(1 / 3)] * 2)
