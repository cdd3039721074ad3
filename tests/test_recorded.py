"""Every program of ``tests/programs`` gives what TensorFlow gave when it was recorded."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import runnel
from tests.both_tiers import COMPILED, INTERPRETED, assert_same, session
from tests.programs import recording
from tests.programs.running import Steps, run_table
from tests.programs.tables import TABLES

RECORD = "run `python tools/record_tensorflow.py` where tensorflow-cpu 2.21 is installed"
TIERS = {"interpreted": INTERPRETED, "compiled": COMPILED}
PROGRAMS = [
    pytest.param(table, name, id=f"{table}-{name}")
    for table, programs in TABLES.items()
    for name in programs
]


@functools.cache
def recorded(table: str) -> dict[str, Steps]:
    if not recording.path_of(table).exists():
        return {}
    values, version = recording.load(table)
    assert version.startswith("2.21"), f"{table} was recorded from TensorFlow {version}: {RECORD}"
    return values


@functools.cache
def computed(table: str, tier: str) -> dict[str, Any]:
    """What all programs of a table give: they are compiled together, once."""
    return run_table(runnel, TABLES[table], lambda graph: session(TIERS[tier], graph))


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(("table", "name"), PROGRAMS)
def test_gives_what_tensorflow_gave(table: str, name: str, tier: str) -> None:
    expected = recorded(table).get(name)
    if expected is None:
        pytest.fail(f"No values of {name} are recorded in {recording.path_of(table)}: {RECORD}")
    given = computed(table, tier)[name]
    if isinstance(given, Exception):
        raise given
    program = TABLES[table][name]
    assert_same(expected, given, program.rtol, program.atol)


@pytest.mark.parametrize("table", TABLES)
def test_nothing_is_recorded_that_is_not_compared(table: str) -> None:
    left_over = recorded(table).keys() - TABLES[table].keys()
    assert not left_over, f"These programs are gone: {RECORD}"
