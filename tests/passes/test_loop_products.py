"""Products of recurrent networks: before the loop, after the loop, or not at all."""

import numpy as np
import pytest

import runnel as tf
from runnel.passes.structure.raise_control_flow import raise_control_flow
from runnel.passes.structure.structured import Loop, nested_nodes, structure_of
from runnel.runtime.schedule import plan
from tests.both_tiers import COMPILED, INTERPRETED, session
from tests.execution_modes import MODES, forced


def network(x, w, b, **options):
    """A recurrent network in the form of tf.nn.dynamic_rnn."""
    steps = tf.shape(x)[0]
    inputs = tf.TensorArray(tf.float32, steps, element_shape=x.shape[1:]).unstack(x)
    outputs = tf.TensorArray(tf.float32, steps)

    def body(i, h, out):
        z = tf.nn.bias_add(tf.matmul(tf.concat([inputs.read(i), h], 1), w), b)
        h = tf.tanh(z)
        return i + 1, h, out.write(i, h)

    start = tf.zeros([tf.shape(x)[1], 4])
    _, _, outputs = tf.while_loop(lambda i, *_: i < steps, body, [0, start, outputs], **options)
    return outputs.stack()


def inputs_of(batch):
    x = tf.placeholder(tf.float32, [None, batch, 3])
    w = tf.get_variable("w", [7, 4], initializer=tf.random_normal_initializer(seed=1))
    b = tf.get_variable("b", [4], initializer=tf.random_normal_initializer(seed=2))
    return x, w, b


def products(fetches, x):
    """The kinds of the products in the bodies of loops, and of those outside."""
    with session(COMPILED) as sess:
        step = sess._plan(fetches, [], [x])
        nodes = [node for runner in step.schedule.runners for node in runner.segment.nodes]
    inside, outside = [], []
    for node in nodes:
        loop = structure_of(node)
        if isinstance(loop, Loop):
            inside += [n.op_def.name for n in nested_nodes(loop.body.nodes)]
        else:
            outside.append(node.op_def.name)
    kinds = ("MatMul", "BatchMatMulV2")
    return [k for k in inside if k in kinds], [k for k in outside if k in kinds]


@pytest.mark.parametrize("batch", [2, None])
def test_an_iteration_computes_only_what_the_next_one_needs(batch):
    x, w, b = inputs_of(batch)
    y = network(x, w, b)
    gradients = tf.gradients(tf.reduce_sum(y**2), [w, b])
    inside, outside = products(gradients, x)
    assert inside == ["MatMul", "MatMul"]  # h @ w_h, and the gradient of h
    assert sorted(outside) == ["BatchMatMulV2", "MatMul"]  # x @ w_x, and the gradient of w


@pytest.mark.parametrize("accelerator", [False, True])
def test_a_loop_that_is_to_take_little_of_a_device_keeps_its_products(accelerator, monkeypatch):
    if accelerator:
        monkeypatch.setattr(
            plan, "raise_control_flow", lambda program, *_: raise_control_flow(program, swaps=True)
        )
    x, w, b = inputs_of(2)
    y = network(x, w, b, swap_memory=True)
    inside, outside = products(tf.gradients(tf.reduce_sum(y**2), [w, b]), x)
    assert len(inside) == (3 if accelerator else 2)
    assert len(outside) == (0 if accelerator else 2)


@pytest.mark.parametrize("batch", [2, None])
@pytest.mark.parametrize("steps", [1, 5])
@pytest.mark.parametrize("with_respect_to_x", [False, True])
def test_values_and_gradients_are_those_of_the_graph_as_it_was_built(
    batch, steps, with_respect_to_x
):
    x, w, b = inputs_of(batch)
    y = network(x, w, b)
    sources = [w, b, x] if with_respect_to_x else [w, b]
    fetches = [y, *tf.gradients(tf.reduce_sum(y**2), sources)]
    data = np.random.RandomState(0).randn(steps, 2, 3).astype("f")
    found = []
    for mode in MODES:
        with forced(mode), tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(2):  # the second run is optimized
                values = sess.run(fetches, {x: data})
            found.append(values)
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_a_loop_that_does_not_run_gives_no_gradient(level):
    x, w, b = inputs_of(2)
    y = network(x, w, b)
    gradients = tf.gradients(tf.reduce_sum(y**2), [w, b])
    with session(level) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(2):
            found = sess.run(gradients, {x: np.zeros([0, 2, 3], np.float32)})
        np.testing.assert_array_equal(found[0], np.zeros([7, 4]))
        np.testing.assert_array_equal(found[1], np.zeros([4]))


def test_a_sum_over_a_long_loop_without_history_stays_in_the_loop():
    """Keeping its terms would take memory that the program as written does not take."""
    a = tf.placeholder(tf.float32, [4, 2])
    _, total = tf.while_loop(
        lambda i, _: i > 0,
        lambda i, s: (i - 1, s + tf.matmul(a * tf.cast(i, tf.float32), a, transpose_a=True)),
        [100, tf.zeros([2, 2])],
    )
    inside, outside = products([total], a)
    assert (inside, outside) == (["MatMul"], [])


@pytest.mark.parametrize("tier", [INTERPRETED, COMPILED])
def test_a_gradient_that_waits_for_another_step_is_summed_when_it_has_come(tier):
    x, w, b = inputs_of(None)
    y = network(x, w, b)
    fed = tf.placeholder(tf.float32, [None, None, 4])
    queue = tf.FIFOQueue(1, tf.float32)
    waits = queue.dequeue()
    waits.set_shape([None, None, 4])
    given = np.random.RandomState(0).randn(5, 2, 3).astype(np.float32)
    above = np.random.RandomState(1).randn(5, 2, 4).astype(np.float32)
    plain, behind = (tf.gradients(y, [w, b], grad_ys=g) for g in (fed, waits))
    with session(tier) as sess:
        sess.run(tf.global_variables_initializer())
        expected = sess.run(plain, {x: given, fed: above})
        for _ in range(3):
            sess.run(queue.enqueue(above))
            found = sess.run(behind, {x: given})
            for ours, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
