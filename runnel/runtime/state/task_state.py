"""The state that a task owns: variables, resources, random streams, in named containers.

It outlives sessions. A local session has one of its own; steps of several sessions may share one.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from weakref import WeakValueDictionary

from runnel.graph.errors import CancelledError
from runnel.graph.graph_scopes import mapped_folder
from runnel.graph.operation import Operation
from runnel.passes.program.state_access import variable_name
from runnel.runtime.state.cell import Cell, Undo
from runnel.runtime.state.flat_pack import FlatPack, Shapes
from runnel.runtime.state.pack import Pack
from runnel.runtime.state.random_streams import RandomStreams
from runnel.runtime.state.resources import Resources
from runnel.runtime.state.sent_ahead import Sender
from runnel.runtime.state.step_context import StepContext


class TaskState:
    """Containers of variables and resources, and the positions of random streams."""

    def __init__(self) -> None:
        # Held while a step takes the values that it starts from or stores new ones, so that a
        # step sees all the effects of another or none. Never held while a step computes, but for
        # setting rows of a variable in place.
        self.lock = threading.Lock()
        self._containers: dict[str, dict[str, Cell]] = {}
        self._packs: WeakValueDictionary[tuple[object, ...], Pack] = WeakValueDictionary()
        self.resources = Resources()
        """Queues and the like."""
        self.streams = RandomStreams()
        self.writing: list[None] = []
        """As long as the number of steps that hold or wait for writer locks.

        They load under ``lock``: while it is held and nobody is here, all state is as it stands.
        """
        self._senders: dict[threading.Thread, Sender] = {}
        """The steps that were sent and not yet seen to succeed."""
        self.await_readers: set[threading.Event] = set()
        """Set when an interpreted segment has ended: it looks at no variable any more."""
        self.maps = False
        """True once a variable has its value in a mapped file."""
        self.shape_changers = 0
        """Grows when another cell begins to change its shape from step to step."""

    def cell(self, variable: Operation) -> Cell:
        """The cell of the variable that ``variable`` makes."""
        container, name = variable_name(variable)
        with self.lock:
            cells = self._containers.setdefault(container, {})
            if name not in cells:
                cells[name] = Cell(mapped_folder(variable))
                self.maps = self.maps or bool(cells[name].folder)
            return cells[name]

    def pack(self, cells: Sequence[Cell], shapes: Shapes | None = None) -> Pack:
        """The pack of ``cells`` in this order: one for all the steps that want it.

        A flat one if their ``shapes`` are given.
        """
        key = shapes, *(cell.number for cell in cells)
        with self.lock:
            pack = self._packs.get(key)
            if pack is None:
                pack = Pack(cells) if shapes is None else FlatPack(cells, shapes)
                self._packs[key] = pack
            return pack

    def note_shape_changes(self, cells: Sequence[Cell]) -> None:
        """Notes that the values of ``cells`` do not keep their shape."""
        with self.lock:
            for cell in cells:
                if not cell.changes_shape:
                    cell.changes_shape = True
                    self.shape_changers += 1

    def sender(self) -> Sender:
        """The steps that the calling thread has sent ahead."""
        thread = threading.current_thread()
        sender = self._senders.get(thread)
        if sender is None:
            sender = self._senders[thread] = Sender(self.take_back)
        if len(self._senders) > 1:
            self._settle_ended()
        return sender

    def settle(self, context: StepContext | None = None) -> None:
        """Waits for what the calling thread, and threads that have ended, have sent ahead.

        Raises the error of a step that failed. It waits for as long as ``context`` may.
        """
        if self._senders:
            self.sender().settle(context)

    def settle_all(self) -> list[Exception]:
        """Waits for what any thread has sent ahead; the errors of steps that failed."""
        failures: list[Exception] = []
        for sender in list(self._senders.values()):
            try:
                sender.settle()
            except Exception as failure:  # noqa: BLE001 (each is for somebody)
                failures.append(failure)
        return failures

    def _settle_ended(self) -> None:
        """Raises the errors of threads that are no longer there to be told."""
        for thread, sender in list(self._senders.items()):
            if not thread.is_alive():
                sender.settle()
                self._senders.pop(thread, None)

    def take_back(self, undo: Sequence[Undo]) -> None:
        """Restores what cells held, unless another step has replaced what was left there."""
        with self.lock:
            for cell, old, new in reversed(undo):
                if cell.held is new:
                    cell.value = old

    def clear(self, containers: list[str] | None = None) -> None:
        """Forgets the values in the named containers, or in all; who waits for them fails.

        Random streams are in no container: they begin anew when all are forgotten.
        """
        with self.lock:
            if containers is None:
                self.streams.restart()
            for name, cells in self._containers.items():
                if containers is None or name in containers:
                    for cell in cells.values():
                        cell.value = None
        gone = CancelledError(None, None, "What this operation waits for was reset")
        self.resources.clear(containers, gone)
