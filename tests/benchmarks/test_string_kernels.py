"""Every operation of the workload of strings runs, over one string and over several."""

from __future__ import annotations

import pytest

import runnel as tf
from benchmarks.workloads.string_kernels import string_cases


@pytest.mark.parametrize("name", string_cases(1))
def test_each_runs_for_one_string_and_for_several(name):
    for count in (1, 9):
        step = string_cases(count)[name].prepare(tf)
        assert step().shape == (1,)
