"""``tf.contrib.rnn``: recurrent cells and networks, those of ``tf.nn`` and more."""

from runnel.contrib.rnn.attention_cell import AttentionCellWrapper
from runnel.contrib.rnn.block_cells import GRUBlockCell, GRUBlockCellV2, LSTMBlockCell
from runnel.contrib.rnn.conv_lstm import (
    Conv1DLSTMCell,
    Conv2DLSTMCell,
    Conv3DLSTMCell,
    ConvLSTMCell,
)
from runnel.contrib.rnn.coupled_lstm import CoupledInputForgetGateLSTMCell
from runnel.contrib.rnn.fused import FusedRNNCell, FusedRNNCellAdaptor, TimeReversedFusedRNN
from runnel.contrib.rnn.grouped_lstm import GLSTMCell
from runnel.contrib.rnn.highway import HighwayWrapper
from runnel.contrib.rnn.independent_cells import IndRNNCell, IndyGRUCell, IndyLSTMCell, SRUCell
from runnel.contrib.rnn.layer_norm import LayerNormBasicLSTMCell
from runnel.contrib.rnn.lstm_block_fused import LSTMBlockFusedCell, LSTMBlockWrapper
from runnel.contrib.rnn.nas_cell import NASCell
from runnel.contrib.rnn.phased_lstm import PhasedLSTMCell
from runnel.contrib.rnn.projections import (
    EmbeddingWrapper,
    InputProjectionWrapper,
    OutputProjectionWrapper,
)
from runnel.contrib.rnn.stacks import stack_bidirectional_dynamic_rnn, stack_bidirectional_rnn
from runnel.contrib.rnn.update_gates import IntersectionRNNCell, UGRNNCell
from runnel.nn.rnn.bidirectional import static_bidirectional_rnn
from runnel.nn.rnn.dynamic import best_effort_input_batch_size
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
    "AttentionCellWrapper",
    "BasicLSTMCell",
    "BasicRNNCell",
    "Conv1DLSTMCell",
    "Conv2DLSTMCell",
    "Conv3DLSTMCell",
    "ConvLSTMCell",
    "CoupledInputForgetGateLSTMCell",
    "DeviceWrapper",
    "DropoutWrapper",
    "EmbeddingWrapper",
    "FusedRNNCell",
    "FusedRNNCellAdaptor",
    "GLSTMCell",
    "GRUBlockCell",
    "GRUBlockCellV2",
    "GRUCell",
    "HighwayWrapper",
    "IndRNNCell",
    "IndyGRUCell",
    "IndyLSTMCell",
    "InputProjectionWrapper",
    "IntersectionRNNCell",
    "LSTMBlockCell",
    "LSTMBlockFusedCell",
    "LSTMBlockWrapper",
    "LSTMCell",
    "LSTMStateTuple",
    "LayerNormBasicLSTMCell",
    "LayerRNNCell",
    "MultiRNNCell",
    "NASCell",
    "OutputProjectionWrapper",
    "PhasedLSTMCell",
    "RNNCell",
    "ResidualWrapper",
    "SRUCell",
    "TimeReversedFusedRNN",
    "UGRNNCell",
    "best_effort_input_batch_size",
    "stack_bidirectional_dynamic_rnn",
    "stack_bidirectional_rnn",
    "static_bidirectional_rnn",
    "static_rnn",
    "static_state_saving_rnn",
    "transpose_batch_time",
]


def __dir__() -> list[str]:
    return __all__
