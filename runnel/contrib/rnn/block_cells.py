"""The cells that TensorFlow fuses by hand; here the compiler fuses, and only the names differ."""

from __future__ import annotations

from typing import Any

from runnel.nn.rnn_cell.basic import GRUCell
from runnel.nn.rnn_cell.lstm import LSTMCell


class LSTMBlockCell(LSTMCell):
    """An :class:`~runnel.nn.rnn_cell.LSTMCell` with this class's arguments."""

    _gates_that_see = "ifo"

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: Any = None,
        reuse: Any = None,
        name: str = "lstm_cell",
    ) -> None:
        super().__init__(
            num_units,
            use_peepholes=use_peephole,
            # TensorFlow's kernel takes a bound that is not positive for none.
            cell_clip=cell_clip if cell_clip is not None and cell_clip > 0 else None,
            forget_bias=forget_bias,
            reuse=reuse,
            name=name,
            dtype=dtype,
        )


class GRUBlockCellV2(GRUCell):
    """A :class:`~runnel.nn.rnn_cell.GRUCell` with this class's arguments."""

    def __init__(
        self,
        num_units: int | None = None,
        cell_size: int | None = None,
        reuse: Any = None,
        name: str = "gru_cell",
    ) -> None:
        if (cell_size is None) == (num_units is None):
            raise ValueError("Exactly one of num_units or cell_size must be provided.")
        units = num_units if num_units is not None else cell_size
        assert units is not None
        super().__init__(units, reuse=reuse, name=name)


class GRUBlockCell(GRUBlockCellV2):
    """The same with variables ``w_ru``, ``b_ru``, ``w_c`` and ``b_c``."""

    _variable_names = ("w_ru", "b_ru", "w_c", "b_c")
