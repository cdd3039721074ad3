"""Table 1 of the OSDI 2016 paper, today: training steps of convolutional networks beside the peers.

`python -m benchmarks.table1` measures on an NVIDIA GPU: AlexNet, Overfeat, OxfordNet and GoogleNet
in float32 with tf32 matrix units and in mixed bfloat16, beside JAX written by hand, PyTorch eager
and `torch.compile`; and AlexNet as the batch grows. `--platform cpu` measures the four models, a
ResNet-50 and an LSTM at small batches, beside TensorFlow too. The results go to
`benchmarks/results/table1_gpu.json` and `table1_cpu.json`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from benchmarks import results
from benchmarks.interleaving import Spread
from benchmarks.models.architectures import ARCHITECTURES, Recurrence, training_flops
from benchmarks.results import Row
from benchmarks.tables import print_table
from benchmarks.trial import SUBJECT, Outcome, Program, Settings, Trial, durations, speed_row

MODELS = "benchmarks.models"
TABLE_1 = {"alexnet": 128, "overfeat": 128, "vgg_a": 64, "googlenet": 128}
"""The models of Table 1 and their batches."""
GROWTH = (32, 64, 128, 256, 512)
CPU_BATCH = 12
PEERS = {
    "gpu": ("jax", "pytorch", "torch.compile"),
    "cpu": ("tensorflow", "jax", "pytorch", "torch.compile"),
}
# Losses after one update; tf32 keeps 10 bits of a product's operands, bfloat16 7. The statistics of
# batch normalisation over a small batch magnify differences of rounding.
AGREEMENT = {"float32": 1e-3, "tf32": 5e-3, "bf16": 2e-2, "resnet50": 2e-2}
PRODUCT_SIDE = {"gpu": 8192, "cpu": 2048}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure and how thoroughly."""

    platform: str
    settings: Settings
    contenders: tuple[str, ...]
    tiny: bool = False
    """Small images and batches: does it work at all?"""

    @property
    def precisions(self) -> tuple[str, ...]:
        """The precisions of the platform's rows."""
        return ("tf32", "bf16") if self.platform == "gpu" else ("float32",)


def programs(plan: Plan, function: str, arguments: dict[str, Any]) -> dict[str, Program]:
    """Where each contender's version of a model is made, and from which arguments."""
    found: dict[str, Program] = {}
    for name in plan.contenders:
        if name in (SUBJECT, "tensorflow"):
            kept = {"keep_freed_memory": plan.platform == "cpu"} if name == SUBJECT else {}
            values = {"frontend": name, **arguments, **kept}
            found[name] = (f"{MODELS}.on_graphs:{function}", values)
        elif name == "jax":
            found[name] = (f"{MODELS}.on_jax:{function}", arguments)
        else:
            compiled = {"compiled": name == "torch.compile"}
            found[name] = (f"{MODELS}.on_torch:{function}", {**arguments, **compiled})
    return found


def measure(
    plan: Plan, function: str, arguments: dict[str, Any], precision: str, trial: Trial | None = None
) -> Outcome:
    """One model in all contenders, in processes of its own or in those of a trial."""
    if trial is None:
        with open_trial(plan) as trial:
            return measure(plan, function, arguments, precision, trial)
    on_gpu = plan.platform == "gpu"
    return trial.measure(
        programs(plan, function, arguments),
        # A step takes a second on a CPU, and the checked ones have warmed everything up.
        iterations=None if on_gpu else 1,
        compared="losses",
        agreement=AGREEMENT.get(arguments.get("model", ""), AGREEMENT[precision]),
        # PyTorch's compiler keeps the CPU busy, XLA's tries kernels out on the GPU.
        loading=2 if on_gpu else 1,
    )


def open_trial(plan: Plan) -> Trial:
    """Processes for the plan's contenders."""
    deadline = 150.0 if plan.platform == "gpu" else 400.0
    return Trial(plan.settings, plan.contenders, deadline, plan.platform)


