"""A cluster's sessions open whichever name of the package a program has used first."""

from __future__ import annotations

import subprocess
import sys

from tests.distributed.clusters import free_addresses

PROGRAM = """
import sys
import runnel as tf
server = tf.train.Server({"worker": [sys.argv[1]]}, "worker", 0)
step = tf.train.get_or_create_global_step()
with tf.train.MonitoredTrainingSession(server.target) as session:
    print(session.run(step))
server.stop()
"""


def test_a_monitored_session_opens_on_a_server_where_nobody_has_named_tf_session():
    command = [sys.executable, "-c", PROGRAM, *free_addresses(1)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.stdout == "0\n", done.stderr
