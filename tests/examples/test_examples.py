"""The programs under examples/, run as their readers run them."""

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


def run_example(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(ROOT)])},
    )


def printed_accuracy(run: subprocess.CompletedProcess[str]) -> float:
    found = re.search(r"accuracy: (\d\.\d+)\s*$", run.stdout)
    assert found, run.stdout + run.stderr
    return float(found[1])


def test_the_digits_classifier_learns_the_bundled_digits():
    run = run_example("digits_classifier.py", "--bundled")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1257 training, 180 validation and 360 test examples" in run.stdout
    assert "step 1000/1000: loss" in run.stdout
    assert printed_accuracy(run) >= 0.95


def test_the_digits_classifier_explains_a_failure():
    run = run_example("digits_classifier.py", "--bundled", "--steps", "1")
    assert run.returncode == 1
    assert printed_accuracy(run) < 0.95
    assert "below 0.95" in run.stderr and "--steps" in run.stderr


def write_idx(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(header + array.tobytes())


@pytest.fixture
def idx_folder(tmp_path: Path) -> Path:
    """Ten classes that anything can learn: class k has row k lit."""
    for part, count in (("train", 5100), ("t10k", 50)):
        labels = (np.arange(count) % 10).astype(np.uint8)
        images = np.zeros((count, 28, 28), np.uint8)
        images[np.arange(count), labels] = 255
        write_idx(tmp_path / f"{part}-images-idx3-ubyte", images)
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte", labels)
    return tmp_path


def test_the_digits_classifier_reads_idx_files(idx_folder):
    run = run_example("digits_classifier.py", "--data-dir", str(idx_folder), "--steps", "50")
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{idx_folder}: 100 training, 5000 validation and 50 test examples" in run.stdout
    assert printed_accuracy(run) == 1


def test_the_digits_classifier_names_a_damaged_file(idx_folder):
    (idx_folder / "t10k-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01")
    run = run_example("digits_classifier.py", "--data-dir", str(idx_folder))
    assert run.returncode == 1
    assert "t10k-labels-idx1-ubyte ends after 4 bytes" in run.stderr
    assert "Traceback" not in run.stderr


def test_softmax_regression_learns_the_enlarged_digits():
    run = run_example("softmax_regression.py")
    assert run.returncode == 0, run.stdout + run.stderr
    # TensorFlow reaches 0.96 on them.
    assert printed_accuracy(run) >= 0.94


def test_the_convnet_learns_the_enlarged_digits():
    run = run_example("convnet.py", "--steps", "60")
    assert "at 28 x 28: 1257 training, 180 validation and 360 test examples" in run.stdout
    assert "step 60/60: loss" in run.stdout
    accuracy = printed_accuracy(run)
    assert accuracy >= 0.9
    assert run.returncode == (0 if accuracy >= 0.97 else 1)
    assert ("--steps" in run.stderr) == (accuracy < 0.97)


def test_the_convnet_names_missing_files(tmp_path):
    run = run_example("convnet.py", "--data-dir", str(tmp_path))
    assert run.returncode == 1
    assert str(tmp_path) in run.stderr and "Traceback" not in run.stderr


def test_sequence_to_sequence_says_how_far_it_got():
    run = run_example("sequence_to_sequence.py", "--steps", "12", "--batch-size", "16")
    assert "step 12/12: loss" in run.stdout
    losses = [float(loss) for loss in re.findall(r"loss (\d+\.\d+)", run.stdout)]
    assert losses[-1] < 0.7 * losses[0]
    assert len(re.findall(r"-> ", run.stdout)) == 5
    # A dozen steps teach it what a date looks like, not which one is meant.
    assert printed_accuracy(run) < 0.95
    assert run.returncode == 1 and "--steps" in run.stderr


def test_towers_on_several_devices_train_one_model():
    run = run_example("data_parallel.py", "--towers", "3", "--steps", "300")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "towers on /device:CPU:0, /device:CPU:1, /device:CPU:2" in run.stdout
    assert printed_accuracy(run) >= 0.95


def test_the_layers_of_a_recurrent_network_on_several_devices(tmp_path):
    page = tmp_path / "placement.html"
    run = run_example("model_parallel.py", "--steps", "60", "--page", str(page))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "layers on /device:CPU:0, /device:CPU:1" in run.stdout
    assert printed_accuracy(run) >= 0.6
    assert "layer1/rnn" in page.read_text()
