"""The likeliest labels without their times: a search with a beam of prefixes (Graves 2012)."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.sparse_tensor import SparseTensor

ctc_beam_search_op = register_op(
    "CTCBeamSearchDecoder",
    inputs="inputs: T, sequence_length: int32",
    outputs="decoded_indices: top_paths * int64, decoded_values: top_paths * int64, "
    "decoded_shape: top_paths * int64, log_probability: T",
    attrs=[
        "beam_width: int >= 1",
        "top_paths: int >= 1",
        "merge_repeated: bool = true",
        "T: {float, double} = DT_FLOAT",
    ],
    host=True,
    differentiable=False,
)


@ctc_beam_search_op.shape
def _(inputs, sequence_length, *, top_paths):
    if inputs.dims is not None and len(inputs.dims) != 3:
        raise ValueError(f"inputs must be [time, batch, classes], not of shape {inputs.shape}")
    batch = None if inputs.dims is None else inputs.dims[1]
    found: list[Any] = [(None, 2)] * top_paths + [(None,)] * top_paths + [(2,)] * top_paths
    return [*found, (batch, top_paths)]


class _Prefixes:
    """Prefixes that a search has met: each is another one and a label; the first has neither."""

    def __init__(self) -> None:
        self.parents, self.labels = [-1], [-1]
        self._numbers: dict[tuple[int, int], int] = {}

    def longer(self, prefix: int, label: int) -> int:
        """The number of ``prefix`` with one more label."""
        number = self._numbers.setdefault((prefix, label), len(self.labels))
        if number == len(self.labels):
            self.parents.append(prefix)
            self.labels.append(label)
        return number

    def sequence(self, prefix: int, merge_repeated: bool) -> list[int]:
        """Its labels; with ``merge_repeated``, one for each run of equal ones."""
        found: list[int] = []
        before = -1
        while prefix > 0:
            label = self.labels[prefix]
            if not merge_repeated or label != before:
                found.append(label)
            before, prefix = label, self.parents[prefix]
        return found[::-1]


def _search(chances: np.ndarray, width: int) -> tuple[_Prefixes, list[int], list[float]]:
    """The likeliest prefixes after log-probabilities [time, classes], best first.

    Each prefix of the beam has the probability of ending in a blank, in its last label, and both.
    """
    known = _Prefixes()
    beam: dict[int, tuple[float, float, float]] = {0: (0.0, -np.inf, 0.0)}
    for now in chances:
        beam = _next_beam(known, beam, now, width)
    prefixes = sorted(beam, key=lambda prefix: -beam[prefix][2])
    return known, prefixes, [beam[prefix][2] for prefix in prefixes]


def _next_beam(
    known: _Prefixes, beam: dict[int, tuple[float, float, float]], now: np.ndarray, width: int
) -> dict[int, tuple[float, float, float]]:
    """The beam after one more time.

    TensorFlow grows prefixes best first, and one that has been dropped meanwhile grows only if it
    is met before the prefix that it extends: so this, too, takes them one by one.
    """
    prefixes = sorted(beam, key=lambda prefix: -beam[prefix][2])
    blank, label, total = np.array([beam[prefix] for prefix in prefixes]).T
    places = {prefix: place for place, prefix in enumerate(prefixes)}
    lasts = np.array([known.labels[p] for p in prefixes])
    parents = np.array([places.get(known.parents[p], -1) for p in prefixes])
    # A prefix goes on by its last label, or comes of the one before it, if that is there.
    inside = np.flatnonzero(parents >= 0)
    its = parents[inside]
    ends = np.where(lasts[inside] == lasts[its], blank[its], total[its])
    label[inside] = np.logaddexp(label[inside], ends)
    label += np.where(lasts >= 0, now[lasts], 0.0)
    # One more label: the same again only after a blank.
    longer = total[:, None] + now[None, :-1]
    own = np.flatnonzero(lasts >= 0)
    longer[own, lasts[own]] = blank[own] + now[lasts[own]]
    still = total + now[-1]
    new = zip(still.tolist(), label.tolist(), np.logaddexp(still, label).tolist(), strict=True)
    beam = dict(zip(prefixes, new, strict=True))
    worst_first = [(values[2], prefix) for prefix, values in beam.items()]
    heapify(worst_first)
    old = total.tolist()
    extended: dict[int, list[int]] = {}
    for place, parent in enumerate(parents.tolist()):
        extended.setdefault(parent, []).append(place)
    for place, prefix in enumerate(prefixes):
        bound = worst_first[0][0] if len(beam) >= width else -np.inf
        if old[place] <= bound:
            continue
        mine = {int(lasts[child]): child for child in extended.get(place, ())}
        likely = np.flatnonzero(longer[place] > bound).tolist()
        for added in sorted({*likely, *mine}) if mine else likely:
            child, score = known.longer(prefix, added), float(longer[place, added])
            if child in beam:
                continue
            if score > (worst_first[0][0] if len(beam) >= width else -np.inf):
                if len(beam) >= width:
                    del beam[heappop(worst_first)[1]]
                beam[child] = (-np.inf, score, score)
                heappush(worst_first, (score, child))
            elif added in mine:
                old[mine[added]] = -np.inf
    return beam


@ctc_beam_search_op.kernel
def _(xp, inputs, sequence_length, *, beam_width, top_paths, merge_repeated):
    _require(inputs, sequence_length, beam_width, top_paths)
    steps, batch, _ = inputs.shape
    logits = np.asarray(inputs, np.float64)
    peaks = logits.max(axis=2, keepdims=True)
    chances = logits - peaks - np.log(np.exp(logits - peaks).sum(axis=2, keepdims=True))
    sequences: list[list[list[int]]] = [[] for _ in range(top_paths)]
    scores = np.empty((batch, top_paths), inputs.dtype)
    for row, length in enumerate(np.asarray(sequence_length).tolist()):
        known, beam, totals = _search(chances[:length, row], beam_width)
        if len(beam) < top_paths:
            raise InvalidArgumentError(
                None,
                None,
                f"Less leaves in the beam search than requested: sequence {row} has {len(beam)} "
                f"possible labellings, and top_paths is {top_paths}",
            )
        scores[row] = totals[:top_paths]
        for path in range(top_paths):
            sequences[path].append(known.sequence(beam[path], merge_repeated))
    indices = [
        np.array([(i, j) for i, s in enumerate(found) for j in range(len(s))], np.int64)
        for found in sequences
    ]
    return (
        *(places.reshape(-1, 2) for places in indices),
        *(np.array([v for s in found for v in s], np.int64) for found in sequences),
        *(np.array([batch, max(map(len, found), default=0)], np.int64) for found in sequences),
        scores,
    )


def _require(inputs: Any, lengths: Any, beam_width: int, top_paths: int) -> None:
    problem = ""
    if inputs.ndim != 3:
        problem = f"inputs is not a 3-Tensor: its shape is {list(inputs.shape)}"
    elif lengths.shape != inputs.shape[1:2]:
        problem = (
            f"sequence_length must have the {inputs.shape[1]} sequences of the batch, "
            f"not the shape {list(lengths.shape)}"
        )
    elif inputs.shape[1] == 0 or inputs.shape[2] == 0:
        problem = f"inputs has no sequences, or no classes: its shape is {list(inputs.shape)}"
    elif lengths.min() < 0 or lengths.max() > inputs.shape[0]:
        problem = f"sequence_length must be in [0, {inputs.shape[0]}], the time of inputs"
    elif top_paths > beam_width:
        problem = f"top_paths {top_paths} must be at most beam_width {beam_width}"
    if problem:
        raise InvalidArgumentError(None, None, problem)


def ctc_beam_search_decoder(
    inputs: Any,
    sequence_length: Any,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
) -> tuple[list[SparseTensor], Tensor]:
    """The ``top_paths`` likeliest labellings, and their log-probabilities [batch, top_paths].

    ``inputs`` are logits [time, batch, classes], of which the last is the blank. With
    ``merge_repeated``, labels that repeat in a result are merged, also those with a blank between.

    Example:
        >>> (decoded,), log_probability = tf.nn.ctc_beam_search_decoder(logits, lengths)
    """
    outputs = ctc_beam_search_op(
        inputs,
        sequence_length,
        beam_width=beam_width,
        top_paths=top_paths,
        merge_repeated=merge_repeated,
    )
    indices, values, shapes, score = outputs
    found = zip(indices, values, shapes, strict=True)
    return [SparseTensor(i, v, s) for i, v, s in found], score


def ctc_beam_search_decoder_v2(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """:func:`ctc_beam_search_decoder` that merges nothing afterwards."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, False)
