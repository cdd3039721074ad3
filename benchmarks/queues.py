"""Queues and concurrent steps beside TensorFlow.

`python -m benchmarks.queues` measures every row; `--rows scalar_rate,waiters` only some, `--quick`
with fewer and shorter rounds, `--platform gpu` what is of interest in front of a GPU. The results
go to `benchmarks/results/queues.json`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks import command
from benchmarks.interleaving import Spread, times_faster
from benchmarks.results import Row, now, samples_of
from benchmarks.tables import display_name
from benchmarks.trial import SUBJECT, Settings, Trial, durations, speed_row

CONTENDERS = (SUBJECT, "tensorflow")
WORKLOADS = "benchmarks.workloads.queues"
REGIONS = "benchmarks.workloads.input_regions"
MICRO, MILLI = 1e6, 1e3


def scalar_rate(settings: Settings) -> list[Row]:
    """Elements a second from one thread to another."""
    rows = []
    with Trial(settings, CONTENDERS) as trial:
        for through in ("session.run", "make_callable"):
            outcome = trial.measure(f"{WORKLOADS}:scalar_rate", {"through": through})
            rows.append(
                speed_row(
                    f"scalar_rate_{through.replace('.', '_')}",
                    "enqueue and dequeue of a scalar, one producer and one consumer thread, "
                    f"`{through}`",
                    "ops/s",
                    outcome,
                    {
                        name: measurement.wall.rate()
                        for name, measurement in outcome.measurements.items()
                        if measurement.samples
                    },
                    must_show="at least TensorFlow's rate",
                    at_least={"tensorflow": 1.0},
                )
            )
    return rows


def shared_training(settings: Settings) -> list[Row]:
    """Eight threads, one session, one shuffle queue: every element is counted."""
    portions = 10
    elements = settings.steady_steps
    with Trial(settings, CONTENDERS, deadline=600.0) as trial:
        outcome = trial.measure(
            f"{WORKLOADS}:shared_training", rounds=portions, iterations=elements // portions
        )
    notes, holds = [], False
    for name, facts in outcome.facts.items():
        notes.append(
            f"{display_name(name)}: {facts['elements']:,} elements, {facts['lost']} lost, "
            f"{facts['repeated']} repeated"
        )
    samples = outcome.measurements[SUBJECT].samples
    if samples:
        # The first two portions compile, fill the queue and the pools of memory.
        memory = [sample.resident_bytes / 2**20 for sample in samples]
        counted = 8 * elements / 2**20  # the benchmark's own counters
        growth = memory[-1] - memory[1] - counted
        holds = growth <= 10
        notes.append(
            f"runnel's memory grows by {growth:.1f} MiB between {2 * elements // portions:,} and "
            f"{elements:,} elements"
        )
    return [
        speed_row(
            "shared_training",
            f"8 threads train on one session from one shuffle queue, {elements:,} elements, "
            "for each element",
            "µs",
            outcome,
            durations(outcome, MICRO),
            must_show="no deadlock, nothing lost or repeated, memory flat",
            holds=holds,
            notes=notes,
        )
    ]


def queue_input(settings: Settings) -> list[Row]:
    """Training steps on batches from a queue beside training steps on a constant batch."""
    rows = []
    # A step of a few tens of milliseconds, and one that is hardly longer than feeding its batch.
    for units, demanded in ((2048, True), (128, False)):
        path = f"{WORKLOADS}:queue_input"
        programs = {
            f"{name}, {source}": (
                path,
                {"frontend": settings.frontend(name), "source": source, "hidden_units": units},
            )
            for name in CONTENDERS
            for source in ("constant", "queue")
        }
        with Trial(settings, list(programs)) as trial:
            outcome = trial.measure(programs, rounds=2 * settings.rounds)
        times = durations(outcome, MILLI)
        ratios = {
            name: ratio
            for name in CONTENDERS
            if (ratio := times_faster(outcome.measurements, f"{name}, constant", f"{name}, queue"))
        }
        ours = ratios.get(SUBJECT)
        rows.append(
            Row(
                name=f"queue_input_{units}",
                what=f"training step of a perceptron 784-{units}-{units}-10 on batches of 100 from "
                "a queue, over one on a constant batch",
                unit="times",
                values=ratios,
                must_show="within 3 %" if demanded else None,
                passed=(ours is not None and ours.median <= 1.03) if demanded else None,
                notes=(
                    *[
                        f"{name} failed: {measurement.failure}"
                        for name, measurement in outcome.measurements.items()
                        if measurement.failure
                    ],
                    "; ".join(f"{name} {spread.median:.3g} ms" for name, spread in times.items()),
                ),
                measured=now(),
                samples=samples_of(outcome.measurements),
            )
        )
    return rows


def _over(
    settings: Settings,
    workload: str,
    sources: tuple[str, str],
    what: str,
    bound: float,
    platform: str = "cpu",
) -> list[Row]:
    """A step with something in front of it, over the same step with something simpler."""
    simple, tested = sources
    contenders = CONTENDERS if platform == "cpu" else (SUBJECT,)
    path = f"{REGIONS}:{workload}"
    programs = {
        f"{name}, {source}": (path, {"frontend": settings.frontend(name), "source": source})
        for name in contenders
        for source in sources
    }
    with Trial(settings, list(programs), platform=platform) as trial:
        outcome = trial.measure(programs, rounds=2 * settings.rounds)
    times = durations(outcome, MILLI)
    ratios = {
        name: ratio
        for name in contenders
        if (ratio := times_faster(outcome.measurements, f"{name}, {simple}", f"{name}, {tested}"))
    }
    ours = ratios.get(SUBJECT)
    return [
        Row(
            name=workload,
            what=what,
            unit="times",
            values=ratios,
            must_show=f"within {bound:.0%}".replace("%", " %"),
            passed=ours is not None and ours.median <= 1 + bound,
            notes=(
                *outcome.failures(),
                "; ".join(f"{name} {spread.median:.3g} ms" for name, spread in times.items()),
            ),
            measured=now(),
            samples=samples_of(outcome.measurements),
        )
    ]


def chosen_queue(settings: Settings, platform: str = "cpu") -> list[Row]:
    """A conditional that dequeues from one of two queues leaves the training step as it is."""
    what = (
        "training step of a convolutional network behind `tf.cond(p, q1.dequeue, q2.dequeue)`, "
        "over one behind one queue"
    )
    return _over(settings, "chosen_queue", ("one queue", "two queues"), what, 0.05, platform)


def towers(settings: Settings) -> list[Row]:
    """Towers behind a dequeue overlap as those on a constant batch do."""
    what = (
        "two towers of a convolutional network on two devices, with checks, behind one queue, over "
        "the same on a constant batch"
    )
    return _over(settings, "towers", ("constant", "queue"), what, 0.05)


def blocked_step(settings: Settings) -> list[Row]:
    """One blocked dequeue in a step does not hold up the rest, and ends when the session does."""
    with Trial(settings, CONTENDERS) as trial:
        outcome = trial.measure(f"{WORKLOADS}:blocked_step", rounds=settings.rounds, iterations=5)
    facts = outcome.facts
    ended = {name: Spread.of([f["ended_seconds"] * MILLI]) for name, f in facts.items()}
    return [
        Row(
            name="blocked_step",
            what="a step with a blocked dequeue and 100 other ops: closing the session ends it, "
            "longest of all",
            unit="ms",
            values=ended,
            must_show="the 100 run at once; it ends within 100 ms",
            passed=outcome.sound() and SUBJECT in ended and ended[SUBJECT].median <= 100,
            notes=(
                *outcome.failures(),
                "; ".join(
                    f"{display_name(name)}: the 100 have run {f['ran_seconds'] * MILLI:.3g} ms "
                    f"after the start, the step ends with {f['error']}"
                    for name, f in facts.items()
                ),
            ),
            measured=now(),
            samples=samples_of(outcome.measurements),
        )
    ]


def waiters(settings: Settings) -> list[Row]:
    """Ten thousand operations wait for one queue."""
    few, many = 1_000, 10_000
    facts: dict[int, dict[str, dict[str, float]]] = {}
    failures: list[str] = []
    sound = True
    for count in (few, many):
        with Trial(settings, CONTENDERS, deadline=300.0) as trial:
            outcome = trial.measure(
                f"{WORKLOADS}:waiters", {"count": count}, rounds=1, iterations=6
            )
        facts[count] = outcome.facts
        failures += outcome.failures()
        sound = sound and outcome.sound()
    rows = []
    for name, what, unit, scale in (
        ("wake_seconds", "waking them all, for each", "µs", MICRO),
        ("bytes", "memory while they wait, for each", "KiB", 1 / 1024),
    ):
        values = {
            contender: Spread.of([f[name] * scale / many]) for contender, f in facts[many].items()
        }
        passed, notes = None, list(failures)
        for contender, large in facts[many].items():
            small = facts[few].get(contender)
            if small is not None:
                notes.append(
                    f"{display_name(contender)}: {small[name] * scale / few:.3g} {unit} for each "
                    f"of {few:,}, {large[name] * scale / many:.3g} {unit} for each of {many:,}; "
                    f"{large['threads']:.0f} more threads"
                )
        if SUBJECT in facts[many] and SUBJECT in facts[few]:
            small, large = facts[few][SUBJECT], facts[many][SUBJECT]
            if name == "wake_seconds":
                steady = large[name] / many <= 2 * small[name] / few
            else:  # resident memory comes in pages and pools: a few KiB each is proportional
                steady = large[name] / many <= 4096
            passed = sound and steady and large["threads"] <= 2
        rows.append(
            Row(
                name=f"waiters_{name}",
                what=f"{many:,} operations of one step wait for one queue: {what}",
                unit=unit,
                values=values,
                must_show="no thread for each; memory and time proportional",
                passed=passed,
                notes=tuple(notes),
                measured=now(),
            )
        )
    return rows


ROWS: dict[str, Callable[[Settings], list[Row]]] = {
    function.__name__: function
    for function in (
        scalar_rate,
        shared_training,
        queue_input,
        chosen_queue,
        towers,
        blocked_step,
        waiters,
    )
}


GPU_ROWS = {"chosen_queue": partial(chosen_queue, platform="gpu")}


if __name__ == "__main__":
    parser = command.parser_for(ROWS, "Measure runnel's queues beside TensorFlow's.")
    parser.add_argument("--platform", choices=("cpu", "gpu"), default="cpu")
    if parser.parse_args().platform == "gpu":
        command.run("queues_gpu", "queues in front of a GPU", GPU_ROWS, parser)
    command.run("queues", "queues and concurrent steps", ROWS, parser)
