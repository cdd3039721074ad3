"""Lets groups exchange through XLA's collectives: Gloo between CPUs, NCCL between GPUs.

The processes of a cluster are joined once, when their servers are made, before XLA starts. They
find each other through JAX's distributed service, which ends every process when one of them has
died. So they leave it as soon as they are connected: their connections do not need it.

In each process one thread enters the exchanges, in the order that the leader has decided. When a
process dies, the others' exchanges fail, and processes cannot be joined again: from then on, groups
that may use the tasks' own connections do so.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from runnel.distributed.open_sockets import hang_up, open_sockets
from runnel.distributed.security import Security, is_loopback, split_address
from runnel.distributed.xla_meeting import XlaMeeting
from runnel.graph.device import parsed_device
from runnel.graph.errors import FailedPreconditionError, UnavailableError
from runnel.queues.batches import taken_over
from runnel.queues.joint_calls import JointPlan, Told
from runnel.runtime.devices.devices import kind_of
from runnel.wide_types import with_wide_types

logger = logging.getLogger("runnel")

MEETING_SECONDS = 300.0
"""How long a task waits for the others, unless ``operation_timeout_in_ms`` says otherwise."""
_JOINING_SECONDS = 60
_CAUSE_SECONDS = 1.0
"""An exchange fails before the loss of a task is noticed, which says more."""
_OUTSIDE = ("ps", "evaluator")


def joined(
    task: str, leader: str, addresses: dict[str, str], security: Security, config: Any
) -> XlaFabric | None:
    """Joins this process with those of the other tasks; waits for them.

    Jobs ``ps`` and ``evaluator`` are left out. None where this task has no part in it, or comes
    when the others run already.
    """
    tasks = [other for other in addresses if parsed_device(other).job not in _OUTSIDE]
    if task not in tasks:
        return None
    tasks.sort(key=lambda other: other != leader)
    _require_possible([addresses[other] for other in tasks], security)
    seconds = config.operation_timeout_in_ms / 1000 or MEETING_SECONDS
    with XlaMeeting(task, tasks, addresses, security) as meeting:
        agreed = meeting.agree(seconds)
        if agreed is None:
            logger.warning(
                "XLA does not join %s with the other tasks, which run already: collectives go over "
                "their own connections. Start all tasks anew to have them joined",
                task,
            )
            return None
        devices, sockets = _connected(agreed.address, len(tasks), tasks.index(task))
    return XlaFabric(tasks, agreed.name, devices, sockets)


def _require_possible(addresses: Sequence[str], security: Security) -> None:
    if not security.insecure and not all(is_loopback(split_address(a)[0]) for a in addresses):
        raise FailedPreconditionError(
            None,
            None,
            "experimental.collective_nccl asks for XLA's collectives, whose connections are "
            "neither encrypted nor ask for a token. RUNNEL_INSECURE=1 allows them, for a network "
            "that nobody else is on; without the option, tasks use their own connections",
        )
    import jax

    try:
        # JAX has no question for it; this is refused either way, without any effect.
        jax.distributed.initialize("localhost:1", 1, 1, cluster_detection_method="deactivate")
    except ValueError:
        pass
    except RuntimeError as error:
        raise FailedPreconditionError(
            None,
            None,
            "experimental.collective_nccl asks for XLA's collectives, but JAX has been used in "
            "this process already. Make the Server before anything is computed, one for a process",
        ) from error


def _connected(
    coordinator: str, count: int, index: int
) -> tuple[dict[str, list[Any]], dict[int, str]]:
    """The first device of each process by kind, after all have exchanged something.

    Also the sockets over which they have.
    """
    import jax

    host, port = split_address(coordinator)
    # It would take SIGTERM for itself and keep it, so a task could not be told to end.
    preempted = jax.config.jax_enable_preemption_service  # type: ignore[attr-defined]
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            coordinator,
            count,
            index,
            cluster_detection_method="deactivate",
            initialization_timeout=_JOINING_SECONDS,
            coordinator_bind_address=f"127.0.0.1:{port}" if is_loopback(host) else None,
        )
    finally:
        jax.config.update("jax_enable_preemption_service", preempted)
    found: dict[str, list[Any]] = {}
    before = open_sockets()
    for platform in dict.fromkeys((jax.default_backend(), "cpu")):
        try:
            devices = jax.devices(platform)
        except RuntimeError:  # JAX_PLATFORMS leaves it out
            continue
        first = {device.process_index: device for device in reversed(devices)}
        if len(first) == count:
            chosen = found[kind_of(platform)] = [first[i] for i in range(count)]
            for exchange in ("sum", "all"):  # connects them
                _exchange(tuple(chosen), exchange, np.zeros(1, np.float32))
    sockets = {fd: name for fd, name in open_sockets().items() if before.get(fd) != name}
    jax.distributed.shutdown()
    return found, sockets


class XlaFabric:
    """The processes of ``tasks``, joined by XLA."""

    def __init__(
        self,
        tasks: Sequence[str],
        name: str,
        devices: dict[str, list[Any]],
        sockets: dict[int, str],
    ) -> None:
        """``devices``: by kind, that of each process; ``name`` is equal at all of them."""
        self.tasks = list(tasks)
        self.broken = ""
        self._name = name
        self._devices = devices
        self._sockets = sockets
        self._failed = threading.Event()
        # Guards what makes the fabric broken: the first cause is kept.
        self._lock = threading.Lock()
        self._launched: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="runnel-xla", daemon=True).start()

    def place_of(self, device: str) -> str:
        """Tells the first device of a kind; others are not connected."""
        kind, index = device.split(":")
        mine = [d for d in self._devices.get(kind, ()) if d.process_index == _process()]
        return f"{self._name}/{kind}/{mine[0].id}" if mine and index == "0" else ""

    def is_best(self, place: str) -> bool:
        """True for accelerators, which values need not leave.

        Between CPUs the tasks' own connections, with memory that processes share, take less time.
        """
        return "/CPU/" not in place

    def held(self, value: Any) -> Any:
        """A value on an accelerator stays there, as a copy: it may be that of a variable."""
        if hasattr(value, "devices") and next(iter(value.devices())).platform != "cpu":
            import jax

            device = next(iter(value.devices()))
            return with_wide_types(partial(jax.device_put, value, device, may_alias=False))
        return np.asarray(taken_over(value))

    def fail(self, why: str) -> None:
        """Nothing goes through it any more: an exchange that waits for a process fails."""
        hang_up(self._sockets)
        with self._lock:
            self.broken = self.broken or (
                f"{why}. XLA had joined its process with others; it cannot be replaced before "
                "all of them are started anew. Until then groups use the tasks' own connections, "
                "unless communication_hint='nccl' forbids it"
            )
        self._failed.set()

    def close(self) -> None:
        """Ends the thread."""
        self.fail("the server was stopped")
        self._launched.put(None)

    def launch(
        self, places: Sequence[str], rank: int, plan: JointPlan, value: Any, told: Told
    ) -> None:
        """Carries out a plan after all that were launched before."""
        kind = places[rank].split("/")[1]
        by_id = {str(device.id): device for device in self._devices[kind]}
        devices = tuple(by_id[place.rpartition("/")[2]] for place in places)
        self._launched.put(lambda: self._carry_out(devices, rank, plan, value, told))

    def _work(self) -> None:
        while (launched := self._launched.get()) is not None:
            launched()

    def _carry_out(
        self, devices: tuple[Any, ...], rank: int, plan: JointPlan, value: Any, told: Told
    ) -> None:
        result: Any = None
        if not self.broken:
            try:
                result = _KINDS[plan.kind](devices, rank, plan, value)
            except Exception as error:  # noqa: BLE001 (all members are told)
                if not self._failed.wait(_CAUSE_SECONDS):
                    self.fail(f"XLA says: {str(error).splitlines()[0]}")
        broken = self.broken if result is None else ""
        told(
            result,
            UnavailableError(None, None, f"A collective has failed: {broken}") if broken else None,
        )


def _process() -> int:
    import jax

    return jax.process_index()


# What is exchanged ------------------------------------------------------------------------------


def _reduce(devices: tuple[Any, ...], rank: int, plan: JointPlan, value: Any) -> Any:
    if value.size == 0:
        return value
    if plan.merge == "Add":
        what = "mean" if plan.divides else "sum"
    else:
        what = f"{plan.merge}/mean" if plan.divides else plan.merge
    return _here(_exchange(devices, what, value.reshape(-1))).reshape(value.shape)


def _gather(devices: tuple[Any, ...], rank: int, plan: JointPlan, value: Any) -> Any:
    rest = plan.shapes[0][1:]
    rows = [shape[0] for shape in plan.shapes]
    most, width = max(rows), math.prod(rest)
    if most * width == 0:
        return np.empty((sum(rows), *rest), plan.dtype)
    sent = value.reshape(-1)
    if rows[rank] < most:  # all must bring the same size
        sent = np.concatenate([np.asarray(sent), np.zeros((most - rows[rank]) * width, plan.dtype)])
    found = _here(_exchange(devices, "all", sent)).reshape(len(rows) * most, *rest)
    if min(rows) == most:
        return found
    found = np.asarray(found)
    return np.concatenate([found[i * most : i * most + count] for i, count in enumerate(rows)])


def _broadcast(devices: tuple[Any, ...], rank: int, plan: JointPlan, value: Any) -> Any:
    [shape] = plan.shapes
    size = math.prod(shape) * plan.dtype.itemsize
    if size == 0:
        return np.empty(shape, plan.dtype)
    # The others add zeros to the bits, which changes none.
    unit = np.dtype(np.uint32 if size % 4 == 0 else np.uint8)
    bits = np.zeros(size // unit.itemsize, unit)
    if rank == plan.root:
        bits = np.ascontiguousarray(value).reshape(-1).view(unit)
    found = np.asarray(_exchange(devices, "sum", bits))
    return found.view(plan.dtype).reshape(shape)


_KINDS = {"reduce": _reduce, "gather": _gather, "broadcast": _broadcast}


def _here(found: Any) -> Any:
    """A result where the next operation takes it: on a CPU as an array of NumPy's."""
    return np.asarray(found) if next(iter(found.devices())).platform == "cpu" else found


