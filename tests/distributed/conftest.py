"""Tests of a module share a cluster: its threads have to be gone when the module is done."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.conftest import leaves_no_thread

_no_leaked_threads = pytest.fixture(autouse=True, scope="module", name="_no_leaked_threads")(
    leaves_no_thread
)


@pytest.fixture
def certificates(tmp_path) -> dict[str, str]:
    """An authority, and a certificate of its for this machine, as a task's environment."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")

    def run(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=tmp_path, check=True, capture_output=True)

    key = ["-newkey", "rsa:2048", "-nodes", "-days", "2"]
    run("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority")
    run("req", *key[:3], "-keyout", "task.key", "-out", "task.csr", "-subj", "/CN=localhost")
    (tmp_path / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2"]
    run("x509", "-req", "-in", "task.csr", *signing, "-out", "task.pem", "-extfile", "names")
    return {
        "RUNNEL_TLS_CERT": str(tmp_path / "task.pem"),
        "RUNNEL_TLS_KEY": str(tmp_path / "task.key"),
        "RUNNEL_TLS_CA": str(tmp_path / "ca.pem"),
        "RUNNEL_CLUSTER_TOKEN": "secret",
    }
