"""Dynamic control flow: recurrence, trivial loops, `py_func` in one, memory, changing lengths.

`python -m benchmarks.control_flow` measures every row; `--rows lstm_step,counting` only some,
`--quick` with fewer and shorter rounds. The results go to `benchmarks/results/control_flow.json`.
`--platform gpu` measures what is of interest on an accelerator: the memory that a loop leaves free
with `swap_memory`. Those results go to `control_flow_gpu.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from benchmarks import command
from benchmarks.interleaving import Spread
from benchmarks.results import Row, now
from benchmarks.tables import display_name
from benchmarks.trial import (
    SUBJECT,
    Outcome,
    Program,
    Settings,
    Trial,
    durations,
    speed_row,
    thread_notes,
)

WORKLOADS = "benchmarks.workloads"
CONTENDERS = (SUBJECT, "tensorflow")
MILLI = 1e3


def lstm_step(settings: Settings) -> list[Row]:
    """One training step of an LSTM over fifty steps of time, fed from NumPy."""
    path = f"{WORKLOADS}.lstm:training_step"
    after_loop = "JAX with one product after the loop for the weights' gradient"
    programs: dict[str, Program] = {
        SUBJECT: (path, {"frontend": settings.frontend(SUBJECT)}),
        "tensorflow": (path, {"frontend": "tensorflow"}),
        "jax": (f"{WORKLOADS}.lstm_jax:training_step", {}),
        "pytorch": (f"{WORKLOADS}.lstm_torch:training_step", {}),
        after_loop: (f"{WORKLOADS}.lstm_jax:training_step", {"after_loop": True}),
    }
    # A step takes a quarter of a second: a longer round has several.
    longer = replace(settings, seconds=5 * settings.seconds)
    with Trial(longer, list(programs)) as trial:
        outcome = trial.measure(programs, compared="losses")
    notes = thread_notes(outcome)
    return [
        speed_row(
            "lstm_step",
            "`dynamic_rnn`, LSTM of 512 with 512 inputs, batch 64, 50 steps, fed from NumPy: "
            "one training step",
            "ms",
            outcome,
            durations(outcome, MILLI),
            must_show="as fast as TensorFlow and PyTorch; within 10 % of hand-written `lax.scan`",
            at_least={"tensorflow": 1.0, "pytorch": 1.0, "jax": 1 / 1.1},
            notes=notes,
        )
    ]


def counting(settings: Settings) -> list[Row]:
    """A loop of 10,000 iterations of `i + 1 < n`, in each of runnel's ways to run one."""
    path, iterations = f"{WORKLOADS}.loops:counting", 10_000
    modes = {
        "structured": ("compilation forced off", "at least TensorFlow's rate", 1.0),
        "compiled": ("compiled", "at least 100 times TensorFlow's rate", 100.0),
    }
    programs: dict[str, Program] = {
        mode: (path, {"frontend": settings.frontend(SUBJECT), "mode": mode}) for mode in modes
    }
    programs["tensorflow"] = (path, {"frontend": "tensorflow"})
    with Trial(settings, list(programs)) as trial:
        together = trial.measure(programs)
    rows = []
    for mode, (what, must_show, bound) in modes.items():
        outcome = _pair(together, mode, "tensorflow")
        rows.append(
            speed_row(
                f"counting_{mode.replace('-', '_')}",
                f"`while_loop` of {iterations:,} trivial iterations, {what}",
                "iterations/s",
                outcome,
                {
                    name: measurement.wall.rate(iterations)
                    for name, measurement in outcome.measurements.items()
                    if measurement.samples
                },
                must_show=must_show,
                at_least={"tensorflow": bound},
            )
        )
    return rows


