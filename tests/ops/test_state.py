"""Operations on variables that user functions do not cover, interpreted and compiled."""

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both


def old_variable(shape):
    return tf.get_op_def("Variable")(shape=shape, dtype=tf.float32)


def test_the_variable_op_of_old_graphs():
    assert old_variable([]).shape.rank is None
    v = old_variable([2])
    init = tf.assign(v, [1.0, 2.0])
    value = run_both(tf.identity(v), init=init.op)
    np.testing.assert_array_equal(value, [1, 2])


def test_the_shape_of_a_resource():
    v = tf.Variable(tf.zeros([2, 3]), use_resource=True)
    shape = tf.get_op_def("VariableShape")
    init = tf.global_variables_initializer()
    for dtype in (tf.int32, tf.int64):
        value = run_both(shape(v.handle, out_type=dtype), init=init)
        assert value.dtype == dtype.np_dtype and value.tolist() == [2, 3]


def test_gathering_in_batches():
    params = np.arange(24.0).reshape(2, 3, 4)
    v = tf.Variable(params, use_resource=True)
    indices = np.array([[2, 0], [1, 1]])
    rows = tf.get_op_def("ResourceGather")(v.handle, indices, dtype=tf.float64, batch_dims=1)
    value = run_both(rows, init=tf.global_variables_initializer())
    np.testing.assert_array_equal(value, np.stack([params[b][indices[b]] for b in range(2)]))


def test_an_index_out_of_range_is_named():
    v = tf.Variable([1.0, 2.0], use_resource=True)
    with tf.Session() as sess:
        sess.run(v.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[1\] = 2 is not in \[0, 2\)"):
            sess.run(v.sparse_read([0, 2]))


def test_the_gradient_of_a_gather_is_sparse():
    v = tf.Variable(np.ones((4, 2), np.float32), use_resource=True)
    rows = v.sparse_read([3, 1, 3])
    (gradient,) = tf.gradients(tf.reduce_sum(rows * [[1.0], [2.0], [3.0]]), [v])
    assert isinstance(gradient, tf.IndexedSlices)
    dense = run_both(tf.convert_to_tensor(gradient), init=tf.global_variables_initializer())
    np.testing.assert_array_equal(dense, [[0, 0], [2, 2], [0, 0], [4, 4]])


def test_updates_are_placed_where_the_variable_is():
    with tf.device("/job:ps/task:3"):
        v = tf.Variable([1.0])
    with tf.device("/job:worker"):
        update = v.assign_add([1.0])
        slices = tf.scatter_add(v, [0], [1.0])
        of_tensors = tf.assign(v._ref(), tf.constant([2.0]))
    for tensor in (update, slices, of_tensors):
        assert tensor.device == "/job:ps/task:3"
        assert tensor.op.colocation_groups() == [b"loc:@Variable"]
