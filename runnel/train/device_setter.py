"""``tf.train.replica_device_setter``: variables on parameter servers, the rest on the worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.distributed.cluster_spec import ClusterSpec
from runnel.graph.device import DeviceSpec

STANDARD_PS_OPS = (
    "Variable",
    "VariableV2",
    "AutoReloadVariable",
    "MutableHashTable",
    "MutableHashTableV2",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "VarHandleOp",
    "BoostedTreesEnsembleResourceHandleOp",
    "BoostedTreesQuantileStreamResourceHandleOp",
    "ResourceConditionalAccumulator",
    "DecisionTreeResource",
)
"""Types of operations that a parameter server holds."""


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Sequence[str] | None = None,
    ps_strategy: Callable[[Any], int] | None = None,
) -> Callable[[Any], str] | None:
    """A function for ``tf.device``: variables go to ``ps_device``, the rest to ``worker_device``.

    The parameter servers take turns, or ``ps_strategy(op)`` gives the number of one. How many there
    are is ``ps_tasks``, or what ``cluster`` says; without any, the result is None, which changes no
    device.

    Example:
        >>> with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        ...     w = tf.get_variable("w", [784, 10])
        ...     y = tf.matmul(x, w)
    """
    if cluster is not None:
        spec = ClusterSpec(cluster)
        job = DeviceSpec.from_string(ps_device).job
        if job not in spec.jobs:
            return None
        assert job is not None
        ps_tasks = spec.num_tasks(job)
    if ps_tasks == 0:
        return None
    if ps_strategy is None:
        ps_strategy = _RoundRobin(ps_tasks)
    elif not callable(ps_strategy):
        raise TypeError(f"ps_strategy must be callable, not {ps_strategy!r}")
    chosen = STANDARD_PS_OPS if ps_ops is None else tuple(ps_ops)
    return _ReplicaDevices(ps_device, worker_device, merge_devices, chosen, ps_strategy)


class _RoundRobin:
    """Parameter servers in turn."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._next = 0

    def __call__(self, op: Any) -> int:
        task = self._next
        self._next = (task + 1) % self._count
        return task


class _ReplicaDevices:
    """The device function."""

    def __init__(
        self,
        ps_device: str,
        worker_device: str,
        merges: bool,
        ps_ops: Sequence[str],
        strategy: Callable[[Any], int],
    ) -> None:
        self._ps_device = DeviceSpec.from_string(ps_device or "")
        self._worker_device = DeviceSpec.from_string(worker_device or "")
        self._merges = merges
        self._ps_ops = frozenset(ps_ops)
        self._strategy = strategy

    def __call__(self, op: Any) -> str:
        if not self._merges and op.device:
            return op.device
        current = DeviceSpec.from_string(op.device or "")
        if op.type in self._ps_ops:
            device = self._ps_device
            if device.job and current.job in (None, device.job):
                device = device.replace(task=self._strategy(op))
            return device.make_merged_spec(current).to_string()
        return self._worker_device.make_merged_spec(current).to_string()
