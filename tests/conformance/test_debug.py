"""The files of a debugger are TensorFlow's: it reads what is written here."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tensorflow.python.debug.lib import debug_data

import runnel


def test_tensorflow_reads_the_values_of_a_step(tmp_path):
    with runnel.Graph().as_default():
        with runnel.name_scope("outer/inner_1"):
            x = runnel.placeholder(runnel.float32, [2, 2], name="x")
            y = runnel.log(x, name="logs_0")
        words = runnel.identity(runnel.constant(["a", "bc"]), name="words")
        count = runnel.while_loop(lambda i: i < 3, lambda i: runnel.add(i, 1, name="next"), [0])
        with runnel.debug.DumpingDebugWrapperSession(runnel.Session(), tmp_path / "d") as sess:
            sess.run([y, words, count], {x: [[0.0, 1.0], [2.0, 3.0]]})
    [folder] = (tmp_path / "d").iterdir()
    dump = debug_data.DebugDumpDir(str(folder), validate=False)
    with np.errstate(divide="ignore"):
        expected = np.log(np.float32([[0.0, 1.0], [2.0, 3.0]]))
    [found] = dump.get_tensors("outer/inner_1/logs_0", 0, "DebugIdentity")
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    [texts] = dump.get_tensors("words", 0, "DebugIdentity")
    assert list(texts) == [b"a", b"bc"]
    assert dump.get_tensors("while/next", 0, "DebugIdentity") == [1, 2, 3]
    [first, *_] = dump.find(debug_data.has_inf_or_nan)
    assert first.tensor_name == "outer/inner_1/logs_0:0"
    assert dump.devices() == ["/job:localhost/replica:0/task:0/device:CPU:0"]
    ours = runnel.debug.DebugDumpDir(folder)
    assert ours.size == dump.size
    key = [(d.watch_key, d.timestamp, d.device_name) for d in dump.dumped_tensor_data]
    assert [(d.watch_key, d.timestamp, d.device_name) for d in ours.dumped_tensor_data] == key
