"""Programs with ``tf.contrib`` have the variables and give the values of TensorFlow 1.15."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel
from tests.both_tiers import COMPILED, INTERPRETED, session
from tests.contrib.programs import frame

RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "contrib"
PROGRAMS = [
    pytest.param(module, name, program, id=f"{module}-{name}")
    for module in frame.MODULES
    for name, program in frame.programs(module).items()
]


@functools.cache
def recorded(module: str) -> dict[str, Any]:
    with np.load(RECORDED / f"{module}.npz", allow_pickle=False) as file:
        return dict(file)


@pytest.mark.parametrize(("module", "name", "program"), PROGRAMS)
def test_gives_what_tensorflow_gave(module: str, name: str, program: Any) -> None:
    _compare(module, name, program, INTERPRETED)


@pytest.mark.parametrize("module", frame.MODULES)
def test_a_compiled_one_gives_it_too(module: str) -> None:
    name, program = next(iter(frame.programs(module).items()))
    _compare(module, name, program, COMPILED)


def _compare(module: str, name: str, program: Any, tier: Any) -> None:
    file = recorded(module)
    expected = [file[f"{name}/{i}"] for i in range(sum(key.startswith(f"{name}/") for key in file))]
    assert expected, "not recorded: run tools/record_contrib.py where TensorFlow 1.15 is installed"
    found, variables = frame.run_program(runnel, program, lambda graph: session(tier, graph))
    assert variables == json.loads(file["variables"].item())[name]
    assert len(found) == len(expected)
    for value, wanted in zip(found, expected, strict=True):
        assert value.dtype == wanted.dtype
        if value.dtype.kind == "S":
            np.testing.assert_array_equal(value, wanted)
            continue
        np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=2e-5)
