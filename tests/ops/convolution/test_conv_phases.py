"""Convolutions over few channels, rearranged for matrix units: the same as without."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from runnel.ops.convolution import conv_lowering, conv_phases

CASES = {
    "AlexNet": ((2, 27, 27, 3), (11, 11, 3, 8), 4, "EXPLICIT", [0, 0, 2, 2, 2, 2, 0, 0]),
    "GoogleNet": ((2, 18, 18, 3), (7, 7, 3, 8), 2, "EXPLICIT", [0, 0, 3, 3, 3, 3, 0, 0]),
    "VGG": ((2, 9, 8, 3), (3, 3, 3, 8), 1, "SAME", []),
    "one channel": ((2, 9, 8, 1), (3, 2, 1, 4), 1, "VALID", []),
    "ends unseen": ((1, 13, 14, 4), (4, 5, 4, 4), 3, "VALID", []),
    "uneven padding": ((1, 12, 11, 2), (5, 4, 2, 4), 2, "SAME", []),
}


def _attributes(stride: int, padding: str, explicit: list[int], layout: str) -> dict[str, Any]:
    strides = [1, stride, stride, 1] if layout == "NHWC" else [1, 1, stride, stride]
    if layout == "NCHW" and explicit:
        explicit = [*explicit[:2], *explicit[6:], *explicit[2:6]]
    return {
        "strides": strides,
        "padding": padding,
        "explicit_paddings": explicit,
        "data_format": layout,
    }


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("case", CASES)
def test_forward_and_filter_gradient(case, layout, dtype):
    import jax.numpy as jnp

    input_shape, filter_shape, stride, padding, explicit = CASES[case]
    attributes = _attributes(stride, padding, explicit, layout)
    generator = np.random.default_rng(0)

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        return generator.standard_normal(shape).astype(dtype)

    x = draw(input_shape)
    if layout == "NCHW":
        x = np.ascontiguousarray(np.moveaxis(x, -1, 1))
    filter = draw(filter_shape)
    shape = conv_lowering.convolution_shape(x.shape, filter.shape, **attributes)
    assert conv_phases.pays(shape.window, shape.channels, shape.groups)
    dy = draw(shape.output_shape)

    wide = [array.astype(np.float64) for array in (x, filter, dy)]
    y = conv_lowering.conv(np, wide[0], wide[1], **attributes)
    dfilter = conv_lowering.conv_backprop_filter(np, wide[0], filter.shape, wide[2], **attributes)
    given = conv_lowering.conv(
        jnp, jnp.asarray(x), jnp.asarray(filter), platform="gpu", **attributes
    )
    gradient = conv_lowering.conv_backprop_filter(
        jnp, jnp.asarray(x), filter.shape, jnp.asarray(dy), platform="gpu", **attributes
    )
    tolerance = 1e-4 if dtype is np.float32 else 2e-2
    for expected, computed in ((y, given), (dfilter, gradient)):
        assert computed.dtype == dtype
        assert computed.shape == expected.shape
        difference = np.abs(np.asarray(computed).astype(np.float64) - expected).max()
        assert difference <= tolerance * np.abs(expected).max()


def test_what_has_channels_enough_is_left_to_xla():
    attributes = _attributes(1, "SAME", [], "NHWC")
    many = conv_lowering.convolution_shape((1, 8, 8, 16), (3, 3, 16, 4), **attributes)
    assert not conv_phases.pays(many.window, many.channels, many.groups)
    pointwise = conv_lowering.convolution_shape((1, 8, 8, 3), (1, 1, 3, 4), **attributes)
    assert not conv_phases.pays(pointwise.window, pointwise.channels, pointwise.groups)
