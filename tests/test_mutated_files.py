"""Damaged files are refused by an exception of ours: no crash, hang, memory or wrong value."""

from __future__ import annotations

import os

import pytest

from tests.mutated_files.subjects import SUBJECTS
from tests.mutated_files.trial import try_many

# All: python -m tests.mutated_files --count 100000
_FACTOR = float(os.environ.get("RUNNEL_FUZZ", "1"))
COUNTS = {"meta_graph": 100, "saved_model": 60, "descriptions": 100, "second_models": 100}
COUNTS |= {f"{kind}records": 50 for kind in ("", "gzip_", "zlib_")}  # readers wait at their end


@pytest.mark.timeout(120 + 60 * _FACTOR)
@pytest.mark.parametrize("kind", SUBJECTS)
def test_damaged_files_are_refused_or_read_as_they_were(kind):
    wrong: list[str] = []
    try_many(kind, range(int(COUNTS.get(kind, 300) * _FACTOR)), wrong.append)
    assert not wrong, "\n".join(wrong[:5])
