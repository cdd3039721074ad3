"""Choosing boxes by score, without those that overlap a better one.

How many are chosen depends on the data, so these run on the host.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import format_dims

_T = "T: {half, float} = DT_FLOAT"
_THRESHOLDS = "T_threshold: {half, float} = DT_FLOAT"
_PAD = "pad_to_max_output_size: bool = false"
_INDICES = "selected_indices: int32"


def _op(name: str, inputs: str, outputs: str = _INDICES, attrs: Any = "") -> OpDef:
    return register_op(
        name, inputs=inputs, outputs=outputs, attrs=attrs, host=True, differentiable=False
    )


_BOXES = "boxes: T, scores: T, max_output_size: int32"
nms_v1_op = _op(
    "NonMaxSuppression",
    "boxes: float, scores: float, max_output_size: int32",
    attrs="iou_threshold: float = 0.5",
)
nms_v2_op = _op(
    "NonMaxSuppressionV2", f"{_BOXES}, iou_threshold: T_threshold", attrs=[_T, _THRESHOLDS]
)
_V3 = f"{_BOXES}, iou_threshold: T_threshold, score_threshold: T_threshold"
nms_v3_op = _op("NonMaxSuppressionV3", _V3, attrs=[_T, _THRESHOLDS])
nms_v4_op = _op(
    "NonMaxSuppressionV4",
    _V3,
    f"{_INDICES}, valid_outputs: int32",
    [_T, _THRESHOLDS, _PAD],
)
nms_v5_op = _op(
    "NonMaxSuppressionV5",
    f"{_BOXES}, iou_threshold: T, score_threshold: T, soft_nms_sigma: T",
    f"{_INDICES}, selected_scores: T, valid_outputs: int32",
    [_T, _PAD],
)
overlaps_op = _op(
    "NonMaxSuppressionWithOverlaps",
    "overlaps: float, scores: float, max_output_size: int32, overlap_threshold: float, "
    "score_threshold: float",
)
combined_op = _op(
    "CombinedNonMaxSuppression",
    "boxes: float, scores: float, max_output_size_per_class: int32, max_total_size: int32, "
    "iou_threshold: float, score_threshold: float",
    "nmsed_boxes: float, nmsed_scores: float, nmsed_classes: float, valid_detections: int32",
    ["pad_per_class: bool = false", "clip_boxes: bool = true"],
)


def _check_dims(boxes: Tensor, scores: Tensor) -> None:
    if boxes.dims is not None and (len(boxes.dims) != 2 or boxes.dims[1] not in (None, 4)):
        raise ValueError(f"boxes must be of shape [boxes, 4], not {format_dims(boxes.dims)}")
    if scores.dims is not None and len(scores.dims) != 1:
        raise ValueError(f"scores must be a vector, not of shape {format_dims(scores.dims)}")


def _some_indices(boxes: Tensor, scores: Tensor, *others: Tensor) -> Any:
    _check_dims(boxes, scores)
    return (None,)


for _op_def in (nms_v1_op, nms_v2_op, nms_v3_op):
    _op_def.shape(_some_indices)


@overlaps_op.shape
def _(overlaps, scores, *others):
    return (None,)


def _padded_dims(limit: Tensor, padded: bool) -> Any:
    known = constant_value(limit) if padded else None
    return (None if known is None else int(known),)


@nms_v4_op.shape
def _(boxes, scores, limit, iou, least, *, pad_to_max_output_size):
    _check_dims(boxes, scores)
    return [_padded_dims(limit, pad_to_max_output_size), ()]


@nms_v5_op.shape
def _(boxes, scores, limit, iou, least, sigma, *, pad_to_max_output_size):
    _check_dims(boxes, scores)
    dims = _padded_dims(limit, pad_to_max_output_size)
    return [dims, dims, ()]


@combined_op.shape
def _(boxes, scores, per_class, total, iou, least, *, pad_per_class):
    batch = None if boxes.dims is None else boxes.dims[0]
    limit, each = constant_value(total), constant_value(per_class)
    count = None if limit is None else int(limit)
    if pad_per_class:
        classes = None if scores.dims is None else scores.dims[2]
        if count is None or each is None or classes is None:
            count = None
        else:
            count = min(count, int(each) * classes)
    return [(batch, count, 4), (batch, count), (batch, count), (batch,)]


# Computing ------------------------------------------------------------------------------------


Similarity = Callable[[Any, Any], np.ndarray]
"""How alike boxes are, given the indices of the one and of the others, which broadcast."""


def overlaps(boxes: np.ndarray) -> Similarity:
    """The intersections over the unions of boxes.

    >>> overlaps(np.array([[0, 0, 2, 2], [0, 1, 2, 3.0]], np.float32))(0, [1]).tolist()
    [0.3333333432674408]
    """
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    (top, left), (bottom, right) = low.T.copy(), high.T.copy()
    areas = (bottom - top) * (right - left)
    some_are_flat = bool((areas <= 0).any())

    def similarity(one: Any, others: Any) -> np.ndarray:
        height = np.minimum(bottom[one], bottom[others]) - np.maximum(top[one], top[others])
        width = np.minimum(right[one], right[others]) - np.maximum(left[one], left[others])
        both = np.maximum(height, 0) * np.maximum(width, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = both / (areas[one] + areas[others] - both)
        if some_are_flat:
            ratio[(areas[one] <= 0) | (areas[others] <= 0)] = 0
        return ratio

    return similarity


def select(
    scores: np.ndarray,
    limit: int,
    similarity: Similarity,
    threshold: float,
    least: float,
    sigma: float = 0.0,
) -> tuple[list[int], list[float]]:
    """The boxes that remain, best first, and their scores.

    ``sigma`` above 0 lowers the scores of boxes that overlap instead of dropping them
    (Bodla et al., "Soft-NMS", 2017).
    """
    if sigma <= 0:
        return _select_apart(scores, limit, similarity, threshold, least)
    waiting = [(-score, i, 0) for i, score in enumerate(scores.tolist()) if score > least]
    heapq.heapify(waiting)
    chosen: list[int] = []
    kept: list[float] = []
    while waiting and len(chosen) < limit:
        negative, index, compared = heapq.heappop(waiting)
        score = original = -negative
        others = chosen[compared:]
        if others:
            alike = similarity(index, others)
            for likeness in alike[::-1].tolist():
                score *= math.exp(-0.5 / sigma * likeness * likeness)
                if score <= least:
                    break
            score = float(scores.dtype.type(score))
        if score == original:
            chosen.append(index)
            kept.append(score)
        elif score > least:
            heapq.heappush(waiting, (-score, index, len(chosen)))
    return chosen, kept


_BLOCK = 64


def _select_apart(
    scores: np.ndarray, limit: int, similarity: Similarity, threshold: float, least: float
) -> tuple[list[int], list[float]]:
    """The same where boxes are dropped: block by block, best first.

    A block is compared at once with the boxes chosen before and within itself; then a number's bits
    say which boxes of the block are too much like one of it.
    """
    ordered = np.flatnonzero(scores > least)
    ordered = ordered[np.argsort(-scores[ordered].astype(np.float64), kind="stable")]
    chosen: list[int] = []
    for start in range(0, ordered.size, _BLOCK):
        if len(chosen) >= limit:
            break
        block = ordered[start : start + _BLOCK]
        if chosen:
            block = block[~(similarity(block[:, None], np.array(chosen)) > threshold).any(axis=1)]
        if block.size == 1:
            chosen.append(int(block[0]))
            continue
        alike = similarity(block[:, None], block) > threshold
        rows = np.packbits(alike, axis=1, bitorder="little")
        taken = 0
        for i, (index, row) in enumerate(zip(block.tolist(), rows)):
            if len(chosen) < limit and not int.from_bytes(row.tobytes(), "little") & taken:
                taken |= 1 << i
                chosen.append(index)
    return chosen, scores[chosen].tolist()


def _require(boxes: Any, scores: Any, limit: Any, iou: float) -> int:
    problem = None
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        problem = f"boxes must be of shape [boxes, 4], not {list(boxes.shape)}"
    elif scores.shape != boxes.shape[:1]:
        problem = f"scores must have one number for each box, not the shape {list(scores.shape)}"
    elif not 0 <= iou <= 1:
        problem = f"iou_threshold must be in [0, 1], not {iou}"
    elif limit.ndim or limit < 0:
        problem = f"max_output_size must be a non-negative scalar, not {limit.tolist()}"
    if problem is not None:
        raise InvalidArgumentError(None, None, problem)
    return int(limit)


def _chosen(
    boxes: Any, scores: Any, limit: Any, iou: Any, least: Any, sigma: float = 0.0
) -> tuple[list[int], list[float], int]:
    count = _require(boxes, scores, limit, float(iou))
    wide = boxes.astype(np.float32)
    chosen, kept = select(scores, count, overlaps(wide), float(iou), float(least), sigma)
    return chosen, kept, count


def _filled(values: list[Any], count: int, padded: bool, dtype: Any) -> np.ndarray:
    out = np.zeros(count if padded else len(values), dtype)
    out[: len(values)] = values
    return out


@nms_v1_op.kernel
def _(xp, boxes, scores, max_output_size, *, iou_threshold):
    found = _chosen(boxes, scores, max_output_size, iou_threshold, -np.inf)[0]
    return np.array(found, np.int32)


@nms_v2_op.kernel
def _(xp, boxes, scores, max_output_size, iou_threshold):
    found = _chosen(boxes, scores, max_output_size, iou_threshold, -np.inf)[0]
    return np.array(found, np.int32)


@nms_v3_op.kernel
def _(xp, boxes, scores, max_output_size, iou_threshold, score_threshold):
    found = _chosen(boxes, scores, max_output_size, iou_threshold, score_threshold)[0]
    return np.array(found, np.int32)


@nms_v4_op.kernel
def _(
    xp, boxes, scores, max_output_size, iou_threshold, score_threshold, *, pad_to_max_output_size
):
    found, _, count = _chosen(boxes, scores, max_output_size, iou_threshold, score_threshold)
    return _filled(found, count, pad_to_max_output_size, np.int32), np.int32(len(found))


@nms_v5_op.kernel
def _(
    xp,
    boxes,
    scores,
    max_output_size,
    iou_threshold,
    score_threshold,
    soft_nms_sigma,
    *,
    pad_to_max_output_size,
):
    sigma = float(soft_nms_sigma)
    if sigma < 0:
        raise InvalidArgumentError(None, None, f"soft_nms_sigma must be at least 0, not {sigma}")
    found, kept, count = _chosen(
        boxes, scores, max_output_size, iou_threshold, score_threshold, sigma
    )
    return (
        _filled(found, count, pad_to_max_output_size, np.int32),
        _filled(kept, count, pad_to_max_output_size, scores.dtype),
        np.int32(len(found)),
    )


@overlaps_op.kernel
def _(xp, overlaps, scores, max_output_size, overlap_threshold, score_threshold):
    if overlaps.ndim != 2 or overlaps.shape != (scores.size, scores.size):
        raise InvalidArgumentError(
            None,
            None,
            f"overlaps must be a square with a row for each of {scores.size} scores, not "
            f"{list(overlaps.shape)}",
        )
    if max_output_size < 0:
        raise InvalidArgumentError(None, None, f"max_output_size is negative: {max_output_size}")
    found, _ = select(
        scores,
        int(max_output_size),
        lambda i, rest: overlaps[i, rest],
        float(overlap_threshold),
        float(score_threshold),
    )
    return np.array(found, np.int32)


@combined_op.kernel
def _(
    xp,
    boxes,
    scores,
    max_output_size_per_class,
    max_total_size,
    iou_threshold,
    score_threshold,
    *,
    pad_per_class,
    clip_boxes,
):
    fits = boxes.ndim == 4 and scores.ndim == 3 and boxes.shape[3] == 4
    if (
        not fits
        or boxes.shape[:2] != scores.shape[:2]
        or boxes.shape[2] not in (1, scores.shape[2])
    ):
        raise InvalidArgumentError(
            None,
            None,
            "boxes must be [batch, boxes, 1 or classes, 4] and scores [batch, boxes, classes], "
            f"not {list(boxes.shape)} and {list(scores.shape)}",
        )
    if max_total_size <= 0 or max_output_size_per_class <= 0:
        raise InvalidArgumentError(
            None, None, "max_total_size and max_output_size_per_class must be > 0"
        )
    if not 0 <= iou_threshold <= 1:
        raise InvalidArgumentError(None, None, f"iou_threshold must be in [0, 1]: {iou_threshold}")
    batch, count, classes = scores.shape
    total, each = int(max_total_size), min(int(max_output_size_per_class), count)
    size = min(total, int(max_output_size_per_class) * classes) if pad_per_class else total
    out_boxes = np.zeros((batch, size, 4), np.float32)
    out_scores = np.zeros((batch, size), np.float32)
    out_classes = np.zeros((batch, size), np.float32)
    valid = np.zeros(batch, np.int32)
    threshold, least = float(iou_threshold), float(score_threshold)
    for b in range(batch):
        found = []
        for c in range(classes):
            own = boxes[b, :, c if boxes.shape[2] > 1 else 0]
            chosen, kept = select(scores[b, :, c], each, overlaps(own), threshold, least)
            found += [(-score, c, own[i]) for i, score in zip(chosen, kept, strict=True)]
        found.sort(key=lambda item: item[0])
        found = found[:size]
        valid[b] = len(found)
        for place, (negative, c, box) in enumerate(found):
            out_boxes[b, place] = np.clip(box, 0, 1) if clip_boxes else box
            out_scores[b, place], out_classes[b, place] = -negative, c
    return out_boxes, out_scores, out_classes, valid


# Functions ------------------------------------------------------------------------------------

_NOTHING = float("-inf")


def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _NOTHING,
    name: str | None = None,
) -> Tensor:
    """The indices of the best ``boxes`` that do not overlap a better one, best first.

    Boxes are [y1, x1, y2, x2] of two opposite corners, in any unit; two overlap when the
    intersection is more than ``iou_threshold`` of the union.

    Example:
        >>> tf.image.non_max_suppression([[0, 0, 1, 1], [0, 0, 1, 1.1]], [0.9, 0.8], 10)  # [0]
    """
    with name_scope(name, "non_max_suppression"):
        return nms_v3_op(boxes, scores, max_output_size, iou_threshold, score_threshold)


def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _NOTHING,
    soft_nms_sigma: Any = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """:func:`non_max_suppression` with the scores of the chosen boxes.

    With ``soft_nms_sigma`` above 0 boxes that overlap lose score instead of being dropped.
    """
    with name_scope(name, "non_max_suppression_with_scores"):
        indices, kept, _ = nms_v5_op(
            boxes, scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma
        )
        return indices, kept


class PaddedSelection(NamedTuple):
    """Chosen boxes, zeros after them, and how many there are."""

    selected_indices: Tensor
    valid_outputs: Tensor


def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _NOTHING,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
) -> PaddedSelection:
    """:func:`non_max_suppression` with zeros up to ``max_output_size``, and the number chosen."""
    with name_scope(name, "non_max_suppression_padded"):
        return PaddedSelection(
            *nms_v4_op(
                boxes,
                scores,
                max_output_size,
                iou_threshold,
                score_threshold,
                pad_to_max_output_size=pad_to_max_output_size,
            )
        )


def non_max_suppression_overlaps(
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: Any = 0.5,
    score_threshold: Any = _NOTHING,
    name: str | None = None,
) -> Tensor:
    """:func:`non_max_suppression` where a matrix says how much boxes overlap."""
    with name_scope(name, "non_max_suppression_overlaps"):
        return overlaps_op(overlaps, scores, max_output_size, overlap_threshold, score_threshold)


class CombinedSelection(NamedTuple):
    """The boxes that were chosen for each image, of all classes together."""

    nmsed_boxes: Tensor
    nmsed_scores: Tensor
    nmsed_classes: Tensor
    valid_detections: Tensor


def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _NOTHING,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> CombinedSelection:
    """Non-max suppression for each class of each image; the best of all classes are kept.

    ``boxes`` are [batch, boxes, 1 or classes, 4], ``scores`` [batch, boxes, classes].
    """
    with name_scope(name, "combined_non_max_suppression"):
        return CombinedSelection(
            *combined_op(
                boxes,
                scores,
                max_output_size_per_class,
                max_total_size,
                convert_to_tensor(iou_threshold, dtypes.float32),
                convert_to_tensor(score_threshold, dtypes.float32),
                pad_per_class=pad_per_class,
                clip_boxes=clip_boxes,
            )
        )
