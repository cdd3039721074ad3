"""Whether a GPU may multiply float32 in tf32: as the process says, or a session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

import runnel as tf
from runnel.runtime.compile import compiler, executable_cache
from runnel.runtime.session import settings


@pytest.fixture(autouse=True)
def _settings_as_before() -> Iterator[None]:
    before = settings.current
    yield
    settings.current = before


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is compiled, in StableHLO, as for a GPU."""
    seen: list[str] = []
    compile_segment, made = compiler.compile_segment, executable_cache.made

    def for_gpu(*arguments: Any) -> Any:
        *segment, options, device, overwritten, repetitions = arguments
        options = options._replace(platform="gpu")
        return compile_segment(*segment, options, device, overwritten, repetitions)

    def noted(lowered: Any) -> Any:
        seen.append(lowered.as_text())
        return made(lowered)

    monkeypatch.setattr(compiler, "compile_segment", for_gpu)
    monkeypatch.setattr(executable_cache, "made", noted)
    return seen


def configured(allowed: bool | None) -> Any:
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = 1
    if allowed is not None:
        own = config.graph_options.rewrite_options.custom_optimizers.add(name="runnel")
        own.parameter_map["tensor_float_32"].b = allowed
    return config


def product() -> tuple[tf.Tensor, dict[Any, Any]]:
    x = tf.placeholder(tf.float32, [3, 3])
    return tf.matmul(x, tf.ones([3, 3])), {x: np.eye(3)}


def test_the_process_says_and_is_asked() -> None:
    tf.config.experimental.enable_tensor_float_32_execution(False)
    assert not tf.config.experimental.tensor_float_32_execution_enabled()
    tf.config.experimental.enable_tensor_float_32_execution(True)
    assert tf.config.experimental.tensor_float_32_execution_enabled()


def test_it_is_allowed_by_default() -> None:
    assert settings.Settings().tensor_float_32


def test_a_session_follows_the_process_from_step_to_step(programs: list[str]) -> None:
    y, feed = product()
    with tf.Session(config=configured(None)) as sess:
        for allowed in (True, False, True):
            tf.config.experimental.enable_tensor_float_32_execution(allowed)
            for _ in range(2):
                np.testing.assert_array_equal(sess.run(y, feed), np.ones([3, 3]))
            assert ("HIGHEST" in programs[-1]) is not allowed
    assert len(programs) == 3


@pytest.mark.parametrize("allowed", [True, False])
def test_a_session_can_decide_for_itself(allowed: bool, programs: list[str]) -> None:
    tf.config.experimental.enable_tensor_float_32_execution(not allowed)
    with tf.Session(config=configured(allowed)) as sess:
        sess.run(*product())
    assert len(programs) == 1 and ("HIGHEST" in programs[0]) is not allowed


def test_convolutions_and_einsum_follow_too(programs: list[str]) -> None:
    image = tf.placeholder(tf.float32, [1, 8, 8, 16])
    fetches = [
        tf.nn.conv2d(image, tf.ones([3, 3, 16, 4]), 1, "SAME"),
        tf.einsum("bxyc,bxyd->cd", image, image),
    ]
    with tf.Session(config=configured(False)) as sess:
        sess.run(fetches, {image: np.ones([1, 8, 8, 16])})
    products = [
        line for line in programs[0].splitlines() if "convolution(" in line or "dot_general" in line
    ]
    assert products and all("HIGHEST" in line for line in products)


@pytest.mark.skipif(jax.default_backend() != "gpu", reason="needs a GPU")
def test_a_gpu_computes_with_all_bits_or_fewer() -> None:
    a = np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32)
    expected = a.astype(np.float64) @ a
    x = tf.placeholder(tf.float32, [256, 256])
    errors = {}
    with tf.device("/gpu:0"):
        y = tf.matmul(x, x)
    for allowed in (True, False):
        with tf.Session(config=configured(allowed)) as sess:
            errors[allowed] = np.abs(sess.run(y, {x: a}) - expected).max()
    assert errors[False] < 1e-4 < errors[True] < 1e-1
