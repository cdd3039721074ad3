"""The foundation's benchmarks: describing, dispatching, executing and training on one machine.

`python -m benchmarks.foundation` measures every row; `--rows construction,mlp_step` only some,
`--quick` with fewer and shorter rounds. The results go to `benchmarks/results/foundation.json`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from benchmarks import command
from benchmarks.interleaving import Command, Measurement, Spread, interleave, times_faster
from benchmarks.results import Row, now, samples_of
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

GRAPH_CONTENDERS = (SUBJECT, "tensorflow")
WORKLOADS = "benchmarks.workloads"
MICRO, MILLI = 1e6, 1e3


def construction(settings: Settings) -> list[Row]:
    """Graph construction: a mix of ops as people write it, a chain, a training graph."""
    rows = []
    with Trial(settings, GRAPH_CONTENDERS) as trial:
        for program, what, demanded in (
            ("forward_graph", "graph construction, classifiers", True),
            ("identity_chain", "graph construction, chain of Identity", True),
            ("training_graph", "graph construction, MLP with gradients and Adam", False),
        ):
            outcome = trial.measure(f"{WORKLOADS}.construction:construction", {"program": program})
            counts = {name: facts["operations"] for name, facts in outcome.facts.items()}
            rows.append(
                speed_row(
                    f"construction_{program}",
                    what,
                    "ops/s",
                    outcome,
                    # Each contender's own ops a second; the ratio is of the same program's time,
                    # so that adding more ops for the same program does not look like speed.
                    {
                        name: outcome.measurements[name].wall.rate(count)
                        for name, count in counts.items()
                    },
                    must_show="at least 20 times TensorFlow" if demanded else None,
                    at_least={"tensorflow": 20.0},
                    notes=[
                        "the program becomes "
                        + ", ".join(f"{n} ops in {display_name(c)}" for c, n in counts.items())
                    ],
                )
            )
    return rows


def dispatch(settings: Settings) -> list[Row]:
    """Steps that do almost nothing: what `session.run` and a callable cost."""
    programs = {
        "constant": "a constant",
        "fed_scalar": "a fed placeholder, scalar",
        "fed_vector": "a fed placeholder, 100 numbers",
        "fed_vector_plus_one": "`x + 1`, `x` fed, 100 numbers",
    }
    rows = []
    with Trial(settings, GRAPH_CONTENDERS) as trial:
        for through in ("session.run", "make_callable"):
            for program, what in programs.items():
                outcome = trial.measure(
                    f"{WORKLOADS}.dispatch:dispatch", {"program": program, "through": through}
                )
                demanded = through == "session.run" and program != "fed_vector_plus_one"
                rows.append(
                    speed_row(
                        f"dispatch_{through.replace('.', '_')}_{program}",
                        f"`{through}` of {what}",
                        "µs",
                        outcome,
                        durations(outcome, MICRO),
                        must_show="at least 5 times faster than TensorFlow" if demanded else None,
                        at_least={"tensorflow": 5.0},
                    )
                )
    return rows


def executed_chain(settings: Settings) -> list[Row]:
    """The executor alone: a chain of 1,000 ops, nothing optimized, nothing compiled."""
    rows = []
    with Trial(settings, GRAPH_CONTENDERS) as trial:
        for operation, shape, what in (
            ("identity", (), "Identity ops"),
            ("negative", (), "Neg ops"),
            ("negative", (8,), "Neg ops on 8 numbers"),
            ("add", (32, 16), "Add ops on 32 × 16 numbers"),
        ):
            outcome = trial.measure(
                f"{WORKLOADS}.chains:executed_chain",
                {"operation": operation, "length": 1000, "shape": shape},
            )
            rates = {
                name: measurement.wall.rate(1000)
                for name, measurement in outcome.measurements.items()
                if measurement.samples
            }
            reached = SUBJECT in rates and rates[SUBJECT].median >= 1e6
            compiled = outcome.facts.get(SUBJECT, {}).get("jax_imported", False)
            rows.append(
                speed_row(
                    "_".join(["executed_chain", operation, *map(str, shape)]),
                    f"chain of 1,000 {what}, optimizers off, interpreted",
                    "ops/s",
                    outcome,
                    rates,
                    must_show="at least 1 million ops/s, and no slower than TensorFlow",
                    at_least={"tensorflow": 1.0},
                    holds=reached and not compiled,
                    notes=["runnel imported JAX: not interpreted"] if compiled else [],
                )
            )
    return rows


def mlp_step(settings: Settings) -> list[Row]:
    """One training step of the MLP, fed from NumPy, the loss brought back."""
    programs: dict[str, Program] = {
        SUBJECT: (f"{WORKLOADS}.mlp:training_step", {"frontend": settings.frontend(SUBJECT)}),
        "tensorflow": (f"{WORKLOADS}.mlp:training_step", {"frontend": "tensorflow"}),
        "jax": (f"{WORKLOADS}.mlp_jax:training_step", {}),
        "pytorch": (f"{WORKLOADS}.mlp_torch:training_step", {}),
    }
    if settings.torch_compile:
        programs["torch.compile"] = (f"{WORKLOADS}.mlp_torch:training_step", {"compiled": True})
    with Trial(settings, list(programs)) as trial:
        outcome = trial.measure(programs, rounds=settings.rounds + 2, compared="losses")
    notes = thread_notes(outcome)
    return [
        speed_row(
            "mlp_step",
            "MLP 784-128-64-10 with Adam, batch 100, fed from NumPy, one step",
            "ms",
            outcome,
            durations(outcome, MILLI),
            must_show="faster than TensorFlow and PyTorch; within 10 % of hand-written JAX",
            at_least={"tensorflow": 1.0, "pytorch": 1.0, "jax": 1 / 1.1},
            notes=notes,
        )
    ]


def import_time(settings: Settings) -> list[Row]:
    """What the import statement costs a fresh process."""
    subject = settings.stand_in
    contenders = [
        Command(name, [sys.executable, "-c", f"import {modules}"])
        for name, modules in {
            SUBJECT: subject,
            "tensorflow": "tensorflow",
            "jax": "jax",
            "pytorch": "torch",
            "jax and runnel": f"jax, {subject}",
        }.items()
    ]
    interleave(contenders, 1)  # The first time, files come from the disk and bytecode is written.
    measurements = interleave(contenders, max(3, settings.rounds // 3))
    combined = {SUBJECT: measurements.pop("jax and runnel"), "jax": measurements["jax"]}
    return [
        _import_row("import_wall", "`import`", measurements, "wall"),
        _import_row("import_cpu", "`import`, CPU time", measurements, "cpu"),
        _import_row(
            "import_with_jax", "`import jax, runnel` beside `import jax`", combined, "wall"
        ),
    ]


def _import_row(name: str, what: str, measurements: dict[str, Measurement], clock: str) -> Row:
    outcome = Outcome(measurements, {})
    notes, holds = [], False
    if measurements[SUBJECT].samples and measurements["jax"].samples:
        difference = Spread.of(
            getattr(ours, clock) - getattr(theirs, clock)
            for ours, theirs in zip(
                measurements[SUBJECT].samples, measurements["jax"].samples, strict=True
            )
        )
        holds = difference.median <= 0.3
        notes.append(f"{difference.median:+.2f} s against `import jax` alone")
    return speed_row(
        name,
        what,
        "s",
        outcome,
        durations(outcome, 1.0, clock),
        must_show="at most 0.3 s over `import jax`",
        holds=holds,
        clock=clock,
        notes=notes,
    )


def mlp_script(settings: Settings) -> list[Row]:
    """A whole process: start Python, import, build the MLP, run one step, leave."""
    python = (sys.executable, "-m")
    contenders = [
        Command(SUBJECT, [*python, f"{WORKLOADS}.mlp", settings.frontend(SUBJECT)]),
        Command("tensorflow", [*python, f"{WORKLOADS}.mlp", "tensorflow"]),
        Command("jax", [*python, f"{WORKLOADS}.mlp_jax"]),
        Command("pytorch", [*python, f"{WORKLOADS}.mlp_torch"]),
    ]
    interleave(contenders, 1)
    outcome = Outcome(interleave(contenders, max(3, settings.rounds // 3)), {})
    return [
        speed_row(
            "mlp_script",
            "script that builds the MLP and runs one step, whole process",
            "s",
            outcome,
            durations(outcome, 1.0),
            must_show="less than half of TensorFlow's time",
            at_least={"tensorflow": 2.0},
        )
    ]


def tiny_graphs(settings: Settings) -> list[Row]:
    """1,000 different graphs, each built and run once."""
    path = f"{WORKLOADS}.tiny_graphs"
    with Trial(settings, GRAPH_CONTENDERS) as trial:
        outcome = trial.measure(f"{path}:tiny_graphs", rounds=3, iterations=1, compared="results")
    # Counted in a process of its own: counting needs JAX, which the measured one never imports.
    with Trial(settings, [SUBJECT]) as trial:
        counted = trial.measure(f"{path}:compilations", rounds=1, iterations=1)
    compilations = counted.facts.get(SUBJECT, {}).get("compilations")
    return [
        speed_row(
            "tiny_graphs",
            "1,000 different tiny graphs, each built and run once",
            "s",
            outcome,
            durations(outcome, 1.0),
            must_show="no compilation; at least 5 times faster than TensorFlow",
            at_least={"tensorflow": 5.0},
            holds=compilations == 0,
            notes=[f"{compilations} compilations by XLA in runnel"],
        )
    ]


def growing_chain(settings: Settings) -> list[Row]:
    """Chains of growing length, each built and run once: the time for one op must stay the same."""
    path = f"{WORKLOADS}.chains:growing_chain"
    rows = []
    for length, rounds in ((1_000, 5), (10_000, 2), (100_000, 1)):
        with Trial(settings, GRAPH_CONTENDERS) as trial:
            outcome = trial.measure(path, {"length": length}, rounds=rounds, iterations=1)
        rows.append(
            speed_row(
                f"growing_chain_{length}",
                f"chain of {length:,} ops, built and run once, for each op",
                "µs",
                outcome,
                durations(outcome, MICRO / length),
                notes=[
                    "; ".join(
                        f"{display_name(name)} describes in {min(facts['describe_seconds']):.3g} s"
                        f" and runs in {min(facts['run_seconds']):.3g} s"
                        for name, facts in outcome.facts.items()
                    )
                ],
            )
        )
    return [*rows, _growth(settings, path, short=1_000, long=100_000)]


def _growth(settings: Settings, path: str, short: int, long: int) -> Row:
    """How much longer one op takes in a long chain: runnel's two lengths, interleaved."""
    lengths = {f"chain of {length:,}": length for length in (short, long)}
    with Trial(settings, list(lengths)) as trial:
        outcome = trial.measure(
            {
                name: (path, {"frontend": settings.frontend(SUBJECT), "length": length})
                for name, length in lengths.items()
            },
            rounds=3,
            iterations=1,
        )
    shorter, longer = lengths
    growth = times_faster(outcome.measurements, shorter, longer)
    if growth is not None:
        growth = growth.scaled(short / long)
    return Row(
        name="growing_chain_growth",
        what=f"time for one op, chain of {long:,} over chain of {short:,}",
        unit="times",
        values={} if growth is None else {SUBJECT: growth},
        must_show="time grows linearly; no recursion limit",
        # A graph of this size leaves the caches, and Python's collector starts to make full passes
        # over it; both add a constant. A cost that grew with the square would show as 100.
        passed=growth is not None and growth.median <= 2.0,
        notes=outcome.failures(),
        measured=now(),
        samples=samples_of(outcome.measurements),
    )


