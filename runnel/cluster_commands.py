"""``runnel server`` and ``runnel cluster``: a task of a cluster, and what the tasks are doing."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from runnel.distributed.cluster_spec import ClusterSpec
from runnel.distributed.termination import DRAIN_SECONDS, ToldToEnd, told_to_end
from runnel.graph import errors
from runnel.graph.permitted_files import VARIABLE
from runnel.launch.job_folder import job_environment


@click.command()
@click.option(
    "--cluster", "cluster_file", help="A file with the cluster as JSON, or the JSON itself."
)
@click.option("--job", help="The job of this task, such as ps.")
@click.option("--task", type=int, help="Its index in the job.")
@click.option(
    "--heartbeat", type=float, help="Seconds of silence after which another task is lost (10)."
)
@click.option(
    "--files",
    type=click.Path(exists=True, file_okay=False),
    help="The only folder whose files the graphs of others may touch here.",
)
@click.option("--insecure", is_flag=True, help="Allow other addresses than loopback without TLS.")
@click.option(
    "--drain",
    type=float,
    default=DRAIN_SECONDS,
    show_default=True,
    help="Seconds that running steps are given when the task is told to end (SIGTERM).",
)
def server(
    cluster_file: str | None,
    job: str | None,
    task: int | None,
    heartbeat: float | None,
    files: str | None,
    insecure: bool,
    drain: float,
) -> None:
    """Run a task of a cluster, until it is told to end.

    Without options the task is what TF_CONFIG says.
    """
    spec, job, task = _task(cluster_file, job, task)
    if heartbeat is not None:
        os.environ["RUNNEL_HEARTBEAT_SECONDS"] = str(heartbeat)
    if files is not None:
        os.environ[VARIABLE] = os.path.realpath(files)
    if insecure:
        os.environ["RUNNEL_INSECURE"] = "1"
    from runnel.distributed.server import Server

    try:
        running = Server(spec, job, task)
    except (ValueError, errors.OpError) as error:
        raise click.ClickException(str(error)) from error
    try:
        with told_to_end():
            click.echo(f"{running.task} is at {running.target}")
            running.serve()
    except ToldToEnd:
        click.echo(f"{running.task} is ending: running steps have {drain:g} s")
        running.drain(drain)
    except KeyboardInterrupt:
        click.echo(f"{running.task} was interrupted")
    finally:
        running.stop()


def _task(
    cluster_file: str | None, job: str | None, task: int | None
) -> tuple[ClusterSpec, str, int]:
    """The cluster, the job and the index: of the options, or of TF_CONFIG."""
    config: dict[str, Any] = {}
    if cluster_file is None or job is None:
        try:
            config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        except ValueError as error:
            raise click.ClickException(f"TF_CONFIG is not JSON: {error}") from error
    spec = _cluster(cluster_file, config)
    own = config.get("task", {})
    job = job or own.get("type")
    if job is None:
        raise click.UsageError(f"--job is missing; the cluster has {', '.join(spec.jobs)}")
    return spec, job, int(own.get("index", 0)) if task is None else task


def _cluster(cluster_file: str | None, config: dict[str, Any]) -> ClusterSpec:
    try:
        if cluster_file is None:
            if "cluster" not in config:
                raise click.UsageError("--cluster is missing, and TF_CONFIG has no cluster")
            return ClusterSpec.from_json(json.dumps(config["cluster"]))
        text = cluster_file
        if not cluster_file.lstrip().startswith("{"):
            text = Path(cluster_file).read_text(encoding="utf-8")
        return ClusterSpec.from_json(text)
    except (OSError, ValueError, TypeError) as error:
        raise click.ClickException(f"the cluster cannot be read: {error}") from error


@click.group()
def cluster() -> None:
    """Look at a running cluster."""


_OF_CLUSTER = click.option(
    "--cluster", "cluster_file", help="A file with the cluster as JSON: all its tasks."
)
_OF_JOB = click.option(
    "--job", "job_folder", help="The folder that `runnel up` has told: all its tasks."
)


@cluster.command()
@click.argument("addresses", nargs=-1)
@_OF_CLUSTER
@_OF_JOB
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
@click.option(
    "--patience", default=5.0, show_default=True, help="Seconds that each task has to answer."
)
def status(
    addresses: tuple[str, ...],
    cluster_file: str | None,
    job_folder: str | None,
    as_json: bool,
    patience: float,
) -> None:
    """Show tasks, incarnations, sessions, running steps and what each waits for."""
    asked = _asked(addresses, cluster_file, job_folder)
    with ThreadPoolExecutor(len(asked)) as pool:
        found = list(pool.map(lambda task: _answer(task, asked[task], patience), asked))
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        for task in found:
            _show(task)
    if any("error" in task for task in found):
        raise SystemExit(1)


def _answer(task: str, address: str, patience: float) -> dict[str, Any]:
    """What a task tells of itself, or that it does not."""
    from runnel.distributed.client_calls import status as ask

    try:
        answer: dict[str, Any] = json.loads(ask(address, patience))
        return answer
    except errors.OpError as error:
        return {"task": task, "address": address, "error": f"it does not answer: {error.message}"}


@cluster.command()
@click.argument("addresses", nargs=-1)
@_OF_CLUSTER
@_OF_JOB
@click.option("--every", default=1.0, show_default=True, help="Seconds between two looks.")
@click.option("--for", "seconds", type=float, help="Seconds after which it ends by itself.")
def watch(
    addresses: tuple[str, ...],
    cluster_file: str | None,
    job_folder: str | None,
    every: float,
    seconds: float | None,
) -> None:
    """Show tasks, steps a second, stragglers, queues, memory and transfers, always anew."""
    asked = _asked(addresses, cluster_file, job_folder)
    from rich.console import Console

    from runnel.launch.cluster_table import showing
    from runnel.launch.status_poller import StatusPoller

    with StatusPoller(asked, every) as poller, showing(Console(), poller.rows):
        _stay(seconds)


@cluster.command()
@click.argument("addresses", nargs=-1)
@_OF_CLUSTER
@_OF_JOB
@click.option("--every", default=1.0, show_default=True, help="Seconds between two looks.")
@click.option("--port", default=0, help="The page's port; by default one that is free.")
@click.option("--for", "seconds", type=float, help="Seconds after which it ends by itself.")
def page(
    addresses: tuple[str, ...],
    cluster_file: str | None,
    job_folder: str | None,
    every: float,
    port: int,
    seconds: float | None,
) -> None:
    """Serve the same as a page for a browser of this machine."""
    asked = _asked(addresses, cluster_file, job_folder)
    from runnel.launch.cluster_page import ClusterPage
    from runnel.launch.status_poller import StatusPoller

    with StatusPoller(asked, every) as poller:
        try:
            served = ClusterPage(poller.rows, port)
        except OSError as error:
            raise click.ClickException(f"the page cannot be at port {port}: {error}") from error
        with served:
            click.echo(f"the cluster is at {served.address}")
            _stay(seconds)


def _stay(seconds: float | None) -> None:
    """Until the user has seen enough."""
    end = threading.Event()
    with contextlib.suppress(KeyboardInterrupt):
        while not end.wait(1.0 if seconds is None else seconds) and seconds is None:
            pass


def _asked(
    addresses: tuple[str, ...], cluster_file: str | None, job_folder: str | None
) -> dict[str, str]:
    """The addresses of the tasks that the user names, one by one or as a cluster or a job."""
    found = {address: address for address in addresses}
    if job_folder is not None:
        cluster_file, environment = job_environment(job_folder)
        os.environ.update(environment)
    if cluster_file is not None:
        found.update(_cluster(cluster_file, {}).addresses())
    if not found:
        raise click.UsageError(
            "name a task's address, such as localhost:2222, or --cluster, or --job"
        )
    return found


def _show(task: dict[str, Any]) -> None:
    if "error" in task:
        click.echo(f"{task['task']} at {task['address']}: {task['error']}")
        return
    click.echo(f"{task['task']} at {task['address']}, incarnation {task['incarnation']}")
    sessions, connections = task["sessions"], task["connections"]
    click.echo(
        f"  {len(sessions)} sessions, {len(connections)} connections, {task['threads']} threads"
    )
    for master in task["masters"]:
        for step in master["steps"]:
            tasks = ", ".join(step["waits_for_parts_on"]) or "its own part"
            click.echo(
                f"  step {step['step']} of session {master['session']}, {step['seconds']:.1f} s: "
                f"waits for {tasks}"
            )
            _show_waits(step)
    for session in sessions:
        for step in session["steps"]:
            click.echo(f"  part of step {step['step']}, {step['seconds']:.1f} s")
            _show_waits(step)


def _show_waits(step: dict[str, Any]) -> None:
    for waits in step["waits_for"]:
        click.echo(
            f"    waits for {waits['op']} ({waits['type']}) since {waits['seconds']:.1f} s ago, "
            f"made at {waits['line']}"
        )
