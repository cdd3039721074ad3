"""Clients of other processes: what the protocol promises them."""

from __future__ import annotations

import gc
import itertools
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import numpy as np
import pytest

import runnel as tf
from runnel.distributed import client_calls, client_session, client_values
from runnel.distributed.client_calls import Client, status
from runnel.distributed.protocol import client_pb2 as messages
from runnel.distributed.remote import RemoteBackend
from runnel.distributed.service import SERVICE, VERSION, ClientService
from runnel.distributed.session_tasks import SessionTasks
from runnel.runtime.session import session as sessions
from tests.distributed.clusters import Process, cluster_of, free_addresses, servers
from tests.sleepers import await_sleepers

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with servers(worker=1) as found:
        yield found["worker0"]


@pytest.fixture
def session(server, monkeypatch) -> Iterator[tf.Session]:
    """A session that reaches a server of this process as those of other processes do."""
    address = server.target.removeprefix("grpc://")
    backend = RemoteBackend(address, tf.get_default_graph(), None)
    with monkeypatch.context() as patch:
        patch.setattr(sessions, "open_backend", lambda *_: backend)
        made = tf.Session(server.target)
    with made:
        yield made


def served(server: Any) -> Any:
    """The only session that clients have there."""
    (found,) = server._service._sessions.values()
    return found


def channel_to(server: Any, **options: int) -> grpc.Channel:
    return grpc.insecure_channel(
        server.target.removeprefix("grpc://"),
        [(f"grpc.{key}", value) for key, value in options.items()],
    )


def call(channel: grpc.Channel, name: str, request: Any, reply: Any, **more: Any) -> Any:
    method = channel.unary_unary(
        f"/{SERVICE}/{name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=reply.FromString,
    )
    return method(request, **more)


def attach(channel: grpc.Channel, session: int) -> Any:
    method = channel.unary_stream(
        f"/{SERVICE}/Attach",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=messages.Empty.FromString,
    )
    return method(messages.SessionRequest(session=session))


def test_a_partial_run_keeps_its_values_with_the_task(session, server):
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    v = tf.Variable(1.0, name="counts_parts")
    doubled = tf.assign_add(v, a) * 2
    result = doubled + b
    done = tf.group(tf.assign_add(v, b), name="done")
    session.run(v.initializer)
    handle = session.partial_run_setup([doubled, result, done], [a, b])
    assert session.partial_run(handle, doubled, {a: 2.0}) == 6.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="already been fetched"):
        session.partial_run(handle, doubled)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be fed"):
        session.partial_run(handle, result)
    assert session.partial_run(handle, result, {b: 1.0}) == 7.0
    assert served(server).partial_runs
    assert session.partial_run(handle, done) is None
    assert session.run(v) == 4.0  # each operation has run once
    assert not served(server).partial_runs


