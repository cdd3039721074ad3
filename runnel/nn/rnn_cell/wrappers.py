"""Wrappers that change what a cell does: residual connections, a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.control_flow.structure import flatten, pack_as, require_same
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import device as on_device
from runnel.graph.graph import name_scope
from runnel.nn.rnn_cell.cell import RNNCell, require_cell


class RNNCellWrapper(RNNCell):
    """A cell around another, whose sizes and variables it has; it opens no scope of its own."""

    def __init__(self, cell: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        require_cell("cell", cell)
        self.cell = cell

    @property
    def wrapped_cell(self) -> Any:
        """The cell inside."""
        return self.cell

    @property
    def state_size(self) -> Any:
        return self.cell.state_size

    @property
    def output_size(self) -> Any:
        return self.cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        with name_scope(type(self).__name__ + "ZeroState"):
            return self.cell.zero_state(batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        # Cells that users wrote may not know the argument.
        arguments = {} if scope is None else {"scope": scope}
        return self._call_wrapped(inputs, state, arguments)

    def _call_wrapped(self, inputs: Any, state: Any, arguments: dict[str, Any]) -> Any:
        raise NotImplementedError


class ResidualWrapper(RNNCellWrapper):
    """Adds the input of a cell to its output (Wu et al., 2016).

    ``residual_fn(inputs, outputs)`` combines them in another way.
    """

    def __init__(
        self, cell: Any, residual_fn: Callable[[Any, Any], Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(cell, **kwargs)
        self._residual_fn = residual_fn or _add_inputs

    def _call_wrapped(self, inputs: Any, state: Any, arguments: dict[str, Any]) -> Any:
        outputs, new_state = self.cell(inputs, state, **arguments)
        return self._residual_fn(inputs, outputs), new_state


class DeviceWrapper(RNNCellWrapper):
    """Runs a cell, and makes its zero state, on a device."""

    def __init__(self, cell: Any, device: Any, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._device = device

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        with on_device(self._device):
            return super().zero_state(batch_size, dtype)

    def _call_wrapped(self, inputs: Any, state: Any, arguments: dict[str, Any]) -> Any:
        with on_device(self._device):
            return self.cell(inputs, state, **arguments)


def _add_inputs(inputs: Any, outputs: Any) -> Any:
    require_same(inputs, outputs, ("the inputs", "the outputs of a residual cell"))
    ins = [convert_to_tensor(leaf) for leaf in flatten(inputs)]
    pairs = list(zip(ins, flatten(outputs), strict=True))
    for one, other in pairs:
        if not one.shape.is_compatible_with(other.shape):
            raise ValueError(
                f"A residual cell adds its input, of shape {one.shape}, to its output, of shape "
                f"{other.shape}: these must agree. Give the cell as many units as the input has, "
                "or a residual_fn that projects"
            )
    return pack_as(inputs, [one + other for one, other in pairs])
