"""``slim.data_provider``: one sample of a data set, as tensors by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["DataProvider"]


class DataProvider:
    """Gives tensors by the names of items."""

    def __init__(self, items_to_tensors: Mapping[str, Any], num_samples: int | None) -> None:
        self._items_to_tensors = dict(items_to_tensors)
        self._num_samples = num_samples

    def get(self, items: Sequence[str]) -> list[Any]:
        """The tensors of ``items``."""
        known = self.list_items()
        for item in items:
            if item not in known:
                raise ValueError(f"There is no item {item!r}; there are {sorted(known)}")
        return [self._items_to_tensors[item] for item in items]

    def list_items(self) -> list[str]:
        """The names of the items."""
        return list(self._items_to_tensors)

    def num_samples(self) -> int | None:
        """How many samples the data set has."""
        return self._num_samples


def __dir__() -> list[str]:
    return __all__
