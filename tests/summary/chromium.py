"""A page in a headless Chromium, told what to do over a pipe by the DevTools protocol."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = next(filter(None, map(shutil.which, _NAMES)), None)

# Elements of web components are in shadow trees, which a plain query does not enter.
_EVERYWHERE = """
const everywhere = (selector, root = document) => {
  const found = [...root.querySelectorAll(selector)];
  for (const element of root.querySelectorAll('*'))
    if (element.shadowRoot) found.push(...everywhere(selector, element.shadowRoot));
  return found;
};
const until = async (find, seconds = 60) => {
  for (const end = performance.now() + 1000 * seconds; performance.now() < end;) {
    const found = find();
    if (found) return found;
    await new Promise(resolve => setTimeout(resolve, 50));
  }
  throw new Error(`not there after ${seconds} s: ${find}`);
};
"""


class Page:
    """A tab that shows ``address``."""

    def __init__(self, address: str, seconds: float = 120.0) -> None:
        assert PROGRAM is not None
        self._deadline = time.monotonic() + seconds
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        told, self._tell = os.pipe()
        self._hear, heard = os.pipe()

        def connect() -> None:  # it reads from descriptor 3 and writes to 4
            ends = os.dup(told), os.dup(heard)
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self._process = subprocess.Popen(
            [
                PROGRAM,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-proxy-server",
                "--window-size=1400,1000",
                f"--user-data-dir={self._profile.name}",
                "--remote-debugging-pipe",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=connect,
            close_fds=False,
        )
        os.close(told)
        os.close(heard)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self._loaded = 0
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self._call("Page.enable")
        self.go_to(address)

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._tell)
        os.close(self._hear)
        self._process.terminate()
        self._process.wait(30)
        self._profile.cleanup()

    def _call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._tell, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _next(self) -> Any:
        while b"\0" not in self._buffer:
            left = self._deadline - time.monotonic()
            if left <= 0 or not select.select([self._hear], [], [], left)[0]:
                raise TimeoutError("the browser did not answer in time")
            piece = os.read(self._hear, 1 << 16)
            if not piece:
                raise RuntimeError("the browser has ended")
            self._buffer += piece
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        self._loaded += message.get("method") == "Page.loadEventFired"
        return message

    def evaluate(self, code: str) -> Any:
        """The value of JavaScript in which ``everywhere(selector)`` and ``until(find)`` are there.

        ``until`` waits for something that the page is about to show.
        """
        expression = f"(async () => {{ {_EVERYWHERE} return {code}; }})()"
        found = self._call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"].get("description"))
        return found["result"].get("value")

    def go_to(self, address: str) -> None:
        """Shows another page, and waits until it is loaded."""
        for url in ("about:blank", address):  # of which one may differ in its fragment alone
            before = self._loaded
            self._call("Page.navigate", url=url)
            while self._loaded == before:
                self._next()

    def move_mouse(self, x: float, y: float) -> None:
        """Points at a place of the window."""
        self._call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self) -> str:
        """A picture of the window, for whoever looks for what is wrong: PNG in base64."""
        return self._call("Page.captureScreenshot")["data"]
