"""The geometry of convolutions and poolings, and taps and fold as each other's adjoint."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runnel.ops.convolution.sliding_window import SlidingWindow, output_size


def test_same_padding_puts_the_odd_element_at_the_end():
    window = SlidingWindow.from_attributes((1, 5, 6, 1), (2, 3), (1, 1, 2, 1), "SAME", "NHWC")
    assert window.padding == ((0, 1), (0, 1))
    assert window.output_sizes == (5, 3)


def test_attributes_follow_the_data_format():
    last = SlidingWindow.from_attributes(
        (8, 9, 7, 3), (2, 2), (1, 2, 3, 1), "EXPLICIT", "NHWC", (0, 0, 1, 2, 3, 4, 0, 0)
    )
    first = SlidingWindow.from_attributes(
        (8, 3, 9, 7), (2, 2), (1, 1, 2, 3), "EXPLICIT", "NCHW", (0, 0, 0, 0, 1, 2, 3, 4)
    )
    assert last == first
    assert last.padding == ((1, 2), (3, 4))


def test_unknown_sizes_stay_unknown():
    assert output_size(None, 3, 1, "SAME") is None
    assert output_size(8, None, 2, "SAME") == 4
    assert output_size(8, None, 2, "VALID") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strides": (1, 0, 1, 1)}, "strides must be 4 positive numbers"),
        ({"strides": (2, 2)}, "strides must be 4 positive numbers"),
        ({"strides": (2, 1, 1, 1)}, "1 along the batch and the channels"),
        ({"dilations": (1, 1, 1, 2)}, "dilations must be 1 along the batch"),
        ({"padding": "FULL"}, "padding must be SAME, VALID or EXPLICIT"),
        ({"explicit_paddings": (0, 0, 1, 1, 1, 1, 0, 0)}, "use padding EXPLICIT"),
        ({"padding": "EXPLICIT", "explicit_paddings": (1, 1)}, "must be 8 numbers"),
        ({"padding": "EXPLICIT", "explicit_paddings": (1,) * 8}, "0 along the batch"),
        ({"window": (20, 3)}, "a window of 20 does not fit into an axis of 6"),
    ],
)
def test_wrong_attributes_are_explained(change, message):
    attributes = dict(
        input_shape=(1, 6, 6, 1),
        window=(3, 3),
        strides=(1, 1, 1, 1),
        padding="VALID",
        data_format="NHWC",
    )
    with pytest.raises(ValueError, match=message):
        SlidingWindow.from_attributes(**{**attributes, **change})


@given(
    size=st.integers(3, 9),
    k=st.integers(1, 3),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 2),
    pads=st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
@settings(max_examples=30, deadline=None)
def test_fold_is_the_adjoint_of_taps(size, k, stride, dilation, pads):
    extent = (k - 1) * dilation + 1
    if size + sum(pads) < extent:
        return
    window = SlidingWindow.from_attributes(
        (2, size, 3), (k,), (1, stride, 1), "EXPLICIT", "NWC", (0, 0, *pads, 0, 0), (1, dilation, 1)
    )
    random = np.random.default_rng(size)
    x = random.standard_normal((2, size, 3)).astype(np.float32)
    taps = window.taps(np, x)
    other = [random.standard_normal(tap.shape).astype(np.float32) for tap in taps]
    inner = sum(np.vdot(tap, weight) for tap, weight in zip(taps, other))
    np.testing.assert_allclose(np.vdot(x, window.fold(np, other)), inner, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(window.fold(jnp, other), window.fold(np, other), atol=1e-5)
