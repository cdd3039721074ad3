"""Interpreted steps on a machine whose cores are busy.

`python -m benchmarks.busy_machine` measures; `--quick` with fewer and shorter rounds. The results
go to `benchmarks/results/busy_machine.json`.
"""

from __future__ import annotations

from benchmarks import command
from benchmarks.interleaving import Spread, times_faster
from benchmarks.results import Row, now, samples_of
from benchmarks.trial import SUBJECT, Settings, Trial, durations

WORKLOAD = "benchmarks.workloads.busy_machine:training_step"
SITUATIONS = ("nothing, one core", "nothing", "busy processes")
MILLI = 1e3
BOUND = 2.0


def mlp(settings: Settings) -> list[Row]:
    """The MLP beside one busy process a core, over the MLP alone on one core."""
    programs = {}
    for contender in (SUBJECT, "tensorflow"):
        for beside in SITUATIONS:
            arguments = {"frontend": settings.frontend(contender), "beside": beside}
            programs[f"{contender} beside {beside}"] = (WORKLOAD, arguments)
    with Trial(settings, tuple(programs)) as trial:
        outcome = trial.measure(programs)
    values: dict[str, Spread] = {}
    for contender in (SUBJECT, "tensorflow"):
        alone, busy = (f"{contender} beside {SITUATIONS[i]}" for i in (0, 2))
        ratio = times_faster(outcome.measurements, alone, busy)
        if ratio is not None:
            values[contender] = ratio
    times = durations(outcome, MILLI)
    ours = values.get(SUBJECT)
    return [
        Row(
            name="mlp",
            what="the MLP, interpreted, beside one busy process a core, over its step alone on one "
            "core",
            unit="times",
            values=values,
            must_show="within 2 times",
            passed=ours is not None and ours.median <= BOUND,
            notes=(
                *outcome.failures(),
                "; ".join(f"{name} {spread.median:.3g} ms" for name, spread in times.items()),
            ),
            measured=now(),
            samples=samples_of(outcome.measurements),
        )
    ]


ROWS = {"mlp": mlp}

if __name__ == "__main__":
    command.run(
        "busy_machine", "A busy machine", ROWS, command.parser_for(ROWS, "Steps beside others.")
    )
