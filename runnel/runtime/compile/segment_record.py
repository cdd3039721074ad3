"""The findings of a segment's trace, kept on disk so that it need not be traced again.

A record is an entry of the store of executables (``entry_store``), named by the segment's key
(``segment_key``): JSON, with the name of the executable's own entry. If anything is wrong with it,
or with the executable, the segment is traced and compiled as if there were none.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from runnel.native import onednn
from runnel.runtime.compile.entry_store import RECORD, executables
from runnel.runtime.compile.executable import Executable
from runnel.runtime.compile.executable_cache import KeptProgram
from runnel.runtime.compile.native_question import QUESTION
from runnel.runtime.compile.watch import register_question
from runnel.runtime.interpret.code import Code

_MOST_BYTES = 1 << 16
"""Of the outputs that do not depend on data."""
_FACTS = ("drawn", "asks", "asks_natively", "seconds", "saved")
logger = logging.getLogger("runnel")


@dataclass(frozen=True, slots=True)
class SegmentRecord:
    """How to load a segment; ``results`` has the shapes and types of what a call gives."""

    program: KeptProgram
    results: Any
    facts: dict[str, Any]

    def complete(self, executable: Executable, code: Code) -> None:
        """Tells ``executable`` what a trace of ``code`` would have."""
        for name in _FACTS:
            setattr(executable, name, self.facts[name])
        executable.checked = [code.instructions[i].node for i in self.facts["checked"]]
        executable.constant_outputs = {
            position: np.frombuffer(bytes.fromhex(content), dtype).reshape(shape).copy()
            for position, dtype, shape, content in self.facts["constant_outputs"]
        }
        executable.work = tuple(self.results[3])


def read_record(key: str) -> SegmentRecord | None:
    """The record of the segment with that key, whose executable can be called here."""
    store = executables()
    content = None if store is None else store.read(RECORD + key)
    if content is None:
        return None
    try:
        told = json.loads(content)
        name, operands, targets = told["program"]
        states, outputs, holds, work = told["results"]
        results = (
            [_shape(found) for found in states],
            [_shape(found) for found in outputs],
            _shape(holds),
            [_shape(found) for found in work],
        )
        program = KeptProgram(name, tuple(operands), tuple(targets))
        record = SegmentRecord(program, results, told["facts"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        logger.info("What is kept of a segment cannot be read: %s", error)
        return None
    return record if all(map(_is_registered, program.targets)) else None


def write_record(
    key: str, program: KeptProgram | None, results: Any, executable: Executable, code: Code
) -> None:
    """Keeps what the trace of a segment has found, if all of it can be kept."""
    store = executables()
    if store is None or program is None or not all(map(_is_known, program.targets)):
        return
    constants = executable.constant_outputs
    if any(array.dtype.hasobject for array in constants.values()):
        return
    if sum(array.nbytes for array in constants.values()) > _MOST_BYTES:
        return
    index_of = {instruction.node: i for i, instruction in enumerate(code.instructions)}
    if any(node not in index_of for node in executable.checked):
        return
    facts = {name: getattr(executable, name) for name in _FACTS}
    facts["checked"] = [index_of[node] for node in executable.checked]
    facts["constant_outputs"] = [
        (position, array.dtype.name, array.shape, array.tobytes().hex())
        for position, array in constants.items()
    ]
    states, outputs, holds, work = results
    told = {
        "program": program,
        "results": (
            [_told(shape) for shape in states],
            [_told(shape) for shape in outputs],
            _told(holds),
            [_told(shape) for shape in work],
        ),
        "facts": facts,
    }
    store.write(RECORD + key, json.dumps(told).encode())


def _told(shape: Any) -> tuple[str, tuple[int, ...]] | None:
    """A shape in JSON; None for what is not there: no check, a value that no branch gives."""
    return None if shape is None else (np.dtype(shape.dtype).name, tuple(shape.shape))


def _shape(told: Any) -> Any:
    if told is None:
        return None
    dtype, shape = told
    return jax.ShapeDtypeStruct(tuple(shape), np.dtype(dtype))


def _is_known(target: str) -> bool:
    """True for a foreign function of runnel: others JAX registers when it lowers a program."""
    return target == QUESTION or target in (*onednn.CONVOLUTIONS, *onednn.CHANNEL_SUMS)


def _is_registered(target: str) -> bool:
    """Whether XLA knows a foreign function by now."""
    if target == QUESTION:
        register_question()
        return True
    return _is_known(target) and onednn.load() is not None
