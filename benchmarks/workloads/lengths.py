"""Sequences of twenty lengths in turn through one training step: no two batches alike in shape."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

from benchmarks.workload import Workload
from benchmarks.workloads.lstm import batch_of, initial_weights, make_step

LENGTHS = range(10, 30)
BATCH, INPUTS, HIDDEN = 32, 128, 128
PASSES = 30
"""How often every length has come before a step is timed."""


def lengths_in_turn(frontend: str) -> Workload:
    """One unit of work is a step for each length, shuffled by a fixed stride.

    The facts are of the whole life of the process: what was compiled, what the log said, how long
    the first step of each length took, and how long it took until all had come thirty times.
    """
    said: list[str] = []
    logger = logging.getLogger("runnel")
    logger.addHandler(_Listener(said))
    logger.setLevel(logging.INFO)
    step = make_step(frontend, BATCH, initial_weights(INPUTS, HIDDEN))
    # 7 and the number of lengths have no common divisor: neighbours differ by more than one.
    order = [LENGTHS[7 * n % len(LENGTHS)] for n in range(len(LENGTHS))]
    data = [batch_of(length, length, BATCH, INPUTS) for length in order]
    before = compilations()
    started = time.perf_counter()
    losses = [step(batch) for batch in data]
    first = time.perf_counter() - started
    # A length is compiled when its steps have taken as long as compiling is expected to take.
    for _ in range(PASSES):
        for batch in data:
            step(batch)
    settled = time.perf_counter() - started

    def run(iterations: int) -> None:
        for _ in range(iterations):
            for batch in data:
                step(batch)

    def facts() -> dict[str, Any]:
        return {
            "losses": losses,
            "first_seconds": first,
            "settled_seconds": settled,
            "compilations": compilations() - before,
            "said": said,
        }

    return Workload(run, facts)


def compilations() -> int:
    """How often runnel has compiled in this process; 0 in one that never did, or has another."""
    compiler = sys.modules.get("runnel.runtime.compile.compiler")
    return 0 if compiler is None else int(compiler.compilations)


class _Listener(logging.Handler):
    def __init__(self, said: list[str]) -> None:
        super().__init__(logging.INFO)
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        self._said.append(record.getMessage())
