"""``tf.keras.layers``: layers that programs call on tensors."""

from __future__ import annotations

from typing import Any

from runnel.keras.convolutional_layers import (
    AveragePooling1D,
    AveragePooling2D,
    AveragePooling3D,
    Conv1D,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
    Cropping1D,
    Cropping2D,
    Cropping3D,
    DepthwiseConv2D,
    GlobalAveragePooling1D,
    GlobalAveragePooling2D,
    GlobalAveragePooling3D,
    GlobalMaxPooling1D,
    GlobalMaxPooling2D,
    GlobalMaxPooling3D,
    MaxPooling1D,
    MaxPooling2D,
    MaxPooling3D,
    SeparableConv1D,
    SeparableConv2D,
    UpSampling1D,
    UpSampling2D,
    UpSampling3D,
    ZeroPadding1D,
    ZeroPadding2D,
    ZeroPadding3D,
)
from runnel.keras.core_layers import (
    ELU,
    Activation,
    ActivityRegularization,
    Add,
    Average,
    BatchNormalization,
    Concatenate,
    Dense,
    Dot,
    Dropout,
    Embedding,
    Flatten,
    GaussianDropout,
    GaussianNoise,
    Lambda,
    LayerNormalization,
    LeakyReLU,
    Masking,
    Maximum,
    Minimum,
    Multiply,
    Permute,
    PReLU,
    ReLU,
    RepeatVector,
    Reshape,
    Softmax,
    SpatialDropout1D,
    SpatialDropout2D,
    SpatialDropout3D,
    Subtract,
    ThresholdedReLU,
    add,
    average,
    concatenate,
    dot,
    maximum,
    minimum,
    multiply,
    subtract,
)
from runnel.keras.custom_objects import deserialize_keras_object, serialize_keras_object
from runnel.keras.inputs import (
    Input,
    InputLayer,
)
from runnel.keras.layer import (
    Layer,
)
from runnel.keras.recurrent_cells import (
    GRUCell,
    LSTMCell,
    SimpleRNNCell,
    StackedRNNCells,
)
from runnel.keras.recurrent_layers import (
    GRU,
    LSTM,
    RNN,
    SimpleRNN,
)
from runnel.keras.wrappers import (
    Bidirectional,
    TimeDistributed,
    Wrapper,
)
from runnel.layers.input_spec import InputSpec

AvgPool1D = AveragePooling1D
AvgPool2D = AveragePooling2D
AvgPool3D = AveragePooling3D
MaxPool1D = MaxPooling1D
MaxPool2D = MaxPooling2D
MaxPool3D = MaxPooling3D
GlobalAvgPool1D = GlobalAveragePooling1D
GlobalAvgPool2D = GlobalAveragePooling2D
GlobalAvgPool3D = GlobalAveragePooling3D
GlobalMaxPool1D = GlobalMaxPooling1D
GlobalMaxPool2D = GlobalMaxPooling2D
GlobalMaxPool3D = GlobalMaxPooling3D
Convolution1D = Conv1D
Convolution2D = Conv2D
Convolution3D = Conv3D
Convolution2DTranspose = Conv2DTranspose
Convolution3DTranspose = Conv3DTranspose
SeparableConvolution1D = SeparableConv1D
SeparableConvolution2D = SeparableConv2D

__all__ = [
    "Activation",
    "ActivityRegularization",
    "Add",
    "Average",
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "BatchNormalization",
    "Bidirectional",
    "Concatenate",
    "Conv1D",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "Convolution1D",
    "Convolution2D",
    "Convolution2DTranspose",
    "Convolution3D",
    "Convolution3DTranspose",
    "Cropping1D",
    "Cropping2D",
    "Cropping3D",
    "Dense",
    "DepthwiseConv2D",
    "Dot",
    "Dropout",
    "ELU",
    "Embedding",
    "Flatten",
    "GRU",
    "GRUCell",
    "GaussianDropout",
    "GaussianNoise",
    "GlobalAveragePooling1D",
    "GlobalAveragePooling2D",
    "GlobalAveragePooling3D",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalAvgPool3D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "GlobalMaxPool3D",
    "GlobalMaxPooling1D",
    "GlobalMaxPooling2D",
    "GlobalMaxPooling3D",
    "Input",
    "InputLayer",
    "InputSpec",
    "LSTM",
    "LSTMCell",
    "Lambda",
    "Layer",
    "LayerNormalization",
    "LeakyReLU",
    "Masking",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
    "Maximum",
    "Minimum",
    "Multiply",
    "PReLU",
    "Permute",
    "RNN",
    "ReLU",
    "RepeatVector",
    "Reshape",
    "SeparableConv1D",
    "SeparableConv2D",
    "SeparableConvolution1D",
    "SeparableConvolution2D",
    "SimpleRNN",
    "SimpleRNNCell",
    "Softmax",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "SpatialDropout3D",
    "StackedRNNCells",
    "Subtract",
    "ThresholdedReLU",
    "TimeDistributed",
    "UpSampling1D",
    "UpSampling2D",
    "UpSampling3D",
    "Wrapper",
    "ZeroPadding1D",
    "ZeroPadding2D",
    "ZeroPadding3D",
    "add",
    "average",
    "concatenate",
    "deserialize",
    "dot",
    "maximum",
    "minimum",
    "multiply",
    "serialize",
    "subtract",
]


def serialize(layer: Any) -> Any:
    """The class and the configuration of a layer."""
    return serialize_keras_object(layer)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The layer (or model) that a class and a configuration describe, with new variables.

    Example:
        >>> layer = tf.keras.layers.deserialize(tf.keras.layers.serialize(other))
    """
    from runnel.keras.model import Model
    from runnel.keras.network import Network
    from runnel.keras.sequential import Sequential

    classes = {n: v for n, v in globals().items() if isinstance(v, type) and issubclass(v, Layer)}
    classes.update(Model=Model, Network=Network, Functional=Model, Sequential=Sequential)
    return deserialize_keras_object(config, classes, custom_objects, "layer")


def __dir__() -> list[str]:
    return __all__
