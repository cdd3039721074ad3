"""Examples of operations of neural networks."""

import numpy as np

from tests.conformance.exchange import Example, call

IMAGE = np.sin(np.arange(2 * 5 * 5 * 2, dtype=np.float32)).reshape(2, 5, 5, 2)
FILTER = np.cos(np.arange(3 * 3 * 2 * 4, dtype=np.float32)).reshape(3, 3, 2, 4)
VOLUME = np.sin(np.arange(4 * 4 * 4 * 2, dtype=np.float32)).reshape(1, 4, 4, 4, 2)
VOLUME_FILTER = np.cos(np.arange(2 * 2 * 2 * 2 * 3, dtype=np.float32)).reshape(2, 2, 2, 2, 3)
LOGITS = np.array([[1, 2, 0.5], [-1, 0, 3]], np.float32)
TARGETS = np.array([[0.2, 0.3, 0.5], [1, 0, 0]], np.float32)
TWO = np.array([0.5, 1.5], np.float32)
CONV = {"strides": [1, 2, 1, 1], "padding": "SAME"}
DEPTHWISE = {"strides": [1, 1, 1, 1], "padding": "VALID"}
CONV3D = {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}
POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
POOL3D = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
DILATION = {"strides": [1, 1, 1, 1], "rates": [1, 2, 1, 1], "padding": "SAME"}

CONVOLVED = np.cos(np.arange(2 * 3 * 5 * 4, dtype=np.float32)).reshape(2, 3, 5, 4)
DEPTHWISE_FILTER = FILTER[..., :2]
DEPTHWISE_OUT = np.cos(np.arange(2 * 3 * 3 * 4, dtype=np.float32)).reshape(2, 3, 3, 4)
CONVOLVED3D = np.cos(np.arange(4 * 4 * 4 * 3, dtype=np.float32)).reshape(1, 4, 4, 4, 3)
DILATED = np.cos(np.arange(2 * 5 * 5 * 2, dtype=np.float32)).reshape(2, 5, 5, 2)
POOLED = np.cos(np.arange(2 * 3 * 3 * 2, dtype=np.float32)).reshape(2, 3, 3, 2)
POOLED3D = np.cos(np.arange(2 * 2 * 2 * 2, dtype=np.float32)).reshape(1, 2, 2, 2, 2)
# What the forward operations give for IMAGE and VOLUME, by hand of NumPy.
PADDED = np.pad(IMAGE, ((0, 0), (0, 1), (0, 1), (0, 0)), constant_values=-np.inf)
MAX_POOLED = PADDED.reshape(2, 3, 2, 3, 2, 2).max((2, 4))
MAX_POOLED3D = VOLUME.reshape(1, 2, 2, 2, 2, 2, 2, 2).max((2, 4, 6))

NORM = (IMAGE, TWO, TWO, TWO, TWO)
INFER = {"is_training": False}
EMPTY = np.zeros(0, np.float32)


def first_outputs(count: int, *inputs, **attrs):
    """As ``call``, but only the first ``count`` outputs are fetched."""

    def example_for(op_type: str) -> Example:
        return lambda builder: [builder.op(op_type, *inputs, **attrs)[:count]]

    return example_for


