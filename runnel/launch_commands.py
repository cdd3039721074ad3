"""``runnel up``: a program on the tasks of a cluster."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import click

from runnel.launch.task_layout import TaskLayout


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--ps", default=0, show_default=True, help="How many parameter servers.")
@click.option("--workers", default=1, show_default=True, help="How many workers.")
@click.option("--chief", is_flag=True, help="One more worker, in a job named chief.")
@click.option("--evaluator", is_flag=True, help="A task beside the cluster, of type evaluator.")
@click.option(
    "--servers", is_flag=True, help="Parameter servers are plain tasks, without the program."
)
@click.option("--restarts", default=3, show_default=True, help="How often a task may die.")
@click.option(
    "--grace", default=20.0, show_default=True, help="Seconds that tasks get to end by themselves."
)
@click.option("--threads", type=int, help="Threads of each task; by default they share the cores.")
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def up(
    ps: int,
    workers: int,
    chief: bool,
    evaluator: bool,
    servers: bool,
    restarts: int,
    grace: float,
    threads: int | None,
    script: str,
    arguments: tuple[str, ...],
) -> None:
    """Run SCRIPT with its ARGUMENTS on every task of a cluster on this machine.

    Each task finds in TF_CONFIG which it is; in ARGUMENTS, {job}, {task}, {ps_hosts} and
    {worker_hosts} are filled in. The job ends when all workers have, with their status.
    """
    try:
        layout = TaskLayout(ps, workers, chief, evaluator)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    from runnel.launch.local_job import local

    status = local(
        script,
        arguments,
        layout=layout,
        servers=servers,
        restarts=restarts,
        grace=grace,
        threads=threads,
        begun=_process_began(),
    )
    raise SystemExit(status)


def _process_began() -> float:
    """When this process was started, in seconds since the epoch; now, where that is not known."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        ticks = float(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        up_for = float(Path("/proc/uptime").read_text().split()[0])
        return time.time() - (up_for - ticks / os.sysconf("SC_CLK_TCK"))
    return time.time()
