"""Datasets of random numbers, and elements that are chosen: among datasets, or by their class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.data.dataset import Dataset
from runnel.data.element_structure import TensorSpec, component_attrs, flatten, pack_as
from runnel.data.grouping import scan
from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import get_seed
from runnel.graph.registry import get_op_def
from runnel.ops.array_shape import expand_dims, reshape
from runnel.ops.casting import cast
from runnel.ops.data import collecting_ops, dataset_ops
from runnel.ops.fill import fill
from runnel.ops.gather import gather
from runnel.ops.one_hot import one_hot
from runnel.ops.padding import tile
from runnel.ops.reduce_functions import reduce_max, reduce_min, reduce_sum
from runnel.ops.sampling.random import random_uniform
from runnel.ops.sampling.stateless_random import stateless_multinomial_op

_NUMBER = TensorSpec((), dtypes.int64)
_ESTIMATED_TOGETHER = 32
"""Of how many elements the classes are counted before shares are estimated again."""
_SEEN_BEFORE = 10
"""As how many elements of each class the estimate begins with, so that none is impossible."""


class RandomDataset(Dataset):
    """Random numbers without end, as int64."""

    def __init__(self, seed: int | None = None) -> None:
        seeds = [convert_to_tensor(one or 0, dtypes.int64) for one in get_seed(seed)]
        super().__init__(collecting_ops.random_op(*seeds, **component_attrs(_NUMBER)), _NUMBER)


def choose_from_datasets(datasets: Sequence[Dataset], choice_dataset: Dataset) -> Dataset:
    """Elements of ``datasets``, each of that whose number ``choice_dataset`` gives."""
    if not datasets:
        raise ValueError("`datasets` must not be empty.")
    if not _NUMBER.fits(choice_dataset._structure):
        raise TypeError("`choice_dataset` must be a dataset of scalar `tf.int64` tensors.")
    return _chosen(datasets, choice_dataset)


def _chosen(
    datasets: Sequence[Dataset], choices: Dataset, stop_on_empty_dataset: bool = False
) -> Dataset:
    """Elements of ``datasets``, each of the next of ``choices``."""
    leaves = [flatten(dataset._structure) for dataset in datasets]
    merged = leaves[0]
    for others in leaves[1:]:
        merged = [a.merged(b) for a, b in zip(merged, others, strict=True)]
    structure = pack_as(datasets[0]._structure, merged)
    variant = dataset_ops.directed_op(
        choices._variant_tensor,
        [dataset._variant_tensor for dataset in datasets],
        **component_attrs(structure),
        stop_on_empty_dataset=stop_on_empty_dataset,
    )
    return Dataset(variant, structure)._made_of(choices, *datasets)


def sample_from_datasets(
    datasets: Sequence[Dataset], weights: Any = None, seed: Any = None
) -> Dataset:
    """Elements of ``datasets``, each of one drawn at random with ``weights``.

    The weights are a tensor, or a dataset of them: one for each draw.

    Example:
        >>> tf.data.experimental.sample_from_datasets([cats, dogs], weights=[0.3, 0.7], seed=1)
    """
    count = len(datasets)
    if isinstance(weights, Dataset):
        return choose_from_datasets(datasets, _drawn_with(weights, seed))
    if weights is None:
        logits = convert_to_tensor(np.ones([1, count], np.float32))
    else:
        given = convert_to_tensor(weights)
        if given.dtype not in (dtypes.float32, dtypes.float64):
            raise TypeError("`weights` must be convertible to a tensor of `tf.float32` or float64.")
        if not given.shape.is_compatible_with([count]):
            raise ValueError(
                "`weights` must have one number for each of `datasets`: their shape is "
                f"{given.shape}, and there are {count} datasets."
            )
        logits = expand_dims(get_op_def("Log")(given), 0)
    if count == 1:
        return datasets[0]
    numbers = RandomDataset(seed).batch(2)
    return choose_from_datasets(datasets, numbers.map(lambda pair: _drawn(logits, pair)))


def _drawn_with(weights: Dataset, seed: Any) -> Dataset:
    """Numbers of datasets, each drawn with the next of ``weights``."""
    logits = weights.map(lambda *given: reshape(get_op_def("Log")(given), [1, -1]))
    return Dataset.zip((logits, RandomDataset(seed).batch(2))).map(_drawn)


def _drawn(logits: Tensor, seed: Tensor) -> Tensor:
    """The number of a dataset, drawn with these logits, of shape [1, datasets]."""
    return reshape(stateless_multinomial_op(logits, 1, seed), [])


def rejection_resample(
    class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None, seed: Any = None
) -> Callable[[Dataset], Dataset]:
    """Pairs of a class and an element, of which so many are dropped that classes are as wanted.

    ``class_func`` gives the class of an element, ``target_dist`` the share wanted of each class,
    ``initial_dist`` the share that each has; without it, the shares are estimated on the way. No
    more is dropped than must be: as large a share as can be comes from the dataset as it is.
    """

    def transformed(dataset: Dataset) -> Dataset:
        target = cast(convert_to_tensor(target_dist), dtypes.float32)
        classes = dataset.map(lambda *e: cast(class_func(*e), dtypes.int64))
        whole = Dataset.zip((classes, dataset))
        known = None
        if initial_dist is None:
            shares = _estimated_shares(classes, target)
            chances = shares.map(lambda share: _chances(share, target))
        else:
            initial = cast(convert_to_tensor(initial_dist), dtypes.float32)
            chance, kept = _chances(initial, target)
            known = constant_value(kept)
            chances = Dataset.from_tensors((chance, kept)).repeat()
        if known == 1:
            return whole
        drawn = Dataset.zip((chances, whole)).map(
            lambda chance, pair: (gather(chance[0], pair[0]), *pair)
        )
        accepted = drawn.filter(lambda chance, *rest: random_uniform([], seed=seed) < chance)
        filtered = accepted.map(lambda chance, label, element: (label, element)).prefetch(3)
        if known == 0:
            return filtered
        weights = chances.map(lambda chance, kept: reshape([kept, 1 - kept], [1, 2]))
        choices = _drawn_with(weights, seed)
        # What is left of one, when the other has ended, is not as wanted.
        return _chosen([whole, filtered], choices, stop_on_empty_dataset=True)

    return transformed


def _estimated_shares(classes: Dataset, target: Tensor) -> Dataset:
    """For each element the share of each class, as the elements so far let expect."""
    count = get_op_def("Size")(target)

    def counted(seen: Tensor, some: Tensor) -> tuple[Tensor, Tensor]:
        now = seen + reduce_sum(one_hot(some, count, dtype=dtypes.int64), 0)
        share = cast(now / reduce_sum(now), dtypes.float32)
        return now, tile(expand_dims(share, 0), [_ESTIMATED_TOGETHER, 1])

    begin = fill(expand_dims(count, 0), np.int64(_SEEN_BEFORE))
    return classes.batch(_ESTIMATED_TOGETHER).apply(scan(begin, counted)).unbatch()


def _chances(initial: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The chance of each class to be kept, and the share that need not be looked at.

    The smallest ratio of a wanted share to a given one is what every class has enough of.
    """
    ratios = target / (initial + np.finfo(np.float32).tiny)
    least, most = reduce_min(ratios), reduce_max(ratios)
    return (ratios - least) / (most - least), least