def peaks(plan: Plan) -> dict[str, float]:
    """FLOP/s of a large matrix product in each precision."""
    side = 256 if plan.tiny else PRODUCT_SIDE[plan.platform]
    rates = {}
    with Trial(plan.settings, ["jax"], 120.0, plan.platform) as trial:
        for precision in plan.precisions:
            arguments = {"precision": precision, "side": side}
            program: Program = (f"{MODELS}.matrix_product:matrix_product", arguments)
            measured = trial.measure({"jax": program}, rounds=3).measurements["jax"]
            if measured.samples:
                rates[precision] = 2.0 * side**3 / measured.wall.low
    return rates


def row(
    name: str,
    what: str,
    outcome: Outcome,
    peers: tuple[str, ...],
    flops: float,
    peak: float | None,
    remarks: Sequence[str] = (),
) -> Row:
    """A step's row: runnel must be no slower than any peer."""
    notes = [*remarks]
    values = durations(outcome, 1e3)
    if SUBJECT in values and peak is not None:
        rate = flops / values[SUBJECT].median * 1e3
        unit, scale = ("TFLOP/s", 1e12) if rate > 1e12 else ("GFLOP/s", 1e9)
        if rate <= peak:
            beside = f", {rate / peak:.0%} of the {peak / scale:.3g} that a matrix product reached"
            beside += " in the same run"
        else:
            beside = " (the matrix product of that run was disturbed)"
        notes.append(f"{rate / scale:.3g} {unit}{beside}")
    return speed_row(
        name,
        what,
        "ms",
        outcome,
        values,
        must_show="no slower than any peer",
        at_least=dict.fromkeys(peers, 1.0),
        notes=notes,
    )


def model_row(
    plan: Plan,
    model: str,
    batch: int,
    precision: str,
    peak: float | None,
    trial: Trial | None = None,
) -> Row:
    """One model at one batch in one precision."""
    arguments: dict[str, Any] = {"model": model, "batch": batch, "precision": precision}
    if plan.tiny:
        side = {"overfeat": 87, "alexnet": 67, "resnet50": 64}.get(model, 32)
        arguments |= {"batch": 4, "image_size": side}
    architecture = ARCHITECTURES[model]
    outcome = measure(plan, "training_step", arguments, precision, trial)
    onednn = outcome.facts.get(SUBJECT, {}).get("onednn") if plan.platform == "cpu" else None
    return row(
        f"{model}_{batch}_{precision}",
        f"{architecture.title}, batch {batch}, {precision}",
        outcome,
        tuple(name for name in plan.contenders if name != SUBJECT),
        training_flops(architecture, batch),
        peak,
        [] if onednn is None else [f"runnel's convolutions by oneDNN {onednn}"],
    )


def lstm_row(plan: Plan, peak: float | None) -> Row:
    """The LSTM."""
    recurrence = Recurrence(steps=4, batch=4, units=32) if plan.tiny else Recurrence()
    arguments = {
        "steps": recurrence.steps,
        "batch": recurrence.batch,
        "units": recurrence.units,
    }
    return row(
        "lstm",
        f"LSTM, {recurrence.steps} steps, batch {recurrence.batch}, {recurrence.units} units",
        measure(plan, "lstm_step", arguments, "float32"),
        tuple(name for name in plan.contenders if name != SUBJECT),
        recurrence.training_flops(),
        peak,
    )


def growth_row(rows: list[Row]) -> Row:
    """How the time for one image changes as the batch grows: a summary of AlexNet's rows."""
    batches = [int(r.name.split("_")[1]) for r in rows]
    each = [r.values[SUBJECT].median / b for r, b in zip(rows, batches, strict=True)]
    precision = rows[0].name.rpartition("_")[2]
    return Row(
        name=f"growth_{precision}",
        what=f"AlexNet, {precision}, time for one image, batch {batches[-1]} over {batches[0]}",
        unit="times",
        values={SUBJECT: Spread.of([each[-1] / each[0]])},
        notes=(
            "; ".join(
                f"batch {b}: {r.values[SUBJECT].median:.3g} ms"
                for b, r in zip(batches, rows, strict=True)
            ),
        ),
        measured=results.now(),
    )


