"""Connectionist temporal classification: labels without their times (Graves et al. 2006)."""

from __future__ import annotations

from typing import Any

from runnel.control_flow.functional import foldl
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32, int64
from runnel.graph.graph import control_dependencies, name_scope
from runnel.graph.operation import Tensor
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.arg_extrema import argmax
from runnel.ops.array_shape import expand_dims, reshape, shape
from runnel.ops.assertions import assert_less
from runnel.ops.broadcasting import broadcast_to
from runnel.ops.casting import cast
from runnel.ops.comparison import equal, logical_and, not_equal
from runnel.ops.control import identity
from runnel.ops.cumulative import cumsum
from runnel.ops.fill import fill, ones_like, zeros_like
from runnel.ops.gather import batch_gather, gather_nd
from runnel.ops.joining import concat, stack
from runnel.ops.masking import sequence_mask
from runnel.ops.padding import pad
from runnel.ops.ranges import range as numbers_to
from runnel.ops.reduce_functions import reduce_logsumexp, reduce_max, reduce_sum
from runnel.ops.segments import unsorted_segment_sum
from runnel.ops.selection import where
from runnel.ops.softmax import log_softmax
from runnel.ops.sparse.dense import sparse_tensor_to_dense
from runnel.ops.transposition import transpose

# The logarithm of no chance at all, for which infinity would make gradients of NaN.
_NEVER = -1e30


