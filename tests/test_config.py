"""``tf.config``: what sessions do that are made without a configuration."""

import pytest

import runnel as tf
from runnel.runtime.session import settings


@pytest.fixture(autouse=True)
def untouched(monkeypatch):
    monkeypatch.setattr(settings, "_config", None)


def _explained():
    x = tf.placeholder(tf.float32, [4])
    y = tf.tanh(x) * 2.0
    with tf.Session() as sess:
        sess.run(y, {x: [1.0] * 4})
        return str(sess.explain(y))


def test_compiling_from_the_start_is_what_sessions_do_that_say_nothing():
    assert not tf.config.optimizer.get_jit()
    assert "compiled" not in _explained().splitlines()[2]
    tf.config.optimizer.set_jit(True)
    assert tf.config.optimizer.get_jit()
    assert "compiled" in _explained()
    tf.config.optimizer.set_jit(False)
    assert not tf.config.optimizer.get_jit()


def test_soft_placement_of_sessions_that_say_nothing():
    with tf.device("/device:GPU:7"):
        y = tf.constant(1.0) + 1.0
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError):
        sess.run(y)
    tf.config.set_soft_device_placement(True)
    assert tf.config.get_soft_device_placement()
    with tf.Session() as sess:
        assert sess.run(y) == 2.0
    own = tf.ConfigProto()
    with tf.Session(config=own) as sess, pytest.raises(tf.errors.InvalidArgumentError):
        sess.run(y)


def test_a_session_keeps_what_held_when_it_was_made():
    tf.config.threading.set_intra_op_parallelism_threads(3)
    sess = tf.Session()
    tf.config.threading.set_intra_op_parallelism_threads(5)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    assert sess._config.intra_op_parallelism_threads == 3
    assert tf.config.threading.get_intra_op_parallelism_threads() == 5
    assert tf.config.threading.get_inter_op_parallelism_threads() == 2


def test_options_of_rewriters():
    assert tf.config.optimizer.get_experimental_options() == {}
    tf.config.optimizer.set_experimental_options({"constant_folding": False, "remapping": True})
    expected = {"constant_folding": False, "remapping": True}
    assert tf.config.optimizer.get_experimental_options() == expected
    with pytest.raises(ValueError, match="constant_folding"):
        tf.config.optimizer.set_experimental_options({"constant_holding": True})


def test_logging_of_devices():
    assert not tf.debugging.get_log_device_placement()
    tf.debugging.set_log_device_placement(True)
    assert tf.debugging.get_log_device_placement()
    assert tf.Session()._config.log_device_placement