def growth(
    plan: Plan, precisions: Sequence[str], measured: list[Row], peak: dict[str, float]
) -> Iterator[Row]:
    """AlexNet as the batch grows; rows that were measured already are used again."""
    known = {r.name: r for r in measured}
    # Every batch would be compiled anew, which takes PyTorch half a minute.
    eager = tuple(name for name in plan.contenders if name != "torch.compile")
    plan = replace(plan, contenders=eager)
    with open_trial(plan) as trial:
        for precision in precisions:
            rows = []
            for batch in GROWTH:
                found = known.get(f"alexnet_{batch}_{precision}")
                if found is None:
                    best = peak.get(precision)
                    found = model_row(plan, "alexnet", batch, precision, best, trial)
                    yield found
                rows.append(found)
            if all(SUBJECT in r.values for r in rows):
                yield growth_row(rows)


def _plan_from(options: argparse.Namespace) -> Plan:
    on_gpu = options.platform == "gpu"
    settings = Settings(
        rounds=options.rounds or (9 if on_gpu else 5), seconds=0.2, warm_up=0.3 if on_gpu else 0.0
    )
    contenders: tuple[str, ...] = (SUBJECT, *PEERS[options.platform])
    if options.contenders:
        contenders = tuple(options.contenders.split(","))
    return Plan(options.platform, settings, contenders, options.tiny)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Training steps beside the peers', interleaved.")
    parser.add_argument("--platform", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--models", help="only these, separated by commas; lstm is one")
    parser.add_argument("--precisions", help="only these: tf32,bf16")
    parser.add_argument("--contenders", help="only these; the results are not kept as the table's")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--no-growth", action="store_true", help="no rows for growing batches")
    parser.add_argument("--growth-only", action="store_true", help="only those")
    parser.add_argument("--tiny", action="store_true", help="small sizes: does everything run?")
    return parser


def main() -> None:
    """Measure, print the table, keep the results; the exit status says whether all rows passed."""
    options = _parser().parse_args()
    plan = _plan_from(options)
    on_gpu = plan.platform == "gpu"
    models = dict(TABLE_1) if on_gpu else dict.fromkeys([*TABLE_1, "resnet50", "lstm"], CPU_BATCH)
    if options.models:
        models = {name: models.get(name, CPU_BATCH) for name in options.models.split(",")}
    precisions = options.precisions.split(",") if options.precisions else plan.precisions
    console = Console(width=None if sys.stdout.isatty() else 160)
    machine = results.describe_machine()
    official = not (options.tiny or options.contenders)
    table = f"table1_{plan.platform}" + ("" if official else "-trial")
    rows: list[Row] = []
    started = time.perf_counter()

    def keep(measured: list[Row]) -> None:
        rows.extend(measured)
        results.save(table, machine, measured)
        for one in measured:
            times = ", ".join(f"{n} {v.median:.4g}" for n, v in one.values.items())
            console.print(f"{time.perf_counter() - started:.0f} s: {one.what}: {times}")

    peak = peaks(plan)
    for precision in [] if options.growth_only else precisions:
        for model, batch in models.items():
            if model == "lstm":
                keep([lstm_row(plan, peak.get(precision))])
            else:
                keep([model_row(plan, model, batch, precision, peak.get(precision))])
    if on_gpu and not options.no_growth:
        earlier = results.load(table)[1] if results.path_of(table).exists() else []
        usual = [r for r in earlier if r.name.startswith(f"alexnet_{TABLE_1['alexnet']}_")]
        for one in growth(plan, precisions, usual, peak):
            keep([one])
    print_table(console, "Table 1, today", rows)
    console.print(f"kept in {results.path_of(table)}")
    sys.exit(any(r.passed is False for r in rows))


if __name__ == "__main__":
    main()
