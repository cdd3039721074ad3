"""Small functions of TensorFlow's, compared with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.conformance.same_fetches import assert_same_fetches  # noqa: E402
from tests.conformance.side_by_side import compare  # noqa: E402

DATA = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)

PROGRAMS = {
    "counts": lambda tf: [
        tf.confusion_matrix([1, 2, 4], [2, 2, 4]),
        tf.confusion_matrix([1, 0], [1, 1], 3, tf.float32, weights=[0.5, 2.0]),
        tf.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5),
        tf.histogram_fixed_width_bins([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5),
        tf.unravel_index([2, 5, 7], [3, 3]),
    ],
    "fingerprints": lambda tf: [
        tf.fingerprint(["a", "", "longer than sixteen bytes"]),
        tf.fingerprint([["a", "b"], ["a", "b"], ["b", "a"]]),
        tf.fingerprint(tf.zeros([0, 2], tf.string)),
        tf.fingerprint(tf.reshape(tf.range(120), [2, 3, 20])),
        tf.fingerprint([1.5, -2.0, 0.0]),
        tf.fingerprint([True, False]),
    ],
    "constant": lambda tf: [tf.guarantee_const([1.0, 2.0]), tf.guarantee_const(b"text")],
    "places": lambda tf: [
        tf.tensor_scatter_nd_update([1, 2, 3], [[0]], [9]),
        tf.tensor_scatter_nd_add([1, 2, 3], [[0], [0]], [9, 1]),
        tf.tensor_scatter_nd_sub([1, 2, 3], [[2]], [9]),
    ],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_values_are_the_same(name):
    assert_same_fetches(PROGRAMS[name])


def test_means_of_segments():
    def build(tf: Any, x: Any) -> list[Any]:
        ids = [0, 2, 2, -1, 0]
        return [
            tf.unsorted_segment_mean(x, ids, 4),
            tf.math.unsorted_segment_sqrt_n(x, ids, 4),
            tf.unsorted_segment_mean(x, [[0, 1], [1, 1], [2, 0], [0, 0], [2, 2]], 3),
        ]

    compare(build, DATA)


@pytest.mark.parametrize("repeats", [[0, 0], [2, 0], 0])
def test_what_is_repeated_may_vanish(repeats):
    assert_same_fetches(lambda tf: tf.repeat(tf.constant([3, 4]), repeats))


def test_quantized_types_and_initialized_tables_have_their_other_names():
    import tensorflow.compat.v1 as tf

    import runnel

    assert {t.name for t in runnel.QUANTIZED_DTYPES} == {t.name for t in tf.QUANTIZED_DTYPES} - {
        f"{t.name}_ref" for t in runnel.QUANTIZED_DTYPES
    }
    assert runnel.initializers.tables_initializer is runnel.tables_initializer


def test_dimensions_by_their_place():
    import tensorflow.compat.v1 as reference

    import runnel

    for tf in runnel, reference:
        known = tf.TensorShape([None, 3])
        found = [tf.dimension_at_index(known, i).value for i in (0, 1, -1)]
        assert [*found, tf.dimension_at_index(tf.TensorShape(None), 7).value] == [None, 3, 3, None]
        with pytest.raises(IndexError):
            tf.dimension_at_index(known, 2)


def test_slices_stay_slices_and_lists_become_tensors():
    import tensorflow.compat.v1 as reference

    import runnel

    for tf in runnel, reference:
        with tf.Graph().as_default():
            slices = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([3]))
            assert tf.convert_to_tensor_or_indexed_slices(slices, tf.float32) is slices
            assert tf.convert_to_tensor_or_indexed_slices([1], tf.float64).dtype == tf.float64
            with pytest.raises(ValueError, match="float32"):
                tf.convert_to_tensor_or_indexed_slices(slices, tf.int32)
