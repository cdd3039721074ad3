"""Elements that are sent to a device by the thread that makes them ahead.

``JAX_PLATFORMS=cuda`` runs it with a GPU. Without one the device is another CPU of the session,
where elements stay as they are; in a process of its own that CPU is taken for an accelerator.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import runnel as tf
from runnel.pipelines.buffering import Prefetch
from runnel.pipelines.copying import CopyToDevice
from runnel.pipelines.pipeline import END, PipelineRun, resumed, state_of
from runnel.pipelines.sources import Slices
from runnel.pipelines.state_bytes import decoded, encoded
from runnel.runtime.compile.bound_executable import BoundExecutable
from runnel.runtime.devices import transfer
from runnel.runtime.devices.devices import list_devices, xla_device
from tests.both_tiers import COMPILED, INTERPRETED

Dataset = tf.data.Dataset
experimental = tf.data.experimental
HAS_GPU = any(device.device_type == "GPU" for device in list_devices())
DEVICE = "/gpu:0" if HAS_GPU else "/cpu:1"
THREAD = "runnel-data-prefetch"
ROWS = [[4.0 * i + j for j in range(4)] for i in range(3)]


def session(level=0, **how):
    config = tf.ConfigProto(device_count={"CPU": 2}, **how)
    config.graph_options.optimizer_options.global_jit_level = level
    return tf.Session(config=config)


def numbers():
    """Batches of two types of numbers, and of strings, which stay on the host."""
    made = Dataset.range(12).map(lambda n: (tf.cast(n, tf.float32) / 2, n, tf.as_string(n)))
    return made.batch(4)


def check_elements(level):
    """Steps on the device, on the host, and the caller see the elements."""
    with tf.Graph().as_default(), session(level) as sess:
        with tf.device("/cpu:0"):
            dataset = numbers().apply(experimental.prefetch_to_device(DEVICE, 2))
            iterator = dataset.make_initializable_iterator()
            halves, whole, names = iterator.get_next()
        with tf.device(DEVICE):
            doubled = tf.nn.relu(halves * 2)
        with tf.device("/cpu:0"):
            on_host = tf.reduce_sum(tf.nn.relu(halves * 2 + 1))
            joined = tf.reduce_join(names)
        fetches = [doubled, on_host, joined, halves, whole]
        for _ in range(2):
            sess.run(iterator.initializer)
            for row in ROWS:
                found = sess.run(fetches)
                assert found[0].tolist() == row
                assert found[1] == sum(row) + 4
                assert found[2] == b"".join(b"%d" % n for n in row)
                assert found[3].tolist() == [n / 2 for n in row]
                assert found[4].tolist() == row and found[4].dtype == np.int64
                found[3][...] = -1  # the caller's own
            with pytest.raises(tf.errors.OutOfRangeError):
                sess.run(fetches)


def check_uses():
    """Elements on the device are taken by everything that takes elements."""
    to_device = experimental.copy_to_device(DEVICE)
    copied = lambda: Dataset.range(6).batch(2).apply(to_device)  # noqa: E731
    with tf.Graph().as_default(), session() as sess:
        kept = copied().cache().repeat(2).prefetch(1).make_initializable_iterator()
        some = [
            copied().map(lambda n: n * 2).batch(3),
            copied().filter(lambda n: n[0] > 0).map(lambda n: n + 1, num_parallel_calls=2),
            copied().unbatch().padded_batch(4, []),
            copied().shuffle(3, seed=1).take(1).concatenate(copied()),
            copied().flat_map(Dataset.from_tensor_slices).batch(6),
        ]
        iterators = [one.make_initializable_iterator() for one in some]
        with tf.device(DEVICE):
            total = tf.reduce_sum(kept.get_next() * 3)
        sess.run([kept.initializer, *[one.initializer for one in iterators]])
        assert [sess.run(total) for _ in range(6)] == [3, 15, 27] * 2
        found = sess.run([one.get_next() for one in iterators])
        assert [one.tolist() for one in found[:3]] == [
            [[0, 2], [4, 6], [8, 10]],
            [3, 4],
            [0, 1, 2, 3],
        ]
        assert found[4].tolist() == [0, 1, 2, 3, 4, 5]
        assert sess.run(copied().reduce(np.int64(0), lambda t, n: t + tf.reduce_sum(n))) == 15
        assert sess.run(experimental.get_single_element(copied().take(1)) + 1).tolist() == [1, 2]
        queue = tf.FIFOQueue(3, tf.int64, [2])
        more = copied().make_initializable_iterator()
        optional = experimental.get_next_as_optional(more).get_value()
        branch = tf.cond(total > 0, lambda: more.get_next() + 1, lambda: tf.zeros([2], tf.int64))
        sess.run([more.initializer, kept.initializer])
        sess.run(queue.enqueue(more.get_next()))
        assert sess.run(queue.dequeue()).tolist() == [0, 1]
        assert sess.run(optional * 2).tolist() == [4, 6]
        assert sess.run(branch).tolist() == [5, 6]


@pytest.mark.parametrize("level", [INTERPRETED, 0, COMPILED])
def test_steps_on_the_device_and_on_the_host_see_the_elements(level):
    check_elements(level)


def test_everything_that_takes_elements_takes_those_on_a_device():
    check_uses()


def note_senders(monkeypatch):
    """Notes the threads by which batches are sent to a device."""
    senders = []
    put = transfer.put

    def noted(value, target):
        if getattr(value, "shape", None) == (4,):
            senders.append(threading.current_thread().name)
        return put(value, target)

    monkeypatch.setattr(transfer, "put", noted)
    return senders


@pytest.mark.skipif(not HAS_GPU, reason="this needs an accelerator")
def test_a_step_finds_its_batch_on_the_device(monkeypatch):
    senders = note_senders(monkeypatch)
    check_elements(COMPILED)
    assert set(senders) == {THREAD}


def test_arrays_really_move():
    """In a process with several XLA devices, where a CPU is taken for an accelerator."""
    code = "from tests.data.test_device_copies import check_moving; check_moving()"
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "moved\n"


def check_moving():
    """Runs in a process of its own."""
    stay = transfer.Destination.send

    def send(self, value):
        if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
            return transfer.put(value, xla_device(self.device))
        return stay(self, value)

    begin = BoundExecutable.start
    taken = {0: set(), 1: set()}

    def start(self, inputs, *rest):
        if self._device is not None:
            taken[self._device.index] |= {isinstance(one, np.ndarray) for one in inputs}
        return begin(self, inputs, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transfer.Destination, "send", send)
        patch.setattr(BoundExecutable, "start", start)
        senders = note_senders(patch)
        for level in (INTERPRETED, 0, COMPILED):
            check_elements(level)
        assert set(senders) == {THREAD}
        assert taken == {0: {True}, 1: {False}}  # the host has them in its memory
        check_uses()
    print("moved")


class Sent:
    """An array on a device that does not exist."""

    def __init__(self, value):
        self.value, self.by = np.asarray(value), threading.current_thread().name

    def __array__(self, dtype=None, copy=None):
        return self.value


def test_the_thread_that_makes_elements_sends_them():
    pipeline = Prefetch(CopyToDevice(Slices([np.arange(3.0)]), Sent), 2)
    traversal = pipeline.iterate(PipelineRun())
    found = [traversal.next() for _ in range(4)]
    assert found[3] is END
    assert [(one.value, one.by) for (one,) in found[:3]] == [(n, THREAD) for n in range(3)]


def test_elements_on_a_device_are_saved_with_their_iterator():
    pipeline = Prefetch(CopyToDevice(Slices([np.arange(6.0)]), Sent), 2)
    first = pipeline.iterate(PipelineRun())
    first.next()
    state = decoded(encoded(state_of(pipeline, first)))
    first.close()
    second = resumed(pipeline, PipelineRun(), state)
    rest = [float(np.asarray(second.next()[0])) for _ in range(5)]
    assert rest == [1, 2, 3, 4, 5]
    assert second.next() is END


def test_a_device_that_is_not_there_is_named_with_those_that_are():
    there = numbers().apply(experimental.prefetch_to_device("/device:GPU:77"))
    iterator = there.make_initializable_iterator()
    with session() as sess, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        sess.run(iterator.initializer)
    assert "CopyToDeviceDataset" in str(caught.value)
    assert "/device:GPU:77" in str(caught.value) and "/device:CPU:1" in str(caught.value)
    assert "test_device_copies.py" in str(caught.value)
    with session(allow_soft_placement=True) as sess:
        sess.run(iterator.initializer)
        assert sess.run(iterator.get_next())[1].tolist() == [0, 1, 2, 3]


def test_a_name_that_is_no_device_and_a_source_that_is_no_cpu_are_refused():
    with pytest.raises(ValueError, match="nonsense"):
        experimental.copy_to_device("/nonsense:0")
    with pytest.raises(ValueError, match="/gpu:1"):
        experimental.copy_to_device("/gpu:0", "/gpu:1")


def test_the_structure_stays_and_ragged_elements_stay_on_the_host():
    rows = tf.ragged.constant([[1, 2], [], [3]])
    dataset = Dataset.from_tensor_slices({"rows": rows, "n": [1.0, 2.0, 3.0]}).batch(2)
    copied = dataset.apply(experimental.prefetch_to_device(DEVICE))
    assert copied.output_shapes == dataset.output_shapes
    assert copied.output_classes == dataset.output_classes
    iterator = copied.make_initializable_iterator()
    with session() as sess:
        sess.run(iterator.initializer)
        found = sess.run(iterator.get_next())
        assert (found["rows"].to_list(), found["n"].tolist()) == ([[1, 2], []], [1, 2])
