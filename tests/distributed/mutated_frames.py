"""Changed frames of a task, sent to another: ``python -m tests.distributed.mutated_frames``.

Whoever sends them has the cluster's token. A frame may end the connection or be understood as
another one. It must not end the task, keep it from answering others, have it take much memory, end
a thread by an error that nobody meant, or leave something behind when the connection has ended.
"""

from __future__ import annotations

import os
import random
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from tensorboard.compat.proto.graph_pb2 import GraphDef

import runnel as tf
from runnel.distributed import wire
from runnel.distributed.messages import Bundle, Message, PartEnded, RunPart, pack
from runnel.distributed.peers import Peers, TaskIdentity
from runnel.distributed.protocol.worker_pb2 import Envelope
from runnel.distributed.security import Security
from runnel.distributed.transport.frame import HEADER, framed
from tests.distributed.mutated_messages import MEGABYTES, in_batches, megabytes
from tests.mutated_files.mutations import mutate_message, mutated_bytes

BATCH = 10_000
SECONDS = 30
"""Within which a connection ends whose other side has ended."""
_ROOM = 4 << 30


def frame(message: Message, values: list[Any]) -> bytes:
    """The bytes of a message, as they leave over TCP."""
    kind, head = pack(message)
    described = [wire.describe(value) for value in values]
    contents = [content for _, content in described]
    heads = [head, *(description for description, _ in described)]
    return b"".join(map(bytes, framed(kind, len(values), 0, heads, contents)))


def changed(content: bytes, chance: random.Random) -> bytes:
    """A frame that is cut, changed, or has another header."""
    if chance.random() < 0.3:
        fields = list(HEADER.unpack_from(content))
        place = chance.randrange(1, len(fields))
        most = (1 << (64 if place == 5 else 32)) - 1
        fields[place] = chance.choice([0, 1, most, most >> 1, fields[place] + 1, 4096]) & most
        return HEADER.pack(*fields) + content[HEADER.size :]
    return mutated_bytes(content, chance)


