"""``runnel up`` and ``runnel kubernetes``: a program on the tasks of a cluster."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from runnel import launch
from runnel.launch.kubernetes_manifest import KubernetesJob
from runnel.launch.slurm_environment import SlurmStep
from runnel.launch.task_layout import TaskLayout
from runnel.launch.yaml_text import yaml_text


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--ps", default=0, show_default=True, help="How many parameter servers.")
@click.option("--workers", type=int, help="How many workers: 1; with --slurm, the other tasks.")
@click.option("--chief", is_flag=True, help="One more worker, in a job named chief.")
@click.option("--evaluator", is_flag=True, help="A task beside the cluster, of type evaluator.")
@click.option(
    "--servers", is_flag=True, help="Parameter servers are plain tasks, without the program."
)
@click.option("--as-tensorflow", is_flag=True, help="SCRIPT gets runnel for `import tensorflow`.")
@click.option("--restarts", default=3, show_default=True, help="How often a task may die.")
@click.option(
    "--grace", default=20.0, show_default=True, help="Seconds that tasks get to end by themselves."
)
@click.option("--threads", type=int, help="Threads of each task; by default they share the cores.")
@click.option("--watch", is_flag=True, help="A table of the tasks stays below the log.")
@click.option("--ray", "on_ray", is_flag=True, help="On a Ray cluster, not on this machine.")
@click.option("--ray-address", help="Of the cluster; by default the one that is there, or a new.")
@click.option(
    "--resources",
    multiple=True,
    metavar="JOB:NAME=AMOUNT,...",
    help="What a task of a job takes of a Ray cluster: worker:CPU=2,GPU=1.",
)
@click.option(
    "--strategy",
    type=click.Choice(["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"]),
    default="PACK",
    show_default=True,
    help="How tasks are placed on the nodes of a Ray cluster.",
)
@click.option("--slurm", "on_slurm", is_flag=True, help="As a task of srun, which starts them all.")
@click.option("--insecure", is_flag=True, help="Tasks on several machines go without TLS.")
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def up(
    ps: int,
    workers: int | None,
    chief: bool,
    evaluator: bool,
    servers: bool,
    as_tensorflow: bool,
    restarts: int,
    grace: float,
    threads: int | None,
    watch: bool,
    on_ray: bool,
    ray_address: str | None,
    resources: tuple[str, ...],
    strategy: str,
    on_slurm: bool,
    insecure: bool,
    script: str,
    arguments: tuple[str, ...],
) -> None:
    """Run SCRIPT with its ARGUMENTS on every task of a cluster, here, on Ray or on Slurm.

    Each task finds in TF_CONFIG which it is; in ARGUMENTS, {job}, {task}, {ps_hosts} and
    {worker_hosts} are filled in. The job ends when all workers have, with their status.
    """
    try:
        if on_slurm:
            layout = _slurm_layout(ps, workers, chief, evaluator)
        else:
            layout = TaskLayout(ps, 1 if workers is None else workers, chief, evaluator)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if on_slurm:
        try:
            status = launch.slurm(
                script,
                arguments,
                layout=layout,
                servers=servers,
                as_tensorflow=as_tensorflow,
                restarts=restarts,
                grace=grace,
                insecure=insecure,
            )
        except ValueError as error:
            raise click.ClickException(str(error)) from error
        raise SystemExit(status)
    if on_ray:
        try:
            status = launch.ray(
                script,
                arguments,
                layout=layout,
                servers=servers,
                as_tensorflow=as_tensorflow,
                resources=_resources(resources),
                strategy=strategy,
                address=ray_address,
                restarts=restarts,
                grace=grace,
                insecure=insecure,
                begun=_process_began(),
            )
        except (ImportError, TimeoutError, ConnectionError) as error:
            raise click.ClickException(str(error)) from error
        raise SystemExit(status)
    status = launch.local(
        script,
        arguments,
        layout=layout,
        servers=servers,
        as_tensorflow=as_tensorflow,
        restarts=restarts,
        grace=grace,
        threads=threads,
        watch=watch,
        begun=_process_began(),
    )
    raise SystemExit(status)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--name", default="train", show_default=True, help="The name of the job.")
@click.option("--namespace", help="Where the objects are made; by default where kubectl is.")
@click.option("--image", required=True, help="With Python, runnel and the program.")
@click.option("--ps", default=0, show_default=True, help="How many parameter servers.")
@click.option("--workers", default=1, show_default=True, help="How many workers.")
@click.option("--chief", is_flag=True, help="One more worker, in a job named chief.")
@click.option("--evaluator", is_flag=True, help="A task beside the cluster, of type evaluator.")
@click.option(
    "--servers", is_flag=True, help="Parameter servers are plain tasks, without the program."
)
@click.option("--port", default=2222, show_default=True, help="The port of every task.")
@click.option("--restarts", default=3, show_default=True, help="How often a task may fail.")
@click.option("--grace", default=30, show_default=True, help="Seconds that a task gets to end.")
@click.option("--gpus", default=0, show_default=True, help="GPUs of each worker.")
@click.option("--gpu-resource", default="nvidia.com/gpu", show_default=True)
@click.option(
    "--resources",
    multiple=True,
    metavar="JOB:NAME=AMOUNT,...",
    help="What a task of a job takes: worker:cpu=4,memory=8Gi.",
)
@click.option(
    "--claim",
    "claims",
    multiple=True,
    metavar="NAME:FOLDER",
    help="A PersistentVolumeClaim, and the folder where tasks find it: for checkpoints.",
)
@click.option("--token-secret", help="The Secret with the token; by default NAME-token.")
@click.option("--tls-secret", help="The Secret with tls.crt, tls.key and ca.crt.")
@click.option("--insecure", is_flag=True, help="Tasks talk to each other without TLS.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubernetes(
    ps: int,
    workers: int,
    chief: bool,
    evaluator: bool,
    resources: tuple[str, ...],
    claims: tuple[str, ...],
    token_secret: str | None,
    tls_secret: str | None,
    insecure: bool,
    name: str,
    arguments: tuple[str, ...],
    **options: Any,
) -> None:
    """Print what runs SCRIPT of IMAGE with its ARGUMENTS on Kubernetes, for kubectl apply -f -."""
    if not tls_secret and not insecure:
        raise click.UsageError(
            "tasks of several pods need certificates: --tls-secret NAME; --insecure does without, "
            "for a network that nobody else is on"
        )
    try:
        job = KubernetesJob(
            name=name,
            layout=TaskLayout(ps, workers, chief, evaluator),
            arguments=arguments,
            resources={job: dict(pairs) for job, pairs in _pairs(resources)},
            claims=dict(_claim(text) for text in claims),
            token_secret=token_secret or f"{name}-token",
            tls_secret=tls_secret,
            **options,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    click.echo("---\n".join(yaml_text(found) for found in job.objects()), nl=False)


def _claim(text: str) -> tuple[str, str]:
    name, _, folder = text.partition(":")
    if not name or not folder.startswith("/"):
        raise click.UsageError(f"--claim is NAME:FOLDER, such as models:/models, not {text!r}")
    return name, folder


def _slurm_layout(ps: int, workers: int | None, chief: bool, evaluator: bool) -> TaskLayout:
    """The layout in which all tasks that are nothing else are workers."""
    if workers is None:
        tasks = len(SlurmStep.from_environment(os.environ).hosts)
        workers = max(0, tasks - ps - chief - evaluator)
    return TaskLayout(ps, workers, chief, evaluator)


def _pairs(given: tuple[str, ...]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Jobs and what their tasks take, from ``worker:CPU=2,GPU=1``."""
    for text in given:
        job, _, amounts = text.partition(":")
        pairs = [tuple(pair.split("=")) for pair in amounts.split(",")]
        if not job or any(len(pair) != 2 or not all(pair) for pair in pairs):
            raise click.UsageError(f"--resources is JOB:NAME=AMOUNT,..., not {text!r}")
        yield job, [(name, amount) for name, amount in pairs]


def _resources(given: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """What tasks of each job take, as numbers."""
    try:
        return {job: {n: float(amount) for n, amount in pairs} for job, pairs in _pairs(given)}
    except ValueError as error:
        raise click.UsageError(f"--resources is JOB:NAME=AMOUNT,...: {error}") from error


def _process_began() -> float:
    """When this process was started, in seconds since the epoch; now, where that is not known."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        ticks = float(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        up_for = float(Path("/proc/uptime").read_text().split()[0])
        return time.time() - (up_for - ticks / os.sysconf("SC_CLK_TCK"))
    return time.time()
