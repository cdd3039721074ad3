"""Candidate samplers: a few classes that stand for all of them in a loss.

With the same seeds they draw TensorFlow's classes, execution for execution. They run on the host:
how many tries it takes to draw different classes is data.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.gfile import open_binary
from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import Dims, format_dims
from runnel.ops.sampling.philox import PhiloxStream
from runnel.ops.sampling.random import SEEDS, op_seeds
from runnel.ops.sampling.range_samplers import (
    AllSampler,
    FixedUnigramSampler,
    LearnedUnigramSampler,
    LogUniformSampler,
    RangeSampler,
    UniformSampler,
)

_COUNTS = ["num_true: int >= 1", "num_sampled: int >= 1", "unique: bool"]
_RANGE = "range_max: int >= 1"
_OUTPUTS = "sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float"
_COUNTERS_PER_CANDIDATE = 512  # that TensorFlow sets aside, however many tries are made


def _require_matrix(dims: Dims, num_true: int) -> None:
    if dims is not None and (len(dims) != 2 or dims[1] not in (None, num_true)):
        raise ValueError(
            f"true_classes must be a matrix of {num_true} columns (num_true), not of shape "
            f"{format_dims(dims)}"
        )


def _dims(true_classes: Tensor, *, num_true: int, num_sampled: int) -> list[Dims]:
    _require_matrix(true_classes.dims, num_true)
    batch = None if true_classes.dims is None else true_classes.dims[0]
    return [(num_sampled,), (batch, num_true), (num_sampled,)]


def _sample(
    sampler: RangeSampler,
    stream: np.ndarray,
    true_classes: np.ndarray,
    num_true: int,
    num_sampled: int,
    unique: bool,
) -> tuple[np.ndarray, ...]:
    _require_matrix(true_classes.shape, num_true)
    wrong = true_classes[(true_classes < 0) | (true_classes >= sampler.size)]
    if wrong.size:
        raise InvalidArgumentError(
            None, None, f"true_classes has {wrong[0]}, which is not in [0, {sampler.size})"
        )
    if unique and num_sampled > sampler.possible():
        raise InvalidArgumentError(
            None,
            None,
            f"Sampler's range is too small: num_sampled is {num_sampled}, but only "
            f"{sampler.possible()} different classes can be drawn",
        )
    return tuple(sampler.sample(stream, true_classes, num_sampled, unique))


def _register(name: str, attrs: list[str], sampler_of: Callable[..., RangeSampler]) -> Any:
    """An operation whose sampler is a function of its attributes, made once."""
    op_def = register_op(
        name,
        inputs="true_classes: int64",
        outputs=_OUTPUTS,
        attrs=[*_COUNTS, *attrs, *SEEDS],
        host=True,
        random=lambda shape: shape[0] * _COUNTERS_PER_CANDIDATE,
        differentiable=False,
    )
    op_def.shape(_dims)
    made: weakref.WeakKeyDictionary[Operation, RangeSampler] = weakref.WeakKeyDictionary()

    @op_def.kernel
    def _(xp, true_classes, *, num_true, num_sampled, unique, operation, stream):
        sampler = made.get(operation)
        if sampler is None:
            sampler = made[operation] = sampler_of(operation.attrs)
        return _sample(sampler, stream, true_classes, num_true, num_sampled, unique)

    return op_def


uniform_op = _register(
    "UniformCandidateSampler", [_RANGE], lambda attrs: UniformSampler(attrs["range_max"])
)
log_uniform_op = _register(
    "LogUniformCandidateSampler", [_RANGE], lambda attrs: LogUniformSampler(attrs["range_max"])
)
all_op = _register("AllCandidateSampler", [], lambda attrs: AllSampler(attrs["num_sampled"]))


def _fixed_unigrams(attrs: dict[str, Any]) -> RangeSampler:
    path, unigrams, size = attrs["vocab_file"], attrs["unigrams"], attrs["range_max"]
    if bool(path) == bool(unigrams):
        raise InvalidArgumentError(
            None,
            None,
            "Give a vocab_file or unigrams, and not both: they say how often classes are",
        )
    shards, shard = attrs["num_shards"], attrs["shard"]
    if shard >= shards:
        raise InvalidArgumentError(
            None, None, f"shard is {shard}, but must be less than num_shards, {shards}"
        )
    reserved = len(range(shard, attrs["num_reserved_ids"], shards))
    given = _last_columns(path) if path else unigrams
    # The first class of the vocabulary comes after the reserved ones that this shard has.
    mine = [w for position, w in enumerate(given, reserved) if position % shards == shard]
    weights = np.zeros(reserved + len(mine), np.float32)
    weights[reserved:] = np.power(np.array(mine, np.float32), np.float32(attrs["distortion"]))
    if weights.size != size:
        raise InvalidArgumentError(
            None,
            None,
            f"range_max is {size}, but there are {weights.size} classes: {reserved} reserved ones "
            f"and {len(mine)} of the {len(given)} weights (shard {shard} of {shards})",
        )
    if not (weights >= 0).all() or not weights.sum() > 0:
        raise InvalidArgumentError(
            None, None, "The weights of classes must not be negative, nor all of them zero"
        )
    return FixedUnigramSampler(weights)


def _last_columns(path: str) -> list[float]:
    """The numbers after the last comma of each line of a file."""
    found = []
    with open_binary(path) as file:
        for number, line in enumerate(file, 1):
            field = line.rstrip(b"\r\n").rpartition(b",")[2]
            try:
                found.append(float(field))
            except ValueError:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Wrong vocabulary format at line {number} of {path}: it must end with a comma "
                    f"and a number, but is {line.decode(errors='replace').rstrip()!r}",
                ) from None
    return found


fixed_unigram_op = _register(
    "FixedUnigramCandidateSampler",
    [
        _RANGE,
        "vocab_file: string = ''",
        "distortion: float = 1.0",
        "num_reserved_ids: int = 0",
        "num_shards: int >= 1 = 1",
        "shard: int >= 0 = 0",
        "unigrams: list(float) = []",
    ],
    _fixed_unigrams,
)


class LearnedUnigrams:
    """What steps share of a sampler that learns: its counts and its place in the stream."""

    def __init__(self, size: int, seed: int, seed2: int) -> None:
        # Guards both; held while a step samples and learns.
        self._lock = threading.Lock()
        self._sampler = LearnedUnigramSampler(size)
        if seed == 0 and seed2 == 0:
            seed, seed2 = np.random.SeedSequence().generate_state(2, np.uint64).tolist()
        self._position = PhiloxStream.from_seeds(seed, seed2)

    def sample(
        self, true_classes: np.ndarray, num_true: int, num_sampled: int, unique: bool
    ) -> tuple[np.ndarray, ...]:
        """What is drawn by what was learned so far; then learns ``true_classes``."""
        with self._lock:
            stream = self._position.words()
            drawn = _sample(self._sampler, stream, true_classes, num_true, num_sampled, unique)
            self._position = self._position.skip(num_sampled * _COUNTERS_PER_CANDIDATE)
            self._sampler.learn(true_classes)
            return drawn

    def abandon(self, error: Exception) -> None:
        """Nobody waits for it."""


def _register_learned(name: str) -> Any:
    op_def = register_op(
        name,
        inputs="true_classes: int64",
        outputs=_OUTPUTS,
        attrs=[*_COUNTS, _RANGE, *SEEDS],
        blocking=True,  # its counts are what steps share
        differentiable=False,
    )
    op_def.shape(_dims)

    @op_def.kernel
    def _(
        xp,
        true_classes,
        *,
        num_true,
        num_sampled,
        unique,
        range_max,
        seed,
        seed2,
        operation,
        waiter,
    ):
        found = waiter.resources.find(
            operation, LearnedUnigrams, lambda _: LearnedUnigrams(range_max, seed, seed2)
        )
        return list(found.sample(np.asarray(true_classes), num_true, num_sampled, unique))

    return op_def


learned_unigram_op = _register_learned("LearnedUnigramCandidateSampler")
_register_learned("ThreadUnsafeUnigramCandidateSampler")

accidental_hits_op = register_op(
    "ComputeAccidentalHits",
    inputs="true_classes: int64, sampled_candidates: int64",
    outputs="indices: int32, ids: int64, weights: float",
    attrs=["num_true: int", *SEEDS],
    host=True,
    differentiable=False,
)


@accidental_hits_op.shape
def _(true_classes, sampled_candidates, *, num_true):
    _require_matrix(true_classes.dims, num_true)
    return [(None,), (None,), (None,)]


@accidental_hits_op.kernel
def _(xp, true_classes, sampled_candidates, *, num_true):
    _require_matrix(true_classes.shape, num_true)
    # Of a class that was sampled several times, the last place counts.
    distinct, place = np.unique(sampled_candidates[::-1], return_index=True)
    flat = true_classes.reshape(-1)
    at = np.searchsorted(distinct, flat)
    at[at == distinct.size] = 0
    hit = distinct[at] == flat if distinct.size else np.zeros(flat.shape, bool)
    ids = sampled_candidates.size - 1 - place[at[hit]]
    rows = np.flatnonzero(hit) // num_true
    lowest = np.full(rows.shape, np.finfo(np.float32).min, np.float32)
    return rows.astype(np.int32), ids.astype(np.int64), lowest


# The functions of the user --------------------------------------------------------------------

Sampled = tuple[Tensor, Tensor, Tensor]
"""The sampled classes, the expected counts of the true classes, and those of the sampled ones."""


def _call(
    op_def: Any,
    true_classes: Any,
    counts: tuple[int, int, bool],
    seed: int | None,
    name: str | None,
    **attrs: Any,
) -> Sampled:
    num_true, num_sampled, unique = counts
    return op_def(
        true_classes,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        **attrs,
        **op_seeds(seed),
        name=name,
    )


def uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Draws classes of ``[0, range_max)``, all equally probable.

    ``true_classes`` is a matrix of ``num_true`` columns. Returned are the ``num_sampled`` classes,
    all different if ``unique``, and how often the true ones and the sampled ones are expected to
    be among them.

    Example:
        >>> tf.nn.uniform_candidate_sampler(labels, 1, 64, unique=True, range_max=10000)
    """
    counts = num_true, num_sampled, unique
    return _call(uniform_op, true_classes, counts, seed, name, range_max=range_max)