def _exchange(devices: tuple[Any, ...], what: str, sent: Any) -> Any:
    """What all processes make of what each has sent, at this one; waits for it."""
    import jax

    with jax.enable_x64(True):
        function, sharding = _compiled(devices, what)
        [mine] = [device for device in devices if device.process_index == jax.process_index()]
        part = jax.device_put(sent, mine)
        shape = (len(devices) * len(sent),)
        whole = jax.make_array_from_single_device_arrays(shape, sharding, [part])
        return function(whole).addressable_data(0).block_until_ready()


@lru_cache(maxsize=64)
def _compiled(devices: tuple[Any, ...], what: str) -> tuple[Any, Any]:
    """A function of an array of which each device has a part, and how it is divided."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(devices), ("member",))
    parts, whole = PartitionSpec("member"), PartitionSpec()

    # Replication is not inferred through all_gather.
    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=parts, out_specs=whole, check_vma=False)
    def function(part: Any) -> Any:
        if what == "all":
            return jax.lax.all_gather(part, "member", tiled=True)
        if what in ("sum", "mean"):
            found = jax.lax.psum(part, "member")
        else:
            # XLA has no product, and its least and greatest are not those of NumPy with NaN.
            merges: dict[str, Any] = {
                "Mul": jax.numpy.prod,
                "Min": jax.numpy.min,
                "Max": jax.numpy.max,
            }
            merge = merges[what.partition("/")[0]]
            found = merge(jax.lax.all_gather(part, "member"), axis=0).astype(part.dtype)
        if what.endswith("mean"):
            found = jax.lax.div(found, jax.numpy.full_like(found, len(devices)))
        return found

    return function, NamedSharding(mesh, parts)
