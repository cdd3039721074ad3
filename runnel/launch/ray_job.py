"""A job on a Ray cluster: an actor for each task, in a placement group.

An actor holds the task's port and runs its program; the driver decides, by the rules of every
engine, and shows the log. Ray starts an actor anew that has died, with its node or alone; the task
then comes back at its address if the actor is on the machine where it was. Otherwise the cluster
has another description, and all tasks are started anew with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from runnel.distributed.progress_record import ProgressRecord
from runnel.launch.hosted_task import HostedTask, TaskReport
from runnel.launch.launched_job import LaunchedJob
from runnel.launch.task_layout import LaunchedTask, TaskLayout
from runnel.launch.task_program import TaskProgram, thread_variables, token_variable

_READY_SECONDS = 120.0
_ASK_SECONDS = 5.0
_POLL_SECONDS = 0.1
_PASSED_ON = ("RUNNEL_", "JAX_", "XLA_", "TF_CPP_")
LOST = -int(signal.SIGKILL)
"""What the end of an actor counts as: Ray does not say how it came about."""


def ray(
    script: str,
    arguments: Sequence[str] = (),
    *,
    layout: TaskLayout,
    servers: bool = False,
    as_tensorflow: bool = False,
    resources: Mapping[str, Mapping[str, float]] | None = None,
    strategy: str = "PACK",
    runtime_env: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    address: str | None = None,
    restarts: int = 3,
    grace: float = 20.0,
    insecure: bool = False,
    console: Console | None = None,
    begun: float | None = None,
) -> int:
    """Runs a script on every task of a cluster on Ray; returns the status of the job.

    ``resources`` has what a task of each job takes, ``{"worker": {"CPU": 2, "GPU": 1}}``; one CPU
    by default. ``strategy`` is how Ray's placement group spreads the tasks. The script has to be
    where every node finds it, or in the ``working_dir`` of ``runtime_env``, and runnel has to be
    installed there. Uses the connection to Ray that is there, or makes one (to ``address``) and
    ends it.

    Tasks on several machines need a certificate and a token, as everywhere, or ``insecure``.

    Example:
        >>> layout = runnel.launch.TaskLayout(ps=2, workers=4)
        >>> runnel.launch.ray("/shared/train.py", layout=layout, strategy="SPREAD")
        0
    """
    try:
        import ray as engine
    except ImportError as error:
        raise ImportError("Ray is not installed: pip install 'runnel[ray]'") from error

    ours = not engine.is_initialized()
    if ours:
        engine.init(address=address, log_to_driver=False, logging_level="ERROR")
    if not (runtime_env or {}).get("working_dir"):
        script = os.path.abspath(script)
    job = RayJob(layout, restarts, grace, console, begun)
    try:
        return job.run(
            TaskProgram(script, tuple(arguments), servers, as_tensorflow),
            resources or {},
            strategy,
            dict(runtime_env or {}),
            dict(environment or {}),
            insecure,
        )
    finally:
        if ours:
            engine.shutdown()


class RayJob(LaunchedJob):
    """The actors of one job."""

    def run(
        self,
        program: TaskProgram,
        resources: Mapping[str, Mapping[str, float]],
        strategy: str,
        runtime_env: dict[str, Any],
        environment: dict[str, str],
        insecure: bool,
    ) -> int:
        """Starts the job and stays until all of its tasks have ended."""
        import ray as engine

        self._engine, self._program = engine, program
        taken = {task: dict(resources.get(task.job, {"CPU": 1})) for task in self.tasks}
        passed = {k: v for k, v in os.environ.items() if k.startswith(_PASSED_ON)}
        self._shared = {**passed, **environment}
        self._shared |= token_variable(self._shared)
        if insecure:
            self._shared["RUNNEL_INSECURE"] = "1"
        self._threads = {task: max(1, int(taken[task].get("CPU", 1))) for task in self.tasks}
        self._lives = dict.fromkeys(self.tasks, -1)
        self._over: set[LaunchedTask] = set(self.tasks)  # their present life has been told of
        self._asked: dict[LaunchedTask, Any] = {}
        self._records: dict[LaunchedTask, ProgressRecord] = {}
        self._to_start: set[LaunchedTask] = set()
        group = self._placement(taken, strategy)
        self._actors: dict[LaunchedTask, Any] = {}
        try:
            self._make_actors(group, taken, runtime_env)
            self._settle()
            return self.loop()
        finally:
            for actor in self._actors.values():
                with contextlib.suppress(Exception):  # it may be gone
                    engine.kill(actor)
            engine.util.remove_placement_group(group)

    # Actors ---------------------------------------------------------------------------------

    def _placement(self, taken: Mapping[LaunchedTask, dict[str, float]], strategy: str) -> Any:
        group = self._engine.util.placement_group(list(taken.values()), strategy=strategy)
        try:
            self._engine.get(group.ready(), timeout=_READY_SECONDS)
        except self._engine.exceptions.GetTimeoutError:
            there = self._engine.cluster_resources()
            self._engine.util.remove_placement_group(group)
            raise TimeoutError(
                f"Ray has not placed {len(taken)} tasks within {_READY_SECONDS:g} s. They need "
                f"{_summed(list(taken.values()))}, {strategy}; the cluster has {there}"
            ) from None
        return group

    def _make_actors(
        self,
        group: Any,
        taken: Mapping[LaunchedTask, dict[str, float]],
        runtime_env: dict[str, Any],
    ) -> None:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        made = self._engine.remote(HostedTask)
        for number, (task, needs) in enumerate(taken.items()):
            needs = dict(needs)
            self._actors[task] = made.options(
                num_cpus=needs.pop("CPU", 0),
                num_gpus=needs.pop("GPU", 0),
                memory=needs.pop("memory", None),
                resources=needs or None,
                max_restarts=-1,  # the supervisor counts
                runtime_env=runtime_env or None,
                scheduling_strategy=PlacementGroupSchedulingStrategy(
                    placement_group=group, placement_group_bundle_index=number
                ),
            ).remote()

    def _settle(self) -> None:
        """Asks every actor for a port; what they say is the cluster."""
        in_cluster = self.layout.in_cluster()
        asked = [self._actors[t].__ray_call__.remote(_node_address) for t in in_cluster]
        asked += [self._actors[t].reserve.remote() for t in in_cluster]
        found = self._engine.get(asked, timeout=_READY_SECONDS)
        self._nodes = dict(zip(in_cluster, found))
        self._ports = dict(zip(in_cluster, found[len(in_cluster) :]))
        self._describe()
        nodes = len(set(self._nodes.values()))
        machines = "1 machine" if nodes == 1 else f"{nodes} machines"
        self.log.tell(f"{len(self.tasks)} tasks on {machines} of a Ray cluster")

    def _describe(self) -> None:
        # On one machine nobody else need reach them.
        alone = len(set(self._nodes.values())) == 1
        self._cluster = self.layout.cluster(
            [f"{'localhost' if alone else n}:{self._ports[t]}" for t, n in self._nodes.items()]
        )

    def _came_back(self, task: LaunchedTask) -> None:
        """Gives a task its port again; where that cannot be, all tasks get another description."""
        actor = self._actors[task]
        node, port = self._engine.get(
            [actor.__ray_call__.remote(_node_address), actor.reserve.remote(self._ports[task])],
            timeout=_ASK_SECONDS,
        )
        if node == self._nodes[task] and port:
            return
        self._nodes[task] = node
        self._ports[task] = self._engine.get(actor.reserve.remote(), timeout=_ASK_SECONDS)
        self._describe()
        self.log.tell(f"{task} has another address: all tasks are started anew")
        for other in self.tasks:
            if other not in self._over and other not in self._to_start:
                self.send_signal(other, signal.SIGKILL)

    # A launched job -------------------------------------------------------------------------

    def start(self, task: LaunchedTask) -> None:
        self._lives[task] += 1
        self._records.pop(task, None)
        self._over.discard(task)
        self._to_start.add(task)
        self._start_waiting(task)

    def _start_waiting(self, task: LaunchedTask) -> None:
        """Has an actor start its task; an actor that is not back yet is asked again later."""
        try:
            if self._lives[task] and task in self._ports:
                self._came_back(task)
            variables = {
                **self._shared,
                **thread_variables(self._shared, self._threads[task]),
                **self._program.variables(self._cluster, task),
            }
            command = self._program.command(self._cluster, task)
            begun = self._actors[task].start.remote(self._lives[task], command, variables)
            self._engine.get(begun, timeout=_ASK_SECONDS)
        except (self._engine.exceptions.RayActorError, self._engine.exceptions.GetTimeoutError):
            return
        self._to_start.discard(task)

    def send_signal(self, task: LaunchedTask, number: signal.Signals) -> None:
        if task in self._to_start:
            self._to_start.discard(task)
            self._end(task, -int(number))
        else:
            self._actors[task].signal.remote(int(number))

    def records(self) -> dict[LaunchedTask, ProgressRecord]:
        for task in list(self._to_start):
            self._start_waiting(task)
        for task, actor in self._actors.items():
            if task not in self._asked and task not in self._over and task not in self._to_start:
                self._asked[task] = actor.report.remote()
        if self._asked:
            asked = {reference: task for task, reference in self._asked.items()}
            done, _ = self._engine.wait(list(asked), num_returns=len(asked), timeout=_POLL_SECONDS)
            for reference in done:
                task = asked[reference]
                del self._asked[task]
                self._heard(task, reference)
        return dict(self._records)

    def _heard(self, task: LaunchedTask, reference: Any) -> None:
        try:
            report: TaskReport = self._engine.get(reference)
        except self._engine.exceptions.RayActorError:
            self.log.tell(f"the actor of {task} is gone; Ray starts another")
            self._end(task, LOST)
            return
        for line in report.lines:
            self.log.write(str(task), line)
        if report.life != self._lives[task]:
            if report.life < 0:  # an actor that was started anew, and has started nothing
                self._end(task, LOST)
            return
        if report.record is not None:
            self._records[task] = report.record
        if report.ended is not None:
            self._end(task, report.ended)

    def _end(self, task: LaunchedTask, status: int) -> None:
        if task not in self._over:
            self._over.add(task)
            self.ended(task, status)


def _node_address(_: Any) -> str:
    """Runs in an actor."""
    import ray as engine

    return str(engine.util.get_node_ip_address())


def _summed(bundles: Sequence[Mapping[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for bundle in bundles:
        for name, amount in bundle.items():
            found[name] = found.get(name, 0) + amount
    return found
