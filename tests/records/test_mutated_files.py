"""A sample of the files that ``tools/fuzz_records.py`` makes."""

from __future__ import annotations

from tools.fuzz_records import check


def test_mutated_files_give_the_records_before_the_damage_or_an_error(tmp_path):
    ends = [check(seed, tmp_path) for seed in range(500)]
    assert ends.count("error") > 100
    assert ends.count("end") > 20
