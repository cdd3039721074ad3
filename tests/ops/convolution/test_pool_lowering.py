"""Poolings and their gradients against loops over every window."""

import itertools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runnel.native.input_library import VARIABLE
from runnel.ops.convolution import pool_lowering as lowering


@dataclass(frozen=True)
class Case:
    """A pooling; spatial attributes only."""

    sizes: tuple = (7, 6)
    window: tuple = (3, 2)
    strides: tuple = (2, 1)
    padding: str | tuple = "SAME"
    batch: int = 2
    channels: int = 3
    channels_first: bool = False

    @property
    def pads(self):
        if isinstance(self.padding, tuple):
            return self.padding
        pads = []
        for n, k, s in zip(self.sizes, self.window, self.strides):
            total = max(0, (-(-n // s) - 1) * s + k - n) if self.padding == "SAME" else 0
            pads.append((total // 2, total - total // 2))
        return pads

    @property
    def attributes(self):
        def every_axis(values, other):
            values = list(values)
            return [other, other, *values] if self.channels_first else [other, *values, other]

        letters = "DHW"[-len(self.sizes) :]
        attributes = dict(
            ksize=every_axis(self.window, 1),
            strides=every_axis(self.strides, 1),
            padding=self.padding,
            data_format="NC" + letters if self.channels_first else "N" + letters + "C",
        )
        if isinstance(self.padding, tuple):
            pairs = every_axis(self.padding, (0, 0))
            attributes |= dict(padding="EXPLICIT", explicit_paddings=sum(map(list, pairs), []))
        return attributes

    def shapes(self):
        """Of the input and of the output."""
        out = [
            (n + sum(p) - k) // s + 1
            for n, p, k, s in zip(self.sizes, self.pads, self.window, self.strides)
        ]
        return (self.batch, *self.sizes, self.channels), (self.batch, *out, self.channels)

    def operands(self, dtype=np.float32):
        """x with many ties, a gradient of the output and one of the input."""
        random = np.random.default_rng(0)
        inside, outside = self.shapes()
        return [
            random.integers(low, low + 6, shape).astype(dtype)
            for low, shape in ((-9, inside), (1, outside), (1, inside))
        ]

    def windows(self):
        """For each example, stop and channel: the output's index and the input's indices."""
        inside, outside = self.shapes()
        for n, *stop, c in np.ndindex(*outside):
            seen = [
                (n, *at, c)
                for at in itertools.product(
                    *(
                        range(i * s - pads[0], i * s - pads[0] + k)
                        for i, s, k, pads in zip(stop, self.strides, self.window, self.pads)
                    )
                )
                if all(0 <= a < size for a, size in zip(at, self.sizes))
            ]
            yield (n, *stop, c), seen


def by_loops(case, x, dy, ddx):
    """The results of the five lowerings, one window at a time, in float64."""
    x, dy, ddx = (a.astype(np.float64) for a in (x, dy, ddx))
    largest, mean, ddy = np.zeros(dy.shape), np.zeros(dy.shape), np.zeros(dy.shape)
    dlargest, dmean = np.zeros(x.shape), np.zeros(x.shape)
    for stop, seen in case.windows():
        values = [x[at] for at in seen]
        first = seen[values.index(max(values))]
        largest[stop], mean[stop], ddy[stop] = max(values), np.mean(values), ddx[first]
        dlargest[first] += dy[stop]
        for at in seen:
            dmean[at] += dy[stop] / len(seen)
    return largest, dlargest, ddy, mean, dmean


def lowered(xp, case, operands, average=True, **options):
    """The same results by the lowerings."""
    attributes = {**case.attributes, **options}

    def arrange(a):
        return xp.moveaxis(a, -1, 1) if case.channels_first else a

    def restore(a):
        return xp.moveaxis(a, 1, -1) if case.channels_first else a

    def run(x, dy, ddx):
        x, dy, ddx = map(arrange, (x, dy, ddx))
        y = lowering.max_pool(xp, x, **attributes)
        results = [
            y,
            lowering.max_pool_grad(xp, x, y, dy, **attributes),
            lowering.max_pool_grad_grad(xp, x, y, ddx, **attributes),
        ]
        if average:
            results += [
                lowering.avg_pool(xp, x, **attributes),
                lowering.avg_pool_grad(xp, x.shape, dy, **attributes),
            ]
        return [restore(result) for result in results]

    return (run if xp is np else jax.jit(run))(*operands)


CASES = {
    "same": Case(),
    "valid_with_rest": Case(sizes=(8, 9), strides=(2, 3), padding="VALID"),
    "explicit": Case(padding=((2, 1), (0, 1))),
    "tiles": Case(sizes=(6, 6), window=(2, 2), strides=(2, 2), padding="VALID"),
    "dense": Case(window=(3, 3), strides=(1, 1)),
    "stride_beyond_window": Case(sizes=(9, 9), window=(1, 2), strides=(2, 3)),
    "same_stride_beyond_window": Case(sizes=(10, 11), window=(2, 2), strides=(4, 5)),
    "wide": Case(sizes=(13, 14), window=(12, 11), strides=(1, 2)),
    "global": Case(window=(7, 6), strides=(1, 1), padding="VALID"),
    "global_with_rest": Case(window=(5, 6), strides=(7, 3), padding="VALID"),
    "global_same": Case(window=(8, 9), strides=(7, 6)),
    "one_row": Case(sizes=(5, 6), window=(5, 2), strides=(5, 2)),
    "channels_first": Case(channels_first=True),
    "volume": Case((5, 4, 6), (2, 3, 2), (2, 1, 2)),
    "volume_channels_first": Case((4, 4, 5), (2, 2, 3), (1, 2, 1), "VALID", channels_first=True),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def assert_all_close(results, expected, rtol=1e-6):
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_allclose(np.asarray(result, np.float64), value, rtol=rtol, atol=1e-6)


@every_case
def test_interpreted_against_loops(case):
    operands = case.operands()
    assert_all_close(lowered(np, case, operands), by_loops(case, *operands))


@every_case
@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_compiled_against_loops(case, platform):
    operands = case.operands()
    assert_all_close(lowered(jnp, case, operands, platform=platform), by_loops(case, *operands))


@given(
    st.builds(
        Case,
        sizes=st.tuples(st.integers(3, 8), st.integers(3, 8)),
        window=st.tuples(st.integers(1, 3), st.integers(1, 3)),
        strides=st.tuples(st.integers(1, 4), st.integers(1, 4)),
        padding=st.sampled_from(["SAME", "VALID"]),
        batch=st.integers(1, 3),
        channels_first=st.booleans(),
    )
)
@settings(max_examples=40, deadline=None)
def test_interpreted_geometry(case):
    operands = case.operands()
    assert_all_close(lowered(np, case, operands), by_loops(case, *operands))


@pytest.mark.parametrize("xp", [np, jnp], ids=["interpreted", "compiled"])
@pytest.mark.parametrize(
    ("dtype", "rtol"),
    [(np.float64, 1e-12), (np.float16, 1e-3), (ml_dtypes.bfloat16, 1e-2), (np.int32, 0)],
)
def test_element_types(xp, dtype, rtol):
    case, average = Case(), dtype is not np.int32
    with jax.enable_x64(dtype is np.float64):
        operands = case.operands(dtype)
        results = lowered(xp, case, operands, average)
        assert all(result.dtype == dtype for result in results)
        assert_all_close(results, by_loops(case, *operands)[: len(results)], rtol)


@pytest.mark.parametrize("xp", [np, jnp], ids=["interpreted", "compiled"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16])
def test_small_integers_keep_their_lowest_value(xp, dtype):
    x = np.full((1, 3, 3, 1), np.iinfo(dtype).min, dtype)
    attributes = dict(ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="SAME")
    np.testing.assert_array_equal(lowering.max_pool(xp, x, **attributes), x)


@pytest.mark.parametrize("xp", [np, jnp], ids=["interpreted", "compiled"])
@pytest.mark.parametrize("name", ["dense", "global_same"])
def test_a_window_of_negative_infinities_keeps_its_gradient(xp, name):
    case = CASES[name]
    x, dy, ddx = case.operands()
    operands = np.full_like(x, -np.inf), dy, ddx
    assert_all_close(lowered(xp, case, operands, average=False), by_loops(case, *operands)[:3])


@pytest.mark.parametrize("xp", [np, jnp], ids=["interpreted", "compiled"])
def test_a_window_with_nan_gives_nan_and_keeps_its_gradient(xp):
    case = CASES["tiles"]
    x, dy, ddx = case.operands()
    x[0, 3, 3, :] = np.nan
    y, dx, _ = lowered(xp, case, (x, dy, ddx), average=False)
    assert np.isnan(y[0, 1, 1]).all()
    np.testing.assert_allclose(np.sum(dx, (1, 2)), np.sum(dy, (1, 2)))


@pytest.mark.parametrize("xp", [np, jnp], ids=["interpreted", "compiled"])
def test_empty_operands(xp):
    attributes = dict(ksize=[1, 3, 3, 1], strides=[1, 1, 1, 1], padding="SAME")
    for inside, outside in (((0, 4, 4, 2), (0, 4, 4, 2)), ((2, 0, 4, 2), (2, 0, 4, 2))):
        x, dy = np.ones(inside, np.float32), np.ones(outside, np.float32)
        assert lowering.max_pool(xp, x, **attributes).shape == outside
        assert lowering.avg_pool(xp, x, **attributes).shape == outside
        dx = lowering.max_pool_grad(xp, x, dy, dy, **attributes)
        np.testing.assert_array_equal(dx, np.zeros(inside))
        dx = lowering.avg_pool_grad(xp, inside, dy, **attributes)
        np.testing.assert_array_equal(dx, np.zeros(inside))
        assert lowering.max_pool_grad_grad(xp, x, dy, x, **attributes).shape == outside


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ksize": [1, 0, 2, 1]}, "ksize must be positive"),
        ({"ksize": [1, 2, 2, 2]}, "ksize must be 1 along the batch and the channels"),
        ({"ksize": [2, 2]}, "a ksize with 4 axes"),
        (
            {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 2, 0, 0, 0, 0, 0]},
            "smaller than the window",
        ),
    ],
)
def test_wrong_attributes_are_explained(change, message):
    attributes = dict(ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="SAME") | change
    with pytest.raises(ValueError, match=message):
        lowering.max_pool(np, np.zeros((1, 4, 4, 1), np.float32), **attributes)


def test_gradients_of_another_shape_are_explained():
    x = np.zeros((1, 4, 4, 1), np.float32)
    attributes = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    with pytest.raises(ValueError, match=r"shape \[1, 3, 2, 1\], but pooling gives \[1, 2, 2, 1\]"):
        lowering.max_pool_grad(np, x, x, np.zeros((1, 3, 2, 1), np.float32), **attributes)
    with pytest.raises(ValueError, match=r"sizes \[3, 2\], but pooling an input of \[1, 4, 4, 1\]"):
        lowering.avg_pool_grad(np, x.shape, np.zeros((1, 3, 2, 1), np.float32), **attributes)


@pytest.mark.parametrize("native", ["0", "1"])
@pytest.mark.parametrize("case", [Case(padding="VALID"), Case(strides=(1, 1), padding="VALID")])
def test_numbers_and_nans_interpreted(monkeypatch, case, native):
    """Native code or NumPy puts the gradient where a loop finds the first largest element."""
    monkeypatch.setenv(VARIABLE, native)
    x, dy, _ = case.operands()
    for share in (0, 0.3):
        x[np.random.default_rng(1).random(x.shape) < share] = np.nan
        expected = np.zeros_like(x)
        for at, seen in case.windows():
            first = seen[0]
            for place in seen[1:]:
                first = place if x[place] > x[first] else first
            expected[first] += dy[at]
        found = lowering.max_pool_grad(np, x, dy, dy, **case.attributes)
        np.testing.assert_array_equal(found, expected)
