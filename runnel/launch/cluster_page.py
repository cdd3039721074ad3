"""The rows of a cluster as a page in a browser, served to this machine only."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from runnel.launch.cluster_view import TaskRow

_PAGE = Path(__file__).with_name("cluster_page.html")
_NAMES = ("localhost", "127.0.0.1")
_REQUEST_SECONDS = 10


class ClusterPage:
    """A web server on loopback; ``rows`` gives what it shows."""

    def __init__(self, rows: Callable[[], Sequence[TaskRow]], port: int = 0) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
        self._server.daemon_threads = True
        self._server.rows = rows  # type: ignore[attr-defined]
        self.port: int = self._server.server_address[1]
        self.address = f"http://localhost:{self.port}/"
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="runnel-page", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Serves no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> ClusterPage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Handler(BaseHTTPRequestHandler):
    """Answers for the page and for its data, nothing else."""

    timeout = _REQUEST_SECONDS
    server_version = "runnel"
    sys_version = ""

    def do_GET(self) -> None:  # noqa: N802 (the library's name)
        """Answers a request."""
        # A page of somebody else's could reach this server under a name of its own.
        if self.headers.get("Host", "").rpartition(":")[0] not in _NAMES:
            self.send_error(403, "This server is for localhost")
        elif self.path == "/":
            nonce = secrets.token_urlsafe(16)
            page = _PAGE.read_text(encoding="utf-8").replace("NONCE", nonce)
            policy = (
                f"default-src 'none'; connect-src 'self'; script-src 'nonce-{nonce}'; "
                f"style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; "
                "frame-ancestors 'none'"
            )
            self._answer("text/html; charset=utf-8", page.encode(), policy)
        elif self.path == "/status.json":
            rows = self.server.rows()  # type: ignore[attr-defined]
            content = json.dumps([row.as_json() for row in rows]).encode()
            self._answer("application/json", content, "default-src 'none'")
        else:
            self.send_error(404)

    def _answer(self, kind: str, content: bytes, policy: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the library's name)
        """Says nothing."""
