"""Connections: values as they are, in order; slow readers hold up; no message is refused."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
import threading
import time
from queue import Queue
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runnel as tf
from runnel import memory
from runnel.distributed import wire
from runnel.distributed.messages import Bundle, Message, PartEnded, RunPart, pack
from runnel.distributed.transport.backlog import MOST_WAITING
from runnel.distributed.transport.connection import Connection
from runnel.distributed.transport.frame import HEADER, MAGIC
from runnel.distributed.transport.in_process import channel_pair
from runnel.distributed.transport.shared_memory import MOST_BLOCKS
from runnel.distributed.transport.stream import PlainStream
from runnel.queues.rendezvous import DEAD

pytestmark = pytest.mark.timeout(120)
MOST = 1 << 30


class Side:
    """One end, with what has come."""

    def __init__(self, sock: socket.socket, most: int = MOST) -> None:
        self.messages: Queue[tuple[Message, list[Any]]] = Queue()
        self.lost: Queue[Exception] = Queue()
        self.connection = Connection(
            PlainStream(sock),
            lambda connection, message, values: self.messages.put((message, values)),
            lambda connection, error: self.lost.put(error),
            most,
        )
        self.connection.task = "/job:test"

    def close(self) -> None:
        self.connection.close("the test is over")


@pytest.fixture(params=["local", "tcp"])
def sides(request) -> Any:
    if request.param == "local":
        pair = socket.socketpair()
    else:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            first = socket.create_connection(listening.getsockname())
            pair = first, listening.accept()[0]
    found = [Side(sock) for sock in pair]
    yield found
    for side in found:
        side.close()


def bundle(count: int, number: int = 0) -> Bundle:
    return Bundle(5, 6, number, tuple((f"key {index}", 1) for index in range(count)))


def test_values_come_as_they_were_sent(sides):
    one, other = sides
    other.connection.start()
    rng = np.random.default_rng(0)
    values = [
        np.float32(1.5),
        np.zeros((0, 3), np.int64),
        rng.normal(size=(100, 100)),
        rng.normal(size=(300, 1000)).astype(np.float32),  # shared memory, where there is any
        np.asfortranarray(rng.normal(size=(5, 7))),
        np.array([b"", b"\0", b"x" * 100_000], object),
        np.arange(4).astype(tf.bfloat16.as_numpy_dtype),
        DEAD,
        np.array(True),
    ]
    for number in range(3):
        one.connection.send(bundle(len(values), number), values)
    for number in range(3):
        message, found = other.messages.get(timeout=30)
        assert message == bundle(len(values), number)
        for value, got in zip(values, found, strict=True):
            if value is DEAD:
                assert got is DEAD
            else:
                assert got.dtype == value.dtype and got.shape == value.shape
                np.testing.assert_array_equal(got, value)


def test_memory_that_is_given_back_is_used_again(sides):
    one, other = sides
    one.connection.start()
    other.connection.start()
    value = np.ones(1 << 20, np.float32)
    for _ in range(10):
        one.connection.send(bundle(1), [value])
        _, [got] = other.messages.get(timeout=30)
        got[0] = 2.0  # it is the receiver's own
        del got
        other.connection.send(bundle(0))  # tells of what is free
        one.messages.get(timeout=30)
    assert value[0] == 1.0
    blocks = one.connection._sent_blocks
    assert blocks is None or len(blocks._blocks) <= 2


def test_memory_is_given_back_also_by_who_has_nothing_to_say(sides):
    one, other = sides
    one.connection.start()
    other.connection.start()
    value = np.ones(1 << 18, np.float32)
    blocks = one.connection._sent_blocks
    asked, deadline = threading.Event(), time.monotonic() + 60
    for number in range(100):
        one.connection.send(bundle(1, number), [value])
        assert other.messages.get(timeout=30)[0].number == number
        # The thread that hears of free blocks may be late, but hears of them without a word of
        # the other side's.
        while blocks is not None and len(blocks._blocks) > 10 and not any(blocks._free.values()):
            assert time.monotonic() < deadline, "no block is given back"
            asked.wait(0.01)
    assert blocks is None or len(blocks._blocks) < 20


def test_a_sender_that_must_not_wait_does_not_and_one_that_may_is_held_up(sides):
    one, other = sides
    values = [np.full(10_000, number, np.float64) for number in range(200)]  # 16 MB, nobody reads
    for number, value in enumerate(values[:150]):
        one.connection.send(bundle(1, number), [value], wait=False)
    held = threading.Thread(
        target=lambda: one.connection.send(bundle(1, 150), [values[150]], wait=True)
    )
    held.start()
    held.join(0.2)
    assert held.is_alive()
    other.connection.start()
    for number in range(151):
        message, [value] = other.messages.get(timeout=30)
        assert message.number == number and value[0] == number
    held.join(30)
    assert not held.is_alive()


@pytest.mark.parametrize("count", [20, 320])
def test_a_message_may_have_any_number_of_large_values(sides, count):
    one, other = sides
    one.connection.start()
    other.connection.start()
    files = len(os.listdir("/proc/self/fd"))
    values = [np.full(1 << 18, number, np.float32) for number in range(count)]
    for number in range(4):
        one.connection.send(bundle(count, number), values)
        message, found = other.messages.get(timeout=60)
        assert message.number == number
        assert [value[-1] for value in found] == list(range(count))
        del found
        other.connection.send(bundle(0))  # tells of what is free
        one.messages.get(timeout=60)
    assert len(os.listdir("/proc/self/fd")) <= files + 2 * MOST_BLOCKS


def test_a_value_that_has_no_bytes_costs_no_block(sides):
    one, _ = sides
    handle = np.empty((), object)
    handle[()] = object()
    for _ in range(3):
        with pytest.raises(tf.errors.UnimplementedError):
            one.connection.send(bundle(2), [np.ones(1 << 20), handle])
    blocks = one.connection._sent_blocks
    assert blocks is None or not blocks._blocks


def test_blocks_reach_the_other_side_though_the_socket_was_full():
    mine, theirs = socket.socketpair()
    frame, count = written(bundle(0), []), 0
    with contextlib.suppress(BlockingIOError):  # nothing waits to be written, and nothing can be
        while mine.send(frame, socket.MSG_DONTWAIT):
            count += 1
    one, other = Side(mine), Side(theirs)
    try:
        values = [np.full(1 << 18, number, np.uint8) for number in range(20)]
        one.connection.send(bundle(20, 1), values, wait=False)
        other.connection.start()
        for _ in range(count):
            assert other.messages.get(timeout=60)[0] == bundle(0)
        message, found = other.messages.get(timeout=60)
        assert message.number == 1
        assert [value[0] for value in found] == list(range(20))
    finally:
        one.close()
        other.close()


def test_who_gives_up_waiting_for_a_slow_reader_is_let_go_and_sends_nothing(sides):
    one, other = sides
    value = np.zeros(10_000)
    for number in range(150):  # 12 MB, nobody reads
        one.connection.send(bundle(1, number), [value], wait=False)
    waits = one.connection._backlog.bytes
    sent = one.connection.sent_bytes
    enough = tf.errors.CancelledError(None, None, "it was enough")
    asked = iter([None, None, enough])
    with pytest.raises(tf.errors.CancelledError, match="it was enough"):
        one.connection.send(bundle(1, 150), [value], given_up=lambda: next(asked))
    assert one.connection._backlog.bytes == waits and one.connection.sent_bytes == sent
    other.connection.start()
    one.connection.send(bundle(0, 151), given_up=lambda: None)
    numbers = [other.messages.get(timeout=60)[0].number for _ in range(151)]
    assert numbers == [*range(150), 151]


def test_what_is_given_up_leaves_its_shared_memory_to_others():
    one, other = [Side(sock) for sock in socket.socketpair()]
    may_read = threading.Event()
    may_read.set()

    def receive(connection: Any, message: Message, values: list[Any]) -> None:
        other.messages.put((message, values))
        assert may_read.wait(60)

    other.connection._receive = receive
    blocks = one.connection._sent_blocks
    if blocks is None:
        pytest.skip("there is no shared memory here")
    try:
        one.connection.start()
        other.connection.start()
        shared, value = np.arange(1 << 18), np.zeros(10_000)
        one.connection.send(bundle(1), [shared])
        one.connection.send(bundle(0))
        for count in (1, 0):  # who reads has let go of the first when it reads the second
            assert other.messages.get(timeout=60)[0] == bundle(count)
        other.connection.send(bundle(0))  # tells of what is free
        one.messages.get(timeout=60)
        may_read.clear()
        for number in range(150):  # 12 MB, nobody reads
            one.connection.send(bundle(1, number), [value], wait=False)
        sent = one.connection.sent_bytes
        enough = tf.errors.CancelledError(None, None, "it was enough")
        for _ in range(3):
            with pytest.raises(tf.errors.CancelledError, match="it was enough"):
                one.connection.send(bundle(1, 150), [shared], given_up=lambda: enough)
        assert len(blocks._blocks) == 1 and one.connection._unread_bytes == 0
        assert one.connection.sent_bytes == sent
        may_read.set()
        one.connection.send(bundle(1, 151), [shared])
        found = [other.messages.get(timeout=60) for _ in range(151)]
        assert [message.number for message, _ in found] == [*range(150), 151]
        np.testing.assert_array_equal(found[-1][1][0], shared)
        assert len(blocks._blocks) == 1
    finally:
        may_read.set()
        one.close()
        other.close()


def test_a_connection_that_has_ended_keeps_nothing_that_waited(sides):
    one, _ = sides
    for number in range(150):  # 12 MB, nobody reads
        one.connection.send(bundle(1, number), [np.zeros(10_000)], wait=False)
    one.close()
    assert not one.connection._waiting


def test_a_reader_that_has_stopped_is_not_given_all_of_the_shared_memory():
    one, other = [Side(sock) for sock in socket.socketpair()]
    try:
        value = np.zeros(MOST_WAITING // 4, np.uint8)
        for number in range(8):
            one.connection.send(bundle(1, number), [value], wait=False)
        blocks = one.connection._sent_blocks
        assert blocks is not None and len(blocks._blocks) == 5  # and one is on its way
        assert one.connection._backlog.bytes > 2 * value.nbytes
        other.connection.start()
        for number in range(8):
            message, [found] = other.messages.get(timeout=60)
            assert message.number == number and found.nbytes == value.nbytes
        one.connection.send(bundle(1, 8), [value])  # it has read all that was before
        assert other.messages.get(timeout=60)[0].number == 8
        assert one.connection._unread_bytes == value.nbytes  # through shared memory again
    finally:
        one.close()
        other.close()


def test_memory_that_is_not_used_for_a_while_is_given_back_and_taken_again(sides, monkeypatch):
    one, other = sides
    blocks = one.connection._sent_blocks
    if blocks is None:
        pytest.skip("there is no shared memory here")
    one.connection.start()
    other.connection.start()
    value = np.arange(1 << 22, dtype=np.float32)

    def send(number: int) -> None:
        one.connection.send(bundle(1, number), [value])
        message, [found] = other.messages.get(timeout=60)
        assert message.number == number
        np.testing.assert_array_equal(found, value)
        del found, message
        other.connection.send(bundle(0))  # tells of what is free
        one.messages.get(timeout=60)

    def shared_pages() -> int:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("RssShmem"))

    send(0)
    before = shared_pages()
    one.connection.give_back_idle(time.monotonic())  # it has just been used
    assert shared_pages() == before
    one.connection.give_back_idle(time.monotonic() + 2 * memory.IDLE_SECONDS)
    assert shared_pages() <= before - (value.nbytes >> 10)
    send(1)
    assert len(blocks._blocks) == 1


@pytest.mark.parametrize("is_read", [True, False])
def test_what_waits_to_be_written_is_counted(sides, is_read):
    one, other = sides
    backlog = one.connection._backlog
    value = np.zeros(10_000)
    for number in range(150):  # 12 MB, nobody reads
        one.connection.send(bundle(1, number), [value], wait=False)
    assert 4_000_000 < backlog.bytes < 13_000_000
    if is_read:
        other.connection.start()
        for _ in range(150):
            other.messages.get(timeout=60)
        one.connection.send(bundle(0), wait=True)  # after all that waited
    else:
        one.close()
    assert backlog.bytes == 0


def test_both_sides_may_send_much_at_once(sides):
    for side in sides:
        side.connection.start()
    big = np.ones(60_000, np.float64)

    def send(side: Side) -> None:
        for number in range(50):
            side.connection.send(bundle(1, number), [big])

    threads = [threading.Thread(target=send, args=(side,)) for side in sides]
    for thread in threads:
        thread.start()
    for side in sides:
        for number in range(50):
            assert side.messages.get(timeout=60)[0].number == number
    for thread in threads:
        thread.join(30)


def test_giving_back_what_another_message_has_given_back_sends_nothing(sides):
    one, other = sides
    other.connection.start()
    one.connection._tell_freed()
    one.connection.send(bundle(0, 7))
    assert other.messages.get(timeout=60)[0] == bundle(0, 7)


def test_the_end_of_one_side_is_told_to_the_other(sides):
    one, other = sides
    other.connection.start()
    one.connection.close("it was enough")
    error = other.lost.get(timeout=30)
    assert isinstance(error, tf.errors.UnavailableError) and "/job:test" in str(error)
    with pytest.raises(tf.errors.UnavailableError):
        other.connection.send(bundle(0))


def test_what_was_sent_before_the_end_comes_before_it_though_an_answer_fails(sides):
    """A task says that its part has ended, and goes: its master is just sending it something."""
    one, other = sides
    may_go_on = threading.Event()
    told: Queue[Any] = Queue()

    def receive(connection: Any, message: Bundle, values: list[Any]) -> None:
        told.put(message.number)
        assert may_go_on.wait(60)

    other.connection._receive = receive
    other.connection._lost = lambda connection, error: told.put(error)
    other.connection.start()
    for number in range(3):
        # More than is read at once; little enough to have arrived: TCP drops what has not.
        one.connection.send(bundle(1, number), [np.zeros(5_000)])
    assert told.get(timeout=60) == 0
    one.connection.close("it is over")
    with pytest.raises(tf.errors.UnavailableError) as failed:
        while True:  # until the system knows that nobody is there
            other.connection.send(bundle(0))
    may_go_on.set()
    assert [told.get(timeout=60) for _ in range(2)] == [1, 2]
    assert told.get(timeout=60) is failed.value is other.connection.error


# What is no message -----------------------------------------------------------------------------


def written(message: Message, values: list[Any]) -> bytes:
    """The bytes of a message, as they leave over TCP."""
    mine, theirs = socket.socketpair()
    side = Side(mine)
    side.connection._sent_blocks = None
    content = bytearray()
    reading = threading.Thread(target=lambda: _read_all(theirs, content))
    reading.start()
    side.connection.send(message, values)
    side.close()
    reading.join()
    theirs.close()
    return bytes(content)


def _read_all(sock: socket.socket, content: bytearray) -> None:
    while chunk := sock.recv(1 << 16):
        content += chunk


def outcome(content: bytes, most: int = 1 << 22) -> str:
    """What becomes of a connection over which ``content`` comes, and then the end."""
    mine, theirs = socket.socketpair()
    side = Side(theirs, most)
    side.connection.start()
    with contextlib.suppress(OSError):  # it may have hung up already
        mine.sendall(content)
    mine.close()
    error = side.lost.get(timeout=30)
    return str(error)


VALUES = [np.arange(10.0), np.array([b"a", b"bc"], object), DEAD, np.zeros((3, 0))]
FAILURE = wire.failure_of(tf.errors.InternalError(None, None, "bad"), "/job:test")
MESSAGES: list[Message] = [
    bundle(4),
    Bundle(5, 6, 7, (("one", 1), ("three", 3))),
    RunPart(1, 2, 3, 2, True),
    PartEnded(1, 2, 3, 4, stats=b"told"),
    PartEnded(1, 2, 3, 2, last=Bundle(1, 3, 9, (("two", 2),))),
    PartEnded(1, 2, 3, 4, FAILURE),
]
SAMPLES = [written(message, VALUES) for message in MESSAGES]


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_comes_as_it_was_sent(sides, message):
    one, other = sides
    other.connection.start()
    one.connection.send(message, VALUES)
    found, values = other.messages.get(timeout=30)
    assert found == message and type(found) is type(message) and len(values) == len(VALUES)


def test_what_is_too_long_is_refused_before_memory_is_taken():
    for head_size, body_size in [(2**32 - 1, 0), (10, 2**63), (10, 1 << 40)]:
        told = outcome(HEADER.pack(MAGIC, 2, 1, 0, head_size, body_size) + b"x" * 10)
        assert "too long" in told


def test_more_values_keys_or_blocks_than_there_can_be_are_refused():
    kind, head = pack(bundle(1))
    many = 2**32 - 1
    for values, freed in [(many, 0), (1, many), (0, 0)]:
        told = outcome(HEADER.pack(MAGIC, kind, values, freed, len(head), 0) + head)
        assert "not a message" in told
    for unknown in (4, 77):
        assert "kind" in outcome(HEADER.pack(MAGIC, unknown, 0, 0, 0, 0))


def described(description: bytes, body: bytes) -> bytes:
    """A message with a value that is described so."""
    kind, head = pack(bundle(1))
    head += description
    return HEADER.pack(MAGIC, kind, 1, 0, len(head), len(body)) + head + body


def test_a_shape_that_lies_is_refused():
    large = struct.pack("<2q", 1 << 28, 1 << 28)
    wrong = struct.pack("<HB?IQ", tf.float64.as_datatype_enum, 2, False, 0, 64) + large
    assert "not as long" in outcome(described(wrong, bytes(64)))
    for dtype in (tf.float32, tf.string):  # and no element at all
        wrong = struct.pack("<HB?IQ", dtype.as_datatype_enum, 2, False, 0, 0)
        assert "has the shape" in outcome(described(wrong + struct.pack("<2q", 0, 1 << 62), b""))
    wrong = struct.pack("<HB?IQ", tf.resource.as_datatype_enum, 0, False, 0, 64)
    assert "no bytes" in outcome(described(wrong, bytes(64)))


def test_memory_that_was_never_given_cannot_be_named():
    description, _ = wire.describe(np.ones(10))
    assert "never given" in outcome(described(wire.in_block(description, 3), b""))


def mutated(content: bytes, seed: int) -> bytes:
    rng = random.Random(seed)
    changed = bytearray(content)
    for _ in range(rng.randint(1, 8)):
        place = rng.randrange(len(changed))
        action = rng.randrange(4)
        if action == 0:
            changed[place] = rng.randrange(256)
        elif action == 1:
            del changed[place : place + rng.randint(1, 16)]
        elif action == 2:
            changed[place:place] = rng.randbytes(rng.randint(1, 16))
        else:
            changed[place : place + 8] = rng.choice([b"\xff" * 8, bytes(8), b"\x7f" + b"\xff" * 7])
        if not changed:
            changed = bytearray(b"\0")
    return bytes(changed)


# More: RUNNEL_FUZZ=700 is 100,000 of them; tests/distributed/mutated_frames.py has tasks get them.
_FACTOR = float(os.environ.get("RUNNEL_FUZZ", "1"))


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.timeout(120 + 2 * _FACTOR)
@settings(max_examples=int(150 * _FACTOR), deadline=None, derandomize=_FACTOR == 1)
@given(seed=st.integers(0, 2**32))
def test_a_mutated_message_ends_the_connection_or_is_another_message(seed):
    assert "connection" in outcome(mutated(SAMPLES[seed % len(SAMPLES)], seed))


def test_what_only_its_own_task_understands_is_refused(sides):
    handle = np.empty((), object)
    handle[()] = object()
    with pytest.raises(tf.errors.UnimplementedError, match="cannot go from one task to another"):
        sides[0].connection.send(bundle(1), [handle])
    sides[0].connection.send(bundle(0))  # nothing of it has left
    sides[1].connection.start()
    assert sides[1].messages.get(timeout=60)[0] == bundle(0)


def test_within_a_process_the_end_comes_after_all_that_was_sent_before():
    told: Queue[Any] = Queue()
    ends = [
        (
            lambda channel, message, values: told.put(values[0].tolist()),
            lambda channel, error: told.put(error),
        )
        for _ in range(2)
    ]
    first, second = channel_pair(ends)
    for number in range(3):
        first.send(bundle(1), [np.array(number)])
    first.close("it is over")
    assert "it is over" in str(told.get(timeout=60))  # the side that ends it knows at once
    second.start()
    assert [told.get(timeout=60) for _ in range(3)] == [0, 1, 2]
    assert "it is over" in str(told.get(timeout=60)) and second.error is not None


def test_a_string_that_is_too_long_for_a_message_is_told(sides, monkeypatch):
    monkeypatch.setattr(wire, "_LONGEST_STRING", 100)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="A string of 101 bytes"):
        sides[0].connection.send(bundle(1), [np.array([b"x", b"y" * 101], object)])
    sides[0].connection.send(bundle(1), [np.array([b"x" * 100], object)])
    sides[1].connection.start()
    assert sides[1].messages.get(timeout=60)[1][0].tolist() == [b"x" * 100]
