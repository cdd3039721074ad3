"""Which seeds a random operation gets."""

import runnel as tf


def test_no_seeds():
    assert tf.get_seed(None) == (None, None)


def test_a_seed_of_the_operation_only():
    assert tf.get_seed(5) == (87654321, 5)


def test_a_seed_of_the_graph_only_takes_the_number_of_operations():
    tf.set_random_seed(3)
    assert tf.get_seed(None) == (3, 0)
    assert tf.get_seed(None) == (3, 0)
    tf.constant(1.0)
    tf.get_seed(17)
    assert tf.get_seed(None) == (3, 1)
    tf.constant(1.0) + 2.0
    assert tf.get_seed(None) == (3, 4)


def test_both():
    tf.set_random_seed(3)
    assert tf.get_seed(5) == (3, 5)


def test_zeros_are_seeds_too():
    tf.set_random_seed(0)
    assert tf.get_seed(0) == (0, 2**31 - 1)


def test_large_seeds_are_made_to_fit():
    tf.set_random_seed(2**40)
    largest = 2**31 - 1
    assert tf.get_seed(-1) == (2**40 % largest, -1 % largest)


def test_each_graph_has_its_own_seed():
    tf.set_random_seed(3)
    with tf.Graph().as_default():
        assert tf.get_seed(None) == (None, None)
