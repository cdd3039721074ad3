"""Checkpoints that a thread writes while training goes on."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from runnel.checkpoint.bundle import BundleWriter
from runnel.checkpoint.v1 import V1Writer
from runnel.graph.constant_value import constant_value
from runnel.graph.operation import Operation
from runnel.ops.checkpoints import write_tensors

_SAVES = frozenset({"SaveV2", "SaveSlices"})
_LONGEST_HOLD = 0.0005
"""The seconds for which a step may have to wait for the interpreter."""


class BackgroundSave:
    """A checkpoint that is being written.

    The thread is no daemon: a program that ends finishes its checkpoint first.
    """

    def __init__(self, write: Callable[[], str | None]) -> None:
        self._write = write
        self._path: str | None = None
        self._error: BaseException | None = None
        self._told = False
        self._thread = threading.Thread(target=self._run, name="BackgroundSave")
        self._thread.start()

    def _run(self) -> None:
        try:
            self._path = self._write()
        except BaseException as error:  # noqa: BLE001 (raised by wait)
            self._error = error

    def done(self) -> bool:
        """True when nothing is being written any more."""
        return not self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> str | None:
        """The checkpoint's name, once it is complete; raises what went wrong.

        A TimeoutError says that ``timeout`` seconds did not suffice.
        """
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"The checkpoint is not complete after {timeout} s")
        if self._error is not None:
            self._told = True
            raise self._error
        return self._path

    def make_way(self) -> None:
        """Waits; raises what went wrong, unless :meth:`wait` did so already."""
        self._thread.join()
        if not self._told:
            self.wait()


def snapshot(sess: Any, save_tensor_name: str) -> Callable[[str], None]:
    """Takes the values that a Saver would save, all in one step; returns what writes them.

    They are written in the Saver's format, but into one file, whatever the devices.
    """
    saves = _saves_before(sess.graph.get_tensor_by_name(save_tensor_name).op)
    values = sess.run([list(op.inputs[3:]) for op in saves])
    names = [name for op in saves for name in _texts(op, 1)]
    specs = [spec for op in saves for spec in _texts(op, 2)]
    types = [tensor.dtype.base_dtype for op in saves for tensor in op.inputs[3:]]
    tensors = [value for group in values for value in group]

    def write(path: str) -> None:
        place = os.path.abspath(path)
        is_bundle = saves[0].type == "SaveV2"
        writer = BundleWriter(place, LettingStepsGoOn()) if is_bundle else V1Writer(place)
        write_tensors(writer, names, specs, tensors, types)

    return write


class LettingStepsGoOn:
    """Hands the interpreter, every now and then, to who waits for it.

    A thread that does not keeps it for 5 ms each time a step comes back to Python: thousands of
    small variables are all Python.
    """

    def __init__(self) -> None:
        self._since = time.perf_counter()

    def __call__(self) -> None:
        if time.perf_counter() - self._since > _LONGEST_HOLD:
            time.sleep(0)  # noqa: TID251 (hands over, and waits for nothing)
            self._since = time.perf_counter()


def _saves_before(op: Operation) -> list[Operation]:
    """The operations that write for ``op``, one for each device, in the order of the graph."""
    seen, queue = {op}, [op]
    for current in queue:
        for source in (*(t.op for t in current.inputs), *current.control_inputs):
            if source not in seen:
                seen.add(source)
                queue.append(source)
    return sorted((o for o in queue if o.type in _SAVES), key=lambda o: o.name)


def _texts(op: Operation, place: int) -> list[str]:
    found = constant_value(op.inputs[place])
    if found is None:
        raise ValueError(f"{op.name!r} gets its names while it runs: it can only be saved in line")
    return [text.decode() if isinstance(text, bytes) else text for text in found.reshape(-1)]
