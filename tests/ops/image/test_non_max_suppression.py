"""Boxes chosen by score, against TensorFlow's rule, read box by box."""

import numpy as np
import pytest

import runnel as tf


def likeness(a, b):
    """The intersection over the union of two boxes, given by any two opposite corners."""
    (top, bottom), (left, right) = sorted(a[::2]), sorted(a[1::2])
    (top_b, bottom_b), (left_b, right_b) = sorted(b[::2]), sorted(b[1::2])
    area, area_b = (bottom - top) * (right - left), (bottom_b - top_b) * (right_b - left_b)
    if area <= 0 or area_b <= 0:
        return np.float32(0)
    height = max(min(bottom, bottom_b) - max(top, top_b), np.float32(0))
    width = max(min(right, right_b) - max(left, left_b), np.float32(0))
    return height * width / (area + area_b - height * width)


def chosen_one_by_one(alike, scores, limit, threshold, least):
    chosen = []
    for i in sorted(range(len(scores)), key=lambda i: (-scores[i], i)):
        if len(chosen) < limit and scores[i] > least:
            if not any(alike(i, j) > threshold for j in chosen):
                chosen.append(i)
    return chosen


@pytest.mark.parametrize("count", [0, 1, 30, 64, 65, 300])
@pytest.mark.parametrize("limit", [0, 5, 1000])
@pytest.mark.parametrize(("threshold", "least"), [(0.5, -np.inf), (0.0, 0.3), (1.0, 0.9)])
def test_the_best_boxes_apart_from_each_other(count, limit, threshold, least):
    rng = np.random.default_rng(count)
    boxes = rng.uniform(0, 1, (count, 4)).astype(np.float32)
    boxes[1::7, 2] = boxes[1::7, 0]  # flat ones
    scores = rng.integers(0, 40, count).astype(np.float32) / 40  # some are equal
    found = tf.Session().run(
        tf.image.non_max_suppression(boxes, scores, limit, threshold, score_threshold=least)
    )
    expected = chosen_one_by_one(
        lambda i, j: likeness(boxes[i], boxes[j]), scores, limit, threshold, least
    )
    assert found.tolist() == expected


def test_a_matrix_says_how_alike_boxes_are():
    rng = np.random.default_rng(0)
    alike, scores = rng.uniform(0, 1, (100, 100)).astype(np.float32), np.linspace(1, 0, 100)
    found = tf.Session().run(
        tf.image.non_max_suppression_overlaps(alike, scores.astype(np.float32), 40, 0.9)
    )
    expected = chosen_one_by_one(lambda i, j: alike[i, j], scores, 40, 0.9, -np.inf)
    assert found.tolist() == expected


def test_scores_that_are_no_numbers_choose_nothing():
    boxes = np.array([[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5]], np.float32)
    scores = np.array([np.nan, 0.5, -np.inf], np.float32)
    assert tf.Session().run(tf.image.non_max_suppression(boxes, scores, 3)).tolist() == [1]
