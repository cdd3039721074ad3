"""The manifest of a job, against Kubernetes' own schema where that is installed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from runnel.command_line import main
from runnel.launch.kubernetes_manifest import KubernetesJob
from runnel.launch.task_layout import TaskLayout
from runnel.launch.yaml_text import yaml_text

EVERYTHING = KubernetesJob(
    name="digits",
    image="registry.example/train:1",
    layout=TaskLayout(ps=2, workers=4, chief=True, evaluator=True),
    script="train.py",
    arguments=("--index={task}", "--hosts={worker_hosts}", "$(HOME)", "{x}"),
    namespace="models",
    gpus=1,
    resources={"worker": {"cpu": "4", "memory": "8Gi"}, "ps": {"memory": "2Gi"}},
    claims={"models": "/models"},
    token_secret="digits-token",
    tls_secret="digits-tls",
)
PLAIN = KubernetesJob(
    "train", "image", TaskLayout(ps=1, workers=1), "/bin/work", servers=True, token_secret="t"
)


def _by_name(job: KubernetesJob) -> dict[tuple[str, str], Any]:
    return {(found["kind"], found["metadata"]["name"]): found for found in job.objects()}


def _pod(job: KubernetesJob, kind: str, name: str) -> dict[str, Any]:
    return _by_name(job)[kind, name]["spec"]["template"]["spec"]


def _container(job: KubernetesJob, kind: str, name: str) -> dict[str, Any]:
    [container] = _pod(job, kind, name)["containers"]
    return container


def _variables(container: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}


@pytest.mark.parametrize("job", [EVERYTHING, PLAIN], ids=lambda job: job.name)
def test_every_object_is_what_the_api_takes(job):
    validate = pytest.importorskip("kubernetes_validate")
    for version in ("1.28", validate.latest_version()):  # 1.28 began to label pods of a set
        for found in job.objects():
            validate.validate(found, version, strict=True)


def test_servers_are_a_set_that_comes_back_and_workers_a_job_that_ends():
    assert list(_by_name(EVERYTHING)) == [
        ("Service", "digits"),
        ("NetworkPolicy", "digits"),
        ("StatefulSet", "digits-ps"),
        ("Job", "digits-chief"),
        ("Job", "digits-worker"),
        ("Job", "digits-evaluator"),
    ]
    servers = _by_name(EVERYTHING)["StatefulSet", "digits-ps"]["spec"]
    assert (servers["replicas"], servers["serviceName"]) == (2, "digits")
    assert servers["podManagementPolicy"] == "Parallel"
    workers = _by_name(EVERYTHING)["Job", "digits-worker"]["spec"]
    assert (workers["completions"], workers["parallelism"]) == (4, 4)
    assert workers["completionMode"] == "Indexed" and workers["backoffLimit"] == 12
    assert _pod(EVERYTHING, "Job", "digits-worker")["restartPolicy"] == "OnFailure"
    assert all(found["metadata"]["namespace"] == "models" for found in EVERYTHING.objects())


def test_the_selectors_find_the_pods():
    objects = _by_name(EVERYTHING)
    for kind, name in (("StatefulSet", "digits-ps"), ("Job", "digits-worker")):
        labels = objects[kind, name]["spec"]["template"]["metadata"]["labels"]
        service = objects["Service", "digits"]["spec"]
        assert service["selector"].items() <= labels.items()
        assert service["clusterIP"] == "None" and service["publishNotReadyAddresses"]
        policy = objects["NetworkPolicy", "digits"]["spec"]
        assert policy["podSelector"]["matchLabels"].items() <= labels.items()
        selector = objects[kind, name]["spec"].get("selector", {}).get("matchLabels", {})
        assert selector.items() <= labels.items()


@pytest.mark.parametrize(
    ("kind", "job", "number"), [("StatefulSet", "ps", 1), ("Job", "worker", 3)]
)
def test_each_pod_finds_in_tf_config_who_it_is(kind, job, number):
    """As Kubernetes fills in variables, and names the pods of a set and of an indexed job."""
    container = _container(EVERYTHING, kind, f"digits-{job}")
    variables = _variables(container)
    names = list(variables)
    assert names.index("RUNNEL_TASK_INDEX") < names.index("TF_CONFIG")  # only those before count
    path = variables["RUNNEL_TASK_INDEX"]["fieldRef"]["fieldPath"]
    assert "pod-index" in path if job == "ps" else "job-completion-index" in path
    config = json.loads(variables["TF_CONFIG"].replace("$(RUNNEL_TASK_INDEX)", str(number)))
    assert config["task"] == {"type": job, "index": number}
    assert config["cluster"][job][number] == f"digits-{job}-{number}.digits:2222"
    assert {j: len(found) for j, found in config["cluster"].items()} == {
        "ps": 2,
        "chief": 1,
        "worker": 4,
    }


def test_arguments_are_filled_in_and_the_users_own_dollars_are_kept():
    command = _container(EVERYTHING, "Job", "digits-worker")["command"]
    hosts = ",".join(f"digits-worker-{i}.digits:2222" for i in range(4))
    assert command == [
        *("python", "train.py", "--index=$(RUNNEL_TASK_INDEX)", f"--hosts={hosts}"),
        *("$$(HOME)", "{x}"),
    ]
    assert _container(PLAIN, "StatefulSet", "train-ps")["command"] == ["runnel", "server"]
    assert _container(PLAIN, "Job", "train-worker")["command"] == ["/bin/work"]


def test_secrets_resources_probes_and_volumes():
    worker = _container(EVERYTHING, "Job", "digits-worker")
    assert worker["resources"] == {
        "requests": {"cpu": "4", "memory": "8Gi"},
        "limits": {"memory": "8Gi", "nvidia.com/gpu": "1"},
    }
    assert "nvidia.com/gpu" not in str(_container(EVERYTHING, "StatefulSet", "digits-ps"))
    variables = _variables(worker)
    token = {"secretKeyRef": {"name": "digits-token", "key": "token"}}
    assert variables["RUNNEL_CLUSTER_TOKEN"] == token
    assert "RUNNEL_INSECURE" not in variables
    assert variables["RUNNEL_TLS_CERT"] == "/etc/runnel/tls/tls.crt"
    mounts = {mount["name"]: mount["mountPath"] for mount in worker["volumeMounts"]}
    assert mounts == {"models": "/models", "tls": "/etc/runnel/tls"}
    volumes = _pod(EVERYTHING, "Job", "digits-worker")["volumes"]
    assert {volume["name"] for volume in volumes} == set(mounts)
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert worker[probe]["tcpSocket"]["port"] == worker["ports"][0]["containerPort"] == 2222
    assert "livenessProbe" not in _container(EVERYTHING, "Job", "digits-evaluator")
    assert _variables(_container(PLAIN, "Job", "train-worker"))["RUNNEL_INSECURE"] == "1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--image", "i", "train.py"], "--tls-secret"),
        (["--image", "i", "--insecure", "--name", "Not Good", "train.py"], "small letters"),
        (["--image", "i", "--insecure", "--resources", "ps:cpu=1", "train.py"], "no tasks of ps"),
        (["--image", "i", "--insecure", "--resources", "worker", "train.py"], "JOB:NAME=AMOUNT"),
        (["--image", "i", "--insecure", "--claim", "models", "train.py"], "NAME:FOLDER"),
        (["--insecure", "train.py"], "--image"),
    ],
)
def test_mistakes_are_told(arguments, message):
    result = CliRunner().invoke(main, ["kubernetes", *arguments])
    assert result.exit_code == 2 and message in result.output


def test_the_command_prints_documents_that_yaml_reads_as_the_objects():
    yaml = pytest.importorskip("yaml")
    result = CliRunner().invoke(
        main,
        ["kubernetes", "--image", "i", "--ps", "1", "--insecure", "--", "train.py", "--steps", "5"],
    )
    assert result.exit_code == 0, result.output
    expected = KubernetesJob(
        *("train", "i", TaskLayout(ps=1, workers=1), "train.py", ("--steps", "5")),
        token_secret="train-token",
    )
    assert list(yaml.safe_load_all(result.output)) == expected.objects()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inside: (
        st.lists(inside, max_size=4)
        | st.dictionaries(st.text(min_size=1, max_size=8), inside, max_size=4)
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=8), VALUES, min_size=1, max_size=4))
def test_any_plain_value_is_read_as_it_was(value):
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load(yaml_text(value)) == value
