"""Convolutions and their gradients against loops over every output element, and jax.lax."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runnel.ops.convolution import conv_formulations as formulations
from runnel.ops.convolution import conv_lowering as lowering
from runnel.ops.convolution import onednn_convolution
from tests.ops.convolution_cases import CASES, Case, by_loops, lowered


@pytest.fixture(autouse=True)
def our_own_formulations(monkeypatch):
    """Not oneDNN's, where that is installed: tests/ops/test_onednn_convolution.py has those."""
    monkeypatch.setattr(onednn_convolution, "takes", lambda *facts: False)


every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def assert_all_equal(results, expected):
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(result, np.float64), value)


@every_case
def test_interpreted_against_loops(case):
    operands = case.operands()
    assert_all_equal(lowered(np, case, operands), by_loops(case, *operands))


@every_case
@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_compiled_against_loops(case, platform):
    operands = case.operands()
    results, expected = lowered(jnp, case, operands, platform=platform), by_loops(case, *operands)
    if jax.default_backend() == "cpu":
        assert_all_equal(results, expected)
    else:  # whose algorithms (Winograd's among them) do not add whole numbers exactly
        for result, value in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, value, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(
    ("direction", "formulation"),
    [
        *(("forward", name) for name in formulations.FORWARD),
        *(("filter", name) for name in formulations.FILTER_GRADIENT),
        *(("input", name) for name in formulations.INPUT_GRADIENT),
    ],
)
@pytest.mark.parametrize("name", ["strided_valid_with_rest", "explicit", "volume"])
def test_every_formulation_against_loops(name, direction, formulation):
    case = CASES[name]
    operands = case.operands()
    position = ("forward", "filter", "input").index(direction)
    assert_all_equal(
        lowered(jnp, case, operands, [direction], formulation=formulation),
        [by_loops(case, *operands)[position]],
    )


@given(
    st.builds(
        Case,
        sizes=st.tuples(st.integers(3, 8), st.integers(3, 8)),
        window=st.tuples(st.integers(1, 3), st.integers(1, 3)),
        strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
        padding=st.sampled_from(["SAME", "VALID", ((0, 1), (2, 0))]),
        batch=st.integers(1, 3),
        groups=st.sampled_from([1, 2, 4]),
        filters=st.sampled_from([4, 8]),
        channels_first=st.booleans(),
    )
)
@settings(max_examples=60, deadline=None)
def test_interpreted_geometry(case):
    operands = case.operands()
    assert_all_equal(lowered(np, case, operands), by_loops(case, *operands))


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("xp", [np, jnp], ids=["interpreted", "compiled"])
@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16, np.int32])
def test_element_types(xp, dtype, groups):
    case = Case(filters=4, groups=groups)
    with jax.enable_x64(dtype is np.float64):
        operands = case.operands(dtype)
        results = lowered(xp, case, operands, platform=jax.default_backend())
        assert all(result.dtype == dtype for result in results)
        # Exact in the sum's type, rounded once to the result's.
        expected = [value.astype(dtype) for value in by_loops(case, *operands)]
        assert_all_equal(results, [value.astype(np.float64) for value in expected])


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_integers_on_a_gpu(groups):
    """Whose library has no convolution for them."""
    case = Case(strides=(2, 1), filters=4, groups=groups)
    operands = case.operands(np.int32)
    results = lowered(jnp, case, operands, platform="gpu")
    assert_all_equal(results, by_loops(case, *operands))


def test_sums_of_narrow_types_are_kept_in_float32():
    # 1 + 2048 times 1 in float16 would stop at 2048.
    x = np.ones((1, 1, 1, 4000), np.float16)
    filter = np.ones((1, 1, 4000, 1), np.float16)
    for xp in (np, jnp):
        y = lowering.conv2d(xp, xp.asarray(x), filter, strides=[1, 1, 1, 1], padding="VALID")
        assert y.item() == 4000


