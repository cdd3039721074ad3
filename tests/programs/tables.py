"""Every table of programs, by name."""

from __future__ import annotations

from tests.programs import (
    arrays,
    convolutions,
    derivatives,
    elementwise,
    learning_rates,
    linear_algebra,
    neural,
    optimizers,
    random_values,
    reductions,
    rows,
    state,
)
from tests.programs.program import Program

TABLES: dict[str, dict[str, Program]] = {
    "arrays": arrays.PROGRAMS,
    "convolutions": convolutions.PROGRAMS,
    "derivatives": derivatives.PROGRAMS,
    "elementwise": elementwise.PROGRAMS,
    "learning_rates": learning_rates.PROGRAMS,
    "linear_algebra": linear_algebra.PROGRAMS,
    "neural": neural.PROGRAMS,
    "optimizers": optimizers.PROGRAMS,
    "random_values": random_values.PROGRAMS,
    "reductions": reductions.PROGRAMS,
    "rows": rows.PROGRAMS,
    "state": state.PROGRAMS,
}
