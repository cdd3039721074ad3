"""oneDNN's convolutions against loops over every output element, and in sessions."""

from __future__ import annotations

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import runnel as tf
from runnel.native import onednn
from runnel.ops.convolution import onednn_convolution
from runnel.ops.convolution.conv_lowering import convolution_shape
from runnel.threads import usable_cores
from tests.ops.convolution_cases import CASES, Case, by_loops, lowered

needs_onednn = pytest.mark.usefixtures("library")
DIRECTIONS = ("forward", "filter", "input")
LARGE = {
    "many_filters": Case(
        sizes=(6, 5), window=(3, 3), batch=5, channels=32, filters=256, padding="SAME"
    ),
    "blocks_of_outputs_in_each_thread": Case(
        sizes=(4, 4), window=(3, 3), batch=3, channels=128, filters=256
    ),
    "an_image": Case(sizes=(23, 23), window=(7, 7), strides=(2, 2), channels=3, filters=64),
    "many_groups": Case(channels=64, filters=128, groups=32, batch=3),
    "depthwise": Case(channels=48, filters=48, groups=48, window=(3, 3)),
}


@pytest.fixture(scope="module")
def library():
    if onednn.load() is None:
        pytest.skip("needs oneDNN and a C++ compiler")


def _taken(case: Case, direction: int, dtype: type = np.float32) -> bool:
    x, filter, _ = case.operands(dtype)
    shape = convolution_shape(
        np.moveaxis(x, -1, 1).shape if case.channels_first else x.shape,
        filter.shape,
        **case.attributes,
    )
    return onednn_convolution.takes(
        direction, shape.window, dtype, shape.batch, shape.channels, shape.filters, shape.groups
    )


def _by_onednn(case: Case, direction: str) -> bool:
    """Whether the compiled lowering calls oneDNN."""
    operands = case.operands()
    text = jax.jit(lambda *arrays: lowered(jnp, case, arrays, [direction])).lower(*operands)
    return "runnel_conv" in text.as_text()


@needs_onednn
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", [*CASES, *LARGE])
def test_every_direction_gives_what_loops_give(name, direction):
    case = {**CASES, **LARGE}[name]
    operands = case.operands()
    expected = by_loops(case, *operands)[DIRECTIONS.index(direction)]
    (result,) = lowered(jnp, case, operands, [direction])
    # Small integers: every sum is exact, in any order.
    np.testing.assert_array_equal(result, expected)


@needs_onednn
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_ordinary_convolutions_are_given_to_onednn(direction):
    for case in (CASES["same"], CASES["strided"], CASES["one_by_one"], *LARGE.values()):
        assert _by_onednn(case, direction), case


@needs_onednn
def test_what_onednn_has_no_fast_kernel_for_is_left_to_us():
    assert not _taken(Case(), onednn_convolution.FORWARD, np.float64)
    alone = Case(batch=1)
    assert _taken(alone, onednn_convolution.FORWARD) == (usable_cores() < 2)


@needs_onednn
def test_a_filter_gradient_does_not_depend_on_the_order_of_threads():
    case = LARGE["blocks_of_outputs_in_each_thread"]
    random = np.random.default_rng(1)
    operands = [random.standard_normal(a.shape).astype(np.float32) for a in case.operands()]
    first = np.asarray(lowered(jnp, case, operands, ["filter"])[0])
    for _ in range(10):
        np.testing.assert_array_equal(lowered(jnp, case, operands, ["filter"])[0], first)


def _trained(level: int, steps: int) -> list[np.ndarray]:
    """The variables after steps of training a small network."""
    random = np.random.default_rng(0)
    data = random.standard_normal((6, 9, 9, 3)).astype(np.float32)
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        shapes = [(3, 3, 3, 16), (3, 3, 16, 8), (1, 1, 8, 4)]
        filters = [tf.Variable(random.normal(0, 0.2, s).astype(np.float32)) for s in shapes]
        value = tf.constant(data)
        for stride, filter in zip((2, 1, 1), filters, strict=True):
            value = tf.nn.relu(tf.nn.conv2d(value, filter, stride, "SAME"))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(value**2))
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(train)
        return session.run(filters)


def test_training_gives_the_same_in_both_tiers():
    for ours, expected in zip(_trained(1, 4), _trained(-1, 4), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


@needs_onednn
def test_steps_of_several_threads_at_once():
    case = LARGE["many_filters"]
    operands = [jnp.asarray(a) for a in case.operands()]
    expected = by_loops(case, *case.operands())
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(5):
                for result, wanted in zip(lowered(jnp, case, operands), expected, strict=True):
                    np.testing.assert_array_equal(result, wanted)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
