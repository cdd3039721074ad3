"""A variable of more than 2 GiB: what either system saves, the other restores."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.machine_room import GIB, needs_room

reference = pytest.importorskip("tensorflow").compat.v1
reference.disable_v2_behavior()

ROWS, COLUMNS = 2080, 1 << 20  # bytes, so that little time is spent on more than the size
COLUMN = np.arange(ROWS) % 251


def run_with_variable(lib, run):
    with lib.Graph().as_default(), lib.Session() as sess:
        column = lib.constant(COLUMN[:, None], lib.uint8)
        value = lib.tile(column, [1, COLUMNS])
        variable = lib.Variable(value, use_resource=True, name="v")
        return run(sess, variable, lib.train.Saver())


def save(lib, path):
    def run(sess, variable, saver):
        sess.run(variable.initializer)
        saver.save(sess, path, write_meta_graph=False, write_state=False)

    run_with_variable(lib, run)


def restored_edges(lib, path):
    """The first and the last column: the file of data is read to its end, and in order."""

    def run(sess, variable, saver):
        saver.restore(sess, path)
        return sess.run([variable[:, 0], variable[:, COLUMNS - 1]])

    return run_with_variable(lib, run)


@pytest.mark.timeout(300)
@needs_room(memory=8 * GIB, disk=8 * GIB)
@pytest.mark.parametrize("writer", [tf, reference], ids=["ours", "theirs"])
def test_a_variable_of_more_than_two_gib_goes_both_ways(tmp_path, writer):
    assert ROWS * COLUMNS > 1 << 31
    path = str(tmp_path / "large")
    try:
        save(writer, path)
        reader = reference if writer is tf else tf
        for column in restored_edges(reader, path):
            np.testing.assert_array_equal(column, COLUMN)
    finally:
        for file in tmp_path.iterdir():  # pytest keeps folders of earlier runs
            file.unlink()
