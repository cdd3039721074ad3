"""Batches and epochs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runnel.datasets import DataSet
from runnel.datasets.dataset import encode_one_hot, prepare_images


def numbered(count: int, seed: int | None = 0) -> DataSet:
    """A set whose images and labels both say which example they are."""
    return DataSet(np.arange(count)[:, None] * 1.0, np.arange(count), seed=seed)


def draw(data: DataSet, *sizes: int, shuffle: bool = True) -> list[list[int]]:
    batches = [data.next_batch(size, shuffle=shuffle) for size in sizes]
    for images, labels in batches:
        assert images[:, 0].tolist() == labels.tolist(), "an image lost its label"
    return [labels.tolist() for _, labels in batches]


def test_unshuffled_batches_follow_the_given_order_and_wrap():
    data = numbered(5)
    assert draw(data, 2, 2, 2, 2, shuffle=False) == [[0, 1], [2, 3], [4, 0], [1, 2]]
    assert data.epochs_completed == 1


def test_an_epoch_is_left_only_by_the_batch_after_its_end():
    data = numbered(4)
    draw(data, 2, 2)
    assert data.epochs_completed == 0
    draw(data, 1)
    assert data.epochs_completed == 1


def test_a_batch_longer_than_the_data_spans_several_epochs():
    data = numbered(3)
    (batch,) = draw(data, 8)
    assert sorted(batch[:3]) == sorted(batch[3:6]) == [0, 1, 2]
    assert len(batch) == 8
    assert data.epochs_completed == 2


@settings(deadline=None)
@given(
    count=st.integers(1, 12), sizes=st.lists(st.integers(0, 30), max_size=8), seed=st.integers(0, 9)
)
def test_every_epoch_is_a_permutation_however_it_is_cut(count, sizes, seed):
    data = numbered(count, seed)
    stream = [label for batch in draw(data, *sizes) for label in batch]
    assert len(stream) == sum(sizes)
    for start in range(0, len(stream), count):
        epoch = stream[start : start + count]
        assert len(set(epoch)) == len(epoch)
    assert data.epochs_completed == max(0, -(-len(stream) // count) - 1)


def test_batches_are_those_of_the_tutorials_for_the_same_seed():
    # The tutorial's DataSet seeds numpy.random and, for each epoch, shuffles the positions of an
    # already shuffled array. NumPy's own global generator is the oracle.
    count, seed = 7, 42
    state = np.random.get_state()
    try:
        np.random.seed(seed)
        expected, order = [], np.arange(count)
        for _ in range(3):
            positions = np.arange(count)
            np.random.shuffle(positions)
            order = order[positions]
            expected += order.tolist()
    finally:
        np.random.set_state(state)
    batches = draw(numbered(count, seed), 3, 3, 3, 3, 3, 3, 3)
    assert sum(batches, []) == expected


def test_the_same_seed_gives_the_same_batches_and_another_others():
    sizes = (30, 30, 30, 30)
    assert draw(numbered(50, seed=1), *sizes) == draw(numbered(50, seed=1), *sizes)
    assert draw(numbered(50, seed=1), *sizes) != draw(numbered(50, seed=2), *sizes)
    assert draw(numbered(50, seed=None), *sizes) != draw(numbered(50, seed=None), *sizes)


def test_the_epochs_differ():
    first, second = draw(numbered(50), 50, 50)
    assert first != second
    assert sorted(first) == sorted(second)


def test_drawing_leaves_numpys_random_state_and_the_arrays_alone():
    data = numbered(10, seed=3)
    np.random.seed(5)
    draw(data, 7, 7)
    drawn = np.random.random()
    np.random.seed(5)
    assert drawn == np.random.random()
    assert data.labels.tolist() == list(range(10))


def test_a_batch_is_the_callers_to_change():
    data = numbered(4)
    images, _ = data.next_batch(4)
    images[:] = -1
    assert data.images.min() == 0


def test_shuffling_can_stop_midway_and_keeps_the_order_reached():
    data = numbered(6)
    (first,) = draw(data, 6)
    assert draw(data, 6, shuffle=False) == [first]


@pytest.mark.parametrize("one_hot", [False, True])
def test_fake_batches_are_ones_of_class_zero_and_do_not_move_on(one_hot):
    labels = np.arange(3)
    data = DataSet(np.zeros((3, 4), np.float32), encode_one_hot(labels, 3) if one_hot else labels)
    images, classes = data.next_batch(5, fake_data=True)
    assert images.shape == (5, 4) and (images == 1).all()
    assert classes.tolist() == ([[1, 0, 0]] * 5 if one_hot else [0] * 5)
    data.next_batch(3)
    assert data.epochs_completed == 0


def test_an_empty_batch_and_a_numpy_batch_size():
    data = numbered(3)
    assert draw(data, 0) == [[]]
    assert len(data.next_batch(np.int64(2))[1]) == 2


def test_images_and_labels_must_agree_in_number():
    with pytest.raises(ValueError, match=r"3 images and 2 labels.*\(3, 1\)"):
        DataSet(np.zeros((3, 1)), np.zeros(2))
    with pytest.raises(ValueError, match="first dimension"):
        DataSet(1.0, [1])


@pytest.mark.parametrize("bad", [2.0, "2", None, True])
def test_a_batch_size_is_an_integer(bad):
    with pytest.raises(TypeError, match="batch_size is"):
        numbered(3).next_batch(bad)


def test_a_batch_size_is_not_negative():
    with pytest.raises(ValueError, match="batch_size is -1"):
        numbered(3).next_batch(-1)


def test_no_batch_can_be_drawn_from_nothing():
    with pytest.raises(ValueError, match=r"next_batch\(1\).*no examples"):
        numbered(0).next_batch(1)


def test_images_are_scaled_or_left_as_bytes():
    pixels = np.array([[[0, 255], [51, 102]]], np.uint8)
    floats = prepare_images(pixels, 255, np.float32, reshape=True)
    assert floats.dtype == np.float32
    np.testing.assert_allclose(floats, [[0, 1, 0.2, 0.4]], rtol=1e-6)
    raw = prepare_images(pixels, 255, "uint8", reshape=False)
    assert raw.dtype == np.uint8 and raw.shape == (1, 2, 2, 1)
    with pytest.raises(TypeError, match="uint8 or as float32"):
        prepare_images(pixels, 255, np.float64, reshape=True)


def test_repr_shows_the_sizes():
    assert repr(numbered(3)) == "DataSet(images=float64[3, 1], labels=int64[3], epochs_completed=0)"
