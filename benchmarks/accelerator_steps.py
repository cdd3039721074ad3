"""Training steps of models that check their data, on an accelerator, beside the peers.

`python -m benchmarks.accelerator_steps` measures every row; `--rows transformer` only some,
`--quick` with fewer and shorter rounds. The results go to
`benchmarks/results/accelerator_steps.json`. Every model has what real ones have: rows gathered by
an index, sparse labels. A step is *sent ahead* when its loss is not looked at before the next.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks import command
from benchmarks.results import Row
from benchmarks.trial import SUBJECT, Program, Settings, Trial, durations, speed_row

WORKLOADS = "benchmarks.workloads"
MILLI = 1e3
AGREEMENT = {"tf32": 5e-3, "bf16": 3e-2}
"""Of losses in the first steps."""
TINY: dict[str, dict[str, int]] = {
    "transformer": {"layers": 2, "units": 32, "heads": 2, "inner": 64, "vocabulary": 50}
    | {"batch": 2, "length": 8},
    "embedding": {"rows": 1000, "units": 4, "touched": 100},
}
"""Sizes with which a CPU shows whether everything runs."""


def _platform(tiny: bool) -> str:
    return "cpu" if tiny else "gpu"


def transformer(settings: Settings, tiny: bool = False) -> list[Row]:
    """A transformer encoder with Adam."""
    rows = []
    sizes = TINY["transformer"] if tiny else {}
    for precision in AGREEMENT:
        for fetches in (False, True):
            shared: dict[str, Any] = {"precision": precision, "fetches": fetches, **sizes}
            programs: dict[str, Program] = {
                SUBJECT: (
                    f"{WORKLOADS}.transformer:training_step",
                    {"frontend": settings.frontend(SUBJECT), **shared},
                ),
                "jax": (f"{WORKLOADS}.transformer_jax:training_step", shared),
                "torch.compile": (
                    f"{WORKLOADS}.transformer_torch:training_step",
                    {"compiled": not tiny, **shared},
                ),
            }
            how = "the loss fetched at each step" if fetches else "sent ahead"
            rows.append(
                _row(
                    f"transformer_{precision}_{'fetched' if fetches else 'ahead'}",
                    "transformer encoder (6 × 512, batch 32 × 256, embedding lookup, sparse "
                    f"labels, Adam), {precision}, {how}",
                    settings,
                    programs,
                    _platform(tiny),
                    AGREEMENT[precision],
                    "no slower than JAX and torch.compile",
                    1.0,
                )
            )
    return rows


def resnet(settings: Settings, tiny: bool = False) -> list[Row]:
    """ResNet-50 with batch normalisation and momentum."""
    shared: dict[str, Any] = {"model": "resnet50", "batch": 128, "momentum": 0.9}
    if tiny:
        shared |= {"batch": 2, "image_size": 64}
    what = "ResNet-50, batch 128, batch normalisation, momentum"
    return _both_ways(settings, tiny, "resnet50", "training_step", what, shared)


def lstm(settings: Settings, tiny: bool = False) -> list[Row]:
    """An LSTM, its time steps a loop."""
    shared: dict[str, Any] = {"units": 1024, "batch": 128, "steps": 50}
    if tiny:
        shared = {"units": 16, "batch": 4, "steps": 5}
    what = "LSTM of 1,024, batch 128, 50 time steps"
    return _both_ways(settings, tiny, "lstm", "lstm_step", what, shared)


def _both_ways(
    settings: Settings, tiny: bool, name: str, program: str, what: str, shared: dict[str, Any]
) -> list[Row]:
    """A model in both precisions, sent ahead and with its loss fetched."""
    rows = []
    models = "benchmarks.models"
    for precision in AGREEMENT:
        for fetches in (False, True):
            arguments = {**shared, "precision": precision, "fetches": fetches}
            programs: dict[str, Program] = {
                SUBJECT: (
                    f"{models}.on_graphs:{program}",
                    {"frontend": settings.frontend(SUBJECT), **arguments},
                ),
                "jax": (f"{models}.on_jax:{program}", arguments),
                "torch.compile": (
                    f"{models}.on_torch:{program}",
                    {"compiled": not tiny, **arguments},
                ),
            }
            how = "the loss fetched at each step" if fetches else "sent ahead"
            rows.append(
                _row(
                    f"{name}_{precision}_{'fetched' if fetches else 'ahead'}",
                    f"{what}, {precision}, {how}",
                    settings,
                    programs,
                    _platform(tiny),
                    3e-2,
                    "no slower than JAX and torch.compile",
                    1.0,
                )
            )
    return rows


def embedding(settings: Settings, tiny: bool = False) -> list[Row]:
    """Rows of an embedding."""
    rows = []
    for optimizer, name in (("descent", "gradient descent"), ("adagrad", "Adagrad")):
        shared: dict[str, Any] = {"optimizer": optimizer, **(TINY["embedding"] if tiny else {})}
        programs: dict[str, Program] = {
            SUBJECT: (
                f"{WORKLOADS}.embedding:training_step",
                {"frontend": settings.frontend(SUBJECT), **shared},
            ),
            "jax": (f"{WORKLOADS}.embedding_jax:training_step", shared),
        }
        rows.append(
            _row(
                f"embedding_{optimizer}",
                f"131,072 rows of an embedding of 2,000,000 × 64, {name}, sent ahead",
                settings,
                programs,
                _platform(tiny),
                1e-3,
                "within 10 % of JAX with a scatter by hand",
                1 / 1.1,
            )
        )
    return rows


def _row(
    name: str,
    what: str,
    settings: Settings,
    programs: Mapping[str, Program],
    platform: str,
    agreement: float,
    must_show: str,
    bound: float,
) -> Row:
    with Trial(settings, list(programs), 200.0, platform) as trial:
        outcome = trial.measure(
            programs, compared="losses", agreement=agreement, loading=len(programs)
        )
    return speed_row(
        name,
        what,
        "ms",
        outcome,
        durations(outcome, MILLI),
        must_show=must_show,
        at_least={peer: bound for peer in programs if peer != SUBJECT},
    )


ROWS = {"transformer": transformer, "embedding": embedding, "resnet": resnet, "lstm": lstm}


def _settings(options: argparse.Namespace) -> Settings:
    return replace(command.settings_from(options), warm_up=0.3)


if __name__ == "__main__":
    command.run(
        "accelerator_steps",
        "Steps that check their data, on an accelerator",
        ROWS,
        command.parser_for(ROWS, "Training steps on an accelerator beside the peers'."),
        _settings,
    )
