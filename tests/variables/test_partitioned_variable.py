"""Variables in parts."""

import numpy as np
import pytest

import runnel as tf
from runnel.variables.partitioned_variable import PartitionedVariable
from runnel.variables.partitioning import PartitionInfo
from tests.both_tiers import run_both

WHOLE = np.arange(10, dtype=np.float32).reshape(5, 2)


def table(**options):
    return tf.get_variable(
        "table", initializer=tf.constant(WHOLE), partitioner=tf.fixed_size_partitioner(2), **options
    )


@pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])
def test_parts_are_joined_when_used(resource):
    v = table(use_resource=resource)
    assert isinstance(v, PartitionedVariable) and len(v) == 2
    assert [part.name for part in v] == ["table/part_0:0", "table/part_1:0"]
    assert [part.shape.as_list() for part in v] == [[3, 2], [2, 2]]
    assert v.shape.as_list() == [5, 2] and v.dtype == tf.float32 and v.name == "table"
    init = tf.global_variables_initializer()
    value, total = run_both([tf.convert_to_tensor(v), tf.reduce_sum(v)], init=init)
    np.testing.assert_array_equal(value, WHOLE)
    assert total == WHOLE.sum()


def test_updates_go_to_the_parts():
    v = table()
    updates = [v.assign(WHOLE + 1), v.assign_add([tf.ones([3, 2]), tf.ones([2, 2])])]
    updates += [v.assign_sub(2 * WHOLE), v.assign_add(v)]
    assert all(op.type == "Assign" for op in v.assign(WHOLE, read_value=False))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for update in updates:
            sess.run(update)
        np.testing.assert_array_equal(sess.run(tf.convert_to_tensor(v)), 2 * (2 - WHOLE))
    with pytest.raises(ValueError, match="2 parts"):
        v.assign([WHOLE])


def test_parts_know_their_place_in_the_whole():
    v = table()
    infos = [part._get_save_slice_info() for part in v]
    assert [info.spec for info in infos] == ["5 2 0,3:0,2", "5 2 3,2:0,2"]
    proto = list(v)[1].to_proto()
    assert proto.save_slice_info_def.full_name == "table"
    again = tf.Variable.from_proto(proto)._get_save_slice_info()
    assert (again.full_shape, again.var_offset, again.var_shape) == ([5, 2], [3, 0], [2, 2])
    assert infos[0].to_proto("elsewhere") is None


def test_initializers_see_the_whole():
    seen = []

    def initializer(shape, dtype, partition_info):
        seen.append((list(shape), list(partition_info.var_offset), list(partition_info.full_shape)))
        return tf.zeros(shape, dtype)

    tf.get_variable(
        "v", [3, 5], initializer=initializer, partitioner=tf.fixed_size_partitioner(2, 1)
    )
    assert seen == [([3, 3], [0, 0], [3, 5]), ([3, 2], [0, 3], [3, 5])]


def test_sharing_parts():
    v = table()
    with tf.variable_scope("", reuse=True):
        assert tf.get_variable("table", [5, 2]) is v
        assert tf.get_variable("table", [5, 2], partitioner=tf.fixed_size_partitioner(2)) is v
        with pytest.raises(ValueError, match="partitions"):
            tf.get_variable("table", [5, 2], partitioner=tf.fixed_size_partitioner(5))
        with pytest.raises(ValueError, match="shape"):
            tf.get_variable("table", [6, 2])
    with pytest.raises(ValueError, match="already exists"):
        table()


def test_a_scalar_is_never_cut():
    v = tf.get_variable("v", [], partitioner=tf.fixed_size_partitioner(2))
    assert isinstance(v, tf.Variable)


def test_it_cannot_be_updated_as_one_reference():
    with pytest.raises(NotImplementedError, match="parts"):
        tf.scatter_add(table(), [0], [[1.0, 1.0]])


@pytest.mark.parametrize(
    ("partitioner", "shape", "parts"),
    [
        (tf.fixed_size_partitioner(3), [7, 2], [3, 1]),
        (tf.fixed_size_partitioner(3), [2, 2], [2, 1]),
        (tf.fixed_size_partitioner(3, axis=1), [2, 9], [1, 3]),
        # 64 bytes hold 16 floats, so 4 rows of 4; 10 rows need 3 parts.
        (tf.variable_axis_size_partitioner(64), [10, 4], [3, 1]),
        (tf.variable_axis_size_partitioner(1), [10, 4], [10, 1]),
        (tf.variable_axis_size_partitioner(64, max_shards=2), [10, 4], [2, 1]),
        # 160 bytes in parts of at least 50 are 4 parts at most.
        (tf.min_max_variable_partitioner(8, min_slice_size=50), [10, 4], [4, 1]),
        (tf.min_max_variable_partitioner(2, min_slice_size=50), [10, 4], [2, 1]),
        (tf.min_max_variable_partitioner(8), [10, 4], [1, 1]),
    ],
)
def test_partitioners(partitioner, shape, parts):
    assert partitioner(shape=tf.TensorShape(shape), dtype=tf.float32) == parts


def test_create_partitioned_variables():
    parts = tf.create_partitioned_variables([4, 2], [2, 1], tf.ones_initializer(), name="p")
    assert [p.op.name for p in parts] == ["p/part_0", "p/part_1"]
    with pytest.raises(ValueError, match="equal length"):
        tf.create_partitioned_variables([4, 2], [2], tf.ones_initializer())


def test_partition_info():
    info = PartitionInfo([10, 4], [5, 0])
    assert info.single_slice_dim([5, 4]) == 0 and info.single_offset([5, 4]) == 5
    assert PartitionInfo([10, 4], [0, 0]).single_slice_dim([10, 4]) is None
    with pytest.raises(ValueError, match="exceeds"):
        info.single_slice_dim([6, 4])
    with pytest.raises(ValueError, match="both"):
        PartitionInfo([10, 4], [0, 0]).single_slice_dim([5, 2])
    with pytest.raises(ValueError, match="outside"):
        PartitionInfo([10, 4], [10, 0])
    with pytest.raises(TypeError, match="list or tuple"):
        PartitionInfo(10, [0])


def test_a_partitioned_variable_needs_parts_that_know_their_place():
    with pytest.raises(ValueError, match="save_slice_info"):
        PartitionedVariable("v", [1], tf.float32, [tf.Variable([1.0])], [1])
    with pytest.raises(ValueError, match="empty"):
        PartitionedVariable("v", [1], tf.float32, [], [1])
