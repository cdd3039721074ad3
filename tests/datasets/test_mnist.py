"""MNIST's four files."""

import gzip
import struct

import numpy as np
import pytest

from runnel.datasets import IdxFormatError, mnist

RANDOM = np.random.default_rng(0)
TRAIN_IMAGES = RANDOM.integers(0, 256, (20, 28, 28), dtype=np.uint8)
TRAIN_LABELS = (np.arange(20) % 10).astype(np.uint8)
TEST_IMAGES = RANDOM.integers(0, 256, (6, 28, 28), dtype=np.uint8)
TEST_LABELS = np.array([3, 1, 4, 1, 5, 9], np.uint8)

FILES = {
    "train-images-idx3-ubyte": TRAIN_IMAGES,
    "train-labels-idx1-ubyte": TRAIN_LABELS,
    "t10k-images-idx3-ubyte": TEST_IMAGES,
    "t10k-labels-idx1-ubyte": TEST_LABELS,
}


def write_idx(path, array):
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    content = header + array.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.fixture
def folder(tmp_path):
    for name, array in FILES.items():
        write_idx(tmp_path / name, array)
    return tmp_path


def test_the_parts_hold_the_files_contents(folder):
    data = mnist.read_data_sets(folder, validation_size=5)
    sizes = [part.num_examples for part in data]
    assert sizes == [15, 5, 6]
    np.testing.assert_array_equal(data.validation.labels, TRAIN_LABELS[:5])
    np.testing.assert_array_equal(data.train.labels, TRAIN_LABELS[5:])
    np.testing.assert_allclose(data.train.images, TRAIN_IMAGES[5:].reshape(15, 784) / 255.0, 1e-6)
    np.testing.assert_allclose(data.test.images, TEST_IMAGES.reshape(6, 784) / 255.0, 1e-6)
    assert data.train.images.dtype == np.float32
    assert data.train.labels.dtype == np.uint8


def test_one_hot_labels(folder):
    data = mnist.read_data_sets(str(folder), one_hot=True, validation_size=0)
    assert data.test.labels.shape == (6, 10)
    assert data.test.labels.dtype == np.float32
    np.testing.assert_array_equal(data.test.labels.argmax(1), TEST_LABELS)
    np.testing.assert_array_equal(data.test.labels.sum(1), np.ones(6))
    assert data.validation.images.shape == (0, 784)


def test_raw_pixels_in_their_rows_and_columns(folder):
    data = mnist.read_data_sets(folder, dtype=np.uint8, reshape=False, validation_size=0)
    np.testing.assert_array_equal(data.train.images, TRAIN_IMAGES[..., None])


@pytest.mark.parametrize("style", ["{}.gz", "dotted"])
def test_other_names_of_the_files(tmp_path, style):
    for name, array in FILES.items():
        other = name.replace("-idx", ".idx") if style == "dotted" else style.format(name)
        write_idx(tmp_path / other, array)
    data = mnist.read_data_sets(tmp_path, validation_size=0)
    np.testing.assert_array_equal(data.train.labels, TRAIN_LABELS)


def test_the_seed_decides_the_batches(folder):
    def labels(seed):
        train = mnist.read_data_sets(folder, validation_size=0, seed=seed).train
        return train.next_batch(20)[0].tolist()

    assert labels(1) == labels(1)
    assert labels(1) != labels(2)


def test_a_missing_folder_and_a_missing_file_say_what_to_do(folder):
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere.*image_size=28"):
        mnist.read_data_sets(folder / "nowhere")
    (folder / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(FileNotFoundError, match=r"t10k-labels-idx1-ubyte nor .*\.gz"):
        mnist.read_data_sets(folder, validation_size=0)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("train-labels-idx1-ubyte", TRAIN_LABELS[:-1], "20 images .* 19 labels"),
        ("train-labels-idx1-ubyte", TRAIN_LABELS + 1, r"the label 10 \(at 9\)"),
        ("t10k-images-idx3-ubyte", TEST_IMAGES[:, :27], "28 x 28 pixels .* 27 x 28"),
        ("t10k-images-idx3-ubyte", TEST_LABELS, "were two files exchanged"),
    ],
)
def test_files_that_do_not_fit_together(folder, name, array, message):
    write_idx(folder / name, array)
    with pytest.raises(IdxFormatError, match=message):
        mnist.read_data_sets(folder, validation_size=0)


@pytest.mark.parametrize("size", [-1, 21])
def test_a_validation_set_that_cannot_be_taken(folder, size):
    with pytest.raises(ValueError, match=f"validation_size is {size}; it must be from 0 to 20"):
        mnist.read_data_sets(folder, validation_size=size)


def test_the_installed_data_set_is_found_without_a_folder(folder, monkeypatch):
    monkeypatch.setattr(mnist, "DEBIAN_FASHION_MNIST", folder)
    assert mnist.find_installed() == folder
    assert mnist.read_data_sets(validation_size=0).train.num_examples == 20


def test_without_a_folder_and_an_installed_data_set_the_error_names_the_package(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(mnist, "DEBIAN_FASHION_MNIST", tmp_path / "fashion-mnist")
    assert mnist.find_installed() is None
    with pytest.raises(FileNotFoundError, match="apt-get install dataset-fashion-mnist"):
        mnist.read_data_sets()


def test_fake_data_needs_no_files():
    data = mnist.read_data_sets("nowhere", True, one_hot=True)
    images, labels = data.train.next_batch(3)
    assert (images == np.ones((3, 784), np.float32)).all()
    assert labels.argmax(1).tolist() == [0, 0, 0]


@pytest.mark.skipif(mnist.find_installed() is None, reason="dataset-fashion-mnist not installed")
def test_debians_fashion_mnist():
    data = mnist.read_data_sets(dtype=np.uint8)
    assert [part.num_examples for part in data] == [55_000, 5_000, 10_000]
    # Ten classes of 1,000 test images each, says the data set's description.
    assert np.bincount(data.test.labels).tolist() == [1000] * 10
