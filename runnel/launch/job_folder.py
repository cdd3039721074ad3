"""Where a job that runs can be found by other commands of the same user: its tasks, its token."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TOKEN = "RUNNEL_CLUSTER_TOKEN"
_CLUSTER_FILE, _TOKEN_FILE = "cluster.json", "token"


def write_job_folder(
    folder: Path, cluster: Mapping[str, Any], environment: Mapping[str, str]
) -> None:
    """Writes what others need; the folder has to be the user's alone."""
    (folder / _CLUSTER_FILE).write_text(json.dumps(dict(cluster)), encoding="utf-8")
    if environment.get(TOKEN):
        (folder / _TOKEN_FILE).write_text(environment[TOKEN], encoding="utf-8")


def job_environment(folder: str) -> tuple[str, dict[str, str]]:
    """The file with the cluster of a job, and the variables that its tasks ask others for."""
    token = Path(folder) / _TOKEN_FILE
    variables = {f"{TOKEN}_FILE": str(token)} if token.exists() else {}
    return str(Path(folder) / _CLUSTER_FILE), variables