def steady_memory(settings: Settings) -> list[Row]:
    """Resident memory over many steps of a small graph."""
    portions = 20
    with Trial(settings, [SUBJECT], deadline=300.0) as trial:
        outcome = trial.measure(
            f"{WORKLOADS}.steady_steps:steady_steps",
            rounds=portions + 1,
            iterations=settings.steady_steps // portions,
        )
    what = f"{settings.steady_steps:,} steps of a small graph, growth of resident memory"
    samples = outcome.measurements[SUBJECT].samples
    if not samples:
        return [speed_row("steady_memory", what, "MiB", outcome, {}, must_show="memory flat")]
    # The first portion compiles, fills pools and caches; what follows it must add nothing.
    memory = [sample.resident_bytes / 2**20 for sample in samples]
    growth = memory[-1] - memory[0]
    return [
        speed_row(
            "steady_memory",
            what,
            "MiB",
            outcome,
            {SUBJECT: Spread.of([growth])},
            must_show="memory flat",
            holds=growth <= 2.0,
            notes=[
                f"{memory[0]:.1f} MiB after the first {settings.steady_steps // portions:,} steps, "
                f"{memory[-1]:.1f} MiB at the end; "
                f"{durations(outcome, MICRO)[SUBJECT].median:.3g} µs a step"
            ],
        )
    ]


ROWS: dict[str, Callable[[Settings], list[Row]]] = {
    function.__name__: function
    for function in (
        construction,
        dispatch,
        executed_chain,
        mlp_step,
        import_time,
        mlp_script,
        tiny_graphs,
        growing_chain,
        steady_memory,
    )
}


def _settings_from(options: argparse.Namespace) -> Settings:
    return command.settings_from(
        options, stand_in=options.stand_in, torch_compile=options.torch_compile
    )


def main() -> None:
    """Measure the rows that the command line asks for."""
    parser = command.parser_for(ROWS, "Measure runnel beside its peers, interleaved.")
    parser.add_argument(
        "--torch-compile", action="store_true", help="measure torch.compile beside PyTorch eager"
    )
    parser.add_argument(
        "--stand-in",
        default=SUBJECT,
        metavar="MODULE",
        help="measure this module in runnel's place; tensorflow shows the noise of the method",
    )
    command.run("foundation", "runnel beside its peers", ROWS, parser, _settings_from)


if __name__ == "__main__":
    main()
