"""``slim.dataset``: what there is to know of a data set."""

from __future__ import annotations

from typing import Any

__all__ = ["Dataset"]


class SlimDataset:
    """Files, what reads and decodes them, and how many samples there are.

    Further keyword arguments become attributes: ``num_classes``, for example.
    """

    def __init__(
        self,
        data_sources: Any,
        reader: Any,
        decoder: Any,
        num_samples: int | None,
        items_to_descriptions: dict[str, str],
        **kwargs: Any,
    ) -> None:
        kwargs.update(
            data_sources=data_sources,
            reader=reader,
            decoder=decoder,
            num_samples=num_samples,
            items_to_descriptions=items_to_descriptions,
        )
        self.__dict__.update(kwargs)


Dataset = SlimDataset


def __dir__() -> list[str]:
    return __all__
