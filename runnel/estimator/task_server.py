"""The server of an Estimator's task in a cluster, and when the task begins."""

from __future__ import annotations

import logging
import threading

from runnel.distributed.server import Server
from runnel.estimator.run_config import RunConfig

logger = logging.getLogger("runnel")

_SECONDS_PER_WORKER = 5.0
_MOST_SECONDS = 60.0


def start_server(config: RunConfig) -> Server:
    """The task's server: its share of the variables, or of the steps."""
    return Server(
        config.cluster_spec,
        job_name=config.task_type,
        task_index=config.task_id,
        protocol=config.protocol,
        config=config.session_config,
    )


def await_turn(config: RunConfig) -> None:
    """Workers begin one after another: the first gradients come to variables that have settled."""
    most = config.experimental_max_worker_delay_secs
    seconds = min(
        _SECONDS_PER_WORKER * (config.task_id + 1), _MOST_SECONDS if most is None else most
    )
    if seconds > 0:
        logger.info("Waiting %d secs before starting training.", seconds)
        threading.Event().wait(seconds)
