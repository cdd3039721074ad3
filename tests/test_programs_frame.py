"""``tf.app``, ``tf.flags`` and ``tf.logging``: what surrounds a program."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap

import pytest

import runnel as tf

PROGRAM = """
import runnel as tf

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_integer("steps", 3, "how many")
tf.flags.DEFINE_string("name", "none", "whose")
tf.flags.DEFINE_boolean("fast", False, "how")

def main(argv):
    tf.logging.info("not shown")
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.logging.info("steps = %d", FLAGS.steps)
    print(FLAGS.name, FLAGS.fast, argv[1:])
    return 4

if __name__ == "__main__":
    tf.app.run()
"""


def run(tmp_path, *arguments):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM))
    return subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, timeout=100
    )


def test_a_program_has_its_flags_and_says_what_it_does(tmp_path):
    done = run(tmp_path, "--steps=7", "--fast", "rest", "--name", "mine")
    assert done.returncode == 4, done.stderr
    assert done.stdout == "mine True ['rest']\n"
    assert "program.py:12] steps = 7" in done.stderr and "not shown" not in done.stderr


def test_a_flag_that_nobody_has_defined_is_an_argument(tmp_path):
    done = run(tmp_path, "--stepz=7", "--name=mine")
    assert done.returncode == 4, done.stderr
    assert done.stdout == "mine False ['--stepz=7']\n"


def test_a_bad_value_of_a_flag_is_told(tmp_path):
    done = run(tmp_path, "--steps=many")
    assert done.returncode == 1
    assert "--steps=many" in done.stderr and "Traceback" not in done.stderr


def test_flags_are_there_without_an_app(tmp_path):
    script = tmp_path / "plain.py"
    script.write_text(
        "import runnel as tf\n"
        "tf.flags.DEFINE_float(flag_name='rate', default_value=0.1, docstring='how fast')\n"
        "print(tf.flags.FLAGS.rate, 'rate' in tf.flags.FLAGS)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script), "--rate=0.5"], capture_output=True, text=True, timeout=100
    )
    assert done.stdout == "0.5 True\n", done.stderr


@pytest.fixture
def verbosity():
    before = tf.logging.get_verbosity()
    yield
    tf.logging.set_verbosity(before)


def test_levels_and_repetitions(caplog, verbosity):
    tf.logging.set_verbosity(tf.logging.DEBUG)
    assert tf.logging.get_verbosity() == tf.logging.DEBUG == logging.DEBUG
    for n in range(5):
        tf.logging.log_every_n(tf.logging.INFO, "every %d", 2, n)
        tf.logging.log_first_n(tf.logging.INFO, "first %d", 2, n)
        tf.logging.log_if(tf.logging.WARN, "if %d", n == 3, n)
    tf.logging.debug("low")
    tf.logging.warn("w")
    tf.logging.error("e %s", "x")
    tf.logging.flush()
    assert [record.getMessage() for record in caplog.records] == [
        *("every 0", "first 0", "first 1", "every 2", "if 3", "every 4", "low", "w", "e x")
    ]
    caplog.clear()
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.logging.info("nothing")
    tf.logging.log(tf.logging.FATAL, "something")
    assert [record.getMessage() for record in caplog.records] == ["something"]
    assert caplog.records[0].filename == "test_programs_frame.py"
