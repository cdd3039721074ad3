"""What a program may say of how a dataset is run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _Group:
    """Options of one kind; those that are not set have their default, mostly None."""

    __slots__ = ("_values",)
    _names: tuple[str, ...] = ()
    _defaults: dict[str, Callable[[], Any]] = {}

    def __init__(self) -> None:
        object.__setattr__(self, "_values", {})

    def __getattr__(self, name: str) -> Any:
        if name not in self._names:
            raise AttributeError(f"{type(self).__name__} has no option {name!r}.")
        if name not in self._values:
            self._values[name] = self._defaults.get(name, lambda: None)()
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._names:
            raise AttributeError(
                f"Cannot set the property {name} on {type(self).__name__}, which has "
                f"{', '.join(self._names)}."
            )
        self._values[name] = value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._names]

    def merge(self, other: Any) -> Any:
        """These options, with those of ``other`` that are set."""
        made, plain = type(self)(), type(self)()
        for name in self._names:
            old, new = getattr(self, name), getattr(other, name)
            if isinstance(old, _Group) and type(new) is type(old):
                setattr(made, name, old.merge(new))
            else:
                setattr(made, name, old if new == getattr(plain, name) else new)
        return made

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, name) == getattr(other, name) for name in self._names
        )

    def __hash__(self) -> int:
        return hash(tuple(str(getattr(self, name)) for name in self._names))

    def __str__(self) -> str:
        return str([getattr(self, name) for name in self._names])


class DistributeOptions(_Group):
    """How a dataset is shared among workers."""

    _names = ("auto_shard", "num_devices")
    _defaults = {"auto_shard": lambda: True}


class MapVectorizationOptions(_Group):
    """Whether maps before batches are made into maps of batches."""

    _names = ("enabled", "use_choose_fastest")


class OptimizationOptions(_Group):
    """Which rewrites of datasets TensorFlow makes.

    One changes what comes out: ``shuffle_and_repeat_fusion``, which is on unless it, or
    ``apply_default_optimizations``, is False. A shuffle that is repeated then draws the orders of
    all repetitions from one stream.
    """

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
    _defaults = {"map_vectorization": MapVectorizationOptions}

    def rewrites(self) -> list[str]:
        """The names of the rewrites that are on, in TensorFlow's order."""
        defaults = ("map_and_batch_fusion", "noop_elimination", "shuffle_and_repeat_fusion")
        others = (
            "filter_fusion",
            "filter_with_random_uniform_fusion",
            "hoist_random_uniform",
            "map_and_filter_fusion",
            "map_fusion",
            "map_parallelization",
            "parallel_batch",
        )
        found = [name for name in (*defaults, *others) if getattr(self, name)]
        if self.apply_default_optimizations is not False:
            found += [name for name in defaults if getattr(self, name) is None]
        if self.map_vectorization is not None and self.map_vectorization.enabled:
            found.append("map_vectorization")
        if self.autotune is not False and self.autotune_buffers:
            found.append("inject_prefetch")
        return sorted(found)


class StatsOptions(_Group):
    """Where numbers about a dataset's elements go, and under which names."""

    _names = ("aggregator", "prefix", "counter_prefix", "latency_all_edges")
    _defaults = {"prefix": str, "counter_prefix": str}


class ThreadingOptions(_Group):
    """How many threads run a dataset."""

    _names = ("max_intra_op_parallelism", "private_threadpool_size")


class Options(_Group):
    """Options of a dataset, as TensorFlow has them.

    Here two have an effect: ``experimental_stats``, and of the optimizations
    ``shuffle_and_repeat_fusion``. The others are kept for whoever asks: elements are always in
    their order, and what makes them chooses its threads and its rewrites by itself. A dataset has
    the options of those that it is made of.

    Example:
        >>> options = tf.data.Options()
        >>> options.experimental_optimization.shuffle_and_repeat_fusion = False
        >>> dataset = dataset.with_options(options)
    """

    _names = (
        "experimental_autotune",
        "experimental_deterministic",
        "experimental_distribute",
        "experimental_optimization",
        "experimental_slack",
        "experimental_stateful_whitelist",
        "experimental_stats",
        "experimental_threading",
    )
    _defaults = {
        "experimental_distribute": DistributeOptions,
        "experimental_optimization": OptimizationOptions,
        "experimental_stats": StatsOptions,
        "experimental_threading": ThreadingOptions,
    }

    def rewrites(self) -> list[str]:
        """The names of all rewrites that these options ask for, in TensorFlow's order."""
        found: list[str] = self.experimental_optimization.rewrites()
        if self.experimental_deterministic is False:
            found.append("make_sloppy")
        if self.experimental_stats.latency_all_edges:
            found.append("latency_all_edges")
        if self.experimental_slack:
            found.append("slack")
        return found
