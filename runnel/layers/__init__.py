"""``tf.layers``: layers that own their variables."""

from runnel.layers.base import Layer
from runnel.layers.convolutions import (
    Conv1D,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
    SeparableConv1D,
    SeparableConv2D,
    conv1d,
    conv2d,
    conv3d,
)
from runnel.layers.convolutions import conv2d_transpose_layer as conv2d_transpose
from runnel.layers.convolutions import conv3d_transpose_layer as conv3d_transpose
from runnel.layers.convolutions import separable_conv1d_layer as separable_conv1d
from runnel.layers.convolutions import separable_conv2d_layer as separable_conv2d
from runnel.layers.fully_connected import Dense, dense
from runnel.layers.input_spec import InputSpec
from runnel.layers.pooling import (
    AveragePooling1D,
    AveragePooling2D,
    AveragePooling3D,
    MaxPooling1D,
    MaxPooling2D,
    MaxPooling3D,
    average_pooling1d,
    average_pooling2d,
    average_pooling3d,
    max_pooling1d,
    max_pooling2d,
    max_pooling3d,
)
from runnel.layers.regularizing import (
    BatchNormalization,
    Dropout,
    Flatten,
    batch_normalization,
    dropout,
    flatten,
)

__all__ = [
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "BatchNormalization",
    "Conv1D",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "Dense",
    "Dropout",
    "Flatten",
    "InputSpec",
    "Layer",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
    "SeparableConv1D",
    "SeparableConv2D",
    "average_pooling1d",
    "average_pooling2d",
    "average_pooling3d",
    "batch_normalization",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "dense",
    "dropout",
    "flatten",
    "max_pooling1d",
    "max_pooling2d",
    "max_pooling3d",
    "separable_conv1d",
    "separable_conv2d",
]


def __dir__() -> list[str]:
    return __all__
