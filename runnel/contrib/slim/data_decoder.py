"""What turns a record into items."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any


class DataDecoder(ABC):
    """Decodes a record into named items; programs derive decoders of their own."""

    @abstractmethod
    def decode(self, data: Any, items: Sequence[str]) -> list[Any]:
        """The tensors of ``items``, in their order."""

    @abstractmethod
    def list_items(self) -> list[str]:
        """The names of the items."""
