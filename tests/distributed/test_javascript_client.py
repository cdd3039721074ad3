"""The client in JavaScript: sessions on a saved graph, where Node and npm are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as tf
from runnel.distributed.client_calls import status
from tests.distributed.clusters import cluster_of, process

pytestmark = pytest.mark.timeout(300)

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
NO_NETWORK = re.compile(r"\b(E[A-Z]*TIMEDOUT|ENOTFOUND|EAI_AGAIN|ECONN[A-Z]+|E[A-Z]+UNREACH)\b")


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Path:
    """A folder in which the client is installed as ``runnel-client``."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("needs Node and npm")
    folder = tmp_path_factory.mktemp("javascript")
    package = folder / "clients" / "javascript"
    shutil.copytree(
        REPOSITORY / "clients" / "javascript",
        package,
        ignore=shutil.ignore_patterns("node_modules"),
    )
    (folder / "runnel").symlink_to(REPOSITORY / "runnel")  # where the .proto is
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
    done = subprocess.run(
        [npm, "ci", *options, "--fetch-retries=0"], cwd=package, capture_output=True, text=True
    )
    if done.returncode and (found := NO_NETWORK.search(done.stderr)):
        pytest.skip(f"npm cannot fetch packages: {found[0]}")
    assert done.returncode == 0, done.stderr
    (package / "node_modules" / "runnel-client").symlink_to(package)
    shutil.copy(HERE / "javascript_client.mjs", package)
    return package


def write_graph(folder: Path) -> str:
    x = tf.placeholder(tf.float32, [None, 1], "x")
    y = tf.placeholder(tf.float32, [None, 1], "y")
    w = tf.Variable([[0.0]], name="w")
    loss = tf.reduce_mean(tf.square(x @ w - y), name="loss")
    tf.train.GradientDescentOptimizer(0.05).minimize(loss, name="train")
    for kind in ("float32", "float64", "int32", "int64", "uint8", "bool", "string"):
        tf.identity(tf.placeholder(kind, name=f"fed_{kind}"), f"got_{kind}")
    tf.identity(tf.placeholder(tf.float32, name="fed_empty"), "got_empty")
    a, b = tf.placeholder(tf.float32, name="a"), tf.placeholder(tf.float32, name="b")
    tf.multiply(a, b, name="product")  # the user's line
    tf.identity(tf.FIFOQueue(1, tf.float32).dequeue(), "taken")
    tf.global_variables_initializer()
    graph_def = tf.get_default_graph().as_graph_def(add_origins=True)
    return tf.train.write_graph(graph_def, folder, "graph.pb", as_text=False)


def node(client: Path, *arguments: str) -> str:
    """What a script prints."""
    done = subprocess.run(
        ["node", *arguments], cwd=client, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def trained(steps: int) -> tuple[list[float], float]:
    """The losses on the way, and the weight after it, as NumPy finds them."""
    x = np.float64([1, 2, 3, 4])
    y, w, losses = 2 * x, 0.0, []
    for _ in range(steps):
        losses.append(np.mean((x * w - y) ** 2))
        w -= 0.05 * np.mean(2 * (x * w - y) * x)
    return losses, w


def test_a_program_in_javascript_trains_a_saved_graph_and_reads_its_values(client, tmp_path):
    graph = write_graph(tmp_path)
    spec = cluster_of(worker=1)
    with process(spec, "worker", 0, RUNNEL_CLUSTER_TOKEN="secret"):
        found = json.loads(
            node(client, "javascript_client.mjs", spec["worker"][0], graph, "secret")
        )

    assert found["devices"] == [["/job:worker/replica:0/task:0/device:CPU:0", "CPU"]]
    losses, w = trained(5)
    np.testing.assert_allclose(found["losses"], losses, 1e-5)
    np.testing.assert_allclose(found["w"], [[w]], 1e-5)

    def value(kind: str, shape: list[int], array: str, elements: Any) -> dict[str, Any]:
        return {"dtype": kind, "shape": shape, "kind": array, "value": elements}

    assert found["values"] == {
        "float32": value("float32", [2, 2], "Float32Array", [[1.5, -2], [3, 4]]),
        "float64": value("float64", [2], "Float64Array", [0.1, 0.2]),
        "int32": value("int32", [1, 3], "Int32Array", [[1, 2, 3]]),
        "int64": value("int64", [2], "BigInt64Array", [f"{2**60}n", "-1n"]),
        "uint8": value("uint8", [2], "Uint8Array", [0, 255]),
        "bool": value("bool", [2, 1], "Uint8Array", [[True], [False]]),
        "string": value("string", [2, 2], "Array", [["a", ""], ["\u00e9\0", "\ufffd\0"]]),
        "empty": value("float32", [0, 3], "Float32Array", []),
    }
    assert found["bytes"] == [0xFF, 0]

    failed = found["failed"]
    assert failed["code"] == tf.errors.INVALID_ARGUMENT
    assert (failed["op"], failed["opType"]) == ("product", "Mul")
    assert failed["task"] == "/job:worker/replica:0/task:0"
    assert __file__ in failed["site"][-1] and "# the user's line" in failed["site"][-1]
    assert found["unknown"]["code"] == tf.errors.INVALID_ARGUMENT
    assert "nothing" in found["unknown"]["message"]
    assert found["late"]["code"] == tf.errors.DEADLINE_EXCEEDED
    assert found["cancelled"]["code"] == tf.errors.CANCELLED
    assert found["after"] == found["w"]
    assert found["sessions"] == 0
    assert found["refused"]["code"] == tf.errors.UNAUTHENTICATED


def test_a_client_in_javascript_that_is_killed_is_forgotten(client, tmp_path):
    graph = write_graph(tmp_path)
    spec = cluster_of(worker=1)
    script = client / "killed.mjs"
    script.write_text(
        'import { Session, status } from "runnel-client";\n'
        "const [address, graph] = process.argv.slice(2);\n"
        "await Session.create(address, graph);\n"
        "console.log((await status(address)).masters.length);\n"
    )
    with process(spec, "worker", 0):
        address = spec["worker"][0]
        with subprocess.Popen(
            ["node", script.name, address, graph], cwd=client, stdout=subprocess.PIPE, text=True
        ) as running:
            assert running.stdout is not None
            try:
                assert running.stdout.readline() == "1\n"
            finally:
                running.kill()
        while json.loads(status(address))["masters"]:  # until it is, or the test runs out of time
            pass


def test_a_client_in_javascript_speaks_tls_and_keeps_the_token_from_others(client, certificates):
    script = client / "encrypted.mjs"
    script.write_text(
        'import { readFileSync } from "node:fs";\n'
        'import { RunnelError, status } from "runnel-client";\n'
        "const [address, ...files] = process.argv.slice(2);\n"
        "const [ca, cert, key] = files.map((file) => readFileSync(file));\n"
        'const told = await status(address, { tls: { ca, cert, key }, token: "secret" });\n'
        "console.log(told.task);\n"
        'const far = status("runnel.invalid:1", { token: "secret" });\n'
        "console.log(await far.catch((error) => error instanceof RunnelError && error.message));\n"
    )
    files = [certificates[f"RUNNEL_TLS_{name}"] for name in ("CA", "CERT", "KEY")]
    spec = cluster_of(worker=1)
    with process(spec, "worker", 0, **certificates):
        done = node(client, script.name, spec["worker"][0], *files)
    task, refused = done.splitlines()
    assert task == "/job:worker/replica:0/task:0"
    assert "unencrypted" in refused
