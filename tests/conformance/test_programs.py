"""The programs of ``tests/programs`` under TensorFlow, live: against runnel and the recordings."""

from __future__ import annotations

import functools
from typing import Any

import pytest

pytest.importorskip("tensorflow")

import runnel
from tests.both_tiers import COMPILED, INTERPRETED, assert_same, session
from tests.conformance.same_program import tensorflow
from tests.programs import recording
from tests.programs.running import run_table
from tests.programs.tables import TABLES

TIERS = {"interpreted": INTERPRETED, "compiled": COMPILED}
PROGRAMS = [
    pytest.param(table, name, id=f"{table}-{name}")
    for table, programs in TABLES.items()
    for name in programs
]


@functools.cache
def live(table: str) -> dict[str, Any]:
    """What TensorFlow gives, without its graph optimizer, which computes some things otherwise."""
    config = tensorflow.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return run_table(
        tensorflow, TABLES[table], lambda graph: tensorflow.Session(graph=graph, config=config)
    )


@functools.cache
def ours(table: str, tier: str) -> dict[str, Any]:
    return run_table(runnel, TABLES[table], lambda graph: session(TIERS[tier], graph))


def _steps(result: Any) -> Any:
    if isinstance(result, Exception):
        raise result
    return result


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(("table", "name"), PROGRAMS)
def test_gives_what_tensorflow_gives(table: str, name: str, tier: str) -> None:
    program = TABLES[table][name]
    given = _steps(ours(table, tier)[name])
    assert_same(_steps(live(table)[name]), given, program.rtol, program.atol)


@pytest.mark.parametrize(("table", "name"), PROGRAMS)
def test_the_recording_is_what_tensorflow_gives(table: str, name: str) -> None:
    program = TABLES[table][name]
    recorded = recording.load(table)[0][name]
    # Other processors round differently, but not by more than two libraries may.
    assert_same(_steps(live(table)[name]), recorded, program.rtol, program.atol)
