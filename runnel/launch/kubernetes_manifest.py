"""A job as objects of Kubernetes (pure).

Parameter servers are a StatefulSet, which brings them back for ever; workers, the chief and the
evaluator are Indexed Jobs, which have an end. A headless Service gives every pod a name that it
keeps, and a NetworkPolicy lets only pods of the job talk to each other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runnel.distributed.progress_record import VARIABLE as PROGRESS
from runnel.launch.task_layout import (
    EVALUATOR,
    SERVERS,
    LaunchedTask,
    TaskLayout,
    tf_config,
    told_arguments,
)

_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_LONGEST_NAME = 40
_INDEX = "RUNNEL_TASK_INDEX"
_TLS_FOLDER = "/etc/runnel/tls"
_SET_INDEX = "metadata.labels['apps.kubernetes.io/pod-index']"
_JOB_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


@dataclass(frozen=True, slots=True)
class KubernetesJob:
    """What the manifest of a job says; :meth:`objects` has it.

    ``resources`` maps jobs to requests such as ``{"cpu": "4", "memory": "8Gi"}``; ``gpus`` is for
    each worker and the chief. ``claims`` maps names of PersistentVolumeClaims to folders. The
    secret of ``token_secret`` has the key ``token``, that of ``tls_secret`` ``tls.crt``,
    ``tls.key`` and ``ca.crt``.
    """

    name: str
    image: str
    layout: TaskLayout
    script: str
    arguments: tuple[str, ...] = ()
    servers: bool = False
    namespace: str | None = None
    port: int = 2222
    restarts: int = 3
    grace: int = 30
    gpus: int = 0
    gpu_resource: str = "nvidia.com/gpu"
    resources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    claims: Mapping[str, str] = field(default_factory=dict)
    token_secret: str | None = None
    tls_secret: str | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or len(self.name) > _LONGEST_NAME:
            raise ValueError(
                f"The name of a job on Kubernetes has small letters, digits and dashes, at most "
                f"{_LONGEST_NAME}, and begins with a letter: not {self.name!r}"
            )
        unknown = set(self.resources) - {task.job for task in self.layout.tasks()}
        if unknown:
            raise ValueError(f"The job has no tasks of {', '.join(sorted(unknown))}")

    def cluster(self) -> dict[str, list[str]]:
        """The cluster by the names that the pods keep."""
        return self.layout.cluster(
            [
                f"{self.name}-{task.job}-{task.index}.{self.name}:{self.port}"
                for task in self.layout.in_cluster()
            ]
        )

    def objects(self) -> list[dict[str, Any]]:
        """The objects, in the order in which they are to be made."""
        found = [self._service(), self._policy()]
        counts = {**self.layout.jobs(), **({EVALUATOR: 1} if self.layout.evaluator else {})}
        for job, count in counts.items():
            make = self._stateful_set if job == SERVERS else self._indexed_job
            found.append(make(job, count))
        return found

    # Objects --------------------------------------------------------------------------------

    def _service(self) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self._metadata(self.name),
            "spec": {
                "clusterIP": "None",
                # A task looks for the others before any of them is ready.
                "publishNotReadyAddresses": True,
                "selector": self._labels(),
                "ports": [{"name": "tasks", "port": self.port}],
            },
        }

    def _policy(self) -> dict[str, Any]:
        pods = {"matchLabels": self._labels()}
        return {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": self._metadata(self.name),
            "spec": {
                "podSelector": pods,
                "policyTypes": ["Ingress"],
                "ingress": [
                    {
                        "from": [{"podSelector": pods}],
                        "ports": [{"protocol": "TCP", "port": self.port}],
                    }
                ],
            },
        }

    def _stateful_set(self, job: str, count: int) -> dict[str, Any]:
        return {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": self._metadata(f"{self.name}-{job}", job),
            "spec": {
                "serviceName": self.name,
                "replicas": count,
                "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": self._labels(job)},
                "template": self._pod(job, _SET_INDEX, "Always"),
            },
        }

    def _indexed_job(self, job: str, count: int) -> dict[str, Any]:
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": self._metadata(f"{self.name}-{job}", job),
            "spec": {
                "completionMode": "Indexed",
                "completions": count,
                "parallelism": count,
                "backoffLimit": self.restarts * count,
                "template": self._pod(job, _JOB_INDEX, "OnFailure"),
            },
        }

    def _pod(self, job: str, index: str, restart: str) -> dict[str, Any]:
        mounts = [{"name": name, "mountPath": folder} for name, folder in self.claims.items()]
        volumes: list[dict[str, Any]] = [
            {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in self.claims
        ]
        if self.tls_secret:
            mounts.append({"name": "tls", "mountPath": _TLS_FOLDER})
            volumes.append({"name": "tls", "secret": {"secretName": self.tls_secret}})
        container = {
            "name": "task",
            "image": self.image,
            "command": self._command(job),
            "env": self._environment(job, index),
            "resources": self._resources(job),
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
            **self._probes(job),
            **({"volumeMounts": mounts} if mounts else {}),
        }
        return {
            "metadata": {"labels": self._labels(job)},
            "spec": {
                "subdomain": self.name,
                "restartPolicy": restart,
                "terminationGracePeriodSeconds": self.grace,
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [container],
                **({"volumes": volumes} if volumes else {}),
            },
        }

    # Parts of a container -------------------------------------------------------------------

    def _command(self, job: str) -> list[str]:
        if self.servers and job == SERVERS:
            return ["runnel", "server"]
        # Kubernetes replaces $(NAME) itself: what the user has written stays as it is.
        given = [argument.replace("$(", "$$(") for argument in self.arguments]
        given = [argument.replace("{task}", f"$({_INDEX})") for argument in given]
        interpreter = ["python"] if self.script.endswith(".py") else []
        return [*interpreter, self.script, *told_arguments(given, self.cluster(), _first(job))]

    def _environment(self, job: str, index: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [
            {"name": _INDEX, "valueFrom": {"fieldRef": {"fieldPath": index}}},
            {"name": "TF_CONFIG", "value": self._tf_config(job)},
            {"name": "PYTHONUNBUFFERED", "value": "1"},
            {"name": PROGRESS, "value": "/tmp/runnel-progress"},  # for who looks at the task
        ]
        if self.token_secret:
            reference = {"name": self.token_secret, "key": "token"}
            found.append({"name": "RUNNEL_CLUSTER_TOKEN", "valueFrom": {"secretKeyRef": reference}})
        if self.tls_secret:
            files = {"CERT": "tls.crt", "KEY": "tls.key", "CA": "ca.crt"}
            found += [
                {"name": f"RUNNEL_TLS_{what}", "value": f"{_TLS_FOLDER}/{file}"}
                for what, file in files.items()
            ]
        else:
            found.append({"name": "RUNNEL_INSECURE", "value": "1"})
        return found

    def _tf_config(self, job: str) -> str:
        """TF_CONFIG, in which Kubernetes fills in the index of the pod."""
        return tf_config(self.cluster(), _first(job)).replace('"index": 0', f'"index": $({_INDEX})')

    def _resources(self, job: str) -> dict[str, Any]:
        requests = dict(self.resources.get(job, {}))
        limits = {name: amount for name, amount in requests.items() if name != "cpu"}
        if self.gpus and _first(job).decides:
            limits[self.gpu_resource] = str(self.gpus)
        found = {"requests": requests, "limits": limits}
        return {name: amounts for name, amounts in found.items() if amounts}

    def _probes(self, job: str) -> dict[str, Any]:
        if job == EVALUATOR:  # it listens to nobody
            return {}
        listens = {"tcpSocket": {"port": self.port}}
        return {
            "ports": [{"name": "tasks", "containerPort": self.port}],
            "startupProbe": {**listens, "periodSeconds": 2, "failureThreshold": 300},
            "readinessProbe": {**listens, "periodSeconds": 5},
            "livenessProbe": {**listens, "periodSeconds": 10, "failureThreshold": 6},
        }

    def _metadata(self, name: str, job: str | None = None) -> dict[str, Any]:
        where = {"namespace": self.namespace} if self.namespace else {}
        return {"name": name, **where, "labels": self._labels(job)}

    def _labels(self, job: str | None = None) -> dict[str, str]:
        found = {
            "app.kubernetes.io/name": "runnel",
            "app.kubernetes.io/instance": self.name,
        }
        return found if job is None else {**found, "app.kubernetes.io/component": job}


def _first(job: str) -> LaunchedTask:
    return LaunchedTask(job, 0)
