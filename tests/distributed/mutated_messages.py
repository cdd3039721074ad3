"""Changed messages of clients, sent to a task: ``python -m tests.distributed.mutated_messages``.

A message may be refused or understood as another one. It must not end the task, keep it from
answering, have it take much memory, or be answered by an error that nobody meant.
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import grpc
import numpy as np
from tensorboard.compat.proto.config_pb2 import ConfigProto
from tensorboard.compat.proto.graph_pb2 import GraphDef

import runnel as tf
from runnel.distributed import client_values
from runnel.distributed.protocol import client_pb2 as messages
from runnel.distributed.service import SERVICE, VERSION
from runnel.memory import give_back_freed_memory
from tests.mutated_files.mutations import mutate_message, mutated_bytes

Batch = Callable[[range, Callable[[str], None]], int]

BATCH = 2000
SECONDS = 30
"""Within which a call is answered: the steps themselves have a deadline of one."""
MEGABYTES = 600
"""What may be left of a batch of messages of some kilobytes. A step may take what is asked for."""
_ROOM = 2 << 30
_UNMEANT = (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL)


def graph_def() -> Any:
    """A graph with some of everything: state, a loop, a branch, a queue, strings, sizes in data."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        n = tf.placeholder(tf.int32, [], name="n")
        v = tf.Variable(np.ones((3, 3), np.float32), name="v")
        y = tf.tanh(tf.matmul(x, v), name="y")
        tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * 0.5), [0, y], name="loop")
        tf.cond(n > 2, lambda: tf.reduce_sum(y), lambda: tf.reduce_mean(y), name="chosen")
        tf.fill(tf.stack([n, 2]), 1.5, name="filled")
        tf.gather(v, tf.floormod(tf.range(n), 3), name="rows")
        queue = tf.FIFOQueue(4, tf.float32, name="queue")
        with tf.control_dependencies([queue.enqueue(tf.reduce_sum(y))]):
            queue.dequeue(name="taken")
        tf.string_join([tf.as_string(n), "a"], name="text")
        loss = tf.reduce_sum(y)
        tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
        tf.global_variables_initializer()
        return graph.as_graph_def(add_origins=True)


FETCHES = ["y:0", "loop/Exit_1:0", "chosen/Merge:0", "filled:0", "rows:0", "taken:0", "text:0"]


class Client:
    """Sends messages, right ones and changed ones, to a task of this process."""

    def __init__(self, server: Any, tell: Callable[[str], None]) -> None:
        self._channel = grpc.insecure_channel(server.target.removeprefix("grpc://"))
        self._tell = tell
        self._graph = graph_def()
        self._seed: Any = None
        self.answered = 0
        """How many of the changed messages were understood."""
        self.session = 0
        self.renew()

    def close(self) -> None:
        self.right("CloseSession", messages.SessionRequest(session=self.session))
        self._channel.close()

    def renew(self) -> None:
        """A session on the graph as it is meant, whose variables have values."""
        if self.session:
            self.right("CloseSession", messages.SessionRequest(session=self.session))
        self.session = self._created(self._graph)
        self.right("Run", messages.RunRequest(session=self.session, targets=["init"]))

    def _created(self, graph: Any) -> int:
        request = messages.CreateSessionRequest(
            version=VERSION, graph_def=graph.SerializeToString()
        )
        content = self.right("CreateSession", request)
        return messages.CreateSessionReply.FromString(content).session

    def right(self, name: str, request: Any) -> bytes:
        """What answers a message that must be understood."""
        return self._send(name, request.SerializeToString())

    def _send(self, name: str, content: bytes) -> bytes:
        method = self._channel.unary_unary(f"/{SERVICE}/{name}")
        return method(content, timeout=SECONDS)

    def _try(self, name: str, content: bytes) -> bytes | None:
        """The answer to a message that may be wrong; tells of what must not be."""
        try:
            found = self._send(name, content)
        except grpc.RpcError as error:
            text = f"{self._seed}: {name}: {error.code()}: {error.details()}"
            if error.code() in _UNMEANT and "deserializing request" not in error.details():
                self._tell(text)
            if error.details() == "Deadline Exceeded" and not _asks_for_long(name, content):
                self._tell(f"{text}: no answer in {SECONDS} s")  # gRPC's: a step's own says more
            return None
        self.answered += 1
        return found

    # Messages -------------------------------------------------------------------------------

    def run_request(self, session: int, chance: random.Random) -> Any:
        request = messages.RunRequest(session=session, timeout_ms=1000)
        request.fetches.extend(chance.sample(FETCHES, chance.randint(1, 4)))
        for name, value in (("x:0", np.ones((2, 3), np.float32)), ("n:0", np.int32(3))):
            client_values.to_message(value, request.feeds.add(name=name).value)
        if chance.random() < 0.3:
            request.targets.append("train")
        request.trace = chance.random() < 0.1
        return request

    def try_one(self, seed: Any) -> None:
        """Sends what is changed in the way of ``seed``."""
        self._seed = seed
        chance = random.Random(str(seed))
        kinds = [self._run] * 6 + [self._graphs] * 3 + [self._callables, self._partial, self._other]
        chance.choice(kinds)(chance)

    def _changed(self, request: Any, chance: random.Random) -> bytes:
        if chance.random() < 0.3:
            return mutated_bytes(request.SerializeToString(), chance)
        for _ in range(chance.choice([1, 1, 2, 5])):
            mutate_message(request, chance)
        return bytes(request.SerializeToString())

    def _run(self, chance: random.Random) -> None:
        self._try("Run", self._changed(self.run_request(self.session, chance), chance))

    def _graphs(self, chance: random.Random) -> None:
        """A session on a changed graph, some steps of it, and its end."""
        graph = GraphDef.FromString(self._graph.SerializeToString())
        for _ in range(chance.choice([1, 1, 2, 5])):
            mutate_message(graph, chance)
        content = graph.SerializeToString()
        if chance.random() < 0.2:
            content = mutated_bytes(content, chance)
        config = ConfigProto(operation_timeout_in_ms=1000)
        if chance.random() < 0.3:
            mutate_message(config, chance)
        request = messages.CreateSessionRequest(version=VERSION, graph_def=content)
        request.config = config.SerializeToString()
        reply = self._try("CreateSession", request.SerializeToString())
        if reply is None:
            return
        session = messages.CreateSessionReply.FromString(reply).session
        steps = [messages.RunRequest(session=session, targets=["init"], timeout_ms=1000)]
        steps += [self.run_request(session, chance) for _ in range(2)]
        for step in steps:
            self._try("Run", step.SerializeToString())
        self.right("CloseSession", messages.SessionRequest(session=session))

    def _callables(self, chance: random.Random) -> None:
        request = messages.MakeCallableRequest(session=self.session, feeds=["n:0", "x:0"])
        request.fetches.extend(chance.sample(FETCHES, 2))
        made = self._try("MakeCallable", self._changed(request, chance))
        number = messages.MakeCallableReply.FromString(made).callable if made else 1
        run = messages.RunCallableRequest(session=self.session, callable=number, timeout_ms=1000)
        for value in (np.int32(3), np.ones((2, 3), np.float32)):
            client_values.to_message(value, run.feeds.add())
        self._try("RunCallable", self._changed(run, chance))
        release = messages.ReleaseCallableRequest(session=self.session, callable=number)
        self._try("ReleaseCallable", self._changed(release, chance))

    def _partial(self, chance: random.Random) -> None:
        request = messages.PartialRunSetupRequest(session=self.session, feeds=["x:0", "n:0"])
        request.fetches.extend(["y:0", "rows:0"])
        made = self._try("PartialRunSetup", self._changed(request, chance))
        if made is None:
            return
        step = messages.RunRequest(session=self.session, fetches=["y:0"], timeout_ms=1000)
        step.partial_run = messages.PartialRunSetupReply.FromString(made).partial_run
        client_values.to_message(np.ones((2, 3), np.float32), step.feeds.add(name="x:0").value)
        for _ in range(2):
            self._try("Run", self._changed(step, chance))

    def _other(self, chance: random.Random) -> None:
        name, request = chance.choice(
            [
                ("ListDevices", messages.SessionRequest(session=self.session)),
                ("CloseSession", messages.SessionRequest(session=self.session)),
                ("ExtendSession", messages.ExtendSessionRequest(session=self.session)),
                ("Reset", messages.ResetRequest(containers=["other"])),
                ("Status", messages.Empty()),
            ]
        )
        if name == "ExtendSession":
            request.graph_def = self._graph.SerializeToString()
            request.graph_version = len(self._graph.node)
        self._try(name, self._changed(request, chance))
        self.renew()


