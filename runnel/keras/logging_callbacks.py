"""Callbacks that write what they see, call a program's functions, and stop at what is no number."""

from __future__ import annotations

import csv
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from runnel import logging
from runnel.keras.callback import Callback


class CSVLogger(Callback):
    """Writes a line for each epoch to a file.

    Example:
        >>> model.fit(x, y, epochs=3, callbacks=[tf.keras.callbacks.CSVLogger("log.csv")])
    """

    def __init__(self, filename: Any, separator: str = ",", append: bool = False) -> None:
        self.filename, self.sep, self.append = filename, separator, append
        self.writer: Any = None
        self.keys: list[str] | None = None
        self._header = True

    def on_train_begin(self, logs: Any = None) -> None:
        """Opens the file."""
        path = Path(str(self.filename))
        if self.append and path.exists():
            self._header = path.stat().st_size == 0
        self.csv_file = path.open("a" if self.append else "w", newline="")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Writes a line."""
        found = dict(logs or {})
        if self.keys is None:
            self.keys = sorted(found)
        if self.model.stop_training:
            # The validation of the last epoch may not have been.
            found = {key: found.get(key, "NA") for key in self.keys}
        if self.writer is None:
            fields = ["epoch", *self.keys]
            self.writer = csv.DictWriter(
                self.csv_file,
                fields,
                delimiter=self.sep,
                lineterminator="\n",
                extrasaction="ignore",
            )
            if self._header:
                self.writer.writeheader()
        row = {"epoch": epoch, **{key: _cell(found.get(key)) for key in self.keys}}
        self.writer.writerow(row)
        self.csv_file.flush()

    def on_train_end(self, logs: Any = None) -> None:
        """Closes the file."""
        self.csv_file.close()
        self.writer = None


def _cell(value: Any) -> Any:
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
        return '"[' + ", ".join(map(str, value)) + ']"'
    return value


class LambdaCallback(Callback):
    """Calls functions of a program.

    Example:
        >>> show = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: print(logs))
    """

    def __init__(
        self,
        on_epoch_begin: Callable[..., Any] | None = None,
        on_epoch_end: Callable[..., Any] | None = None,
        on_batch_begin: Callable[..., Any] | None = None,
        on_batch_end: Callable[..., Any] | None = None,
        on_train_begin: Callable[..., Any] | None = None,
        on_train_end: Callable[..., Any] | None = None,
        **kwargs: Any,
    ) -> None:
        given = {
            "on_epoch_begin": on_epoch_begin,
            "on_epoch_end": on_epoch_end,
            "on_batch_begin": on_batch_begin,
            "on_batch_end": on_batch_end,
            "on_train_begin": on_train_begin,
            "on_train_end": on_train_end,
            **kwargs,
        }
        for name, function in given.items():
            if function is not None:
                self.__dict__[name] = function


class TerminateOnNaN(Callback):
    """Ends training when the loss is NaN or infinite."""

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Looks at the loss."""
        loss = (logs or {}).get("loss")
        if loss is not None and not np.isfinite(loss):
            print(f"Batch {batch}: Invalid loss, terminating training")
            self.model.stop_training = True


class RemoteMonitor(Callback):
    """Sends the logs of each epoch to a server, as JSON."""

    def __init__(
        self,
        root: str = "http://localhost:9000",
        path: str = "/publish/epoch/end/",
        field: str = "data",
        headers: dict[str, str] | None = None,
        send_as_json: bool = False,
    ) -> None:
        self.root, self.path, self.field = root, path, field
        self.headers, self.send_as_json = headers, send_as_json

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Sends the logs."""
        values = {k: float(v) if isinstance(v, np.generic) else v for k, v in (logs or {}).items()}
        body = json.dumps({"epoch": epoch, **values})
        kind = {"Content-Type": "application/json"}
        if not self.send_as_json:
            body = urllib.parse.urlencode({self.field: body})
            kind = {}
        headers = {**kind, **(self.headers or {})}
        request = urllib.request.Request(self.root + self.path, body.encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=10):
                pass
        except (urllib.error.URLError, OSError):
            logging.warning("Could not reach RemoteMonitor root server at %s", self.root)
