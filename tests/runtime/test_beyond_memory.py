"""A table larger than what its process may have in memory: made, trained, saved, restored."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import resource
import sys

import numpy as np

import runnel as tf

folder, saved, how = sys.argv[1:]
ROWS, WIDTH = 5 << 18, 32  # 160 MiB, and as much again for the optimizer's slot

ids = tf.placeholder(tf.int64, [None])
weights = tf.get_variable("weights", [WIDTH, 1])
with tf.mapped_variables(folder if how == "mapped" else None):
    table = tf.get_variable(
        "table", [ROWS, WIDTH], initializer=tf.random_uniform_initializer(-1, 1, seed=3)
    )
rows = tf.nn.embedding_lookup(table, ids)
loss = tf.reduce_mean(tf.square(tf.matmul(rows, weights) - 1))
train = tf.train.AdagradOptimizer(0.5).minimize(loss)
saver = tf.train.Saver()
init = tf.global_variables_initializer()


def in_memory():
    fields = dict(line.split(":") for line in open("/proc/self/status") if ":" in line)
    return int(fields["VmData"].split()[0]) * 1024


config = tf.ConfigProto()
config.graph_options.optimizer_options.global_jit_level = -1
feed = {ids: np.array([3, ROWS - 1, 1 << 20, 3])}
with tf.Session(config=config) as sess:
    sess.run(weights.initializer)
    sess.run(tf.matmul(tf.ones([8, 8]), tf.ones([8, 8])))  # what libraries need, they have
    resource.setrlimit(resource.RLIMIT_DATA, (in_memory() + (96 << 20),) * 2)
    try:
        sess.run(init)
    except tf.errors.ResourceExhaustedError as error:
        print("no memory")
        sys.exit(0)
    for _ in range(30):
        sess.run(train, feed)
    trained = sess.run(rows, feed)
    saver.save(sess, saved)
    sess.run(init)
    assert not np.array_equal(sess.run(rows, feed), trained)
    saver.restore(sess, saved)
    assert np.array_equal(sess.run(rows, feed), trained)
    print("fell" if sess.run(loss, feed) < 0.05 else "did not fall")
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
@pytest.mark.skipif(not hasattr(resource, "RLIMIT_DATA"), reason="needs limits on memory")
@pytest.mark.parametrize("how,said", [("mapped", "fell"), ("in memory", "no memory")])
def test_a_process_trains_a_table_larger_than_its_memory(how, said, tmp_path):
    program = [sys.executable, "-c", _PROGRAM, str(tmp_path / "tables"), str(tmp_path / "m"), how]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300, check=False)
    for file in tmp_path.glob("m*"):  # hundreds of megabytes
        file.unlink()
    assert done.stdout.strip() == said, done.stderr
