"""Updates of rows in place: instructions keep them apart, and a successful step stores them."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import starmap
from operator import call, setitem
from typing import Any

import numpy as np

from runnel.graph.operation import Operation
from runnel.graph.registry import keyword_only
from runnel.mapped_array import has_own_file, is_mapped, no_look
from runnel.ops.row_update import RowUpdate, whole_rows
from runnel.passes.program.kernel_call import fail_now
from runnel.passes.program.program import Node
from runnel.runtime.interpret.code import Code
from runnel.runtime.state.cell import Cell
from runnel.runtime.state.reader_wait import COPIED_PER_SECOND, ReaderWait
from runnel.runtime.state.task_state import TaskState

_PROBE = RowUpdate(np.empty(0), 0, 0)
_OWN = sys.getrefcount(_PROBE.base)
"""What the count of an array is that only an update refers to."""
_COPIED_TO_DISK_PER_SECOND = 5e8


def keep_rows_apart(code: Code) -> Code:
    """The same code, in which updates of rows that nothing but the variable takes are kept apart.

    Stored are then :class:`RowUpdate` objects in the place of whole values.
    """
    apart = _kept_apart(code)
    if not apart:
        return code
    found = [
        instruction._replace(call=_row_call(instruction.node))
        if instruction.outs and apart.issuperset(instruction.outs)
        else instruction
        for instruction in code.instructions
    ]
    return replace(code, instructions=found)


def updated_by_rows(code: Code) -> list[Operation]:
    """The variables of which only rows are updated, each at most once."""
    apart = _kept_apart(code)
    return [variable for variable, slot in code.stores if slot in apart]


def _kept_apart(code: Code) -> set[int]:
    """The slots of new values that are updates of rows and that nothing but the variable takes."""
    taken = {*code.outputs}
    for instruction in code.instructions:
        taken.update(instruction.args)
    stored = {slot for _, slot in code.stores} - taken
    return {
        slot
        for instruction in code.instructions
        if instruction.node.op_def.row_kernel is not None and stored.issuperset(instruction.outs)
        for slot in instruction.outs
    }


def _row_call(node: Node) -> Any:
    kernel = node.op_def.row_kernel
    assert kernel is not None
    known = {"check": fail_now, "operation": node.op}
    return partial(kernel, **{name: known[name] for name in keyword_only(kernel)})


def store_rows(
    task: TaskState,
    cells: Sequence[Cell],
    values: list[Any],
    look: Callable[[], None] = no_look,
) -> None:
    """Gives each cell its value, of which some are updates of rows, as a whole.

    The caller holds the cells' writer locks, and nothing of the step can fail any more. An update
    is carried out in the cell's own memory unless somebody else refers to it: a step that reads
    it, someone who saves it. For readers it waits about as long as a copy of the array would take,
    then makes one. ``look`` is called meanwhile, and raises where the step is to stop.
    """
    wait = ReaderWait(task, look)
    try:
        while True:
            with task.lock:  # which those take who begin to read
                shared = [i for i, cell in enumerate(cells) if _is_shared(cell, values[i])]
                if not shared:
                    _carry_out(cells, values)
                    return
                wait.begin()
            is_over = wait.is_over(sum(_copy_seconds(values[i].base) for i in shared))
            if is_over or not all(_may_become_free(values[i]) for i in shared):
                for i in shared:
                    values[i] = cells[i].owned(values[i].whole(look), look)
            else:
                wait.sleep()
    finally:
        wait.end()


def _copy_seconds(array: np.ndarray) -> float:
    """How long copying ``array`` would take, roughly."""
    return array.nbytes / (_COPIED_TO_DISK_PER_SECOND if is_mapped(array) else COPIED_PER_SECOND)


def _may_become_free(update: RowUpdate) -> bool:
    """True for an array that has its own memory, or file."""
    base = update.base
    return type(base) is np.ndarray and (base.base is None or has_own_file(base))


def _is_shared(cell: Cell, value: Any) -> bool:
    """Whether somebody beside the cell refers to the array that an update is of."""
    if type(value) is not RowUpdate:
        return False
    others = sys.getrefcount(value.base) - _OWN - (cell.held is value.base)
    return others > 0 or not _may_become_free(value)


def _writeable(update: RowUpdate) -> tuple[np.ndarray, Any, Any]:
    """A view of an update's array that can be written, where, and what; the array itself cannot."""
    flags = update.base.flags
    flags.writeable = True
    try:
        target, rows = whole_rows(update.base.view(), update.where, update.rows)
        return target, update.where, rows
    finally:
        flags.writeable = False


def _carry_out(cells: Sequence[Cell], values: list[Any]) -> None:
    # One call of a built-in: an interrupt comes before it or after.
    steps: list[tuple[Any, ...]] = []
    for cell, value in zip(cells, values, strict=True):
        if type(value) is not RowUpdate:
            steps.append((setattr, cell, "held", value))
            continue
        steps.append((setitem, *_writeable(value)))
        if cell.held is not value.base:
            steps.append((setattr, cell, "held", value.base))
    deque(starmap(call, steps), 0)
