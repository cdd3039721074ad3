"""A step that asks for more memory than there is fails by itself: the task and its state go on."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import runnel as tf
from runnel.distributed.memory_limit import VARIABLE, MemoryLimit
from tests.distributed.clusters import Process, cluster_of

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform != "linux", reason="limits are Linux's"),
]

MOST = 2 << 30


@pytest.fixture(scope="module")
def target():
    spec = cluster_of(worker=1)
    process = Process(spec, "worker", 0, **{VARIABLE: str(MOST)})
    try:
        yield f"grpc://{spec['worker'][0]}"
    finally:
        process.kill()


GREEDY = {
    "a fill": lambda n: tf.reduce_sum(tf.fill([n], 1.0)),
    "zeros that are kept": lambda n: (
        tf.assign(
            tf.Variable(0.0, validate_shape=False, name="kept", trainable=False),
            tf.ones([n]),
            validate_shape=False,
        ).op
    ),
    "an outer product": lambda n: tf.reduce_sum(
        tf.matmul(tf.ones([n // 1024, 1]), tf.ones([1, 1024]))
    ),
    "broadcasting": lambda n: tf.reduce_sum(tf.ones([n // 1024, 1]) + tf.ones([1, 1024])),
    "random numbers": lambda n: tf.reduce_sum(tf.random_uniform([n])),
    "an array of a loop": lambda n: (
        tf.TensorArray(tf.float32, 2).unstack(tf.ones(tf.stack([2, n]))).stack()[0, 0]
    ),
}


@pytest.mark.parametrize("what", GREEDY)
@pytest.mark.parametrize("size", [MOST // 3, 10**12])
def test_a_greedy_step_is_refused_and_the_task_goes_on(target, what, size):
    with tf.Session(target) as sess:
        v = tf.Variable([1.0, 2.0], name="state")
        n = tf.placeholder(tf.int64, [])
        greedy = GREEDY[what](n)
        sess.run(v.initializer)
        with pytest.raises((tf.errors.ResourceExhaustedError, tf.errors.InvalidArgumentError)):
            sess.run(greedy, {n: size})
        np.testing.assert_array_equal(sess.run(v), [1.0, 2.0])


_LIMITS = """
import resource
from runnel.distributed.memory_limit import MemoryLimit
with MemoryLimit():
    print(resource.getrlimit(resource.RLIMIT_DATA)[0])
print(resource.getrlimit(resource.RLIMIT_DATA)[0])
"""


def test_the_limit_is_what_is_left_and_ends_with_serving():
    import resource

    code = [sys.executable, "-c", _LIMITS]
    within, after = map(int, subprocess.check_output(code, text=True).split())
    assert 64 << 20 < within < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") + (1 << 30)
    assert after == resource.RLIM_INFINITY


def test_no_limit_is_set_where_none_is_wanted(monkeypatch):
    import resource

    monkeypatch.setenv(VARIABLE, "0")
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with MemoryLimit():
        assert resource.getrlimit(resource.RLIMIT_DATA) == before
