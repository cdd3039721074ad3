"""The special functions of float32 arrays against the standard library."""

import math

import numpy as np
import pytest

from runnel.ops import single_precision, special_values

# The interpreter calls them with NumPy's warnings off.
pytestmark = [
    pytest.mark.filterwarnings("ignore:divide by zero"),
    pytest.mark.filterwarnings("ignore:invalid value"),
    pytest.mark.filterwarnings("ignore:overflow"),
    pytest.mark.filterwarnings("ignore:underflow"),
]


def units_off(found, expected):
    """By how many units in the last place of float32 numbers differ from exact ones."""
    with np.errstate(over="ignore"):
        unit = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
    return np.max(np.abs(found.astype(np.float64) - expected) / unit)


def points(low, high):
    """Numbers between two, and powers of ten below, of float32."""
    small = np.logspace(-37, 0, 800)
    found = np.concatenate([np.linspace(low, high, 20011), small, -small]).astype(np.float32)
    return found[(found >= low) & (found <= high)]


@pytest.mark.parametrize(
    ("name", "low", "high", "units"),
    [("erf", -6, 6, 5), ("erfc", -6, 9.1, 5), ("lgamma", 1e-37, 60, 1.5)],
)
def test_functions_are_those_of_the_standard_library(name, low, high, units):
    x = points(low, high)
    expected = np.array([getattr(math, name)(v) for v in x.tolist()])
    assert units_off(getattr(single_precision, name)(x), expected) < units


@pytest.mark.parametrize("name", ["erf", "erfc", "lgamma", "digamma"])
def test_functions_are_those_of_float64(name):
    x = np.concatenate([points(-20.3, 60), np.float32([1e4, 1e10, 1e20, 3.4e38, 1e-44])])
    found = getattr(single_precision, name)(x)
    expected = getattr(special_values, name)(x)
    np.testing.assert_allclose(found, expected.astype(np.float32), rtol=5e-7, atol=2e-44)


@pytest.mark.parametrize("name", ["erf", "erfc", "lgamma", "digamma"])
def test_ends_are_those_of_float64(name):
    x = np.float32([np.inf, -np.inf, np.nan, 0, -0.0, 3e38, -3e38, -1, -2, 1, 2])
    found = getattr(single_precision, name)(x)
    assert found.dtype == np.float32
    expected = getattr(special_values, name)(x).astype(np.float32)
    np.testing.assert_allclose(found, expected, rtol=5e-7)
    np.testing.assert_array_equal(np.signbit(found[3:5]), np.signbit(expected[3:5]))


@pytest.mark.parametrize("name", ["erf", "erfc", "lgamma", "digamma"])
def test_blocks_scalars_and_strides_make_no_difference(name):
    function = getattr(single_precision, name)
    x = np.linspace(0.1, 5, 40001, dtype=np.float32)
    whole = function(x)
    np.testing.assert_array_equal(function(x[::-1])[::-1], whole)
    np.testing.assert_array_equal(function(x[20000]), whole[20000])
    assert function(np.zeros((0, 3), np.float32)).shape == (0, 3)
