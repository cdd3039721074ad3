"""The digits that ship with runnel."""

import subprocess
import sys
from importlib import resources

import numpy as np
import pytest

from runnel.datasets import digits


def test_the_file_is_small_and_needs_no_pickle():
    file = resources.files("runnel.datasets").joinpath("digits.npz")
    assert len(file.read_bytes()) < 150_000
    images, labels = digits.load_digits()
    assert images.shape == (1797, 8, 8) and images.dtype == np.uint8
    assert (images.min(), images.max()) == (0, 16)
    # The counts in the data set's description.
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_it_is_scikit_learns_copy():
    source = pytest.importorskip("sklearn.datasets").load_digits()
    images, labels = digits.load_digits()
    np.testing.assert_array_equal(images, source.images)
    np.testing.assert_array_equal(labels, source.target)


def test_the_defaults():
    data = digits.read_data_sets()
    assert [part.images.shape for part in data] == [(1257, 64), (180, 64), (360, 64)]
    assert [part.labels.shape for part in data] == [(1257, 10), (180, 10), (360, 10)]
    for part in data:
        assert part.images.dtype == part.labels.dtype == np.float32
        assert (part.images.min(), part.images.max()) == (0, 1)


def rows(images, labels):
    """Each example as something that can be counted."""
    return [(image.tobytes(), int(label)) for image, label in zip(images, labels, strict=True)]


def test_the_parts_are_the_whole_data_set_once():
    data = digits.read_data_sets(one_hot=False, dtype=np.uint8, reshape=False)
    drawn = [row for part in data for row in rows(part.images, part.labels)]
    images, labels = digits.load_digits()
    assert sorted(drawn) == sorted(rows(images, labels))


def test_the_split_depends_on_nothing():
    first = digits.read_data_sets(one_hot=False, seed=1)
    np.random.seed(7)
    second = digits.read_data_sets(one_hot=False, seed=2, validation_size=0)
    np.testing.assert_array_equal(first.test.images, second.test.images)
    np.testing.assert_array_equal(first.test.labels, second.test.labels)
    np.testing.assert_array_equal(
        np.concatenate([first.validation.images, first.train.images]), second.train.images
    )


def test_the_split_is_the_same_in_every_process():
    program = (
        "import hashlib, runnel.datasets.digits as d; t = d.read_data_sets().test; "
        "print(hashlib.sha256(t.images.tobytes() + t.labels.tobytes()).hexdigest())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(filter(None, sys.path))},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_every_part_has_every_class():
    for part in digits.read_data_sets(one_hot=False):
        share = np.bincount(part.labels, minlength=10) / part.num_examples
        assert share.min() > 0.04 and share.max() < 0.16


def test_the_seed_decides_the_batches():
    def batch(seed):
        return digits.read_data_sets(seed=seed).train.next_batch(50)[0].tobytes()

    assert batch(3) == batch(3)
    assert batch(3) != batch(4)


def test_changing_a_data_set_does_not_change_the_next_one():
    first = digits.read_data_sets(dtype=np.uint8)
    before = first.train.images.copy()
    first.train.images[:] = 99
    np.testing.assert_array_equal(digits.read_data_sets(dtype=np.uint8).train.images, before)


@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
def test_at_mnists_size_a_digit_stands_in_the_middle(interpolation):
    data = digits.read_data_sets(
        image_size=28, interpolation=interpolation, reshape=False, one_hot=False
    )
    images = data.test.images[..., 0]
    assert images.shape == (360, 28, 28)
    frame = np.ones((28, 28), bool)
    frame[4:24, 4:24] = False
    assert not images[:, frame].any()
    assert images.min() >= 0 and images.max() <= 1
    # The same digits in the same order: averaged back, they resemble the small ones.
    small = digits.read_data_sets(reshape=False, one_hot=False)
    np.testing.assert_array_equal(data.test.labels, small.test.labels)
    ink, small_ink = images.mean((1, 2)) * (28 / 20) ** 2, small.test.images.mean((1, 2, 3))
    assert np.corrcoef(ink, small_ink)[0, 1] > 0.95


def test_at_mnists_size_there_are_784_features():
    assert digits.read_data_sets(image_size=28).train.next_batch(3)[0].shape == (3, 784)


def test_other_sizes_are_refused():
    with pytest.raises(ValueError, match="image_size is 16.* at 8 .* or at 28"):
        digits.read_data_sets(image_size=16)
    with pytest.raises(ValueError, match="interpolation is 'cubic'.*bilinear, nearest"):
        digits.read_data_sets(image_size=28, interpolation="cubic")


def test_the_test_examples_cannot_be_had_for_validation():
    with pytest.raises(ValueError, match="validation_size is 1438; it must be from 0 to 1437"):
        digits.read_data_sets(validation_size=1438)
