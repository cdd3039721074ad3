"""``tf.metrics`` over batches, beside TensorFlow's."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf

reference = pytest.importorskip("tensorflow").compat.v1

RNG = np.random.default_rng(5)
BATCHES = 3
FLAGS = RNG.integers(0, 2, (BATCHES, 6))
CLASSES = RNG.integers(0, 4, (BATCHES, 6))
GUESSES = np.where(RNG.random((BATCHES, 6)) < 0.6, CLASSES, RNG.integers(0, 4, (BATCHES, 6)))
NUMBERS = RNG.normal(size=(BATCHES, 6)).astype(np.float32)
OTHERS = RNG.normal(size=(BATCHES, 6)).astype(np.float32)
CHANCES = RNG.random((BATCHES, 6)).astype(np.float32)
WEIGHTS = RNG.integers(0, 3, (BATCHES, 6)).astype(np.float32)
SCORES = RNG.normal(size=(BATCHES, 6, 5)).astype(np.float32)
PAIRS = RNG.integers(0, 5, (BATCHES, 6, 2))
LIMITS = [0.2, 0.5, 0.9]
METRICS = {
    "accuracy": (CLASSES, GUESSES),
    "auc": (FLAGS, CHANCES),
    "mean": (NUMBERS,),
    "mean_tensor": (NUMBERS,),
    "percentage_below": (NUMBERS, 0.1),
    "mean_absolute_error": (NUMBERS, OTHERS),
    "mean_squared_error": (NUMBERS, OTHERS),
    "root_mean_squared_error": (NUMBERS, OTHERS),
    "mean_relative_error": (NUMBERS, OTHERS, np.float32([0, 1, 2, 3, 4, 5])),
    "true_positives": (FLAGS, GUESSES > 1),
    "false_positives": (FLAGS, GUESSES > 1),
    "true_negatives": (FLAGS, GUESSES > 1),
    "false_negatives": (FLAGS, GUESSES > 1),
    "precision": (FLAGS, GUESSES > 1),
    "recall": (FLAGS, GUESSES > 1),
    "mean_iou": (CLASSES, GUESSES, 4),
    "mean_per_class_accuracy": (CLASSES, GUESSES, 4),
    "sensitivity_at_specificity": (FLAGS, CHANCES, 0.4),
    "specificity_at_sensitivity": (FLAGS, CHANCES, 0.6),
    "recall_at_k": (CLASSES, SCORES, 2),
    "recall_at_top_k": (PAIRS, CLASSES[..., None] + [0, 1]),
    "precision_at_k": (PAIRS, SCORES, 3),
    "precision_at_top_k": (PAIRS, CLASSES[..., None] + [0, 1], 2),
    "average_precision_at_k": (PAIRS, SCORES, 3),
    "sparse_average_precision_at_k": (CLASSES, SCORES, 3),
    "sparse_precision_at_k": (CLASSES, SCORES, 1),
    **{
        f"{name}_at_thresholds": (FLAGS, CHANCES, LIMITS)
        for name in (
            *("true_positives", "false_positives", "true_negatives", "false_negatives"),
            *("precision", "recall"),
        )
    },
}
OPTIONS = {
    "auc": [
        {},
        {"curve": "PR"},
        {"summation_method": "minoring", "num_thresholds": 9},
        {"curve": "PR", "summation_method": "careful_interpolation"},
    ],
    "recall_at_k": [{}, {"class_id": 2}],
    "precision_at_k": [{}, {"class_id": 1}],
}


def outcome(lib, name, arguments, options, weighted):
    with lib.Graph().as_default(), lib.Session() as sess:
        fed, given = {}, []
        for array in arguments:
            if isinstance(array, np.ndarray) and array.shape[:2] == (BATCHES, 6):
                given.append(lib.placeholder(array.dtype, array.shape[1:]))
                fed[given[-1]] = array
            else:
                given.append(array)
        if weighted:
            options = {**options, "weights": lib.placeholder(lib.float32, [6])}
            fed[options["weights"]] = WEIGHTS
        made = getattr(lib.metrics, name)(*given, metrics_collections="seen", **options)
        assert lib.get_collection("seen") == [made[0]]
        sess.run(lib.local_variables_initializer())
        names = [(v.name, v.shape.as_list()) for v in lib.local_variables()]
        assert [v.name for v in lib.get_collection(lib.GraphKeys.METRIC_VARIABLES)]
        values = []
        for batch in range(BATCHES):
            feeds = {key: array[batch] for key, array in fed.items()}
            values += [sess.run(made[1], feeds), sess.run(made[0])]
        return names, values


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", METRICS)
def test_metrics_are_tensorflow_s(name, weighted):
    for options in OPTIONS.get(name, [{}]):
        ours, theirs = (
            outcome(lib, name, METRICS[name], options, weighted) for lib in (tf, reference)
        )
        if "average_precision" not in name:  # TensorFlow has one of its variables named max_1
            assert ours[0] == theirs[0]
        for a, b in zip(ours[1], theirs[1], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=str(options))


@pytest.mark.parametrize("class_id", [None, 1])
@pytest.mark.parametrize("name", ["recall_at_k", "precision_at_k", "average_precision_at_k"])
def test_labels_of_which_rows_have_different_numbers(name, class_id):
    if class_id is not None and name == "average_precision_at_k":
        return
    found = []
    for lib in (tf, reference):
        with lib.Graph().as_default(), lib.Session() as sess:
            places = [[0, 0], [1, 0], [1, 1], [2, 0], [3, 0], [4, 0], [4, 1], [4, 2], [5, 0]]
            labels = lib.SparseTensor(places, np.array([1, 2, 1, 0, 4, 3, 1, 2, 1]), [6, 3])
            options = {} if class_id is None else {"class_id": class_id}
            _, update = getattr(lib.metrics, name)(labels, SCORES[0], 2, **options)
            sess.run(lib.local_variables_initializer())
            found.append(sess.run(update))
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_vectors():
    rows = RNG.normal(size=(4, 3)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = []
    for lib in (tf, reference):
        with lib.Graph().as_default(), lib.Session() as sess:
            _, update = lib.metrics.mean_cosine_distance(rows, rows[::-1].copy(), 1)
            sess.run(lib.local_variables_initializer())
            found.append(sess.run(update))
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_a_prediction_out_of_range_is_an_error():
    chances = tf.placeholder(tf.float32, [2])
    _, update = tf.metrics.auc([1, 0], chances)
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"in \[0, 1\]"):
            sess.run(update, {chances: [0.5, 1.5]})
