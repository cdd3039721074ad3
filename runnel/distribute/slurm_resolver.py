"""The resolver of what ``srun`` tells its tasks."""

from __future__ import annotations

import os
from collections.abc import Mapping

from runnel.distribute.resolvers import ClusterResolver, target_of
from runnel.distributed.cluster_spec import ClusterSpec
from runnel.launch.slurm_environment import SlurmStep, expanded_counts, expanded_hosts


class SlurmClusterResolver(ClusterResolver):
    """Says what Slurm says of a step: ``jobs``, by name, take its tasks in turn, node by node.

    ``jobs`` maps names to numbers of tasks; by default all are workers. ``tasks_per_node`` is a
    number, or a dictionary by node, where Slurm should not be asked. With ``gpus_per_node`` each
    task of a node sees its share of the GPUs (``gpus_per_task``), unless ``auto_set_gpu`` is False.

    Example:
        >>> resolver = tf.distribute.cluster_resolver.SlurmClusterResolver({"ps": 1, "worker": 3})
        >>> server = tf.train.Server(
        ...     resolver.cluster_spec(), resolver.task_type, resolver.task_id
        ... )
    """

    def __init__(
        self,
        jobs: Mapping[str, int] | None = None,
        port_base: int = 8888,
        gpus_per_node: int | None = None,
        gpus_per_task: int | None = None,
        tasks_per_node: int | Mapping[str, int] | None = None,
        auto_set_gpu: bool = True,
        rpc_layer: str = "grpc",
    ) -> None:
        self._port_base = port_base
        self.rpc_layer = rpc_layer
        self._hosts, self._number = self._placed(tasks_per_node)
        self._jobs = dict(sorted((jobs or {"worker": len(self._hosts)}).items()))
        if sum(self._jobs.values()) > len(self._hosts):
            raise RuntimeError(
                f"The jobs {self._jobs} have more tasks than Slurm has started: {len(self._hosts)}"
            )
        self.task_type, self.task_id = self.get_task_info()
        if auto_set_gpu and gpus_per_node:
            self._show_gpus(gpus_per_node, gpus_per_task)

    def _placed(self, tasks_per_node: int | Mapping[str, int] | None) -> tuple[list[str], int]:
        """The host of each task of the step, and which of them this is."""
        if tasks_per_node is None:
            step = SlurmStep.from_environment(os.environ)
            return list(step.hosts), step.number
        nodes = expanded_hosts(os.environ["SLURM_STEP_NODELIST"])
        if isinstance(tasks_per_node, Mapping):
            counts = [tasks_per_node[node] for node in nodes]
        else:
            counts = expanded_counts(f"{tasks_per_node}(x{len(nodes)})")
        hosts = [node for node, count in zip(nodes, counts) for _ in range(count)]
        return hosts, int(os.environ["SLURM_PROCID"])

    def _show_gpus(self, per_node: int, per_task: int | None) -> None:
        host = self._hosts[self._number]
        place = self._hosts[: self._number].count(host)
        share = per_task or max(1, per_node // self._hosts.count(host))
        if share * self._hosts.count(host) > per_node:
            raise RuntimeError(f"The tasks on {host} want more than its {per_node} GPUs")
        numbers = range(place * share, (place + 1) * share)
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, numbers))

    def get_task_info(self) -> tuple[str | None, int | None]:
        """The job and the index of this task; None for one that is in no job."""
        left = self._number
        for job, count in self._jobs.items():
            if left < count:
                return job, left
            left -= count
        return None, None

    def cluster_spec(self) -> ClusterSpec:
        used: dict[str, int] = {}
        addresses = []
        for host in self._hosts:
            addresses.append(f"{host}:{self._port_base + used.get(host, 0)}")
            used[host] = used.get(host, 0) + 1
        rest = iter(addresses)
        return ClusterSpec({job: [next(rest) for _ in range(n)] for job, n in self._jobs.items()})

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        if task_type is None or task_id is None:
            return ""
        return target_of(
            self.cluster_spec().task_address(task_type, task_id), rpc_layer or self.rpc_layer
        )