def _asks_for_long(name: str, content: bytes) -> bool:
    """Whether a step may take long because its message says so: it is cancelled with the call."""
    kinds = {"Run": messages.RunRequest, "RunCallable": messages.RunCallableRequest}
    if name not in kinds:
        return False
    timeout_ms = kinds[name].FromString(content).timeout_ms
    return not 0 < timeout_ms < 1000 * SECONDS


def try_many(seeds: range, tell: Callable[[str], None]) -> int:
    """Sends a changed message for each seed; how many of the messages were understood."""
    server = tf.train.Server.create_local_server()
    try:
        client = Client(server, tell)
        before = megabytes()
        for seed in seeds:
            client.try_one(seed)
        # The task still does what it is asked, and nothing goes on behind its clients' backs.
        client.renew()
        client.right("Run", client.run_request(client.session, random.Random(0)))
        client.close()
        _require_quiet(server, tell)
        grown = megabytes() - before
        if grown > MEGABYTES:
            tell(f"{seeds}: took {grown} MB")
        return client.answered
    finally:
        server.stop()


def megabytes() -> int:
    """What this process has in memory; but what was freed."""
    gc.collect()
    give_back_freed_memory()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() >> 20


def _require_quiet(server: Any, tell: Callable[[str], None]) -> None:
    server.drain(SECONDS)
    if server.host.runs or any(master.running for master in server.masters.values()):
        tell(f"steps go on: {server.host.runs}, {list(server.masters)}")


def in_batches(module: str, description: str, size: int, room: int, batch: Batch) -> None:
    """Sends ``--count`` messages, each batch from a process; the exit status is 1 if any fails.

    ``batch(seeds, tell)`` gives a number to be told.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--batch", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    seeds = range(options.start, options.start + options.count)
    if options.batch:
        # More memory than this fails to be allocated, and the step that wants it with it.
        resource.setrlimit(resource.RLIMIT_DATA, (room, resource.RLIM_INFINITY))
        found = batch(seeds, lambda text: print(text, flush=True))
        print(f"FOUND {found}")
        return
    wrong = 0
    for start in seeds[::size]:
        count = min(size, seeds.stop - start)
        command = [sys.executable, "-m", module, "--batch"]
        command += ["--start", str(start), "--count", str(count)]
        process = subprocess.run(command, capture_output=True, text=True)
        said, _, number = process.stdout.rpartition("FOUND ")
        wrong += bool(process.returncode or said)
        print(f"{said}{count} from {start}: {number.strip() or 'none'}", flush=True)
        if process.returncode:
            print(f"exit status {process.returncode}\n{process.stderr[-2000:]}", flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    in_batches("tests.distributed.mutated_messages", __doc__ or "", BATCH, _ROOM, try_many)
