"""Variable scopes: the same names, sharing and mistakes as under TensorFlow."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as tensorflow

import runnel
from tests.conformance.same_program import compare_graphs, compare_values


def nested(tf):
    with tf.variable_scope("a") as a:
        tf.get_variable("v", [2])
        tf.constant(1.0)
        with tf.variable_scope("b"):
            tf.get_variable("v", [2], initializer=tf.zeros_initializer())
            tf.Variable(1.0, name="plain")
    with tf.variable_scope("a"):
        tf.get_variable("w", [])
        tf.constant(1.0)
    with tf.variable_scope(a, reuse=True):
        tf.get_variable("v", [2])
        tf.constant(1.0)
    with tf.variable_scope("c/d"):
        tf.get_variable("e/f", [1])
        tf.identity(1.0)


def entered_again(tf):
    with tf.variable_scope("outer"), tf.variable_scope("inner") as inner:
        tf.get_variable("x", [1])
        tf.constant(0)
    with tf.variable_scope("elsewhere"):
        with tf.variable_scope(inner):
            tf.get_variable("y", [1])
            tf.constant(0)
            with tf.variable_scope("deeper"):
                tf.get_variable("z", [1])
                tf.constant(0)
        with tf.name_scope(inner.original_name_scope):
            tf.constant(0)
        with (
            tf.variable_scope(inner, auxiliary_name_scope=False),
            tf.name_scope(inner.original_name_scope),
        ):
            tf.constant(0)
    again = tf.variable_scope("twice", reuse=tf.AUTO_REUSE)
    for _ in range(2):
        with again:
            tf.get_variable("v", [1])
            tf.constant(0)


def default_names(tf):
    for _ in range(3):
        with tf.variable_scope(None, "dense"):
            tf.get_variable("w", [1])
            tf.constant(0)
    with tf.variable_scope("dense_3"):
        tf.get_variable("w", [1])
    with tf.variable_scope(None, default_name="dense"):
        tf.get_variable("w", [1])
    with tf.variable_scope("outer") as outer:
        with tf.variable_scope(None, "dense"):
            tf.get_variable("w", [1])
        with tf.variable_scope(None, "dense"):
            tf.get_variable("w", [1])
    with tf.variable_scope(outer), tf.variable_scope(None, "dense"):
        tf.get_variable("w2", [1])
        tf.constant(0)
    with tf.variable_scope("given", "dense"):
        tf.get_variable("w", [1])


def without_name_scope(tf):
    with tf.name_scope("names"):
        with tf.variable_scope("vars", auxiliary_name_scope=False):
            tf.get_variable("v", [1])
            tf.constant(0)
        with tf.variable_scope("vars2"):
            tf.get_variable("v", [1])
            tf.constant(0)
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        tf.get_variable("root", [1])
        tf.constant(0)
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        tf.get_variable("root", [1])
        tf.constant(0)


def reused(tf):
    def layer(x):
        with tf.variable_scope("layer", reuse=tf.AUTO_REUSE):
            w = tf.get_variable("w", [2, 3])
            b = tf.get_variable("b", [3], initializer=tf.zeros_initializer())
            return tf.matmul(x, w) + b

    x = tf.ones([1, 2])
    layer(x)
    layer(x)
    with tf.variable_scope("layer") as scope:
        scope.reuse_variables()
        tf.get_variable("w")
        with tf.variable_scope("below", reuse=tf.AUTO_REUSE):
            tf.get_variable("v", [1])


def defaults_of_scopes(tf):
    with tf.variable_scope(
        "s",
        initializer=tf.constant_initializer(3.0),
        dtype=tf.float64,
        caching_device="/cpu:0",
    ):
        tf.get_variable("a", [2])
        tf.get_variable("b", [2], dtype=tf.float32, initializer=tf.ones_initializer)
        with tf.variable_scope("t", initializer=tf.zeros_initializer(), use_resource=True):
            tf.get_variable("c", [2])
            tf.Variable(1.0)
            tf.get_variable("d", [2], use_resource=False)


def initializers_given(tf):
    tf.get_variable("of_tensor", initializer=tf.constant([1.0, 2.0]))
    tf.get_variable("of_value", initializer=[1, 2])
    tf.get_variable("of_typed_value", initializer=[1.0, 2.0], dtype=tf.float32)
    tf.get_variable("of_function", initializer=lambda: tf.zeros([3]))
    tf.get_variable(
        "of_shape_function", [2], initializer=lambda shape, dtype: tf.ones(shape, dtype)
    )
    tf.get_variable("integer", [2], tf.int32)
    tf.get_variable("flag", [2], tf.bool)
    tf.get_variable("text", [2], tf.string)
    tf.get_variable("double", [2], np.float64, trainable=False)
    tf.get_local_variable("local", [2], initializer=tf.zeros_initializer())
    tf.get_variable("mine", [2], collections=["mine"])


def custom_getters(tf):
    def suffixed(suffix):
        def getter(getter, name, *args, **kwargs):
            return getter(name + suffix, *args, **kwargs)

        return getter

    def doubled(getter, name, *args, **kwargs):
        return getter(name, *args, **kwargs) * 2.0

    with tf.variable_scope("s", custom_getter=suffixed("_1")):
        tf.get_variable("v", [1])
        with tf.variable_scope("t", custom_getter=suffixed("_2")) as inner:
            tf.get_variable("v", [1])
    with tf.variable_scope(inner, custom_getter=suffixed("_3")):
        tf.get_variable("w", [1])
    with tf.variable_scope("u", custom_getter=doubled):
        tf.get_variable("v", [1])
    tf.get_variable("alone", [1], custom_getter=doubled)


def creators(tf):
    def renamed(next_creator, **kwargs):
        kwargs["name"] = "made_" + (kwargs["name"] or "up")
        return next_creator(**kwargs)

    with tf.variable_creator_scope(renamed):
        tf.Variable(1.0)
        tf.get_variable("v", [1])
        with tf.variable_creator_scope(renamed):
            tf.Variable(1.0, name="twice")


def partitioned(tf):
    w = tf.get_variable(
        "w", [5, 2], initializer=tf.zeros_initializer(), partitioner=tf.fixed_size_partitioner(2)
    )
    tf.identity(w)
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(3, axis=1)):
        tf.get_variable("v", [2, 4])
        tf.get_variable("scalar", [])
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(3, axis=1), reuse=True):
        tf.convert_to_tensor(tf.get_variable("v", [2, 4]))
    single = tf.get_variable("one", [4], partitioner=tf.fixed_size_partitioner(1))
    tf.convert_to_tensor(single)
    tf.get_variable("of_tensor", initializer=tf.ones([4]), partitioner=tf.fixed_size_partitioner(2))
    tf.create_partitioned_variables([4, 2], [2, 1], tf.ones_initializer(), name="created")
    tf.create_partitioned_variables([4], [2], tf.ones_initializer())


GRAPHS = [
    nested,
    entered_again,
    default_names,
    without_name_scope,
    reused,
    defaults_of_scopes,
    initializers_given,
    custom_getters,
    creators,
    partitioned,
]


@pytest.mark.parametrize("program", GRAPHS, ids=lambda f: f.__name__)
def test_same_graph(program):
    compare_graphs(program)


def partitioned_values(tf):
    w = tf.get_variable(
        "w",
        initializer=tf.constant(np.arange(10, dtype=np.float32).reshape(5, 2)),
        partitioner=tf.fixed_size_partitioner(2),
    )
    eye = tf.get_variable(
        "eye",
        [3, 4],
        initializer=tf.initializers.identity(2.0),
        partitioner=tf.fixed_size_partitioner(2),
    )
    whole = tf.constant(-np.arange(10, dtype=np.float32).reshape(5, 2))
    return [
        [tf.convert_to_tensor(w), tf.convert_to_tensor(eye)],
        list(w),
        w.assign(whole),
        w.assign_add([tf.ones([3, 2]), tf.ones([2, 2])]),
        w.assign_sub(whole),
        tf.convert_to_tensor(w),
        tf.gather(tf.convert_to_tensor(w), [4, 0]),
    ]


def test_same_values_in_parts():
    compare_values(partitioned_values)


def test_the_regularization_loss_has_the_same_name_and_value():
    def program(tf):
        with tf.variable_scope("s", regularizer=lambda v: tf.reduce_sum(v * v)):
            tf.get_variable("v", [3], initializer=tf.constant_initializer(2.0))
            tf.get_variable("w", [3], regularizer=tf.no_regularizer)
        (loss,) = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        names.append(loss.name.rpartition("/")[0])
        return [loss + 0.0]

    names = []
    compare_values(program)
    assert names == ["s/v/Regularizer"] * 3


SHAPES = [[5], [100, 3], [7, 1000], [2, 3, 4000], [1, 1]]
PARTITIONERS = {
    "fixed": lambda tf: tf.fixed_size_partitioner(3),
    "fixed second": lambda tf: tf.fixed_size_partitioner(2, axis=-1),
    "bytes": lambda tf: tf.variable_axis_size_partitioner(4000),
    "bytes second": lambda tf: tf.variable_axis_size_partitioner(64, axis=-1),
    "bytes limited": lambda tf: tf.variable_axis_size_partitioner(64, max_shards=5),
    "min max": lambda tf: tf.min_max_variable_partitioner(4, min_slice_size=100),
    "min max large": lambda tf: tf.min_max_variable_partitioner(4),
}


@pytest.mark.parametrize("name", PARTITIONERS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "string"])
def test_partitioners(name, dtype):
    for shape in SHAPES:
        ours = PARTITIONERS[name](runnel)(
            shape=runnel.TensorShape(shape), dtype=runnel.as_dtype(dtype)
        )
        theirs = PARTITIONERS[name](tensorflow)(
            shape=tensorflow.TensorShape(shape), dtype=tensorflow.as_dtype(dtype)
        )
        assert list(ours) == list(theirs), shape


def _share(tf, **first):
    with tf.variable_scope("s"):
        tf.get_variable("v", [2], **first)
    return tf.variable_scope("s", reuse=True)


def exists_already(tf):
    tf.get_variable("v", [1])
    tf.get_variable("v", [1])


def does_not_exist(tf):
    with tf.variable_scope("s", reuse=True):
        tf.get_variable("v", [1])


def made_by_variable(tf):
    tf.Variable(1.0, name="v")
    with tf.variable_scope("", reuse=True):
        tf.get_variable("v", [1])


def other_shape(tf):
    with _share(tf):
        tf.get_variable("v", [3])


def other_dtype(tf):
    with _share(tf):
        tf.get_variable("v", [2], dtype=tf.int32)


def no_shape(tf):
    tf.get_variable("v")


def shape_and_value(tf):
    tf.get_variable("v", [2], initializer=tf.constant([1.0, 2.0]))


def dtype_of_value(tf):
    tf.get_variable("v", dtype=tf.int32, initializer=tf.constant([1.0, 2.0]))


def unknown_shape(tf):
    tf.get_variable("v", [None, 2])


def no_name(tf):
    tf.variable_scope(None)


def default_name_with_reuse(tf):
    with tf.variable_scope(None, "d", reuse=True):
        pass


def bad_reuse(tf):
    tf.variable_scope("s", reuse="yes")


def bad_scope(tf):
    with tf.variable_scope(3):
        pass


def bad_getter(tf):
    tf.get_variable("v", [1], custom_getter=3)


def bad_partitioner(tf):
    tf.get_variable("v", [1], partitioner=3)


def zero_parts(tf):
    tf.get_variable("v", [1], partitioner=lambda **_: [0])


def two_axes(tf):
    tf.get_variable("v", [4, 4], partitioner=lambda **_: [2, 2])


def too_few_axes(tf):
    tf.get_variable("v", [4, 4], partitioner=lambda **_: [2])


def partitioned_before(tf):
    tf.get_variable("v", [4], partitioner=tf.fixed_size_partitioner(2))
    tf.get_variable("v", [4])


def whole_before(tf):
    tf.get_variable("v", [4])
    with tf.variable_scope("", reuse=True):
        tf.get_variable("v", [4], partitioner=tf.fixed_size_partitioner(2))


def other_partitions(tf):
    tf.get_variable("v", [4], partitioner=tf.fixed_size_partitioner(2))
    with tf.variable_scope("", reuse=True):
        tf.get_variable("v", [4], partitioner=tf.fixed_size_partitioner(4))


def complex_without_initializer(tf):
    tf.get_variable("v", [4], dtype=tf.complex64)


MISTAKES = [
    exists_already,
    does_not_exist,
    made_by_variable,
    other_shape,
    other_dtype,
    no_shape,
    shape_and_value,
    dtype_of_value,
    unknown_shape,
    no_name,
    default_name_with_reuse,
    bad_reuse,
    bad_scope,
    bad_getter,
    bad_partitioner,
    zero_parts,
    two_axes,
    too_few_axes,
    partitioned_before,
    whole_before,
    other_partitions,
    complex_without_initializer,
]


@pytest.mark.parametrize("program", MISTAKES, ids=lambda f: f.__name__)
def test_mistakes_raise_the_same_kind_of_error(program):
    with tensorflow.Graph().as_default(), pytest.raises((ValueError, TypeError)) as theirs:
        program(tensorflow)
    with pytest.raises(theirs.type):
        program(runnel)
