"""Input pipelines beside TensorFlow's tf.data and PyTorch's DataLoader.

`python -m benchmarks.input` measures every row; `--rows records` only some, `--quick` with fewer
and shorter rounds. The results go to `benchmarks/results/input.json`.
"""

from __future__ import annotations

from benchmarks import command
from benchmarks.interleaving import Spread, times_faster
from benchmarks.results import Row, now, samples_of
from benchmarks.trial import SUBJECT, Program, Settings, Trial, durations, speed_row

CONTENDERS = (SUBJECT, "tensorflow")
WORKLOADS = "benchmarks.workloads.input"
MICRO = 1e6
MILLIONS = 10
FLAT = 64.0
"""How many MiB more is no growth: what the allocator keeps."""


def records(settings: Settings) -> list[Row]:
    """Record files."""
    rows = []
    for name, size, batch in (("1 KB", 1 << 10, 100), ("100 KB", 100 << 10, 10)):
        with Trial(settings, CONTENDERS) as trial:
            outcome = trial.measure(
                f"{WORKLOADS}:records", {"size": size, "batch": batch}, compared="values"
            )
        rows.append(
            speed_row(
                f"records_{size}",
                f"TFRecord files, records of {name}, batch of {batch}",
                "µs",
                outcome,
                durations(outcome, MICRO),
                must_show="at least TensorFlow's throughput",
                at_least={"tensorflow": 1.0},
            )
        )
    return rows


def parsing(settings: Settings) -> list[Row]:
    """Examples."""
    with Trial(settings, CONTENDERS) as trial:
        outcome = trial.measure(f"{WORKLOADS}:parsing", {}, compared="values")
    return [
        speed_row(
            "parsing",
            "`parse_example` of 10 features that differ in length, batch of 256",
            "µs",
            outcome,
            durations(outcome, MICRO),
            must_show="at least TensorFlow's throughput",
            at_least={"tensorflow": 1.0},
        )
    ]


def images(settings: Settings) -> list[Row]:
    """Images, augmented."""
    programs: dict[str, Program] = {
        SUBJECT: (f"{WORKLOADS}:images", {"frontend": settings.frontend(SUBJECT)}),
        "tensorflow": (f"{WORKLOADS}:images", {"frontend": "tensorflow"}),
        "pytorch": (f"{WORKLOADS}:images_torch", {}),
    }
    with Trial(settings, tuple(programs)) as trial:
        outcome = trial.measure(programs, compared="values")
    return [
        speed_row(
            "images",
            "slices, shuffle, map (crop, flip, normalise), batch of 64, prefetch",
            "µs",
            outcome,
            durations(outcome, MICRO),
            must_show="at least TensorFlow's and DataLoader's throughput",
            at_least={"tensorflow": 1.0, "pytorch": 1.0},
        )
    ]


SHAPES = {
    "filtered": "slices of two components, map, filter, batch of 64",
    "padded": "slices, map to different lengths, padded batch of 64",
    "interleaved": "ranges, interleave, map, batch of 64",
    "strings": "strings, map (hash), batch of 64",
    "examples": "`parse_single_example`, one call an element, padded batch of 64",
    "shuffled": "slices of two components, map, shuffle, batch of 64",
}


def shapes(settings: Settings) -> list[Row]:
    """Other shapes of pipelines, whose functions do little."""
    rows = []
    for kind, what in SHAPES.items():
        with Trial(settings, CONTENDERS) as trial:
            outcome = trial.measure(f"{WORKLOADS}:shapes", {"kind": kind})
        rows.append(
            speed_row(
                f"shapes_{kind}",
                what,
                "µs",
                outcome,
                durations(outcome, MICRO),
                must_show="at least TensorFlow's throughput",
                at_least={"tensorflow": 1.0},
            )
        )
    return rows


def generator(settings: Settings) -> list[Row]:
    """Python generators."""
    with Trial(settings, CONTENDERS) as trial:
        outcome = trial.measure(f"{WORKLOADS}:generator", {}, compared="values")
    return [
        speed_row(
            "generator",
            "`from_generator`, batch of 32",
            "µs",
            outcome,
            durations(outcome, MICRO),
            must_show="at least TensorFlow's throughput",
            at_least={"tensorflow": 1.0},
        )
    ]


def training(settings: Settings) -> list[Row]:
    """A training step that a pipeline feeds, over one whose batch is constant.

    The two are measured in turns, so that what the machine does meanwhile meets both.
    """
    programs: dict[str, Program] = {
        f"{contender}, {batch}": (
            f"{WORKLOADS}:training",
            {"frontend": settings.frontend(contender), "fed": batch == "fed"},
        )
        for contender in CONTENDERS
        for batch in ("constant", "fed")
    }
    with Trial(settings, tuple(programs)) as trial:
        outcome = trial.measure(programs)
    measured = outcome.measurements
    ratios = {
        contender: ratio
        for contender in CONTENDERS
        if (ratio := times_faster(measured, f"{contender}, constant", f"{contender}, fed"))
    }
    steps = durations(outcome, 1e3)
    notes = [f"{name}: {spread.median:.3g} ms a step" for name, spread in steps.items()]
    return [
        Row(
            name="training",
            what="a training step of about 5 ms, fed by a pipeline over a constant batch",
            unit="times",
            values=ratios,
            must_show="within 5 %",
            passed=SUBJECT in ratios and ratios[SUBJECT].median <= 1.05,
            notes=(*outcome.failures(), *notes),
            measured=now(),
            samples=samples_of(measured),
        )
    ]


def memory(settings: Settings) -> list[Row]:
    """Resident memory over millions of elements."""
    with Trial(settings, (SUBJECT,), deadline=300.0) as trial:
        outcome = trial.measure(f"{WORKLOADS}:many_elements", rounds=MILLIONS + 1, iterations=1)
    samples = outcome.measurements[SUBJECT].samples
    growth = {}
    if samples:
        used = [sample.resident_bytes / 2**20 for sample in samples]
        growth = {SUBJECT: Spread.of([used[-1] - used[0]])}
    return [
        Row(
            name="memory",
            what=f"{MILLIONS} million elements through shuffle and batch, growth of memory",
            unit="MiB",
            values=growth,
            must_show="memory flat",
            passed=SUBJECT in growth and growth[SUBJECT].median <= FLAT,
            notes=outcome.failures(),
            measured=now(),
            samples=samples_of(outcome.measurements),
        )
    ]


ROWS = {
    "records": records,
    "parsing": parsing,
    "images": images,
    "shapes": shapes,
    "generator": generator,
    "training": training,
    "memory": memory,
}

if __name__ == "__main__":
    parser = command.parser_for(ROWS, "Input pipelines.")
    command.run("input", "Input", ROWS, parser, command.sustained)
