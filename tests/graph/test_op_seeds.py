"""With the graph's seed alone a program draws TensorFlow 1.15's numbers.

An operation without a seed takes the number of operations made before it, so functions count as
many as TensorFlow's. What it made was recorded by ``tools/record_op_seeds.py``.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import runnel as tf
from tests.op_seeds import CALLS, counted, drawn

RECORDED = json.loads((Path(__file__).parents[1] / "recorded" / "op_seeds.json").read_text())

# These make other operations than TensorFlow's, whose number depends on too much to be told.
UNLIKE = {
    "tf.nn.softmax(X,0)",
    "tf.nn.weighted_cross_entropy_with_logits(logits=X,targets=X,pos_weight=2.)",
    "tf.nn.batch_normalization(X,0.,1.,0.,1.,1e-3)",
    "tf.nn.zero_fraction(X)",
    "tf.boolean_mask(X,[True,False])",
    "tf.sequence_mask([1,2],3)",
    "tf.norm(X)",
    "tf.tensordot(X,X,[[0],[0]])",
    "tf.einsum('ij,kj->ik',X,X)",
    "tf.Assert(True,[X])",
    "tf.assert_equal(I,I)",
    "tf.sort(X)",
    "tf.argsort(X)",
    "tf.get_variable('w',[2,2],initializer=tf.initializers.identity())",
}


def test_every_call_was_recorded():
    assert set(RECORDED["calls"]) == set(CALLS)
    assert RECORDED["tensorflow"].startswith("1.15")


@pytest.mark.parametrize("call", CALLS)
def test_a_call_counts_as_many_operations_as_tensorflows(call):
    matches = counted(tf, call) == RECORDED["calls"][call]
    assert matches == (call not in UNLIKE), (counted(tf, call), RECORDED["calls"][call])


def test_a_plain_program_draws_tensorflows_numbers():
    ours = drawn(tf)
    assert ours.keys() == RECORDED["drawn"].keys()
    for name, values in RECORDED["drawn"].items():
        np.testing.assert_allclose(ours[name], values, rtol=1e-5, atol=1e-6, err_msg=name)
