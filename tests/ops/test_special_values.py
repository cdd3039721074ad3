"""The NumPy implementations of special functions against the standard library."""

import math

import numpy as np
import pytest

from runnel.ops import special_values

# The interpreter calls them with NumPy's warnings off.
pytestmark = [
    pytest.mark.filterwarnings("ignore:divide by zero"),
    pytest.mark.filterwarnings("ignore:invalid value"),
    pytest.mark.filterwarnings("ignore:overflow"),
]


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_function(name):
    x = np.concatenate([np.linspace(-6, 6, 2001), np.linspace(6, 26, 101), [0, -0.0, 1, -1]])
    expected = [getattr(math, name)(v) for v in x]
    np.testing.assert_allclose(getattr(special_values, name)(x), expected, rtol=3e-15, atol=0)


def test_error_function_at_the_ends():
    ends = np.array([np.inf, -np.inf, np.nan, 1e308, -1e308])
    np.testing.assert_array_equal(special_values.erf(ends), [1, -1, np.nan, 1, -1])
    np.testing.assert_array_equal(special_values.erfc(ends), [0, 2, np.nan, 0, 2])


def test_lgamma():
    x = np.concatenate([np.linspace(0.01, 40, 4001), [1e-10, 100.5, 1e5, 1e15, 1e300]])
    expected = np.array([math.lgamma(v) for v in x])
    np.testing.assert_allclose(special_values.lgamma(x), expected, rtol=5e-14, atol=1e-15)


def test_lgamma_near_its_zeros():
    """Where the first terms of the Taylor series are exact, and the standard library is not."""
    euler = 0.57721566490153286
    step = np.array([1e-9, -1e-9, 1e-6])
    one, two = 1 + step, 2 + step
    step = one - 1
    expected = -euler * step + math.pi**2 / 12 * step**2
    np.testing.assert_allclose(special_values.lgamma(one), expected, rtol=1e-12)
    step = two - 2
    expected = (1 - euler) * step + (math.pi**2 / 6 - 1) / 2 * step**2
    np.testing.assert_allclose(special_values.lgamma(two), expected, rtol=1e-12)


def test_lgamma_of_negative_numbers_and_poles():
    x = np.array([-0.5, -1.5, -2.25, -30.7, -100.3])
    expected = [math.lgamma(v) for v in x]
    np.testing.assert_allclose(special_values.lgamma(x), expected, rtol=1e-13)
    poles = special_values.lgamma(np.array([0.0, -1.0, -2.0, np.inf, -np.inf]))
    np.testing.assert_array_equal(poles, np.full(5, np.inf))


def test_digamma():
    euler = 0.57721566490153286
    exact = {
        1.0: -euler,
        0.5: -euler - 2 * math.log(2),
        0.25: -euler - math.pi / 2 - 3 * math.log(2),
        10.0: sum(1 / k for k in range(1, 10)) - euler,
        -0.5: -euler - 2 * math.log(2) + 2,
    }
    found = special_values.digamma(np.array(list(exact)))
    np.testing.assert_allclose(found, list(exact.values()), rtol=1e-14)


def test_zeta_and_polygamma():
    exact = {2.0: math.pi**2 / 6, 4.0: math.pi**4 / 90, 6.0: math.pi**6 / 945}
    found = special_values.zeta(np.array(list(exact)), 1.0)
    np.testing.assert_allclose(found, list(exact.values()), rtol=1e-14)
    # zeta(s, q) - zeta(s, q + 1) = q ** -s
    q = np.array([0.3, 2.5, 9.9, 40.0, -1.5])
    difference = special_values.zeta(3.0, q) - special_values.zeta(3.0, q + 1)
    np.testing.assert_allclose(difference, q**-3.0, rtol=1e-9)
    np.testing.assert_allclose(special_values.polygamma(1, 1.0), math.pi**2 / 6, rtol=1e-14)
    assert np.isnan(special_values.polygamma(0.5, 1.0))


def test_large_arrays_go_by_blocks():
    x = np.linspace(-3, 3, 10007).reshape(1, -1)
    np.testing.assert_array_equal(special_values.erf(x)[0, 5000], special_values.erf(x[0, 5000]))
    assert special_values.erf(x).shape == x.shape
