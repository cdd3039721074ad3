"""Tasks in networks of their own hear each other but while a link is cut."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from benchmarks.severed_network import SeveredNetwork, is_possible

pytestmark = pytest.mark.skipif(not is_possible(), reason="no network namespaces can be made here")

ECHO = """
import json, os, socket
host, _, port = json.loads(os.environ["TF_CONFIG"])["cluster"]["ps"][0].rpartition(":")
server = socket.create_server((host, int(port)))
print("ready", flush=True)
while True:
    connection, _ = server.accept()
    connection.sendall(b"here")
    connection.close()
"""
ASK = """
import json, os, socket, sys
host, _, port = json.loads(os.environ["TF_CONFIG"])["cluster"]["ps"][0].rpartition(":")
try:
    with socket.create_connection((host, int(port)), timeout=float(sys.argv[1])) as connection:
        print(connection.recv(9).decode())
except OSError:
    print("nobody")
"""


def test_a_link_is_cut_and_mended(tmp_path):
    for name, program in (("echo.py", ECHO), ("ask.py", ASK)):
        (tmp_path / name).write_text(program)
    with SeveredNetwork(["ps:0", "worker:0"]) as network:
        command = tmp_path / "task"
        network.write_command(command)

        def environment(job):
            cluster = {"ps": ["localhost:2222"], "worker": ["localhost:2223"]}
            config = {"cluster": cluster, "task": {"type": job, "index": 0}}
            return {**os.environ, "TF_CONFIG": json.dumps(config)}

        def answer(seconds):
            asked = [str(command), str(tmp_path / "ask.py"), str(seconds)]
            found = subprocess.run(
                asked, env=environment("worker"), capture_output=True, text=True, check=True
            )
            return found.stdout.strip()

        server = subprocess.Popen(
            [str(command), str(tmp_path / "echo.py")],
            env=environment("ps"),
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            assert answer(60) == "here"
            network.cut("ps:0")
            assert answer(0.3) == "nobody"
            network.mend("ps:0")
            assert answer(60) == "here"
        finally:
            server.kill()
            server.communicate()
    holders = {holder.poll() for holder in network._holders}
    assert None not in holders and sys.platform == "linux"
