"""``tf.contrib.rnn``: recurrent cells and networks, those of ``tf.nn`` and more."""

from runnel.contrib.rnn.block_cells import GRUBlockCellV2, LSTMBlockCell
from runnel.contrib.rnn.layer_norm import LayerNormBasicLSTMCell
from runnel.contrib.rnn.projections import (
    EmbeddingWrapper,
    InputProjectionWrapper,
    OutputProjectionWrapper,
)
from runnel.contrib.rnn.stacks import stack_bidirectional_dynamic_rnn, stack_bidirectional_rnn
from runnel.nn.rnn.bidirectional import static_bidirectional_rnn
from runnel.nn.rnn.sequence import transpose_batch_time
from runnel.nn.rnn.static import static_rnn, static_state_saving_rnn
from runnel.nn.rnn_cell import (
    BasicLSTMCell,
    BasicRNNCell,
    DeviceWrapper,
    DropoutWrapper,
    GRUCell,
    LSTMCell,
    LSTMStateTuple,
    MultiRNNCell,
    ResidualWrapper,
    RNNCell,
)
from runnel.nn.rnn_cell.cell import LayerRNNCell

__all__ = [
    "BasicLSTMCell",
    "BasicRNNCell",
    "DeviceWrapper",
    "DropoutWrapper",
    "EmbeddingWrapper",
    "GRUBlockCellV2",
    "GRUCell",
    "InputProjectionWrapper",
    "LSTMBlockCell",
    "LSTMCell",
    "LSTMStateTuple",
    "LayerNormBasicLSTMCell",
    "LayerRNNCell",
    "MultiRNNCell",
    "OutputProjectionWrapper",
    "RNNCell",
    "ResidualWrapper",
    "stack_bidirectional_dynamic_rnn",
    "stack_bidirectional_rnn",
    "static_bidirectional_rnn",
    "static_rnn",
    "static_state_saving_rnn",
    "transpose_batch_time",
]


def __dir__() -> list[str]:
    return __all__
