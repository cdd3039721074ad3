"""Temporary files of killed processes go with the next save; those of others stay."""

import subprocess
import sys

import runnel as tf

WRITING = """
import os, signal, sys
from runnel.checkpoint.whole_file import appearing
with appearing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    if sys.argv[2] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    print("writing", flush=True)
    sys.stdin.read()
"""


def test_the_next_save_sweeps_what_the_dead_left(tmp_path):
    def command(what):
        return [sys.executable, "-c", WRITING, str(tmp_path / "m-1.data"), what]

    subprocess.run(command("die"), check=False)
    assert len(list(tmp_path.glob("*.tempstate*"))) == 1
    elsewhere = tmp_path / f"m-1.data.tempstate{'f' * 16}-1-1"  # of another machine
    former = tmp_path / "m-1.data.tempstate123"  # says nothing of its process
    elsewhere.touch()
    former.touch()
    living = subprocess.Popen(command("wait"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert living.stdout.readline() == b"writing\n"
        before = set(tmp_path.glob("*.tempstate*"))
        tf.get_variable("v", [2])
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            tf.train.Saver().save(sess, str(tmp_path / "m"), 2)
        left = set(tmp_path.glob("*.tempstate*"))
        assert len(before - left) == 1 and {elsewhere, former} < left
        living.communicate(b"")
        assert (tmp_path / "m-1.data").read_bytes() == b"half"
    finally:
        living.kill()
        living.communicate()