def log_uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Draws classes about as Zipf's law has them: for words numbered from the most frequent on.

    Class k has the probability ``log((k + 2) / (k + 1)) / log(range_max + 1)``. The rest is as in
    :func:`uniform_candidate_sampler`.
    """
    counts = num_true, num_sampled, unique
    return _call(log_uniform_op, true_classes, counts, seed, name, range_max=range_max)


def learned_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Draws classes as often as they were among the true ones of the executions before.

    The counts belong to the session's state and are not saved. The rest is as in
    :func:`uniform_candidate_sampler`.
    """
    counts = num_true, num_sampled, unique
    return _call(learned_unigram_op, true_classes, counts, seed, name, range_max=range_max)


def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Any = (),
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Draws classes in proportion to weights to the power of ``distortion``.

    The weights are ``unigrams``, or the numbers after the last comma of lines of ``vocab_file``.
    They follow ``num_reserved_ids`` classes that are never drawn. Of ``num_shards`` this samples
    the classes of one ``shard``. The rest is as in :func:`uniform_candidate_sampler`.
    """
    return _call(
        fixed_unigram_op,
        true_classes,
        (num_true, num_sampled, unique),
        seed,
        name,
        range_max=range_max,
        vocab_file=vocab_file,
        distortion=distortion,
        num_reserved_ids=num_reserved_ids,
        num_shards=num_shards,
        shard=shard,
        unigrams=[float(weight) for weight in unigrams],
    )


def all_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """All of ``num_sampled`` classes: a sampled loss with these is the full one, for tests."""
    return _call(all_op, true_classes, (num_true, num_sampled, unique), seed, name)


def compute_accidental_hits(
    true_classes: Any,
    sampled_candidates: Any,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Where a sampled class is a true one: rows of ``true_classes``, places in the sample, weights.

    The weights are all the lowest float: added to a logit they take its class out of the softmax.

    Example:
        >>> tf.nn.compute_accidental_hits([[3], [1]], [5, 3], num_true=1)  # [0], [1], [-3.4e38]
    """
    return accidental_hits_op(
        convert_to_tensor(true_classes, dtypes.int64),
        convert_to_tensor(sampled_candidates, dtypes.int64),
        num_true=num_true,
        **op_seeds(seed),
        name=name,
    )
