"""``tf.nn.rnn_cell``: the steps that recurrent networks are made of."""

from runnel.nn.rnn_cell.basic import BasicRNNCell, GRUCell
from runnel.nn.rnn_cell.cell import RNNCell
from runnel.nn.rnn_cell.dropout import DropoutWrapper
from runnel.nn.rnn_cell.lstm import BasicLSTMCell, LSTMCell, LSTMStateTuple
from runnel.nn.rnn_cell.multi import MultiRNNCell
from runnel.nn.rnn_cell.wrappers import DeviceWrapper, ResidualWrapper

__all__ = [
    "BasicLSTMCell",
    "BasicRNNCell",
    "DeviceWrapper",
    "DropoutWrapper",
    "GRUCell",
    "LSTMCell",
    "LSTMStateTuple",
    "MultiRNNCell",
    "RNNCell",
    "ResidualWrapper",
]


def __dir__() -> list[str]:
    return __all__
