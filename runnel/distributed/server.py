"""``tf.train.Server``: a task of a cluster."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import threading
import time
import weakref
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from runnel import memory
from runnel.distributed import wire
from runnel.distributed.cluster_spec import ClusterSpec, task_name
from runnel.distributed.health import deadline_from_environment
from runnel.distributed.master import MasterSession
from runnel.distributed.memory_limit import MemoryLimit
from runnel.distributed.messages import Message, PartEnded
from runnel.distributed.peers import Peers, TaskIdentity
from runnel.distributed.protocol.worker_pb2 import Envelope, Question
from runnel.distributed.security import Security, is_loopback, split_address
from runnel.distributed.server_def import ServerDef
from runnel.distributed.status import status_of
from runnel.distributed.termination import DRAIN_SECONDS, ToldToEnd, told_to_end
from runnel.distributed.transport.connection import GivenUp
from runnel.distributed.transport.listener import Listener
from runnel.distributed.worker_host import WorkerHost
from runnel.graph import errors
from runnel.graph.device import parsed_device
from runnel.graph.device_set import LOCAL_TASK, DeviceSet
from runnel.runtime.devices.devices import session_devices
from runnel.runtime.devices.session_devices import SessionDevices

logger = logging.getLogger("runnel")

MOST_BYTES = 1 << 40
"""What the values of one message may take, unless ``RUNNEL_MOST_MESSAGE_BYTES`` says otherwise."""
_ANSWER_SECONDS = 60.0

_servers: weakref.WeakValueDictionary[str, Server] = weakref.WeakValueDictionary()


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """A question that another task has yet to answer."""

    number: int
    channel: Any
    answer: Future[bytes] = field(default_factory=Future)


class Server:
    """A task: it holds state, runs parts of steps, and is the master of the sessions made on it.

    Example:
        >>> cluster = tf.train.ClusterSpec({"ps": ["localhost:2222"], "worker": ["localhost:2223"]})
        >>> server = tf.train.Server(cluster, job_name="ps", task_index=0)
        >>> server.join()
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
    ) -> None:
        definition = _definition(server_or_cluster_def, job_name, task_index, protocol, config)
        self._server_def = definition
        self._cluster = ClusterSpec(definition.cluster)
        self.task = task_name(definition.job_name, definition.task_index)
        self.addresses = self._cluster.addresses()
        self._security = Security.from_environment()
        config = definition.default_session_config
        host, _ = split_address(self.addresses[self.task])
        self._security.require_allowed(host)
        leader = _leader(self.addresses)
        self._fabric: Any = None
        if config.experimental.collective_nccl:
            from runnel.distributed.xla_fabric import joined

            # Before XLA starts, which it does when its devices are listed.
            self._fabric = joined(self.task, leader, self.addresses, self._security, config)
        devices = _devices_of(self.task, config)
        deadline = deadline_from_environment()
        most = int(os.environ.get("RUNNEL_MOST_MESSAGE_BYTES") or MOST_BYTES)
        me = TaskIdentity(self.task, tuple(devices))
        self.devices = DeviceSet([replace(d, incarnation=me.incarnation) for d in devices])
        self.peers = Peers(me, self._security, self._receive, self._lost, deadline, most)
        self.host = WorkerHost(
            self.task,
            SessionDevices(self.devices, bool(config.allow_soft_placement)),
            self._ship,
            lambda task: self.peers.known(task) is not None,
            self.peers.backlog,
        )
        self.host.join_cluster(leader, self._fabric)
        self.masters: dict[int, MasterSession] = {}
        self.steps_of_closed = 0
        """How many steps the masters of closed sessions have seen end."""
        self._questions: dict[int, _Asked] = {}
        self._question_numbers = itertools.count(1)
        self._service: Any = None
        self._service_lock = threading.Lock()
        self._listener = Listener.of_task(
            self.task,
            self.addresses[self.task],
            *(me.local_name, self._security, self.peers.greet, self._grpc_path),
        )
        address = f"{host}:{self._listener.port}"
        self.addresses[self.task] = address
        self.target = f"grpc://{address}"
        self._started = False
        self._ended = threading.Event()
        _servers[address] = self
        self.peers.listen_here(address)
        if start:
            self.start()

    @property
    def server_def(self) -> Any:
        """The ``ServerDef`` of this task."""
        return self._server_def

    @property
    def cluster(self) -> ClusterSpec:
        return self._cluster

    def start(self) -> None:
        """Begins to answer; a server that runs already is left as it is."""
        if self._started:
            return
        self._started = True
        # Gradients that come and parameters that go would be mapped anew in each step.
        memory.keep_some_freed_memory()
        self._listener.start()
        threading.Thread(target=self._watch, name="runnel-health", daemon=True).start()
        logger.info("%s is at %s", self.task, self.target)

    def join(self) -> None:
        """Waits until the server is stopped: for ever, in most programs.

        A SIGTERM has the server end when its running steps have, unless the program handles it, and
        the program with it: no program expects this to return, and some go on as a worker would.
        """
        try:
            with told_to_end():
                self.serve()
        except ToldToEnd:
            logger.info("%s is ending: running steps have %g s", self.task, DRAIN_SECONDS)
            self.drain(DRAIN_SECONDS)
            self.stop()
            raise SystemExit(0) from None

    def serve(self) -> None:
        """Waits until the server is stopped.

        The process is then for this alone, and so is the memory that the machine has left.
        """
        with MemoryLimit() as limit:
            while not self._ended.wait(1.0):  # in pieces, so that an interrupt is seen
                limit.refresh()

    def drain(self, seconds: float) -> None:
        """Takes no more connections, and waits until nothing runs, but no longer than that."""
        self._listener.close()
        limit = time.monotonic() + seconds
        while time.monotonic() < limit and not self._ended.wait(0.05):
            if not self.host.runs and not any(m.running for m in self.masters.values()):
                return

    def require_running(self) -> None:
        """An error when the task is being stopped."""
        if self._ended.is_set():
            raise errors.UnavailableError(None, None, f"{self.task} was stopped")

    def stop(self) -> None:
        """Ends the task: its sessions fail elsewhere, its state is gone."""
        if self._ended.is_set():
            return
        self._ended.set()
        self.host.let_end()
        why = f"{self.task} was stopped"
        for master in list(self.masters.values()):
            master.close(why)
        self._listener.close()
        with self._service_lock:
            if self._service is not None:
                self._service.stop()
        self.peers.close(why)
        self.host.close(why)
        if self._fabric is not None:
            self._fabric.close()

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """A cluster of one task in this process."""
        return Server({"localhost": ["localhost:0"]}, "localhost", 0, config=config, start=start)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.stop()

    # Messages -------------------------------------------------------------------------------

    def _receive(self, channel: Any, message: Message, values: list[Any]) -> None:
        if isinstance(message, PartEnded):
            master = self.masters.get(message.session)
            if master is not None:
                master.ended(channel, message, values)
        elif not isinstance(message, Envelope) or not self._is_answered(channel, message):
            self.host.receive(channel, message, values)

    def _is_answered(self, channel: Any, envelope: Envelope) -> bool:
        """Takes a message that is not for the worker; False if it is for it."""
        kind = envelope.WhichOneof("content")
        if kind == "ping":
            now = time.time_ns()
            if envelope.ping.answers_ns:
                if envelope.ping.received_ns:
                    ping = envelope.ping
                    channel.clock.note(ping.answers_ns, ping.received_ns, ping.sent_ns, now)
            else:
                answer = Envelope()
                answer.ping.received_ns = now
                answer.ping.answers_ns = envelope.ping.sent_ns
                answer.ping.sent_ns = time.time_ns()
                with contextlib.suppress(errors.OpError):  # it is lost, and the reader sees it
                    channel.send(answer, wait=False)
        elif kind == "question":
            threading.Thread(
                target=self._answer, args=(channel, envelope.question), daemon=True
            ).start()
        elif kind == "answer":
            asked = self._questions.pop(envelope.answer.number, None)
            if asked is not None:
                if envelope.answer.HasField("failure"):
                    asked.answer.set_exception(wire.error_of(envelope.answer.failure))
                else:
                    asked.answer.set_result(envelope.answer.content)
        else:
            return False
        return True

    def _answer(self, channel: Any, question: Question) -> None:
        envelope = Envelope()
        answer = envelope.answer
        answer.number = question.number
        try:
            if question.about == "ready":
                pass  # what was said before on the same channel has been done
            elif question.about == "reset":
                self.host.state.clear(list(question.names) or None)
            elif question.about == "status":
                answer.content = status_of(self).encode()
            else:
                raise errors.UnimplementedError(
                    None, None, f"{self.task} does not understand {question.about!r}"
                )
        except Exception as error:  # noqa: BLE001 (told to who asked)
            answer.failure.CopyFrom(wire.failure_of(error, self.task))
        with contextlib.suppress(errors.OpError):
            channel.send(envelope)

    def question(self, channel: Any, about: str, names: Sequence[str] = ()) -> _Asked:
        """Asks another task something; :meth:`answer_of` gives the answer."""
        number = next(self._question_numbers)
        asked = _Asked(number, channel)
        self._questions[number] = asked
        envelope = Envelope()
        envelope.question.CopyFrom(Question(number=number, about=about, names=list(names)))
        try:
            channel.send(envelope)
        except BaseException:
            self._questions.pop(number, None)
            raise
        return asked

    def answer_of(self, asked: _Asked, seconds: float = _ANSWER_SECONDS) -> bytes:
        """What another task has answered; waits for it."""
        try:
            return asked.answer.result(seconds)
        except TimeoutError:
            raise errors.DeadlineExceededError(
                None, None, f"{asked.channel.task} has not answered for {seconds:g} s"
            ) from None
        finally:
            self._questions.pop(asked.number, None)

    def _ship(
        self,
        task: str,
        address: str,
        message: Message,
        values: list[Any],
        wait: bool,
        dials: bool = True,
        given_up: GivenUp | None = None,
    ) -> None:
        def require_wanted() -> None:
            why = None if given_up is None else given_up()
            if why is not None:
                raise why

        channel = self.peers.known(task)
        if channel is None:
            if not dials:
                raise errors.UnavailableError(None, None, f"{task} is not connected")
            known = self.addresses.get(task, address)
            patience = self.peers.deadline
            channel = self.peers.channel(task, known or address, patience, require_wanted)
        channel.send(message, values, wait, given_up)

    def _lost(self, channel: Any, error: Exception) -> None:
        for number, asked in list(self._questions.items()):
            if asked.channel is channel and self._questions.pop(number, None) is not None:
                asked.answer.set_exception(error)
        for master in list(self.masters.values()):
            master.lost(channel, error)
        other = self.peers.known(channel.task)
        is_last = other is None or other.incarnation != channel.incarnation
        self.host.lost(channel, f"{channel.task} is lost", str(error) if is_last else "")

    def _watch(self) -> None:
        interval = self.peers.deadline / 8
        ended, idle_since = 0, None
        while not self._ended.wait(interval):
            self.peers.tick()
            now = time.monotonic()
            if ended != self.host.ended_parts:
                ended, idle_since = self.host.ended_parts, now
            elif idle_since is not None and now - idle_since >= memory.IDLE_SECONDS:
                idle_since = None  # once, until something runs again
                memory.give_back_freed_memory()
            service = self._service
            if service is not None:
                service.close_forsaken()

    # Clients --------------------------------------------------------------------------------

    def _grpc_path(self) -> str:
        """Starts what answers clients of other processes; the path of its local socket."""
        from runnel.distributed.service import ClientService

        with self._service_lock:
            if self._ended.is_set():  # who ends the service will not look again
                raise ConnectionAbortedError(f"{self.task} was stopped")
            if self._service is None:
                self._service = ClientService(self, self._security)
            return self._service.path