EXAMPLES = {
    "CTCBeamSearchDecoder": call(VOLUME[0, 0], [4, 3, 2, 1], beam_width=3, top_paths=2),
    "BiasAdd": [
        call(IMAGE, TWO),
        call(LOGITS, [1.0, 2.0, 3.0]),
    ],
    "BiasAddV1": call(IMAGE, TWO),
    "BiasAddGrad": call(IMAGE),
    "Conv2D": [
        call(IMAGE, FILTER, **CONV),
        call(IMAGE, FILTER, strides=[1, 1, 1, 1], padding="VALID", dilations=[1, 2, 1, 1]),
        call(
            IMAGE,
            FILTER,
            strides=[1, 1, 1, 1],
            padding="EXPLICIT",
            explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0],
        ),
    ],
    "Conv2DBackpropInput": call([2, 5, 5, 2], FILTER, CONVOLVED, **CONV),
    "Conv2DBackpropFilter": call(IMAGE, [3, 3, 2, 4], CONVOLVED, **CONV),
    "DepthwiseConv2dNative": call(IMAGE, DEPTHWISE_FILTER, **DEPTHWISE),
    "DepthwiseConv2dNativeBackpropInput": call(
        [2, 5, 5, 2], DEPTHWISE_FILTER, DEPTHWISE_OUT, **DEPTHWISE
    ),
    "DepthwiseConv2dNativeBackpropFilter": call(IMAGE, [3, 3, 2, 2], DEPTHWISE_OUT, **DEPTHWISE),
    "Conv3D": call(VOLUME, VOLUME_FILTER, **CONV3D),
    "Conv3DBackpropInputV2": call([1, 4, 4, 4, 2], VOLUME_FILTER, CONVOLVED3D, **CONV3D),
    "Conv3DBackpropFilterV2": call(VOLUME, [2, 2, 2, 2, 3], CONVOLVED3D, **CONV3D),
    "Dilation2D": call(IMAGE, FILTER[..., 0], **DILATION),
    "Dilation2DBackpropInput": call(IMAGE, FILTER[..., 0], DILATED, **DILATION),
    "Dilation2DBackpropFilter": call(IMAGE, FILTER[..., 0], DILATED, **DILATION),
    "AvgPool": call(IMAGE, **POOL),
    "AvgPoolGrad": call([2, 5, 5, 2], POOLED, **POOL),
    "MaxPool": call(IMAGE, **POOL),
    "MaxPoolV2": call(IMAGE, [1, 2, 2, 1], [1, 2, 2, 1], padding="SAME"),
    "MaxPoolGrad": call(IMAGE, MAX_POOLED, POOLED, **POOL),
    "MaxPoolGradV2": call(IMAGE, MAX_POOLED, POOLED, [1, 2, 2, 1], [1, 2, 2, 1], padding="SAME"),
    "MaxPoolGradGrad": call(IMAGE, MAX_POOLED, IMAGE + 1, **POOL),
    "MaxPoolGradGradV2": call(
        IMAGE, MAX_POOLED, IMAGE + 1, [1, 2, 2, 1], [1, 2, 2, 1], padding="SAME"
    ),
    "MaxPoolWithArgmax": call(IMAGE, **POOL),
    "MaxPoolGradWithArgmax": call(
        IMAGE[:1, :2, :2, :1], np.ones((1, 1, 1, 1), np.float32), np.array([[[[2]]]]), **POOL
    ),
    "AvgPool3D": call(VOLUME, **POOL3D),
    "AvgPool3DGrad": call([1, 4, 4, 4, 2], POOLED3D, **POOL3D),
    "MaxPool3D": call(VOLUME, **POOL3D),
    "MaxPool3DGrad": call(VOLUME, MAX_POOLED3D, POOLED3D, **POOL3D),
    "MaxPool3DGradGrad": call(VOLUME, MAX_POOLED3D, VOLUME + 1, **POOL3D),
    "LRN": call(IMAGE, depth_radius=1),
    "LRNGrad": call(IMAGE, IMAGE, IMAGE * 0.5, depth_radius=1),
    # TensorFlow folds an inference of constants into one that has only the first output; the
    # outputs after the third have no meaning.
    "FusedBatchNorm": first_outputs(1, *NORM, **INFER),
    "FusedBatchNormV2": first_outputs(1, *NORM, **INFER),
    "FusedBatchNormV3": [
        first_outputs(1, *NORM, **INFER),
        first_outputs(3, IMAGE, TWO, TWO, EMPTY, EMPTY),
    ],
    "FusedBatchNormGrad": first_outputs(3, IMAGE, IMAGE, TWO, TWO, TWO, **INFER),
    "FusedBatchNormGradV2": first_outputs(3, IMAGE, IMAGE, TWO, TWO, TWO, **INFER),
    "FusedBatchNormGradV3": first_outputs(3, IMAGE, IMAGE, TWO, TWO, TWO, TWO, **INFER),
    "L2Loss": call(LOGITS),
    "Softmax": call(LOGITS),
    "LogSoftmax": call(LOGITS),
    "SoftmaxCrossEntropyWithLogits": call(LOGITS, TARGETS),
    "SparseSoftmaxCrossEntropyWithLogits": call(LOGITS, [2, 0]),
    "Dropout": call(LOGITS),
    "NthElement": call(LOGITS, 1),
    "ResizeBilinear": call(IMAGE, [3, 4]),
    "ResizeNearestNeighbor": call(IMAGE, [3, 4]),
}
