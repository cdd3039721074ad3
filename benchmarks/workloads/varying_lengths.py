"""A recurrent network trained on batches of fifty shapes in turn, from a standing start."""

from __future__ import annotations

from itertools import cycle, islice
from typing import Any

from benchmarks.workload import Workload
from benchmarks.workloads.lstm import batch_of, initial_weights, make_step

SIZES = range(10, 60)
STEPS, BATCH, INPUTS, HIDDEN = 30, 32, 64, 64
CHECKED_STEPS = 20


def training(frontend: str, varying: str, steps: int) -> Workload:
    """One unit of work is the first ``steps`` steps; a process does it once.

    What varies is the ``"length"`` of the sequences or the size of the ``"batch"``.
    """
    # 7 and the number of sizes have no common divisor: neighbours differ by more than one.
    order = [SIZES[7 * n % len(SIZES)] for n in range(len(SIZES))]
    if varying == "length":
        step = make_step(frontend, BATCH, initial_weights(INPUTS, HIDDEN))
        data = [batch_of(size, size, BATCH, INPUTS) for size in order]
    else:
        step = make_step(frontend, None, initial_weights(INPUTS, HIDDEN))
        data = [batch_of(size, STEPS, size, INPUTS) for size in order]
    losses: list[float] = []

    def run(iterations: int) -> None:
        if iterations != 1 or losses:
            raise ValueError("the first steps are measured once in a process")
        losses.extend(step(batch) for batch in islice(cycle(data), steps))

    def facts() -> dict[str, Any]:
        return {"losses": losses[:CHECKED_STEPS]}

    return Workload(run, facts)
