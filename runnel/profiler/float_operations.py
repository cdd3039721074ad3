"""How many floating-point operations an operation makes, by the shapes that the graph knows."""

from __future__ import annotations

import math
from collections.abc import Callable

from runnel.graph.operation import Operation, Tensor


class _Unknown(Exception):
    """A shape that matters is not known."""


def _sizes(tensor: Tensor) -> tuple[int, ...]:
    dims = tensor.dims
    if dims is None or None in dims:
        raise _Unknown
    return tuple(int(dim) for dim in dims if dim is not None)


def _elements(tensor: Tensor) -> int:
    return math.prod(_sizes(tensor))


def _each_input(times: int) -> Callable[[Operation], int]:
    return lambda op: _elements(op.inputs[0]) * times


def _each_output(times: int) -> Callable[[Operation], int]:
    return lambda op: _elements(op.outputs[0]) * times


def _reduction(finish: int) -> Callable[[Operation], int]:
    def count(op: Operation) -> int:
        return _elements(op.inputs[0]) + _elements(op.outputs[0]) * (finish - 1)

    return count


def _product(op: Operation) -> int:
    transposed = op.attrs.get("transpose_a", op.attrs.get("adj_x", False))
    inner = _sizes(op.inputs[0])[-2 if transposed else -1]
    return 2 * inner * _elements(op.outputs[0])


def _convolution(op: Operation) -> int:
    """Each output is a sum over the window and the channels of the filter."""
    return 2 * math.prod(_sizes(op.inputs[1])[:-1]) * _elements(op.outputs[0])


def _window(op: Operation) -> int:
    return 2 * math.prod(_sizes(op.inputs[1])[:2]) * _elements(op.outputs[0])


def _convolution_gradient(image: int | None, kernel: int | None) -> Callable[[Operation], int]:
    """The same, from the image and the filter: inputs of these numbers, or the output."""

    def count(op: Operation) -> int:
        images, filters = (
            op.outputs[0] if place is None else op.inputs[place] for place in (image, kernel)
        )
        strides = math.prod(op.attrs["strides"])
        channels = _sizes(filters)[2]
        return 2 * _elements(images) * _elements(filters) // (channels * strides)

    return count


def _pooling(tensor: Callable[[Operation], Tensor], times: int, more: int) -> Callable[..., int]:
    def count(op: Operation) -> int:
        return _elements(tensor(op)) * (math.prod(op.attrs["ksize"]) * times + more)

    return count


_COUNTED: dict[str, Callable[[Operation], int]] = {
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2"), _product),
    **dict.fromkeys(("Conv2D", "Conv3D"), _convolution),
    **dict.fromkeys(("DepthwiseConv2dNative", "Dilation2D"), _window),
    "Conv2DBackpropInput": _convolution_gradient(None, 1),
    "Conv2DBackpropFilter": _convolution_gradient(0, None),
    "BiasAdd": _each_input(1),
    **dict.fromkeys(("Reciprocal", "Square", "Log", "Neg"), _each_input(1)),
    **dict.fromkeys(("AssignAdd", "AssignSub"), _each_input(1)),
    "Rsqrt": _each_input(2),
    "RsqrtGrad": _each_output(4),
    "L2Loss": lambda op: _elements(op.inputs[0]) * 3 - 1,
    "Softmax": _each_input(5),
    **dict.fromkeys(("Add", "AddV2", "Sub", "Mul", "RealDiv"), _each_output(1)),
    **dict.fromkeys(("Maximum", "Minimum", "Pow"), _each_output(1)),
    **dict.fromkeys(("Equal", "NotEqual", "Greater", "GreaterEqual"), _each_output(1)),
    **dict.fromkeys(("Less", "LessEqual"), _each_output(1)),
    "SquaredDifference": _each_output(2),
    "Mean": _reduction(1),
    **dict.fromkeys(("Sum", "ArgMax", "ArgMin", "BiasAddGrad"), _reduction(0)),
    **dict.fromkeys(("AvgPool", "MaxPool"), _pooling(lambda op: op.outputs[0], 1, 0)),
    "AvgPoolGrad": _pooling(lambda op: op.inputs[1], 2, 0),
    "MaxPoolGrad": _pooling(lambda op: op.inputs[1], 1, 1),
    "AddN": lambda op: _elements(op.inputs[0]) * (len(op.inputs) - 1),
}
"""Those that TensorFlow counts, and the newer forms of them."""


def float_operations(op: Operation) -> int:
    """The floating-point operations of ``op``; 0 where they are not counted, or not known."""
    count = _COUNTED.get(op.type)
    try:
        return 0 if count is None else count(op)
    except _Unknown:
        return 0
