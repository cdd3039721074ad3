"""``tf.contrib.cudnn_rnn``: cuDNN's networks and the cells that compute the same, on any device."""

from runnel.contrib.cudnn_rnn.compatible_cells import (
    CudnnCompatibleGRUCell,
    CudnnCompatibleLSTMCell,
)
from runnel.contrib.cudnn_rnn.networks import CudnnGRU, CudnnLSTM, CudnnRNNRelu, CudnnRNNTanh

__all__ = [
    "CudnnCompatibleGRUCell",
    "CudnnCompatibleLSTMCell",
    "CudnnGRU",
    "CudnnLSTM",
    "CudnnRNNRelu",
    "CudnnRNNTanh",
]


def __dir__() -> list[str]:
    return __all__