def dynamic_loops(settings: Settings) -> list[Row]:
    """Loops that run by pending counts: one that blocks, one that spans devices."""
    rows = []
    for name, iterations, what in (
        ("loop_over_queue", 10_000, "an element of a queue taken in each"),
        ("loop_over_devices", 1_000, "a product of 64 × 64 on one device, `tanh` on another"),
    ):
        path = f"{WORKLOADS}.input_regions:{name}"
        programs: dict[str, Program] = {
            contender: (path, {"frontend": settings.frontend(contender), "iterations": iterations})
            for contender in CONTENDERS
        }
        with Trial(settings, CONTENDERS) as trial:
            compared = "sums" if name == "loop_over_devices" else None
            outcome = trial.measure(programs, compared=compared)
        rows.append(
            speed_row(
                name,
                f"`while_loop` of {iterations:,} iterations, {what}",
                "iterations/s",
                outcome,
                {
                    contender: measurement.wall.rate(iterations)
                    for contender, measurement in outcome.measurements.items()
                    if measurement.samples
                },
                must_show="at least TensorFlow's rate",
                at_least={"tensorflow": 1.0},
            )
        )
    return rows


def python_body(settings: Settings) -> list[Row]:
    """A loop that cannot be compiled as a whole: products, a Python function, products."""
    path = f"{WORKLOADS}.loops:python_body"
    programs: dict[str, Program] = {
        name: (path, {"frontend": settings.frontend(name)}) for name in CONTENDERS
    }
    with Trial(settings, CONTENDERS) as trial:
        outcome = trial.measure(programs, compared="sums")
    return [
        speed_row(
            "python_body",
            "`while_loop` of 20 iterations: four products of 64 × 512 by 512 × 512, a `py_func`, "
            "four products",
            "ms",
            outcome,
            durations(outcome, MILLI),
            must_show="within 10 % of TensorFlow",
            at_least={"tensorflow": 1 / 1.1},
        )
    ]


def _pair(together: Outcome, subject: str, peer: str) -> Outcome:
    """Of contenders that were measured together two, the first of them as runnel."""
    names = {SUBJECT: subject, peer: peer}
    return Outcome(
        {name: together.measurements[key] for name, key in names.items()},
        {name: together.facts[key] for name, key in names.items() if key in together.facts},
    )


def gradient_memory(settings: Settings) -> list[Row]:
    """What a gradient keeps of a loop that may run much longer than it does."""
    rows = []
    for ends, mode, what, peers in (
        ("data", "default", "ended by its data", CONTENDERS),
        ("count", "compiled", "ended by a fed number, compiled", (SUBJECT,)),
    ):
        rows.append(_gradient_memory(settings, ends, mode, what, peers))
    return rows


def _gradient_memory(
    settings: Settings, ends: str, mode: str, what: str, contenders: tuple[str, ...]
) -> Row:
    maximum, counts = 100_000, (100, 1_000, 10_000)
    peaks: dict[str, dict[int, float]] = {name: {} for name in contenders}
    notes: list[str] = []
    sound = True
    for count in counts:
        programs: dict[str, Program] = {
            name: (
                f"{WORKLOADS}.loops:gradient_memory",
                {
                    "frontend": settings.frontend(name),
                    "iterations_run": count,
                    "maximum": maximum,
                    "ends": ends,
                    "mode": mode if name == SUBJECT else "default",
                },
            )
            for name in contenders
        }
        # New processes for each count: a peak never comes down.
        with Trial(settings, contenders) as trial:
            outcome = trial.measure(programs, rounds=1, iterations=3)
        sound = sound and outcome.sound()
        notes += outcome.failures()
        for name, facts in outcome.facts.items():
            peaks[name][count] = facts["bytes"]
    # What the longest loop takes beyond the one before it is the iterations' and nothing else's.
    few, many = counts[-2:]
    kept = {
        name: (found[many] - found[few]) / (many - few)
        for name, found in peaks.items()
        if few in found and many in found
    }
    for name, found in peaks.items():
        notes.append(
            f"{display_name(name)}'s memory grows by "
            + ", ".join(
                f"{grown / 2**20:.3g} MiB for {count:,} iterations"
                for count, grown in found.items()
            )
        )
    passed = sound and SUBJECT in kept
    if passed:
        # Room for the maximum would show in the shortest loop.
        passed = peaks[SUBJECT][counts[0]] <= 0.1 * maximum * kept[SUBJECT]
    return Row(
        name=f"gradient_memory_{ends}",
        what=f"memory that the gradient of a loop {what}, of at most {maximum:,} iterations on "
        "1,000 numbers, keeps for each iteration run",
        unit="KiB",
        values={name: Spread.of([size / 1024]) for name, size in kept.items()},
        must_show="grows with the iterations run, not with the maximum",
        passed=passed,
        notes=tuple(notes),
        measured=now(),
    )


