"""TensorFlow's debuggers: in the terminal, into files, for sessions and for jobs."""

from __future__ import annotations

import inspect
import io

import numpy as np
import pytest

import runnel as tf
from runnel.debug import wrapper_sessions
from runnel.debug.tensor_prompt import TensorPrompt


def logs() -> tuple[tf.Tensor, tf.Tensor, str]:
    x = tf.placeholder(tf.float32, [2], name="x")
    frame = inspect.currentframe()
    assert frame is not None
    made, line = tf.log(x, name="logs"), f"{__file__}:{frame.f_lineno}"
    return x, tf.identity(made * 0.0, name="loss"), line


def test_the_debugger_of_a_terminal_raises_where_nobody_can_be_asked():
    x, loss, line = logs()
    with tf.debug.LocalCLIDebugWrapperSession(tf.Session()) as sess:
        np.testing.assert_array_equal(sess.run(loss, {x: [1.0, 2.0]}), [0.0, 0.0])
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            sess.run(loss, {x: [0.0, 2.0]})
        assert caught.value.op.name == "logs" and line in str(caught.value)
        told = []

        def large(datum, value):
            told.append((datum.tensor_name, datum.node_name, datum.output_slot))
            return datum.node_name == "logs" and abs(value).max() > 2

        sess.add_tensor_filter("large", large)
        with pytest.raises(tf.errors.InvalidArgumentError, match="logs:0 is float32"):
            sess.run(loss, {x: [9.0, 2.0]})
        assert ("logs:0", "logs", 0) in told
        with pytest.raises(TypeError, match="not a function"):
            sess.add_tensor_filter("small", 3)


class Prompts:
    """Answers at each prompt in turn; keeps what is shown."""

    def __init__(self, monkeypatch, *commands):
        self.shown = ""
        made = iter(commands)
        prompts = self

        class Answered(TensorPrompt):
            def __init__(self, *args):
                self.output = io.StringIO()
                super().__init__(*args, io.StringIO(next(made)), self.output)

            def postloop(self):
                prompts.shown += self.output.getvalue()

        monkeypatch.setattr(wrapper_sessions, "has_terminal", lambda: True)
        monkeypatch.setattr(wrapper_sessions, "TensorPrompt", Answered)


def test_a_stopped_step_is_looked_at_in_the_terminal(monkeypatch):
    x, loss, line = logs()
    prompts = Prompts(monkeypatch, "lt\npt\nni\npt x\npt nothing\nexit\n", "run\n", "")
    with tf.debug.LocalCLIDebugWrapperSession(tf.Session()) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="logs:0"):
            sess.run(loss, {x: [0.0, 2.0]})
        shown = prompts.shown
        assert "x:0: float32 of shape (2,)" in shown and "[     -inf 0.6931472]" in shown
        assert "[0. 2.]" in shown
        assert line in shown.partition("logs (Log), created at")[2].partition("takes x:0")[0]
        assert "No value of 'nothing:0'" in shown
        # The step can be run to its end, whatever comes of it.
        np.testing.assert_array_equal(sess.run(loss, {x: [0.0, 2.0]}), [np.nan, 0.0])
        with pytest.raises(tf.errors.InvalidArgumentError):  # the end of the input is an exit
            sess.run(loss, {x: [0.0, 2.0]})


def test_values_are_written_and_read(tmp_path):
    with tf.name_scope("layer"):
        a = tf.placeholder(tf.float32, [2], name="a")
        b = tf.multiply(a, 3.0, name="b")
    names = tf.constant(["x", "yy"], name="names")
    root = tmp_path / "dumps"
    with tf.debug.DumpingDebugWrapperSession(tf.Session(), root) as sess:
        sess.run([b, tf.identity(names, name="same")], {a: [1.0, np.nan]})
        sess.run(b, {a: [1.0, 2.0]})
        with pytest.raises(ValueError, match="non-empty"):
            tf.debug.DumpingDebugWrapperSession(tf.Session(), root)
    first, second = (tf.debug.DebugDumpDir(p) for p in sorted(root.iterdir(), key=number_of))
    [value] = first.get_tensors("layer/b", 0, "DebugIdentity")
    np.testing.assert_array_equal(value, [3.0, np.nan])
    assert list(first.get_tensors("same", 0, "DebugIdentity")[0]) == [b"x", b"yy"]
    assert [d.tensor_name for d in first.find(tf.debug.has_inf_or_nan)] == [
        "layer/a:0",
        "layer/b:0",
    ]
    assert len(first.find(tf.debug.has_inf_or_nan, first_n=1)) == 1
    assert not second.find(tf.debug.has_inf_or_nan) and "same" not in second.nodes()
    assert first.devices() == ["/job:localhost/replica:0/task:0/device:CPU:0"]
    with pytest.raises(KeyError, match="nodes"):
        first.get_tensors("nothing", 0, "DebugIdentity")


