"""What a program may say of how a dataset is run."""

from __future__ import annotations

from typing import Any

_NAMES = (
    "experimental_autotune",
    "experimental_deterministic",
    "experimental_distribute",
    "experimental_optimization",
    "experimental_slack",
    "experimental_stateful_whitelist",
    "experimental_stats",
    "experimental_threading",
)


class _Group:
    """Options of one kind; those that are not set are None."""

    _names: tuple[str, ...] = ()

    def __init__(self) -> None:
        for name in self._names:
            setattr(self, name, None)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._names:
            raise AttributeError(
                f"Cannot set the property {name} on {type(self).__name__}, which has "
                f"{', '.join(self._names)}."
            )
        super().__setattr__(name, value)

    def merge(self, other: Any) -> Any:
        """These options, with those of ``other`` that are set."""
        made = type(self)()
        for name in self._names:
            setattr(made, name, _merged(getattr(self, name), getattr(other, name)))
        return made

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(str(vars(self)))


class DistributeOptions(_Group):
    """How a dataset is shared among workers."""

    _names = ("auto_shard", "num_devices")


class MapVectorizationOptions(_Group):
    """Whether maps before batches are made into maps of batches."""

    _names = ("enabled", "use_choose_fastest")


class OptimizationOptions(_Group):
    """Which rewrites of datasets TensorFlow makes."""

    _names = (
        "apply_default_optimizations",
        "autotune",
        "autotune_algorithm",
        "autotune_buffers",
        "autotune_cpu_budget",
        "filter_fusion",
        "filter_with_random_uniform_fusion",
        "hoist_random_uniform",
        "map_and_batch_fusion",
        "map_and_filter_fusion",
        "map_fusion",
        "map_parallelization",
        "map_vectorization",
        "noop_elimination",
        "parallel_batch",
        "shuffle_and_repeat_fusion",
    )


class ThreadingOptions(_Group):
    """How many threads run a dataset."""

    _names = ("max_intra_op_parallelism", "private_threadpool_size")


def _merged(old: Any, new: Any) -> Any:
    """The option that is set, or the later one; of groups, each option in them."""
    if new is None or old is None:
        return old if new is None else new
    return old.merge(new) if isinstance(old, _Group) and type(new) is type(old) else new


class Options:
    """Options of TensorFlow's, kept for whoever asks; none has an effect here.

    Elements are always in their order, and what makes them chooses its threads and its rewrites by
    itself. A dataset has the options of those that it is made of.

    Example:
        >>> options = tf.data.Options()
        >>> options.experimental_deterministic = False
        >>> dataset = dataset.with_options(options)
    """

    __slots__ = _NAMES

    def __init__(self) -> None:
        for name in _NAMES:
            setattr(self, name, None)

    def merge(self, options: Options) -> Options:
        """These options, with those of ``options`` that are set."""
        made = Options()
        for name in _NAMES:
            setattr(made, name, _merged(getattr(self, name), getattr(options, name)))
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Options) and all(
            getattr(self, name) == getattr(other, name) for name in _NAMES
        )

    def __hash__(self) -> int:
        return hash(tuple(str(getattr(self, name)) for name in _NAMES))
