"""Programs with large embeddings: alone, and with the tables on parameter servers."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.distributed.clusters import cluster_of
from tests.examples.test_examples import ROOT, run_example

SMALL = {
    "word2vec.py": ("--steps", "60", "--batch-size", "32"),
    "wide_and_deep.py": ("--steps", "40", "--batch-size", "64", "--buckets", "5000"),
}


def test_vectors_of_a_topic_come_to_lie_together():
    run = run_example("word2vec.py", "--steps", "1000")
    assert run.returncode == 0, run.stdout + run.stderr
    found = re.search(r"neighbours of the same topic: (\d\.\d+)\s*$", run.stdout)
    assert found and float(found[1]) > 0.5


def test_word2vec_reads_a_text_and_refuses_a_short_one(tmp_path):
    text = tmp_path / "text"
    text.write_text("the quick brown fox jumps over the lazy dog\n" * 30)
    run = run_example("word2vec.py", "--text", str(text), "--steps", "5", "--num-sampled", "4")
    assert run.returncode == 0 and "quick: " in run.stdout, run.stdout + run.stderr
    run = run_example("word2vec.py", "--text", str(text))
    assert run.returncode == 1 and "too few for --num-sampled 32" in run.stderr


def test_clicks_are_told_from_others():
    run = run_example("wide_and_deep.py", "--steps", "400")
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", SMALL)
def test_tables_lie_on_parameter_servers(name):
    spec = cluster_of(ps=2, worker=1)

    def started(job, index):
        task = {"cluster": spec, "task": {"type": job, "index": index}}
        path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(ROOT)])
        return subprocess.Popen(
            [sys.executable, str(ROOT / "examples" / name), *SMALL[name]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONPATH": path, "TF_CONFIG": json.dumps(task)},
        )

    servers = [started("ps", index) for index in range(2)]
    worker = started("worker", 0)
    try:
        printed, _ = worker.communicate(timeout=100)
    finally:
        for task in (*servers, worker):
            task.kill()
            task.communicate()
    # So few steps teach it nothing; it says so, or not.
    assert re.search(r"step (60/60|40/40): loss \d", printed), printed
    assert "a second" in printed and "Traceback" not in printed, printed