def ctc_loss(
    labels: SparseTensor,
    inputs: Any = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Tensor:
    """How unlikely ``labels`` are at any times, for each sequence: the negative log-likelihood.

    ``inputs`` are logits [time, batch, classes], or [batch, time, classes] without ``time_major``;
    the last class is the blank. A sequence that is too short for its labels is an error, or with
    ``ignore_longer_outputs_than_inputs`` has the loss 0.

    Example:
        >>> loss = tf.reduce_mean(tf.nn.ctc_loss(labels, logits, lengths))
    """
    if preprocess_collapse_repeated or not ctc_merge_repeated:
        raise NotImplementedError(
            "ctc_loss has neither preprocess_collapse_repeated nor ctc_merge_repeated=False"
        )
    if not isinstance(labels, SparseTensor):
        raise TypeError(f"Expected labels (first argument) to be a SparseTensor, not {labels!r}")
    with name_scope("CTCLoss"):
        given = convert_to_tensor(inputs if logits is None else logits)
        given = given if time_major else transpose(given, [1, 0, 2])
        loss = _losses(
            *_dense(labels, shape(given)[1]), given, sequence_length, shape(given)[2] - 1
        )
        if ignore_longer_outputs_than_inputs:
            return where(loss < _impossible(loss), loss, zeros_like(loss))
        return _possible(loss)


def ctc_loss_v2(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """:func:`ctc_loss` of ``labels`` [batch, longest], of which each row has ``label_length``.

    ``logits`` are [time, batch, classes], or [batch, time, classes] without ``logits_time_major``.
    The class ``blank_index`` is the blank: 0 unless given, counted from the last class where it is
    negative. Sparse labels need it, and no ``label_length``; too short a sequence is an error with
    them, and else has a loss beyond all others. ``unique`` is accepted, but gains nothing.

    Example:
        >>> loss = tf.nn.ctc_loss_v2([[2, 1, 1]], logits, label_length=[3], logit_length=[9])
    """
    sparse = isinstance(labels, SparseTensor)
    if sparse and blank_index is None:
        raise ValueError(
            "ctc_loss_v2 of a SparseTensor of labels needs a blank_index; -1 is the last class, "
            "which is the blank of ctc_loss"
        )
    with name_scope(name, "ctc_loss_dense", [logits]):
        given = convert_to_tensor(logits, name="logits")
        given = given if logits_time_major else transpose(given, [1, 0, 2])
        blank = convert_to_tensor(blank_index or 0, int32)
        blank = blank + shape(given)[2] if (blank_index or 0) < 0 else blank
        if sparse:
            rows = _dense(labels, shape(given)[1])
            return _possible(_losses(*rows, given, logit_length, blank))
        row, count = cast(labels, int32), cast(label_length, int32)
        return _losses(row, count, given, logit_length, blank)


def _losses(
    rows: Tensor, counts: Tensor, given: Tensor, sequence_length: Any, blank: Tensor
) -> Tensor:
    """The loss of each row of labels, of which ``counts`` are used, given logits by time."""
    chances = log_softmax(given)
    lengths = cast(sequence_length, int32)
    path = _with_blanks(rows, blank)
    # At each time, the chance of each place of the path: [time, batch, places].
    along = transpose(batch_gather(transpose(chances, [1, 2, 0]), path), [2, 0, 1])
    lasts = transpose(sequence_mask(lengths, shape(given)[0]))
    # A label may follow another than itself without a blank between.
    jumps = logical_and(not_equal(path[:, 2:], path[:, :-2]), not_equal(path[:, 2:], blank))
    jumps = pad(jumps, [[0, 0], [2, 0]])
    never = fill(shape(path), cast(_NEVER, given.dtype))
    begins = broadcast_to(expand_dims(numbers_to(shape(path)[1]) < 2, 0), shape(path))

    def step(before: Tensor, now: tuple[Tensor, Tensor]) -> Tensor:
        chance, last = now
        one = concat([never[:, :1], before[:, :-1]], 1)
        two = where(jumps, concat([never[:, :2], before[:, :-2]], 1), never)
        new = reduce_logsumexp(stack([before, one, two]), 0) + chance
        return where(broadcast_to(expand_dims(last, 1), shape(new)), new, before)

    start = where(begins, along[0], never)
    final = foldl(step, (along[1:], lasts[1:]), initializer=start)
    ends = batch_gather(final, stack([2 * counts, _used(2 * counts - 1)], axis=1))
    # Without labels there is one end: all blanks.
    second = where(counts > 0, ends[:, 1], never[:, 0])
    return -reduce_logsumexp(stack([ends[:, 0], second]), 0)


def _impossible(loss: Tensor) -> Tensor:
    """A loss that only sequences too short for their labels reach."""
    return cast(-_NEVER / 10, loss.dtype)


def _possible(loss: Tensor) -> Tensor:
    """``loss``, of which none is that of a sequence too short for its labels."""
    enough = assert_less(
        loss, _impossible(loss), message="Not enough time for target transition sequence"
    )
    with control_dependencies([enough]):
        return identity(loss)


def _used(places: Tensor) -> Tensor:
    """Places, of which a negative one is taken as 0: it is not used."""
    return where(places > 0, places, zeros_like(places))


def _dense(labels: SparseTensor, batch: Tensor) -> tuple[Tensor, Tensor]:
    """The labels as rows [batch, length], and how many there are in each."""
    sized = SparseTensor(
        labels.indices, labels.values, stack([cast(batch, int64), labels.dense_shape[1]])
    )
    rows = cast(sparse_tensor_to_dense(sized), int32)
    counts = unsorted_segment_sum(
        ones_like(labels.values, int32), cast(labels.indices[:, 0], int32), batch
    )
    return rows, counts


def _with_blanks(rows: Tensor, blank: Tensor) -> Tensor:
    """The labels with blanks around each: [batch, 2 * length + 1]."""
    batch, length = shape(rows)[0], shape(rows)[1]
    mixed = reshape(stack([fill(shape(rows), blank), rows], axis=2), stack([batch, 2 * length]))
    return concat([mixed, fill(stack([batch, 1]), blank)], 1)


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True
) -> tuple[list[SparseTensor], Tensor]:
    """The labels of the likeliest class at each time, and the negative sum of its logits.

    ``inputs`` are logits [time, batch, classes], of which the last is the blank.

    Example:
        >>> (decoded,), _ = tf.nn.ctc_greedy_decoder(logits, lengths)
    """
    with name_scope("CTCGreedyDecoder"):
        given = transpose(convert_to_tensor(inputs), [1, 0, 2])
        lasts = sequence_mask(cast(sequence_length, int32), shape(given)[1])
        best = argmax(given, 2)
        blank = cast(shape(given)[2] - 1, int64)
        kept = logical_and(not_equal(best, blank), lasts)
        if merge_repeated:
            same = pad(equal(best[:, 1:], best[:, :-1]), [[0, 0], [1, 0]])
            kept = logical_and(kept, equal(same, False))
        found = where(kept)
        places = cumsum(cast(kept, int64), 1) - 1
        indices = stack([found[:, 0], gather_nd(places, found)], axis=1)
        longest = reduce_max(concat([reduce_sum(cast(kept, int64), 1), [0]], 0))
        dims = stack([cast(shape(given)[0], int64), longest])
        decoded = SparseTensor(indices, gather_nd(best, found), dims)
        score = reduce_sum(reduce_max(given, 2) * cast(lasts, given.dtype), 1, keepdims=True)
        return [decoded], -score
