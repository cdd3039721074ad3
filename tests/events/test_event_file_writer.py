"""The writer of event files: nothing is lost, nobody waits for long, errors reach the caller."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import threading

import pytest

import runnel as tf
from runnel.events import event_file_writer
from runnel.events.event_file_writer import EventFileWriter


def steps_in(path):
    return [event.step for event in tf.train.summary_iterator(path)][1:]


def test_a_file_begins_with_its_version_and_has_tensorflows_name(tmp_path):
    writer = EventFileWriter(tmp_path / "new" / "folder", filename_suffix=".x")
    writer.close()
    name = os.path.basename(writer.path)
    assert re.fullmatch(r"events\.out\.tfevents\.\d{10}\..+\.x", name)
    (event,) = tf.train.summary_iterator(writer.path)
    assert event.file_version == "brain.Event:2" and event.wall_time > 0


@pytest.mark.parametrize("max_queue", [1, 2, 10, 0])
def test_events_keep_their_order(tmp_path, max_queue):
    writer = EventFileWriter(tmp_path, max_queue=max_queue)
    for step in range(200):
        writer.add_event(tf.Event(step=step))
    writer.close()
    assert steps_in(writer.path) == list(range(200))


def test_an_event_is_written_as_it_was_when_it_was_added(tmp_path):
    writer = EventFileWriter(tmp_path)
    event = tf.Event()
    for step in range(20):
        event.step = step
        writer.add_event(event)
    writer.close()
    assert steps_in(writer.path) == list(range(20))


def test_closing_lets_go_whoever_waits_for_room(tmp_path, monkeypatch):
    """The writing thread is held up, the queue is full, and somebody closes the writer."""
    held, waiting = threading.Event(), threading.Event()
    original = event_file_writer.framed

    def slow(data):
        waiting.set()
        held.wait(60)
        return original(data)

    writer = EventFileWriter(tmp_path, max_queue=1)
    monkeypatch.setattr(event_file_writer, "framed", slow)

    def add():
        for step in range(5):
            writer.add_event(tf.Event(step=step))

    adding = threading.Thread(target=add)
    adding.start()
    assert waiting.wait(60)
    closing = threading.Thread(target=writer.close)
    closing.start()
    adding.join(60)  # dropped, not stuck
    assert not adding.is_alive()
    held.set()
    closing.join(60)
    steps = steps_in(writer.path)
    assert steps == list(range(len(steps)))


def test_events_of_several_threads_are_all_there(tmp_path):
    writer = EventFileWriter(tmp_path, max_queue=3)

    def add(first):
        for step in range(first, first + 100):
            writer.add_event(tf.Event(step=step))

    threads = [threading.Thread(target=add, args=(100 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    assert sorted(steps_in(writer.path)) == list(range(400))


def test_flush_returns_when_the_events_are_in_the_file(tmp_path):
    writer = EventFileWriter(tmp_path)
    for step in range(30):
        writer.add_event(tf.Event(step=step))
        if step % 7 == 0:
            writer.flush()
            assert steps_in(writer.path) == list(range(step + 1))
    writer.close()


def test_events_are_in_the_file_after_flush_secs(tmp_path, monkeypatch):
    written = threading.Semaphore(0)
    original = event_file_writer._Channel.flushed

    def flushed(channel, wishes):
        original(channel, wishes)
        written.release()

    monkeypatch.setattr(event_file_writer._Channel, "flushed", flushed)
    writer = EventFileWriter(tmp_path, flush_secs=0.05)
    for step in range(3):  # fewer than a batch, and nothing else happens
        writer.add_event(tf.Event(step=step))
        assert written.acquire(timeout=60)
        assert steps_in(writer.path) == list(range(step + 1))
    writer.close()


def test_a_writer_that_is_reopened_has_a_file_of_its_own(tmp_path):
    writer = EventFileWriter(tmp_path)
    first = writer.path
    writer.add_event(tf.Event(step=1))
    writer.close()
    writer.add_event(tf.Event(step=2))  # nobody asked for it
    writer.close()
    writer.reopen()
    writer.reopen()
    writer.add_event(tf.Event(step=3))
    writer.close()
    assert writer.path != first
    assert steps_in(first) == [1] and steps_in(writer.path) == [3]


def test_a_forgotten_writer_writes_all_and_ends_its_thread(tmp_path):
    writer = EventFileWriter(tmp_path)
    path, thread = writer.path, writer._thread
    for step in range(3):
        writer.add_event(tf.Event(step=step))
    del writer
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()
    assert steps_in(path) == [0, 1, 2]


class _FullDisk:
    """A file of which nothing more can be written after so many bytes."""

    def __init__(self, file, room):
        self._file, self._room = file, room
        self.name = file.name

    def write(self, data):
        self._room -= len(data)
        if self._room < 0:
            raise OSError(28, "No space left on device")
        return self._file.write(data)

    def flush(self):
        self._file.flush()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._file.close()


def test_a_full_disk_is_an_error_of_the_next_call_and_leaves_what_was_written(
    tmp_path, monkeypatch, caplog
):
    original = event_file_writer._open_file
    monkeypatch.setattr(
        event_file_writer, "_open_file", lambda *arguments: _FullDisk(original(*arguments), 100)
    )
    writer = EventFileWriter(tmp_path, max_queue=1)
    with pytest.raises(OSError, match="No space left"):
        for step in range(1000):
            writer.add_event(tf.Event(step=step))
    with pytest.raises(OSError, match="No space left"):
        writer.flush()
    with pytest.raises(OSError, match="No space left"):
        writer.close()
    steps = steps_in(writer.path)
    assert steps == list(range(len(steps))) and steps
    assert "No space left" in caplog.text  # also for a program that makes no next call


PROGRAM = """
import os, signal, sys
import runnel as tf
writer = tf.summary.FileWriter(sys.argv[1], flush_secs=1000)
for step in range(20):
    writer.add_summary(tf.Summary(), step)
if sys.argv[2] == "killed":
    writer.flush()
    writer.add_summary(tf.Summary(), 20)
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "failed":
    raise SystemExit(3)
"""


@pytest.mark.parametrize("end", ["killed", "forgotten", "failed"])
def test_a_program_that_ends_leaves_what_it_wrote(tmp_path, end):
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path), end], timeout=100)
    assert done.returncode == {"killed": -signal.SIGKILL, "forgotten": 0, "failed": 3}[end]
    (path,) = tmp_path.iterdir()
    steps = steps_in(path)
    assert steps[:20] == list(range(20))
    assert len(steps) <= 21
