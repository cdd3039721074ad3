"""Resolvers of what a program says itself, of ``TF_CONFIG``, and of several resolvers."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any

from runnel.distributed.cluster_spec import ClusterSpec
from runnel.graph.device import parsed_device


class ClusterResolver:
    """Says where the tasks of a cluster are; a base class.

    Example:
        >>> resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        >>> server = tf.train.Server(
        ...     resolver.cluster_spec(), resolver.task_type, resolver.task_id
        ... )
    """

    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None

    @property
    def environment(self) -> str | None:
        """Where the program runs, in words: nothing is made of it."""
        return ""

    def cluster_spec(self) -> ClusterSpec:
        """The cluster as it is now."""
        raise NotImplementedError(f"cluster_spec is not implemented for {type(self).__name__}")

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """What a session on a task (by default this one) takes as its target."""
        raise NotImplementedError(f"master is not implemented for {type(self).__name__}")

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """How many devices of each type other than CPU a task has; it is asked."""
        from runnel.runtime.session.session import Session

        where = {"job": task_type or self.task_type, "task": task_id}
        with Session(self.master(task_type, task_id), config=config_proto) as sess:
            devices = [parsed_device(device.name) for device in sess.list_devices()]
        return dict(
            Counter(
                device.device_type
                for device in devices
                if device.device_type not in ("CPU", None)
                and (task_id is None or (device.job, device.task) == tuple(where.values()))
            )
        )


def target_of(address: str, rpc_layer: str | None) -> str:
    """``grpc://host:port`` of an address and ``grpc``."""
    return f"{rpc_layer}://{address}" if rpc_layer else address


class SimpleClusterResolver(ClusterResolver):
    """Says what it was told."""

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: dict[str, int] | None = None,
        rpc_layer: str | None = None,
    ) -> None:
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError(f"cluster_spec must be a tf.train.ClusterSpec, not {cluster_spec!r}")
        if not isinstance(master, str):
            raise TypeError(f"master must be a string, not {master!r}")
        self._cluster_spec = cluster_spec
        self._master = master
        self.task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer
        self._environment = environment
        self._num_accelerators = num_accelerators

    @property
    def environment(self) -> str:
        """What it was told of the environment."""
        return self._environment

    def cluster_spec(self) -> ClusterSpec:
        return self._cluster_spec

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        address = self._master
        if task_type is not None and task_id is not None:
            address = self._cluster_spec.task_address(task_type, task_id)
        return target_of(address, rpc_layer or self.rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        return dict(self._num_accelerators or {})


class TFConfigClusterResolver(ClusterResolver):
    """Says what the environment's ``TF_CONFIG`` says, each time anew."""

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        self._task_type, self._task_id = task_type, task_id
        self._rpc_layer, self._environment = rpc_layer, environment

    @property
    def environment(self) -> str | None:
        """What it was told of the environment."""
        return self._environment

    @property
    def task_type(self) -> str | None:  # type: ignore[override]
        """The job of this task."""
        own = _config().get("task", {})
        return str(own["type"]) if self._task_type is None and "type" in own else self._task_type

    @property
    def task_id(self) -> int | None:  # type: ignore[override]
        """The index of this task."""
        own = _config().get("task", {})
        return int(own["index"]) if self._task_id is None and "index" in own else self._task_id

    @property
    def rpc_layer(self) -> str | None:  # type: ignore[override]
        """The protocol in targets."""
        return _config().get("rpc_layer") if self._rpc_layer is None else self._rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        return ClusterSpec.from_json(json.dumps(_config().get("cluster", {})))

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        spec = self.cluster_spec()
        if sum(spec.num_tasks(job) for job in spec.jobs) <= 1:
            return ""  # a task that is alone needs no server
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        if task_type is None or task_id is None:
            raise ValueError("TF_CONFIG does not say which task this is, and no task was named")
        layer = self.rpc_layer if rpc_layer is None else rpc_layer
        return target_of(spec.task_address(task_type, task_id), layer)


def _config() -> dict[str, Any]:
    try:
        return json.loads(os.environ.get("TF_CONFIG") or "{}")
    except ValueError as error:
        raise ValueError(f"TF_CONFIG is not JSON: {error}") from error


class UnionResolver(ClusterResolver):
    """Says what several resolvers say together; what is asked of one task is asked of the first.

    Jobs of one name are joined: lists one after the other, dictionaries by index.
    """

    def __init__(self, *resolvers: ClusterResolver, **options: Any) -> None:
        unknown = set(options) - {"rpc_layer", "task_type", "task_id"}
        if unknown:
            raise ValueError(f"Unexpected keyword arguments: {', '.join(sorted(unknown))}")
        if not resolvers:
            raise ValueError("At least one ClusterResolver is required.")
        for resolver in resolvers:
            if not isinstance(resolver, ClusterResolver):
                raise TypeError(f"A union is of ClusterResolvers, not of {resolver!r}")
        self._resolvers = resolvers
        self._rpc_layer = options.get("rpc_layer")
        self.task_type = options.get("task_type", resolvers[0].task_type)
        self.task_id = options.get("task_id", resolvers[0].task_id)
        self.rpc_layer = self._rpc_layer or resolvers[0].rpc_layer

    @property
    def environment(self) -> str | None:
        """What the first resolver says of the environment."""
        return self._resolvers[0].environment

    def cluster_spec(self) -> ClusterSpec:
        found: dict[str, Any] = {}
        for resolver in self._resolvers:
            for job, tasks in resolver.cluster_spec().as_dict().items():
                found[job] = _joined(job, found[job], tasks) if job in found else tasks
        return ClusterSpec(found)

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        if task_type is not None and task_id is not None:
            address = self.cluster_spec().task_address(task_type, task_id)
            return target_of(address, rpc_layer or self._rpc_layer)
        return self._resolvers[0].master(rpc_layer=rpc_layer)


def _joined(job: str, some: Any, more: Any) -> Any:
    if isinstance(some, list) and isinstance(more, list):
        return some + more
    found = dict(enumerate(some)) if isinstance(some, list) else dict(some)
    others = dict(enumerate(more)) if isinstance(more, list) else dict(more)
    twice = found.keys() & others.keys()
    if twice:
        raise KeyError(f"Two resolvers have a task {min(twice)} of job {job!r}")
    return found | others