def number_of(path):
    return int(path.name.rpartition("_")[2])


def test_patterns_choose_what_is_written(tmp_path):
    with tf.name_scope("layer"):
        a = tf.placeholder(tf.float32, [2], name="a")
        b = tf.cast(tf.square(a, name="squares"), tf.int32, name="whole")
    chosen = {
        "names": ({"node_name_regex_whitelist": "layer/sq.*"}, {"layer/squares"}),
        "types": ({"op_type_regex_whitelist": "(Cast|Placeholder)$"}, {"layer/a", "layer/whole"}),
        "dtypes": ({"tensor_dtype_regex_allowlist": "int"}, {"layer/whole"}),
    }
    for name, (patterns, nodes) in chosen.items():
        seen = []

        def watch(fetches, feeds, patterns=patterns, seen=seen):
            seen.append((fetches, feeds))
            return tf.debug.WatchOptions(**patterns)

        with tf.Session() as inner:
            sess = tf.debug.DumpingDebugWrapperSession(inner, tmp_path / name, watch)
            sess.run(b, {a: [1.0, 2.0]})
        [folder] = (tmp_path / name).iterdir()
        assert set(tf.debug.DebugDumpDir(folder).nodes()) == nodes
        assert seen[0][0] is b and a in seen[0][1]


def test_other_threads_can_be_left_alone():
    x, loss, _ = logs()
    with tf.debug.LocalCLIDebugWrapperSession(tf.Session(), thread_name_filter="Worker") as sess:
        assert np.isnan(sess.run(loss, {x: [0.0, 2.0]})[0])


def training(rate):
    w = tf.get_variable("w", initializer=1.0)
    loss = tf.sqrt(w - 1.0 + rate, name="root")
    step = tf.train.get_or_create_global_step()
    return tf.train.GradientDescentOptimizer(1.0).minimize(loss, step), loss


def test_a_hook_stops_a_job_at_the_first_nan():
    train, _ = training(0.1)
    hook = tf.debug.LocalCLIDebugHook()
    with (
        pytest.raises(tf.errors.InvalidArgumentError, match="root") as caught,
        tf.train.MonitoredTrainingSession(hooks=[hook]) as sess,
    ):
        for _ in range(5):
            sess.run(train)
    assert caught.value.op.name.startswith("root") and "created at" in str(caught.value)


def test_a_hook_has_filters_of_ones_own():
    train, _ = training(4.0)
    hook = tf.debug.LocalCLIDebugHook()
    hook.add_tensor_filter("counted", lambda datum, v: datum.node_name == "root" and v < 1.9)
    with (
        pytest.raises(tf.errors.InvalidArgumentError, match="root:0 is float32"),
        tf.train.MonitoredTrainingSession(hooks=[hook]) as sess,
    ):
        for _ in range(50):
            sess.run(train)


def test_a_hook_writes_the_values_of_an_estimator(tmp_path):
    def model_fn(features, labels, mode):
        train, loss = training(4.0)
        return tf.estimator.EstimatorSpec(mode, loss=loss + 0.0 * features, train_op=train)

    watch = lambda fetches, feeds: tf.debug.WatchOptions(node_name_regex_whitelist="root$")  # noqa: E731
    hook = tf.debug.DumpingDebugHook(tmp_path / "dumps", watch)
    made = tf.estimator.Estimator(model_fn, str(tmp_path / "model"))
    made.train(lambda: tf.constant(1.0), hooks=[hook], steps=3)
    tf.summary.FileWriterCache.clear()
    folders = sorted((tmp_path / "dumps").iterdir(), key=number_of)
    found = [tf.debug.DebugDumpDir(f).get_tensors("root", 0, "DebugIdentity")[0] for f in folders]
    w, expected = np.float32(1.0), []
    for _ in range(3):
        expected.append(np.sqrt(w - 1 + 4))
        w -= 1 / (2 * expected[-1])
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["TensorBoardDebugHook", "GrpcDebugWrapperSession"])
def test_what_needs_a_plugin_that_is_no_more_says_what_there_is(name):
    with pytest.raises(tf.errors.UnimplementedError, match="LocalCLIDebugHook"):
        getattr(tf.debug, name)("localhost:6064")