@pytest.mark.parametrize("size", [14, 15])
def test_a_batch_in_pieces_against_lax(size, monkeypatch):
    case = Case((size, size), (3, 3), (2, 2), batch=5, channels=64, filters=32)
    random = np.random.default_rng(1)
    x, filter, dy = (random.standard_normal(a.shape, np.float32) for a in case.operands())

    def conv(x, filter):
        return jax.lax.conv_general_dilated(
            x, filter, case.strides, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    y, transpose = jax.vjp(conv, x, filter)
    dx, dfilter = transpose(dy)
    monkeypatch.setattr(formulations, "NUMPY_COLUMN_BYTES", 300_000)
    results = lowered(np, case, (x, filter, dy))
    for result, expected in zip(results, (y, dfilter, dx)):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("xp", [np, jnp], ids=["interpreted", "compiled"])
@pytest.mark.parametrize("platform", ["cpu", "gpu"])
@pytest.mark.parametrize("multiplier", [1, 3])
def test_depthwise_is_a_convolution_of_each_channel(xp, platform, multiplier):
    case = Case(strides=(2, 2), channels=4, filters=4 * multiplier, groups=4)
    x, filter, dy = case.operands()
    y, dfilter, dx = by_loops(case, x, filter, dy)
    depthwise = filter.reshape(*case.window, 4, multiplier)
    options = dict(case.attributes, platform=platform)
    assert_all_equal(
        [
            lowering.depthwise_conv2d_native(xp, x, depthwise, **options),
            lowering.depthwise_conv2d_native_backprop_filter(xp, x, depthwise.shape, dy, **options),
            lowering.depthwise_conv2d_native_backprop_input(xp, x.shape, depthwise, dy, **options),
        ],
        [y, dfilter.reshape(depthwise.shape), dx],
    )


@pytest.mark.parametrize("xp", [np, jnp], ids=["interpreted", "compiled"])
def test_empty_operands(xp):
    filter = np.ones((3, 3, 2, 5), np.float32)
    attributes = dict(strides=[1, 1, 1, 1], padding="SAME")
    for shape, out in (((0, 4, 4, 2), (0, 4, 4, 5)), ((2, 0, 4, 2), (2, 0, 4, 5))):
        x, dy = np.ones(shape, np.float32), np.ones(out, np.float32)
        assert lowering.conv2d(xp, x, filter, **attributes).shape == out
        dfilter = lowering.conv2d_backprop_filter(xp, x, filter.shape, dy, **attributes)
        np.testing.assert_array_equal(dfilter, np.zeros_like(filter))
        dx = lowering.conv2d_backprop_input(xp, shape, filter, dy, **attributes)
        np.testing.assert_array_equal(dx, np.zeros(shape))


def test_operands_that_do_not_fit_are_explained():
    x = np.zeros((1, 5, 5, 6), np.float32)
    attributes = dict(strides=[1, 1, 1, 1], padding="SAME")
    with pytest.raises(ValueError, match="6 channels are not a multiple of the filter's 4"):
        lowering.conv2d(np, x, np.zeros((3, 3, 4, 8), np.float32), **attributes)
    with pytest.raises(ValueError, match="5 outputs cannot be split into 2 groups"):
        lowering.conv2d(np, x, np.zeros((3, 3, 3, 5), np.float32), **attributes)
    with pytest.raises(ValueError, match="an input and a filter with 4 axes"):
        lowering.conv2d(np, x, np.zeros((3, 6, 8), np.float32), **attributes)
    with pytest.raises(ValueError, match=r"gradient has shape \[1, 4, 4, 8\].*\[1, 5, 5, 8\]"):
        lowering.conv2d_backprop_filter(
            np, x, (3, 3, 6, 8), np.zeros((1, 4, 4, 8), np.float32), **attributes
        )
    with pytest.raises(ValueError, match="depthwise filter needs the input's 6 channels"):
        lowering.depthwise_conv2d_native(np, x, np.zeros((3, 3, 2, 1), np.float32), **attributes)