def test_a_client_gets_the_graphs_of_a_step_as_the_servers_own_process_does(monkeypatch):
    with servers(ps=1, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            there = tf.multiply(tf.placeholder_with_default(2.0, []), 3.0, name="there")
        with tf.device("/job:worker/task:0"):
            here = tf.add(there, 1.0, name="here")
        options = tf.RunOptions(output_partition_graphs=True)
        target = cluster["worker0"].target

        def graphs_of(sess: tf.Session) -> dict[str, Any]:
            metadata = tf.RunMetadata()
            assert sess.run(here, None, options, metadata) == 7.0
            assert sess.run(here, {there: 1.0}) == 2.0  # another step, of other graphs
            return {graph.node[0].device: graph for graph in metadata.partition_graphs}

        with tf.Session(target) as sess:
            expected = graphs_of(sess)
        address = target.removeprefix("grpc://")
        backend = RemoteBackend(address, tf.get_default_graph(), None)
        with monkeypatch.context() as patch:
            patch.setattr(sessions, "open_backend", lambda *_: backend)
            sess = tf.Session(target)
        with sess:
            found = graphs_of(sess)
            assert len(found) == 2 and found.keys() == expected.keys()
            for device, graph in found.items():
                nodes = [(n.name, n.op, list(n.input)) for n in graph.node]
                assert nodes == [(n.name, n.op, list(n.input)) for n in expected[device].node]
            unknown = messages.PartitionGraphsRequest(session=backend.session, callable=99)
            with pytest.raises(tf.errors.InvalidArgumentError, match="no such callable"):
                backend.call("PartitionGraphs", unknown)


def test_a_plan_that_the_client_forgets_is_released_by_the_task(session, server, monkeypatch):
    monkeypatch.setattr(sessions, "_MAX_PREPARED", 2)
    for number in range(6):
        assert session.run(tf.constant(number)) == number
        gc.collect()
    assert len(served(server).callables) <= 3


def test_an_error_has_the_line_that_made_the_operation_and_a_bounded_text(session, server):
    failing = tf.Assert(tf.constant(False), [tf.constant("\u00e9" * 100_000)], name="long")
    with pytest.raises(tf.errors.InvalidArgumentError, match="bytes in all") as raised:
        session.run(failing)
    assert raised.value.op is failing
    there = served(server).graph.get_operation_by_name(failing.name)
    assert there.creation_site() == failing.creation_site()


def test_the_status_tells_the_line_that_a_step_waits_at(session, server):
    queue = tf.FIFOQueue(1, tf.int32, [()], shared_name="waits")
    element = queue.dequeue()
    thread = threading.Thread(target=lambda: pytest.raises(tf.errors.OpError, session.run, element))
    thread.start()
    assert await_sleepers(served(server).session._steps, 1, 60)
    told = json.loads(status(server.target.removeprefix("grpc://")))
    lines = [w["line"] for s in told["sessions"] for r in s["steps"] for w in r["waits_for"]]
    lines += [w["line"] for m in told["masters"] for r in m["steps"] for w in r["waits_for"]]
    session.close()
    thread.join(60)
    assert any(__file__ in line for line in lines), told


def test_a_quiet_client_may_ask_often_whether_the_server_lives(server):
    quick = {"keepalive_time_ms": 1000, "http2.max_pings_without_data": 0}
    with channel_to(server, **quick) as channel:
        request = messages.CreateSessionRequest(version=VERSION)
        made = call(channel, "CreateSession", request, messages.CreateSessionReply)
        stream = attach(channel, made.session)
        next(stream)
        with pytest.raises(grpc.FutureTimeoutError):
            stream.result(timeout=4)  # gRPC gives up at the third ping
        stream.cancel()


def test_closing_a_session_ends_the_step_that_is_being_prepared(monkeypatch):
    """The task there waits for one that is not there; the client's lock is held meanwhile."""
    spec = cluster_of(ps=1, worker=1)
    waits = threading.Event()
    meet = SessionTasks.meet

    def meet_noted(tasks: SessionTasks, names: Any) -> None:
        waits.set()
        meet(tasks, names)

    monkeypatch.setattr(SessionTasks, "meet", meet_noted)
    worker = tf.train.Server(spec, "worker", 0)
    try:
        with tf.device("/job:ps/task:0"):
            there = tf.constant(1.0) + tf.placeholder_with_default(1.0, [])
        backend = RemoteBackend(spec["worker"][0], tf.get_default_graph(), None)
        monkeypatch.setattr(sessions, "open_backend", lambda *_: backend)
        sess = tf.Session(worker.target)
        with ThreadPoolExecutor(2) as pool:
            step = pool.submit(sess.run, there)
            assert waits.wait(60)
            closings = [pool.submit(sess.close) for _ in range(2)]  # the second finds it closed
            closings[0].result(60)
            with pytest.raises((tf.errors.CancelledError, RuntimeError)):
                step.result(60)
            closings[1].result(60)
        with pytest.raises(tf.errors.CancelledError, match="closed"):
            backend.list_devices()
    finally:
        worker.stop()


_ENDS = """
import json, sys, threading
import runnel as tf
server = tf.train.Server(json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
print("ready", flush=True)
while not server.masters or not any(m.running for m in list(server.masters.values())):
    threading.Event().wait(0.01)
"""


def test_a_task_ends_though_a_client_is_there_whose_step_waits():
    """As after Ctrl-C: the program has left ``join`` and stops nothing."""
    spec = cluster_of(worker=1)
    task = Process(spec, "worker", 0, program=_ENDS)
    try:
        never = tf.FIFOQueue(1, tf.float32, [()]).dequeue()
        sess = tf.Session(f"grpc://{spec['worker'][0]}")
        with pytest.raises(tf.errors.OpError):
            sess.run(never)
        assert task.wait() == 0
        sess.close()
    finally:
        task.kill()


def test_a_session_that_is_over_cannot_be_attached_to(server):
    client = Client(server.target.removeprefix("grpc://"))
    try:
        with pytest.raises(tf.errors.AbortedError, match="does not know this session"):
            client.attach(7)
    finally:
        client.close()


def test_a_session_whose_client_has_given_up_waiting_is_not_kept(monkeypatch):
    calls: list[Any] = []
    create, meet = ClientService._create, SessionTasks.meet_reachable

    def create_noted(service: ClientService, request: Any, context: Any) -> Any:
        calls.append(context)
        return create(service, request, context)

    def meet_late(tasks: SessionTasks) -> None:
        looked = threading.Event()
        while calls[0].is_active():  # until the client is seen to have given up
            looked.wait(0.01)
        meet(tasks)

    monkeypatch.setattr(ClientService, "_create", create_noted)
    monkeypatch.setattr(SessionTasks, "meet_reachable", meet_late)
    first = tf.train.Server(cluster_of(worker=1), "worker", 0)
    try:
        first._grpc_path()
        service = first._service
        created = threading.Event()
        end = service._end

        def noted(number: int) -> None:
            end(number)
            created.set()

        service._end = noted
        with channel_to(first) as channel:
            request = messages.CreateSessionRequest(version=VERSION)
            with pytest.raises(grpc.RpcError) as raised:
                call(channel, "CreateSession", request, messages.CreateSessionReply, timeout=3)
            assert raised.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
            assert created.wait(60)
        assert not service._sessions
        assert not first.masters
    finally:
        first.stop()


def test_every_call_needs_the_clusters_token(monkeypatch):
    monkeypatch.setenv("RUNNEL_CLUSTER_TOKEN", "secret")
    with servers(worker=1) as found:
        server = found["worker0"]
        with channel_to(server) as channel:
            handler_names = [
                "CreateSession", "ExtendSession", "Run", "MakeCallable", "RunCallable",
                "ReleaseCallable", "PartitionGraphs", "PartialRunSetup", "ListDevices",
                "CloseSession", "Reset", "Status",
            ]  # fmt: skip
            for metadata in ([], [("authorization", "Bearer other")]):
                for name in handler_names:
                    with pytest.raises(grpc.RpcError) as raised:
                        call(channel, name, messages.Empty(), messages.Empty, metadata=metadata)
                    assert raised.value.code() == grpc.StatusCode.UNAUTHENTICATED, name
            with pytest.raises(grpc.RpcError) as raised:
                next(attach(channel, 1))
            assert raised.value.code() == grpc.StatusCode.UNAUTHENTICATED
            metadata = [("authorization", "Bearer secret")]
            call(channel, "Status", messages.Empty(), messages.StatusReply, metadata=metadata)


def test_values_that_are_none_are_refused(server):
    malformed = [
        messages.Tensor(dtype=1, shape=[2], content=b"1234"),
        messages.Tensor(dtype=1, shape=[-1]),
        messages.Tensor(dtype=999),
        messages.Tensor(dtype=7, shape=[2], strings=[b"a"]),
        messages.Tensor(dtype=1, shape=[1] * 100, content=b"1234"),
        messages.Tensor(dtype=1, shape=[1 << 62, 4], content=b""),
    ]
    with tf.Graph().as_default() as graph, channel_to(server) as channel:
        tf.identity(tf.placeholder(tf.float32, name="x"), name="y")
        request = messages.CreateSessionRequest(
            version=VERSION, graph_def=graph.as_graph_def().SerializeToString()
        )
        made = call(channel, "CreateSession", request, messages.CreateSessionReply)
        run = messages.RunRequest(session=made.session, fetches=["y:0"])
        for value in malformed:
            run.ClearField("feeds")
            run.feeds.add(name="x:0", value=value)
            with pytest.raises(grpc.RpcError) as raised:
                call(channel, "Run", run, messages.RunReply)
            assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        run.ClearField("feeds")
        value = messages.Tensor(dtype=1, shape=[1], content=np.float32([3.0]).tobytes())
        run.feeds.add(name="x:0", value=value)
        (found,) = call(channel, "Run", run, messages.RunReply).values
        assert found == value
        closing = messages.SessionRequest(session=made.session)
        call(channel, "CloseSession", closing, messages.Empty)


def test_a_graph_or_a_configuration_that_is_none_is_refused(server):
    with channel_to(server) as channel:
        for broken in ({"graph_def": b"\xff"}, {"config": b"\xff"}):
            request = messages.CreateSessionRequest(version=VERSION, **broken)
            with pytest.raises(grpc.RpcError) as raised:
                call(channel, "CreateSession", request, messages.CreateSessionReply)
            assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        with pytest.raises(grpc.RpcError) as raised:
            request = messages.CreateSessionRequest(version=VERSION + 1)
            call(channel, "CreateSession", request, messages.CreateSessionReply)
        assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert not server._service._sessions
    assert not server.masters


def test_values_that_no_message_can_hold_are_refused_with_advice(session, monkeypatch):
    monkeypatch.setattr(client_values, "_MOST_BYTES", 1 << 20)  # of 2 GiB
    x = tf.placeholder(tf.uint8, [None])
    with pytest.raises(tf.errors.ResourceExhaustedError, match="less than 2 GiB"):
        session.run(tf.size(x), {x: np.ones(1 << 20, np.uint8)})
    halves = [tf.fill([1 << 19], tf.constant(1, tf.uint8)) for _ in range(2)]
    with pytest.raises(tf.errors.ResourceExhaustedError, match="less than 2 GiB.*job:worker"):
        session.run(halves)
    assert len(session.run(halves[0])) == 1 << 19


@pytest.mark.parametrize("text", [b"x" * (1 << 19), "ä" * (1 << 18)])
def test_strings_count_with_their_characters(session, monkeypatch, text):
    monkeypatch.setattr(client_values, "_MOST_BYTES", 1 << 20)
    x = tf.placeholder(tf.string, [None])
    assert len(session.run(tf.identity(x), {x: [text]})) == 1
    with pytest.raises(tf.errors.ResourceExhaustedError, match="less than 2 GiB"):
        session.run(tf.identity(x), {x: [text, text]})


def test_a_session_that_is_unknown_cannot_be_attached(server):
    with channel_to(server) as channel, pytest.raises(grpc.RpcError) as raised:
        next(attach(channel, 12345))
    assert raised.value.code() == grpc.StatusCode.ABORTED


def test_an_address_where_nothing_answers_is_named(monkeypatch):
    monkeypatch.setattr(client_calls, "_CONNECT_SECONDS", 0.5)
    (address,) = free_addresses(1)
    with pytest.raises(tf.errors.UnavailableError, match=address):
        tf.Session(f"grpc://{address}")


def test_a_session_that_nobody_attaches_is_closed_when_it_is_not_used(monkeypatch):
    """Its client has died before the task could see its end."""
    monkeypatch.setenv("RUNNEL_HEARTBEAT_SECONDS", "0.2")  # it is looked for often
    request = messages.CreateSessionRequest(version=VERSION)
    with servers(worker=1) as cluster, channel_to(cluster["worker0"]) as channel:
        server = cluster["worker0"]
        made = [
            call(channel, "CreateSession", request, messages.CreateSessionReply).session
            for _ in range(2)
        ]
        watched = attach(channel, made[0])
        next(watched)
        assert set(server._service._sessions) == set(made)
        monkeypatch.setattr(client_session, "UNATTACHED_SECONDS", 0.0)
        waiting = threading.Event()
        for _ in range(1500):
            if len(server.masters) == 1:
                break
            waiting.wait(0.02)
        assert set(server._service._sessions) == {made[0]}
        watched.cancel()


class _Call:
    """A call of gRPC's, as far as it is looked at."""

    def __init__(self, is_there: bool) -> None:
        self._is_there = is_there

    def add_callback(self, callback: Any) -> bool:
        return self._is_there


@pytest.mark.parametrize("is_there", [True, False])
def test_a_session_whose_client_dies_while_it_attaches_is_closed(server, is_there):
    """gRPC asks for nothing more of a call whose client has gone: it drops the answers."""
    request = messages.CreateSessionRequest(version=VERSION)
    with channel_to(server) as channel:
        made = call(channel, "CreateSession", request, messages.CreateSessionReply).session
        asked = messages.SessionRequest(session=made)
        answers = server._service._attach(asked, _Call(is_there))
        assert len(list(itertools.islice(answers, 1))) == int(is_there)
        assert (made in server._service._sessions) == is_there
        answers.close()
        assert made not in server._service._sessions
