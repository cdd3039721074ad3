"""The language model: it learns, writes, repeats itself for a seed and explains bad input."""

import re

from tests.examples.test_examples import run_example

SMALL = ("--hidden", "32", "--length", "16", "--batch-size", "32", "--sample-length", "60")


def printed_perplexity(run):
    found = re.search(r"validation perplexity: (\d+\.\d+)\s*$", run.stdout)
    assert found, run.stdout + run.stderr
    return float(found[1])


def test_it_learns_the_sonnets():
    run = run_example("language_model.py", *SMALL, "--epochs", "3", "--learning-rate", "0.02")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "22683 characters to learn from, 2521 held out; 59 different ones" in run.stdout
    assert printed_perplexity(run) < 59 / 4


def test_it_writes_what_it_has_read_and_repeats_itself(tmp_path):
    text = tmp_path / "pattern.txt"
    text.write_text("abcdefg\n" * 300)
    options = ("--text", str(text), "--epochs", "8", "--hidden", "24", "--length", "8")
    options = (*options, "--batch-size", "8", "--sample-length", "24", "--keep-prob", "1")
    options = (*options, "--learning-rate", "0.03")
    runs = [run_example("language_model.py", *options, "--seed", "3") for _ in range(2)]
    for run in runs:
        assert run.returncode == 0, run.stdout + run.stderr
        assert printed_perplexity(run) < 1.1
        assert "\nabcdefg\nabcdefg\nabcdefg\n" in run.stdout
    one, other = (re.sub(r"in \S+ s(, .* a second)?\n", "", run.stdout) for run in runs)
    assert one == other


def test_it_explains_bad_texts(tmp_path):
    short = tmp_path / "short.txt"
    short.write_text("too short")
    run = run_example("language_model.py", "--text", str(short))
    assert run.returncode == 1
    assert "9 characters, too few for --batch-size 16 and --length 32" in run.stderr
    binary = tmp_path / "binary.txt"
    binary.write_bytes(b"\xff\xfe\x00")
    run = run_example("language_model.py", "--text", str(binary))
    assert run.returncode == 1
    assert "not a text in UTF-8" in run.stderr and "Traceback" not in run.stderr


def test_it_learns_words_against_sampled_ones():
    options = (*SMALL, "--words", "--num-sampled", "64", "--epochs", "2")
    run = run_example("language_model.py", *options, "--learning-rate", "0.02")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "9421 words to learn from, 1047 held out; 1542 different ones" in run.stdout
    assert printed_perplexity(run) < 1542 / 4


def test_it_samples_fewer_than_there_are():
    run = run_example("language_model.py", "--num-sampled", "59")
    assert run.returncode == 1 and "must be less than 59" in run.stderr