def server_at(address: str) -> Server | None:
    """The server of this process at an address, if it is one of its."""
    host, port = split_address(address)
    found = _servers.get(f"{host}:{port}")
    if found is None and is_loopback(host):
        for other, server in list(_servers.items()):
            if split_address(other)[1] == port and is_loopback(split_address(other)[0]):
                return server
    return found


def _definition(
    given: Any, job_name: str | None, task_index: int | None, protocol: str | None, config: Any
) -> Any:
    """The ``ServerDef`` that TensorFlow's arguments mean."""
    definition = ServerDef()
    if isinstance(given, ServerDef):
        definition.CopyFrom(given)
    else:
        definition.cluster.CopyFrom(ClusterSpec(given).as_cluster_def())
    if job_name is not None:
        definition.job_name = job_name
    if task_index is not None:
        definition.task_index = task_index
    definition.protocol = protocol or definition.protocol or "grpc"
    if config is not None:
        definition.default_session_config.MergeFrom(config)
    if definition.protocol != "grpc":
        raise errors.NotFoundError(
            None,
            None,
            f"There is no protocol {definition.protocol!r}; 'grpc' chooses the fastest transport "
            "for each pair of tasks",
        )
    cluster = ClusterSpec(definition.cluster)
    if not definition.job_name:
        if len(cluster.jobs) != 1:
            raise ValueError(f"job_name must be one of the cluster's jobs: {cluster.jobs}")
        definition.job_name = cluster.jobs[0]
    cluster.task_address(definition.job_name, definition.task_index)
    return definition


def _devices_of(task: str, config: Any) -> list[Any]:
    local = session_devices(config.device_count, config.gpu_options.visible_device_list)
    return [replace(device, name=device.name.replace(LOCAL_TASK, task)) for device in local]


def _leader(tasks: Iterable[str]) -> str:
    """The task that forms the groups of collectives: the first worker, in most clusters."""
    tasks = list(tasks)
    for job in ("chief", "worker"):
        for task in tasks:
            if parsed_device(task).job == job:
                return task
    return tasks[0]
