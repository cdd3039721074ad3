"""Collectives through XLA between processes: Gloo here, as there are no GPUs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import runnel as tf
from runnel.distributed.security import Security
from runnel.distributed.xla_fabric import joined
from tests.distributed.clusters import free_addresses
from tests.distributed.xla_member import read, written

MERGES = {"Add": np.add, "Mul": np.multiply, "Min": np.minimum, "Max": np.maximum}


class Member:
    """A worker in a process of its own, which must not begin alone."""

    def __init__(self, addresses: list[str], index: int, **environment: str) -> None:
        command = [sys.executable, "-m", "tests.distributed.xla_member"]
        self.process = subprocess.Popen(
            [*command, json.dumps({"worker": addresses}), str(index)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **environment},
            text=True,
        )

    def line(self) -> str:
        """What it says next; Gloo writes lines of its own."""
        assert self.process.stdout is not None
        while (line := self.process.stdout.readline()).startswith("[Gloo]"):
            pass
        return line.strip()

    def tell(self, *calls: dict[str, Any], **more: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"calls": calls, **more}) + "\n")
        self.process.stdin.flush()

    def values(self) -> list[np.ndarray]:
        told = json.loads(self.line())
        assert "error" not in told, told["error"]
        return [read(value) for value in told["values"]]

    def error(self) -> list[str]:
        return json.loads(self.line())["error"]

    def end(self) -> None:
        with self.process:
            self.process.kill()


@pytest.fixture(scope="module")
def members():
    addresses = free_addresses(2)
    found = [Member(addresses, index) for index in range(2)]
    try:
        assert [member.line() for member in found] == ["ready", "ready"]
        yield found
    finally:
        for member in found:
            member.end()


def drawn(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).normal(size=shape) * 9
    return values.astype(tf.as_dtype(dtype).as_numpy_dtype)


def collective(what: str, value: np.ndarray, **more: Any) -> dict[str, Any]:
    return {"what": what, "value": written(value), "communication_hint": "nccl", **more}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bfloat16"])
def test_reductions_are_numpys_and_equal_bit_for_bit(members, dtype):
    kinds = [((3, 2), merge, "Id") for merge in MERGES] + [((3, 2), "Max", "Div")]
    kinds += [(shape, "Add", "Div") for shape in ((3, 2), (), (0, 4), (700, 9))]
    cases = [
        ([drawn(dtype, shape, seed) for seed in range(2)], merge, final)
        for shape, merge, final in kinds
    ]
    for index, member in enumerate(members):
        member.tell(
            *[
                collective("all_reduce", pair[index], merge_op=merge, final_op=final)
                for pair, merge, final in cases
            ]
        )
    found = [member.values() for member in members]
    for (pair, merge, final), first, second in zip(cases, *found, strict=True):
        wanted = np.asarray(MERGES[merge](*pair))
        if final == "Div":
            wanted = (np.trunc(wanted / 2) if dtype == "int32" else wanted / 2).astype(wanted.dtype)
        np.testing.assert_array_equal(first, wanted, strict=True)
        assert first.tobytes() == second.tobytes()


def test_a_nan_is_not_lost(members):
    for value, member in zip(([np.nan, 1.0], [2.0, 1.0]), members, strict=True):
        member.tell(
            *[collective("all_reduce", np.array(value), merge_op=merge) for merge in MERGES]
        )
    for member in members:
        for value in member.values():
            assert np.isnan(value).tolist() == [True, False]


@pytest.mark.parametrize("rows", [(2, 2), (3, 1), (0, 2), (0, 0)])
def test_values_are_gathered_though_members_have_different_numbers_of_rows(members, rows):
    parts = [drawn("float64", (count, 3), count) for count in rows]
    for part, member in zip(parts, members, strict=True):
        member.tell(collective("all_gather", part, uneven=True))
    for member in members:
        np.testing.assert_array_equal(member.values()[0], np.concatenate(parts), strict=True)


@pytest.mark.parametrize("dtype", ["bool", "float16", "float64", "int64"])
def test_a_broadcast_gives_the_bits_of_the_sender(members, dtype):
    value = drawn(dtype, (3, 1), 3)
    value[0] = -0.0
    receive = {"what": "broadcast_recv", "shape": [3, 1], "dtype": dtype}
    members[0].tell({**receive, "communication_hint": "nccl"})
    members[1].tell(collective("broadcast_send", value))
    for member in members:
        [found] = member.values()
        assert (found.dtype, found.shape) == (value.dtype, value.shape)
        assert found.tobytes() == value.tobytes()


def test_members_that_begin_in_different_orders_do_not_wait_for_each_other(members):
    keys = list(range(100, 108))
    for member, order in zip(members, (keys, keys[::-1]), strict=True):
        member.tell(
            *[
                collective(
                    "all_reduce", np.full(key, float(key)), group_key=key % 3, instance_key=key
                )
                for key in order
            ],
            times=5,
        )
    assert [member.line() for member in members] == ["under way", "under way"]
    for member, order in zip(members, (keys, keys[::-1]), strict=True):
        for key, value in zip(order, member.values(), strict=True):
            np.testing.assert_array_equal(value, np.full(key, 2.0 * key))


def test_a_step_that_is_given_up_does_no_harm(members):
    call = collective("all_reduce", np.ones(3), group_key=20)
    for member in members:
        member.tell(call)
    for member in members:
        assert member.values()[0].tolist() == [2.0, 2.0, 2.0]
    members[0].tell(call, milliseconds=200)
    assert members[0].error()[0] == "DeadlineExceededError"
    for member in members:
        member.tell(call)
    for member in members:
        assert member.values()[0].tolist() == [2.0, 2.0, 2.0]


def test_values_that_do_not_fit_fail_at_both_members_and_nothing_is_stuck(members):
    for size, member in zip((3, 4), members, strict=True):
        member.tell(collective("all_reduce", np.ones(size), group_key=21))
    errors = [member.error() for member in members]
    assert any(
        kind == "InvalidArgumentError" and "float64 [3]" in what and "float64 [4]" in what
        for kind, what in errors
    )
    for member in members:
        member.tell(collective("all_reduce", np.ones(2), group_key=21))
    for member in members:
        assert member.values()[0].tolist() == [2.0, 2.0]


def test_the_others_survive_a_lost_member_and_go_on_without_xla():
    addresses = free_addresses(2)
    gone, left = 0, 1  # the first task is that at which the processes have met
    members = [Member(addresses, index) for index in range(2)]
    try:
        assert [member.line() for member in members] == ["ready", "ready"]
        strict = collective("all_reduce", np.ones(1000))
        for member in members:
            member.tell(strict, times=1_000_000)
        assert [member.line() for member in members] == ["under way", "under way"]
        members[gone].process.terminate()
        assert members[gone].process.wait(60) == -signal.SIGTERM
        kind, what = members[left].error()
        assert kind in ("UnavailableError", "AbortedError")
        assert f"/job:worker/replica:0/task:{gone} is lost" in what
        members[gone].end()
        members[gone] = Member(addresses, gone)
        assert members[gone].line() == "ready", "it does not wait for who runs already"
        for member in members:
            member.tell(strict)
        for member in members:
            kind, what = member.error()
            assert kind in ("FailedPreconditionError", "AbortedError")
            assert "communication_hint='nccl' asks for XLA's collectives" in what
        for member in members:
            member.tell({**strict, "communication_hint": "auto"})
        for member in members:
            assert member.values()[0].tolist() == [2.0] * 1000
    finally:
        for member in members:
            member.end()


def test_a_member_that_stops_in_the_middle_holds_nobody():
    addresses = free_addresses(2)
    members = [Member(addresses, index, RUNNEL_HEARTBEAT_SECONDS="5") for index in range(2)]
    try:
        assert [member.line() for member in members] == ["ready", "ready"]
        for member in members:
            member.tell(collective("all_reduce", np.ones(1_000_000)), times=1_000_000)
        assert [member.line() for member in members] == ["under way", "under way"]
        members[1].process.send_signal(signal.SIGSTOP)
        kind, what = members[0].error()
        assert kind == "UnavailableError"
        assert "/job:worker/replica:0/task:1 is lost" in what
        assert members[0].process.stdin is not None
        members[0].process.stdin.close()
        assert members[0].process.wait(60) == 0
    finally:
        for member in members:
            member.end()


def test_without_the_servers_option_nothing_goes_through_xla():
    with pytest.raises(ValueError, match="one of auto, ring, nccl"):
        tf.collectives.all_reduce(tf.ones([2]), 1, communication_hint="mpi")
    asked = tf.collectives.all_reduce(tf.ones([2]), 1, communication_hint="nccl", name="asked")
    with tf.Session() as sess:
        with pytest.raises(tf.errors.FailedPreconditionError, match="collective_nccl") as caught:
            sess.run(asked)
        assert caught.value.op.name == "asked"


def test_a_server_that_comes_after_jax_has_been_used_says_so():
    import jax

    jax.devices()
    config = tf.ConfigProto()
    config.experimental.collective_nccl = True
    with pytest.raises(tf.errors.FailedPreconditionError, match="before anything is computed"):
        tf.train.Server({"worker": free_addresses(1)}, "worker", 0, config=config)


def test_connections_that_are_not_secret_must_be_allowed():
    addresses = {f"/job:worker/task:{i}": f"10.0.0.{i}:2222" for i in (1, 2)}
    security = Security(token=b"secret", certificate="cert.pem", key="key.pem")
    with pytest.raises(tf.errors.FailedPreconditionError, match="RUNNEL_INSECURE=1"):
        joined("/job:worker/task:1", "/job:worker/task:1", addresses, security, tf.ConfigProto())
