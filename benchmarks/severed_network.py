"""A network of its own for each task of a job on this machine, whose links can be cut.

Needs Linux, root and the commands of iproute2 and util-linux. Each task runs in a network namespace
with an address of its own; a bridge in another namespace joins them. The namespaces live as long as
processes of this one, which the kernel ends with it: nothing is left behind, however it ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

_HOLD = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(1, signal.SIGKILL)
if libc.unshare(0x40000000):
    sys.exit(os.strerror(ctypes.get_errno()))
print("ready", flush=True)
sys.stdin.read()
"""
"""Makes a network namespace, and keeps it until its standard input is closed."""

_RUN = """#!{python}
import json, os, sys
namespaces = {namespaces!r}
config = json.loads(os.environ["TF_CONFIG"])
for job, addresses in config["cluster"].items():
    for index, address in enumerate(addresses):
        here = namespaces[f"{{job}}:{{index}}"][1]
        addresses[index] = f"{{here}}:{{address.rpartition(':')[2]}}"
os.environ["TF_CONFIG"] = json.dumps(config)
pid = namespaces["{{type}}:{{index}}".format(**config["task"])][0]
command = ["nsenter", f"--net=/proc/{{pid}}/ns/net", sys.executable, *sys.argv[1:]]
os.execvp(command[0], command)
"""
"""A task's command: it enters the task's namespace, with the addresses there."""


def is_possible() -> bool:
    """True where namespaces can be made."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    if not all(map(shutil.which, ("ip", "nsenter", "unshare"))):
        return False
    made = ["unshare", "--net", "ip", "link", "add", "name", "veth0"]
    made += ["type", "veth", "peer", "name", "veth1"]
    return subprocess.run(made, capture_output=True, check=False).returncode == 0


class SeveredNetwork:
    """Namespaces for tasks, by name such as ``worker:0``, and the links between them."""

    def __init__(self, tasks: Iterable[str]) -> None:
        self._holders: list[subprocess.Popen[str]] = []
        self._links: dict[str, str] = {}
        self._namespaces: dict[str, tuple[int, str]] = {}
        try:
            self._switch = self._namespace()
            self._at(self._switch, "link", "add", "switch", "type", "bridge")
            self._at(self._switch, "link", "set", "switch", "up")
            for number, task in enumerate(tasks, 1):
                self._join(task, f"link{number}", f"10.77.0.{number}")
        except BaseException:
            self.close()
            raise

    def write_command(self, path: Path) -> None:
        """Writes a program that runs a script, its first argument, as the task of `TF_CONFIG`."""
        path.write_text(_RUN.format(python=sys.executable, namespaces=self._namespaces))
        path.chmod(0o700)

    def cut(self, task: str) -> None:
        """Drops all that the task sends and is sent; nobody is told."""
        self._at(self._switch, "link", "set", self._links[task], "down")

    def mend(self, task: str) -> None:
        """Joins the task again."""
        self._at(self._switch, "link", "set", self._links[task], "up")

    def close(self) -> None:
        """Gives the namespaces up; they go with the last process in them."""
        for holder in self._holders:
            holder.kill()
            holder.communicate()

    def __enter__(self) -> SeveredNetwork:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _namespace(self) -> int:
        """A process in a namespace of its own."""
        holder = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _HOLD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._holders.append(holder)
        assert holder.stdout is not None
        if holder.stdout.readline() != "ready\n":
            raise OSError("no network namespace can be made here")
        return holder.pid

    def _join(self, task: str, link: str, address: str) -> None:
        own = self._namespace()
        peer = ("peer", "name", "eth0", "netns", str(own))
        self._at(self._switch, "link", "add", link, "type", "veth", *peer)
        self._at(self._switch, "link", "set", link, "master", "switch")
        self._at(self._switch, "link", "set", link, "up")
        self._at(own, "address", "add", f"{address}/24", "dev", "eth0")
        self._at(own, "link", "set", "eth0", "up")
        self._at(own, "link", "set", "lo", "up")
        self._links[task] = link
        self._namespaces[task] = own, address

    @staticmethod
    def _at(namespace: int, *arguments: str) -> None:
        command = ["nsenter", f"--net=/proc/{namespace}/ns/net", "ip", *arguments]
        subprocess.run(command, check=True, capture_output=True)
