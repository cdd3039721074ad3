"""What every optimizer does: minimize, its two halves, slots, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.train.stepping import after, quadratic

INITIAL = np.array([1.0, -2.0], np.float32)


# Minimize -------------------------------------------------------------------------------------


@pytest.mark.parametrize("resource", [False, True])
def test_minimize_counts_the_global_step(resource):
    v, loss = quadratic(use_resource=resource)
    count = tf.Variable(7, trainable=False, use_resource=resource)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=count)
    assert isinstance(train, tf.Operation)
    assert after(train, count, 3) == 10
    np.testing.assert_allclose(after(train, v, 3), INITIAL * 0.8**3, rtol=1e-5)


def test_the_global_step_is_counted_after_the_updates():
    v, loss = quadratic()
    step = tf.train.get_or_create_global_step()
    rate = tf.where(tf.equal(step, 0), 0.25, 0.0)  # were it counted first, nothing would move
    train = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)
    np.testing.assert_allclose(after(train, v), INITIAL * 0.5)


def test_only_the_listed_variables_move():
    a, loss_a = quadratic("a")
    b, loss_b = quadratic("b")
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss_a + loss_b, var_list=[[b], ()])
    np.testing.assert_allclose(after(train, [a, b]), [INITIAL, INITIAL * 0])


def test_only_trainable_variables_move_by_default():
    a, loss_a = quadratic("a", trainable=False)
    b, loss_b = quadratic("b")
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss_a + loss_b)
    np.testing.assert_allclose(after(train, [a, b]), [INITIAL, INITIAL * 0])


def test_the_train_op_is_collected_and_named():
    _, loss = quadratic()
    first = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    second = tf.train.AdamOptimizer(0.1).minimize(loss, name="go")
    third = tf.train.AdamOptimizer(0.1).minimize(
        loss, global_step=tf.train.create_global_step(), name="count"
    )
    assert tf.get_collection(tf.GraphKeys.TRAIN_OP) == [first, second, third]
    assert [op.name for op in (first, second, third)] == ["GradientDescent", "go", "count"]


def test_grad_loss_scales_the_gradient():
    v, loss = quadratic()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, grad_loss=3.0)
    np.testing.assert_allclose(after(train, v), INITIAL * (1 - 0.6), rtol=1e-6)


def test_a_loss_that_is_not_a_scalar_is_summed():
    v = tf.Variable(INITIAL)
    train = tf.train.GradientDescentOptimizer(0.25).minimize(v * v)
    np.testing.assert_allclose(after(train, v), INITIAL * 0.5)


def test_a_loss_may_be_a_function():
    v = tf.Variable(INITIAL)
    train = tf.train.GradientDescentOptimizer(0.25).minimize(lambda: tf.reduce_sum(v * v))
    np.testing.assert_allclose(after(train, v), INITIAL * 0.5)


@pytest.mark.parametrize("gate", [0, 1, 2])
def test_every_gate_gives_the_same_step(gate):
    a, b = tf.Variable(2.0), tf.Variable(3.0)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(a * b, gate_gradients=gate)
    np.testing.assert_allclose(after(train, [a, b]), [1.7, 2.8], rtol=1e-6)


def test_an_unknown_gate_is_refused():
    _, loss = quadratic()
    with pytest.raises(ValueError, match="GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH"):
        tf.train.GradientDescentOptimizer(0.1).minimize(loss, gate_gradients=3)


# Its two halves -------------------------------------------------------------------------------


def test_gradients_can_be_changed_on_the_way():
    v, loss = quadratic()
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    grads, variables = zip(*optimizer.compute_gradients(loss))
    clipped, norm = tf.clip_by_global_norm(grads, 1.0)
    train = optimizer.apply_gradients(zip(clipped, variables))
    np.testing.assert_allclose(after(train, v), INITIAL - INITIAL / np.sqrt(5), rtol=1e-6)
    assert run_both(norm, init=v.initializer) == pytest.approx(2 * np.sqrt(5))


def test_sparse_gradients_can_be_clipped():
    table = tf.Variable(np.ones((4, 2), np.float32))
    loss = tf.reduce_sum(tf.gather(table, [1, 3]) * 3.0)
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    (grad,), (variable,) = zip(*optimizer.compute_gradients(loss))
    assert isinstance(grad, tf.IndexedSlices)
    (clipped,), _ = tf.clip_by_global_norm([grad], 2.0)
    assert isinstance(clipped, tf.IndexedSlices)
    train = optimizer.apply_gradients([(clipped, variable)])
    np.testing.assert_allclose(after(train, table)[:, 0], [1, 0, 1, 0], atol=1e-6)


def test_variables_without_a_gradient_are_left_out():
    a, loss = quadratic("a")
    b = tf.Variable(INITIAL, name="b")
    optimizer = tf.train.AdamOptimizer(0.1)
    pairs = optimizer.compute_gradients(loss)
    assert [(g is None, v) for g, v in pairs] == [(False, a), (True, b)]
    train = optimizer.apply_gradients(pairs)
    assert optimizer.get_slot(b, "m") is None
    np.testing.assert_array_equal(after(train, b), INITIAL)


def test_gradients_may_be_arrays():
    v = tf.Variable(INITIAL)
    train = tf.train.GradientDescentOptimizer(1.0).apply_gradients([(INITIAL, v)])
    np.testing.assert_array_equal(after(train, v), [0, 0])


def test_what_must_run_before_runs_before():
    v, loss = quadratic()
    optimizer = tf.train.GradientDescentOptimizer(0.25)
    pairs = optimizer.compute_gradients(loss)
    with tf.control_dependencies([v.assign(v * 10.0)]):
        train = optimizer.apply_gradients(pairs)
    # The gradient was described before and is that of the old value; the step is from the new.
    np.testing.assert_allclose(after(train, v), INITIAL * 10 - INITIAL * 0.5, rtol=1e-6)


def test_the_whole_step_is_one_compiled_segment_with_clipping_and_decay():
    from tests.passes.clusters.test_cluster import segments

    v, loss = quadratic()
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.1, step, 10, 0.5, staircase=True)
    optimizer = tf.train.MomentumOptimizer(rate, 0.9)
    grads, variables = zip(*optimizer.compute_gradients(loss))
    clipped, _ = tf.clip_by_global_norm(grads, 1.0)
    train = optimizer.apply_gradients(zip(clipped, variables), global_step=step)
    (segment,) = segments([loss], targets=[train])
    assert segment.compilable


# Hyper-parameters -----------------------------------------------------------------------------


def test_a_learning_rate_may_be_a_tensor_a_function_or_a_variable():
    fed = tf.placeholder(tf.float32, [])
    kept = tf.Variable(0.25, trainable=False)
    for rate in (fed, lambda: 0.25, lambda: fed, kept, np.float64(0.25)):
        v, loss = quadratic()
        train = tf.train.GradientDescentOptimizer(rate).minimize(loss, var_list=[v])
        np.testing.assert_allclose(after(train, v, feed={fed: 0.25}), INITIAL * 0.5)


def test_a_learning_rate_can_be_fed_by_its_name():
    v, loss = quadratic()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    feed = {"GradientDescent/learning_rate:0": 0.5}
    np.testing.assert_allclose(after(train, v, feed=feed), INITIAL * 0)


def test_a_variable_learning_rate_is_read_in_every_step():
    v, loss = quadratic()
    rate = tf.Variable(0.5, trainable=False)
    train = tf.train.GradientDescentOptimizer(rate).minimize(loss, var_list=[v])
    with session(COMPILED) as sess:
        sess.run(tf.global_variables_initializer())
        rate.load(0.25, sess)
        sess.run(train)
        np.testing.assert_allclose(sess.run(v), INITIAL * 0.5)


@pytest.mark.parametrize("resource", [False, True])
def test_a_constraint_is_applied_after_the_update(resource):
    v = tf.Variable(
        INITIAL, constraint=lambda w: tf.clip_by_value(w, -1.5, 0.9), use_resource=resource
    )
    train = tf.train.AdamOptimizer(0.05).minimize(tf.reduce_sum(v * v))
    np.testing.assert_allclose(after(train, v), [0.9, -1.5])


def test_a_constraint_refuses_a_sparse_gradient():
    v = tf.Variable(np.ones((3, 2), np.float32), constraint=lambda w: w)
    with pytest.raises(RuntimeError, match="constraint function on a sparse variable"):
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.gather(v, [0])))


# Several optimizers, scopes, parts ------------------------------------------------------------


def test_two_optimizers_share_a_graph_and_keep_their_own_slots():
    v, loss = quadratic()
    first, second = (tf.train.MomentumOptimizer(0.1, 0.9) for _ in range(2))
    trains = [optimizer.minimize(loss) for optimizer in (first, second)]
    slots = [optimizer.get_slot(v, "momentum") for optimizer in (first, second)]
    assert [slot.op.name for slot in slots] == ["v/Momentum", "v/Momentum_1"]
    moved = after(trains[0], slots)
    np.testing.assert_allclose(moved, [2 * INITIAL, 0 * INITIAL])


def test_one_optimizer_may_minimize_twice_with_the_same_slots():
    v, loss = quadratic()
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    optimizer.minimize(loss)
    slot = optimizer.get_slot(v, "momentum")
    optimizer.minimize(loss * 2.0)
    assert optimizer.get_slot(v, "momentum") is slot


def test_an_optimizer_used_in_two_graphs_keeps_them_apart():
    optimizer = tf.train.AdamOptimizer(0.1)
    names = []
    for _ in range(2):
        with tf.Graph().as_default():
            _, loss = quadratic()
            optimizer.minimize(loss)
            names.append([v.name for v in optimizer.variables()])
    assert names[0] == names[1] == ["beta1_power:0", "beta2_power:0", "v/Adam:0", "v/Adam_1:0"]


def test_reused_variables_have_one_slot():
    def tower():
        with tf.variable_scope("tower", reuse=tf.AUTO_REUSE):
            w = tf.get_variable("w", initializer=INITIAL)
        return tf.reduce_sum(w * w)

    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    train = optimizer.minimize(tower() + tower())
    (w,) = tf.trainable_variables()
    assert [v.op.name for v in optimizer.variables()] == ["tower/w/Momentum"]
    np.testing.assert_allclose(after(train, w), INITIAL * 0.6, rtol=1e-6)


def test_the_parts_of_a_partitioned_variable_are_trained():
    v = tf.get_variable(
        "v", [5, 2], initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(2)
    )
    whole = tf.convert_to_tensor(v)
    optimizer = tf.train.AdamOptimizer(0.5)
    train = optimizer.minimize(tf.reduce_sum(whole * whole), var_list=[v])
    slots = [optimizer.get_slot(part, "m") for part in v]
    assert [slot.op.name for slot in slots] == ["v/part_0/Adam", "v/part_1/Adam"]
    assert [slot._get_save_slice_info().spec for slot in slots] == ["5 2 0,3:0,2", "5 2 3,2:0,2"]
    assert slots[0]._get_save_slice_info().full_name == "v/Adam"
    np.testing.assert_allclose(after(train, whole), np.full((5, 2), 0.5), rtol=1e-5)


# Slots ----------------------------------------------------------------------------------------


def test_slots_are_found_by_variable_and_name():
    v, loss = quadratic()
    optimizer = tf.train.AdamOptimizer(0.1)
    assert optimizer.get_slot_names() == [] and optimizer.variables() == []
    optimizer.minimize(loss)
    assert optimizer.get_slot_names() == ["m", "v"]
    assert optimizer.get_slot(v, "m").op.name == "v/Adam"
    assert optimizer.get_slot(v, "nothing") is None
    again = tf.Variable.from_proto(v.to_proto())
    assert optimizer.get_slot(again, "m") is optimizer.get_slot(v, "m")


def test_slots_are_not_trained_and_stand_beside_their_variable():
    with tf.device("/cpu:0"):
        v, loss = quadratic()
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    optimizer.minimize(loss)
    slot = optimizer.get_slot(v, "momentum")
    assert tf.trainable_variables() == [v]
    assert tf.global_variables() == [v, slot]
    assert slot.device == v.device


# Mistakes -------------------------------------------------------------------------------------


def test_a_loss_without_variables():
    with pytest.raises(ValueError, match="No variables to optimize"):
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0))


def test_a_loss_that_depends_on_no_variable():
    v, _ = quadratic()
    with pytest.raises(ValueError, match="No gradients provided for any variable.*v:0"):
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.stop_gradient(v)))
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        tf.train.GradientDescentOptimizer(0.1).apply_gradients([(None, v)])
    with pytest.raises(ValueError, match="No variables provided"):
        tf.train.GradientDescentOptimizer(0.1).apply_gradients([])


def test_an_integer_loss():
    v = tf.Variable([1, 2])
    with pytest.raises(ValueError, match="Invalid type int32 for .*Sum:0"):
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(v))


def test_a_variable_list_of_something_else():
    v, loss = quadratic()
    with pytest.raises(TypeError, match="3.0 cannot be optimized: it is not a variable"):
        tf.train.GradientDescentOptimizer(0.1).minimize(loss, var_list=[v, 3.0])


def test_a_tensor_has_a_gradient_but_cannot_be_updated():
    v = tf.Variable(INITIAL)
    doubled = v * 2.0
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    pairs = optimizer.compute_gradients(tf.reduce_sum(doubled), var_list=[doubled])
    with pytest.raises(NotImplementedError, match="Trying to update.*mul"):
        optimizer.apply_gradients(pairs)


def test_a_gradient_of_the_wrong_shape_or_type():
    v = tf.Variable(INITIAL, name="v")
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    with pytest.raises(ValueError, match=r"has shape \(3,\), but the variable v:0 has \(2,\)"):
        optimizer.apply_gradients([(tf.zeros([3]), v)])
    with pytest.raises(TypeError, match="is float64, but the variable v:0 is float32"):
        optimizer.apply_gradients([(tf.zeros([2], tf.float64), v)])
    with pytest.raises(TypeError, match="Gradient must be convertible to a Tensor"):
        optimizer.apply_gradients([(object(), v)])
    table = tf.Variable(np.ones((4, 2), np.float32), name="table")
    slices = tf.IndexedSlices(tf.zeros([1, 3]), tf.constant([0]))
    with pytest.raises(ValueError, match=r"shape \(1, 3\), but the variable table:0 has \(4, 2\)"):
        optimizer.apply_gradients([(slices, table)])


def test_an_optimizer_needs_a_name():
    with pytest.raises(ValueError, match="Must specify the optimizer name"):
        tf.train.GradientDescentOptimizer(0.1, name="")


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_an_index_out_of_range_changes_no_variable_and_no_slot(level):
    table = tf.Variable(np.ones((4, 2), np.float32))
    index = tf.placeholder(tf.int32, [2])
    optimizer = tf.train.AdamOptimizer(0.1)
    train = optimizer.minimize(tf.reduce_sum(tf.gather(table, index)))
    state = [table, *optimizer.variables()]
    with session(level) as sess:
        sess.run(tf.global_variables_initializer())
        before = sess.run(state)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 4"):
            sess.run(train, {index: [0, 4]})
        for old, new in zip(before, sess.run(state)):
            np.testing.assert_array_equal(old, new)
        sess.run(train, {index: [0, 3]})


def test_libraries_list_the_optimizers_by_their_base():
    """They look for classes made from ``Optimizer`` itself, as all of TensorFlow's own are."""
    own = {"Optimizer", "LBFGSOptimizer"}  # the second takes many steps at a time: no Optimizer
    names = [n for n in dir(tf.train) if n.endswith("Optimizer") and n not in own]
    assert "AdamOptimizer" in names
    assert {n for n in names if getattr(tf.train, n).__base__ is not tf.train.Optimizer} == set()


def test_an_optimizer_without_rules_says_which_is_missing():
    v = tf.Variable([1.0, 2.0])
    for gradient, kind in (
        (tf.constant([1.0, 1.0]), "dense"),
        (tf.IndexedSlices(tf.constant([1.0]), tf.constant([0])), "sparse"),
    ):
        with pytest.raises(NotImplementedError, match=f"Optimizer has no rule for {kind}"):
            tf.train.Optimizer(False, "nothing").apply_gradients([(gradient, v)])