class Attacker:
    """A task that connects to another and says what no task would."""

    def __init__(self, server: Any, tell: Callable[[str], None]) -> None:
        self._server = server
        self._tell = tell
        self.closed_early = 0
        """How many connections ended before all had been said."""
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, [None], name="x")
            v = tf.Variable([1.0, 2.0], name="v")
            y = tf.add(x * 2.0, v, name="y")
            tf.FIFOQueue(2, tf.float32, [()], shared_name="fuzz").dequeue(name="taken")
            tf.gather(y, tf.cast(x, tf.int32), name="rows")
            self._graph = graph.as_graph_def(add_origins=True)

    def connected(self) -> Any:
        """A connection that has proved who it is."""
        me = TaskIdentity("/job:other/replica:0/task:0")
        nothing = lambda *_: None  # noqa: E731 (nobody reads with these)
        peers = Peers(me, Security(), nothing, nothing, 60.0, 1 << 30)
        stream = peers._stream_to(self._server.target.removeprefix("grpc://"))
        connection, hello = peers._met(stream, self._server.task)
        peers._introduce(connection, hello)
        return connection

    def messages(self, session: int) -> list[tuple[Message, list[Any]]]:
        """What a master says to a task, in its order."""
        created, register, forget, abort, close, question, ping, answer = [
            Envelope() for _ in range(8)
        ]
        created.create_session.session = session
        created.create_session.isolated = True
        part = register.register
        part.session, part.part = session, 1
        part.graph_def = self._graph.SerializeToString()
        part.feeds.append("x:0")
        part.fetches.extend(["y:0", "rows:0"])
        part.peers["/job:other/replica:0/task:0"] = "localhost:1"
        forget.forget.session = session
        forget.forget.parts.append(1)
        abort.abort.session, abort.abort.step = session, 3
        abort.abort.failure.code = 1
        close.close_session.session = session
        question.question.number, question.question.about = 5, "status"
        answer.answer.number, answer.answer.content = 1, b"{}"
        ping.ping.sent_ns = 12345
        x = np.array([0.0, 1.0], np.float32)
        told = np.array([b"a", b"bc"], object)
        return [
            (created, []),
            (register, []),
            (Bundle(session, 2, 0, (("key", 1), ("other", 2))), [x, told, x]),
            (RunPart(session, 1, 2, 1), [x]),
            (RunPart(session, 1, 3, 2, True), [x]),
            (abort, []),
            (question, []),
            (ping, []),
            (answer, []),
            (PartEnded(session, 1, 3, 1, last=Bundle(session, 3, 9, (("two", 1),))), [x, told]),
            (Bundle(0, 0, 0, (("propose group", 1),)), [told]),
            (forget, []),
            (close, []),
        ]

    def _changed(self, message: Message, values: list[Any], chance: random.Random) -> bytes:
        how = chance.random()
        if how < 0.5 and isinstance(message, Envelope):
            if message.WhichOneof("content") == "register" and chance.random() < 0.6:
                graph = GraphDef.FromString(message.register.graph_def)
                mutate_message(graph, chance)
                message.register.graph_def = graph.SerializeToString()
            else:
                mutate_message(message, chance)
            return frame(message, values)
        if how < 0.5:
            place = chance.randrange(len(message))
            number = chance.choice([0, 1, 2, 7, 2**31, 2**32 - 1])
            fields: list[Any] = list(message)
            if type(fields[place]) is int:
                fields[place] = number
                message = type(message)(*fields)
            if chance.random() < 0.5:
                values = values[::-1]
            return frame(message, values)
        return changed(frame(message, values), chance)

    def try_one(self, seed: int) -> None:
        """Says what a master does, some of it changed in the way of ``seed``, and hangs up."""
        chance = random.Random(seed)
        wrong = set(chance.sample(range(13), chance.choice([1, 1, 2, 4])))
        connection = self.connected()
        stream = connection._stream
        stream.limit(SECONDS)
        try:
            for place, (message, values) in enumerate(self.messages(chance.randint(1, 3))):
                if place in wrong:
                    content = self._changed(message, values, chance)
                elif chance.random() < 0.1:
                    continue
                else:
                    content = frame(message, values)
                stream.send(deque([content]), deque(), True)
            stream._socket.shutdown(socket.SHUT_WR)
            buffer = memoryview(bytearray(1 << 16))
            while stream.receive(buffer):
                pass
        except TimeoutError:
            self._tell(f"{seed}: no end in {SECONDS} s")
        except OSError:
            self.closed_early += 1
        finally:
            connection.discard()


def try_many(seeds: range, tell: Callable[[str], None]) -> int:
    """Sends changed frames for each seed; how many connections the task has ended early."""
    hook = threading.excepthook
    threading.excepthook = lambda args: tell(f"{args.thread}: {args.exc_type}: {args.exc_value}")
    server = tf.train.Server.create_local_server()
    try:
        attacker = Attacker(server, tell)
        before = megabytes()
        for seed in seeds:
            attacker.try_one(seed)
        # The task still does what it is asked, and has forgotten what they asked.
        with tf.Graph().as_default(), tf.Session(server.target) as sess:
            if sess.run(tf.constant(1.0) + 1.0) != 2.0:
                tell("the task computes something else")
        _require_forgotten(server, tell)
        grown = megabytes() - before
        if grown > MEGABYTES:
            tell(f"{seeds}: took {grown} MB")
        return attacker.closed_early
    finally:
        server.stop()
        threading.excepthook = hook


def _require_forgotten(server: Any, tell: Callable[[str], None]) -> None:
    looked = threading.Event()
    for _ in range(SECONDS * 50):
        left = server.host.runs, server.host.sessions, server.peers.channels()
        if not any(left):
            return
        looked.wait(0.02)
    tell(f"something is left: {left}")


if __name__ == "__main__":
    os.environ.setdefault("RUNNEL_HEARTBEAT_SECONDS", "3")  # for how long others are dialled
    in_batches("tests.distributed.mutated_frames", __doc__ or "", BATCH, _ROOM, try_many)
