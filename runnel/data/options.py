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


class Options:
    """Options of TensorFlow's; none changes the elements, and none is needed here.

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
            given: Any = getattr(options, name)
            setattr(made, name, getattr(self, name) if given is None else given)
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Options) and all(
            getattr(self, name) == getattr(other, name) for name in _NAMES
        )

    def __hash__(self) -> int:
        return hash(tuple(str(getattr(self, name)) for name in _NAMES))