def lengths(settings: Settings) -> list[Row]:
    """Twenty lengths of sequences in turn: what is compiled, and what a step takes."""
    count = 20
    with Trial(settings, CONTENDERS, deadline=300.0) as trial:
        outcome = trial.measure(f"{WORKLOADS}.lengths:lengths_in_turn", compared="losses")
    ours = outcome.facts.get(SUBJECT, {})
    said = ours.get("said", [])
    explained = any("sequences" in m or "varies in length" in m for m in said)
    compilations = ours.get("compilations", 0)
    what = f"`dynamic_rnn`, LSTM of 128, batch 32, {count} lengths from 10 to 29 in turn"
    return [
        Row(
            name="lengths_compilations",
            what=f"{what}: compilations",
            unit="",
            values={SUBJECT: Spread.of([float(compilations)])} if ours else {},
            must_show="no more than one for each shape, explained in the log",
            passed=outcome.sound() and compilations <= count and (explained or not compilations),
            notes=tuple(f"the log says: “{message}”" for message in said),
            measured=now(),
        ),
        speed_row(
            "lengths_step",
            f"{what}: one training step",
            "ms",
            outcome,
            durations(outcome, MILLI / count),
            notes=_beginning(outcome.facts, count),
        ),
    ]


def _beginning(facts: Mapping[str, Mapping[str, float]], count: int) -> list[str]:
    return [
        f"{display_name(name)} takes {found['first_seconds']:.2g} s for the first step of each of "
        f"the {count} lengths, and {found['settled_seconds']:.2g} s until each has come 30 times"
        for name, found in facts.items()
    ]


def swapped_memory(settings: Settings) -> list[Row]:
    """What a long recurrent network takes of a GPU's memory and time, with and without swapping."""
    steps, on_device = 2_000, "runnel without `swap_memory`"
    programs: dict[str, Program] = {
        name: (
            f"{WORKLOADS}.swapping:training_step",
            {"frontend": settings.frontend(SUBJECT), "swap_memory": swaps, "steps": steps},
        )
        for name, swaps in ((SUBJECT, True), (on_device, False))
    }
    with Trial(settings, list(programs), platform="gpu") as trial:
        outcome = trial.measure(programs, compared="losses", rounds=5, iterations=2)
    peaks = {name: facts["bytes"] / 2**30 for name, facts in outcome.facts.items()}
    what = (
        f"`dynamic_rnn` with `swap_memory`, LSTM of 1,024, batch 256, {steps:,} steps, "
        "one training step"
    )
    most = 0.1
    passed, notes = None, list(outcome.failures())
    if len(peaks) == len(programs):
        passed = outcome.sound() and peaks[SUBJECT] <= most * peaks[on_device]
        notes.append(f"without `swap_memory` it is {peaks[on_device]:.3g} GiB")
    return [
        Row(
            name="swapped_memory",
            what=f"{what}: the most memory of the GPU that is in use",
            unit="GiB",
            values={name: Spread.of([peak]) for name, peak in peaks.items()},
            must_show=f"at most {most:.0%} of what it is without",
            passed=passed,
            notes=tuple(notes),
            measured=now(),
        ),
        speed_row("swapped_memory_step", f"{what}: time", "ms", outcome, durations(outcome, MILLI)),
    ]


Measure = Callable[[Settings], list[Row]]

ROWS: dict[str, dict[str, Measure]] = {
    "cpu": {
        f.__name__: f
        for f in (lstm_step, counting, dynamic_loops, python_body, gradient_memory, lengths)
    },
    "gpu": {f.__name__: f for f in (swapped_memory,)},
}


if __name__ == "__main__":
    names = {name: row for rows in ROWS.values() for name, row in rows.items()}
    parser = command.parser_for(names, "Measure runnel's control flow beside its peers.")
    parser.add_argument("--platform", choices=tuple(ROWS), default="cpu")
    platform = parser.parse_args().platform
    table = "control_flow" if platform == "cpu" else f"control_flow_{platform}"
    command.run(table, "dynamic control flow", ROWS[platform], parser)
