"""FTRL-Proximal, against the closed form of what it minimises."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.train.stepping import GRADIENTS, INITIAL, PLACES, ROWS, TABLE, steps_of, totals


def _step(w, gradient, squares, linear, power=-0.5, l1=0.0, l2=0.0, shrinkage=0.0):
    grown = squares + gradient**2
    sigma = (grown**-power - squares**-power) / 0.3
    linear = linear + gradient + 2 * shrinkage * w - sigma * w
    w = np.where(
        np.abs(linear) > l1,
        -(linear - np.sign(linear) * l1) / (grown**-power / 0.3 + 2 * l2),
        0.0,
    )
    return w, grown, linear


CASES = {
    "plain": {},
    "l1": {"l1": 0.8},
    "l2": {"l2": 0.3},
    "all": {"l1": 0.1, "l2": 0.2, "shrinkage": 0.05},
    "power": {"power": -0.8, "l1": 0.1},
    "constant_rate": {"power": 0.0},
}
NAMES = {
    "l1": "l1_regularization_strength",
    "l2": "l2_regularization_strength",
    "shrinkage": "l2_shrinkage_regularization_strength",
    "power": "learning_rate_power",
}


@pytest.mark.parametrize("case", CASES)
def test_follows_the_regularized_leader(case):
    options = CASES[case]

    def make():
        return tf.train.FtrlOptimizer(0.3, **{NAMES[k]: v for k, v in options.items()})

    w, squares, linear = INITIAL.astype(np.float64), np.full(3, 0.1), np.zeros(3)
    for step, gradient in zip(steps_of(make, INITIAL, GRADIENTS), GRADIENTS.astype(np.float64)):
        w, squares, linear = _step(w, gradient, squares, linear, **options)
        np.testing.assert_allclose(step, w, rtol=1e-4, atol=1e-6)


def test_l1_gives_exact_zeros_in_the_rows_with_a_gradient():
    def make():
        return tf.train.FtrlOptimizer(0.3, l1_regularization_strength=0.5)

    w = TABLE.astype(np.float64)
    squares, linear = np.full((6, 2), 0.1), np.zeros((6, 2))
    found = steps_of(make, TABLE, ROWS, PLACES)
    for step, rows, places in zip(found, ROWS, PLACES):
        for p, total in totals(rows, places).items():
            w[p], squares[p], linear[p] = _step(w[p], total, squares[p], linear[p], l1=0.5)
        np.testing.assert_allclose(step, w, rtol=1e-4, atol=1e-6)
    assert (found[-1] == 0).any() and (found[-1][5] == TABLE[5]).all()


@pytest.mark.parametrize(
    ("option", "value"),
    [(name, 0.5 if name == "learning_rate_power" else -0.5) for name in NAMES.values()]
    + [("initial_accumulator_value", -0.1)],
)
def test_hyperparameters_of_the_wrong_sign_are_refused(option, value):
    with pytest.raises(ValueError, match=f"{option} {value} must not be"):
        tf.train.FtrlOptimizer(0.3, **{option: value})


def test_slots_can_be_named():
    v = tf.Variable(INITIAL, name="v")
    optimizer = tf.train.FtrlOptimizer(0.3, accum_name="sum", linear_name="line")
    optimizer.apply_gradients([(tf.constant(GRADIENTS[0]), v)])
    assert optimizer.get_slot(v, "accum").op.name == "v/sum"
    assert optimizer.get_slot(v, "linear").op.name == "v/line"
