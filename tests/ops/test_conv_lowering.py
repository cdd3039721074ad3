"""Convolutions and their gradients against loops over every output element, and jax.lax."""

import itertools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runnel.ops import conv_formulations as formulations
from runnel.ops import conv_lowering as lowering


@dataclass(frozen=True)
class Case:
    """A convolution; spatial attributes only."""

    sizes: tuple = (7, 6)
    window: tuple = (3, 2)
    strides: tuple = (1, 1)
    dilations: tuple = (1, 1)
    padding: str | tuple = "SAME"
    batch: int = 2
    channels: int = 4
    filters: int = 6
    groups: int = 1
    channels_first: bool = False

    @property
    def pads(self):
        pads = []
        for i, n in enumerate(self.sizes):
            extent = (self.window[i] - 1) * self.dilations[i] + 1
            if self.padding == "SAME":
                total = max(0, (-(-n // self.strides[i]) - 1) * self.strides[i] + extent - n)
                pads.append((total // 2, total - total // 2))
            else:
                pads.append((0, 0) if self.padding == "VALID" else self.padding[i])
        return pads

    @property
    def attributes(self):
        def every_axis(values, other):
            values = list(values)
            return [other, other, *values] if self.channels_first else [other, *values, other]

        explicit = isinstance(self.padding, tuple)
        letters = "DHW"[-len(self.sizes) :]
        return dict(
            strides=every_axis(self.strides, 1),
            dilations=every_axis(self.dilations, 1),
            padding="EXPLICIT" if explicit else self.padding,
            explicit_paddings=[
                n for pair in every_axis(self.padding, (0, 0)) for n in pair
            ] if explicit else [],
            data_format="NC" + letters if self.channels_first else "N" + letters + "C",
        )  # fmt: skip

    def operands(self, dtype=np.float32):
        """x, filter and dy, small integers so that narrow types hold them exactly."""
        random = np.random.default_rng(0)
        out = [
            (n + sum(p) - (k - 1) * d - 1) // s + 1
            for n, p, k, d, s in zip(
                self.sizes, self.pads, self.window, self.dilations, self.strides
            )
        ]
        shapes = (
            (self.batch, *self.sizes, self.channels),
            (*self.window, self.channels // self.groups, self.filters),
            (self.batch, *out, self.filters),
        )
        return [random.integers(-4, 5, shape).astype(dtype) for shape in shapes]


def by_loops(case, x, filter, dy):
    """y, dfilter and dx, one output element of one group at a time, in float64."""
    x, filter, dy = (a.astype(np.float64) for a in (x, filter, dy))
    padded = np.pad(x, [(0, 0), *case.pads, (0, 0)])
    y, dfilter, dpadded = np.zeros(dy.shape), np.zeros(filter.shape), np.zeros(padded.shape)
    ins, outs = case.channels // case.groups, case.filters // case.groups
    for stop in itertools.product(*map(range, dy.shape[1:-1])):
        patch = tuple(
            slice(at * s, at * s + (k - 1) * d + 1, d)
            for at, s, k, d in zip(stop, case.strides, case.window, case.dilations)
        )
        for n, g in itertools.product(range(case.batch), range(case.groups)):
            seen = (n, *patch, slice(g * ins, (g + 1) * ins))
            group = slice(g * outs, (g + 1) * outs)
            at = (n, *stop, group)
            weights = filter[..., group]
            y[at] = np.tensordot(padded[seen], weights, axes=weights.ndim - 1)
            dfilter[..., group] += padded[seen][..., None] * dy[at]
            dpadded[seen] += weights @ dy[at]
    inside = tuple(slice(low, low + n) for (low, _), n in zip(case.pads, case.sizes))
    return y, dfilter, dpadded[(slice(None), *inside)]


def lowered(xp, case, operands, directions=("forward", "filter", "input"), **options):
    """y, dfilter and dx by the lowering, given and returned with the channels last."""
    x, filter, dy = operands
    attributes = {**case.attributes, **options}

    def arrange(a):
        return xp.moveaxis(a, -1, 1) if case.channels_first else a

    def restore(a):
        return xp.moveaxis(a, 1, -1) if case.channels_first else a

    run = {
        "forward": lambda x, w, dy: restore(lowering.conv(xp, arrange(x), w, **attributes)),
        "filter": lambda x, w, dy: lowering.conv_backprop_filter(
            xp, arrange(x), w.shape, arrange(dy), **attributes
        ),
        "input": lambda x, w, dy: restore(
            lowering.conv_backprop_input(xp, arrange(x).shape, w, arrange(dy), **attributes)
        ),
    }
    results = []
    for direction in directions:
        function = run[direction] if xp is np else jax.jit(run[direction])
        results.append(function(x, filter, dy))
    return results


CASES = {
    "same": Case(),
    "valid": Case(padding="VALID"),
    "strided": Case(strides=(2, 3)),
    "strided_valid_with_rest": Case(sizes=(8, 9), strides=(3, 2), padding="VALID"),
    "stride_beyond_window": Case(sizes=(9, 9), window=(2, 1), strides=(3, 2)),
    "dilated": Case(sizes=(9, 8), window=(3, 3), dilations=(2, 1)),
    "dilated_strided": Case(sizes=(9, 8), window=(2, 3), dilations=(3, 2), strides=(2, 1)),
    "explicit": Case(padding=((1, 0), (2, 3)), strides=(2, 1)),
    "padding_beyond_window": Case(padding=((4, 3), (0, 5))),
    "one_by_one": Case(window=(1, 1)),
    "one_by_one_strided": Case(window=(1, 1), strides=(2, 2), padding="VALID"),
    "image": Case(sizes=(11, 12), window=(7, 7), strides=(2, 2), channels=3),
    "image_dense": Case(window=(3, 3), channels=3),
    "channels_first": Case(strides=(2, 1), channels_first=True),
    "groups": Case(groups=2, strides=(1, 2)),
    "groups_channels_first": Case(groups=2, channels_first=True),
    "groups_of_one": Case(groups=4, filters=8),
    "volume": Case((4, 5, 3), (2, 3, 2), (1, 2, 1), (1, 1, 1)),
    "volume_dilated": Case((5, 4, 5), (2, 2, 3), (1, 1, 1), (2, 1, 1), channels_first=True),
}
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
    assert_all_equal(lowered(jnp, case, operands, platform=platform), by_loops(case, *operands))


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
        results = lowered(xp, case, operands)
        assert all(result.dtype == dtype for result in results)
        # Exact in the sum's type, rounded once to the result's.
        expected = [value.astype(dtype) for value in by_loops(case, *operands)]
        assert_all_equal(results, [value.astype(np.float64) for value in expected])


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
