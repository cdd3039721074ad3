"""One life of a task as a process of this machine, with everything that it starts."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence

_LONGEST_LINE = 1 << 16
_DRAIN_SECONDS = 5.0

# Becomes the task's program after two things that only the new process itself can do: it asks the
# kernel to be killed when the launcher dies, however that happens, and it lets Ctrl-C interrupt it
# even if the launcher runs in the background of a script, where shells have SIGINT ignored.
_BECOME = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
if sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        os._exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""


class TaskProcess:
    """A process in a group of its own; ``said`` gets its lines and ``ended`` its status, once.

    It must be made by a thread that lives as long as the process may: when that thread ends, the
    kernel ends the process.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        said: Callable[[str], None],
        ended: Callable[[int], None],
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BECOME, str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
        self.pid = self._process.pid
        # Held while a signal is sent and while the process is reaped: its number is then its own.
        self._lock = threading.Lock()
        self._reaped = False
        self._said, self._ended = said, ended
        self._reader = threading.Thread(target=self._read, name="runnel-task-log", daemon=True)
        self._waiter = threading.Thread(target=self._wait, name="runnel-task-end", daemon=True)
        self._reader.start()
        self._waiter.start()

    def signal(self, number: int) -> None:
        """Sends a signal: SIGTERM to the process, others to all of its group."""
        with self._lock, contextlib.suppress(ProcessLookupError, PermissionError):
            if not self._reaped:
                (os.kill if number == signal.SIGTERM else os.killpg)(self.pid, number)

    def join(self, seconds: float) -> None:
        """Waits until its end has been told, but no longer than that."""
        self._waiter.join(seconds)

    def _read(self) -> None:
        pipe = self._process.stdout
        assert pipe is not None
        with pipe, contextlib.suppress(OSError, ValueError):
            while line := pipe.readline(_LONGEST_LINE):
                self._said(line.decode(errors="replace").rstrip("\r\n"))

    def _wait(self) -> None:
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            self.signal(signal.SIGKILL)  # what it has started and left
        status = self._reap()
        self._reader.join(_DRAIN_SECONDS)
        self._ended(status)

    def _reap(self) -> int:
        if not hasattr(os, "waitid"):
            return self._process.wait()
        with self._lock:
            status = self._process.wait()
            self._reaped = True
            return status
