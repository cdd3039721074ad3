"""Input as programs write it: what steps fetch is the same here and in TensorFlow."""

from __future__ import annotations

import pytest

import runnel
from tests.conformance.input_programs import PROGRAMS
from tests.conformance.same_fetches import assert_same_values

reference = pytest.importorskip("tensorflow").compat.v1
reference.disable_v2_behavior()


@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_fetch_the_same(name, tmp_path):
    found = []
    for tf in (runnel, reference):
        folder = tmp_path / tf.__name__
        folder.mkdir()
        with tf.Graph().as_default():
            found.append(PROGRAMS[name](tf, folder))
    assert_same_values(*found, rtol=1e-4)
