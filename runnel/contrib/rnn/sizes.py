"""The sizes of a cell's state and output, as it was told them."""

from __future__ import annotations

from typing import Any


class KnownSizes:
    """Stands before a cell's base class: ``_state_size`` and ``_output_size`` are its sizes."""

    _state_size: Any
    _output_size: Any

    @property
    def state_size(self) -> Any:
        return self._state_size

    @property
    def output_size(self) -> Any:
        return self._output_size
