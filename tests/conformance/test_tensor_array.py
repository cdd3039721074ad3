"""tf.TensorArray against TensorFlow: values, static shapes, and the kinds of errors."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as reference

import runnel

reference.disable_v2_behavior()
reference.disable_control_flow_v2()


def after(tf, first, then):
    """What ``then`` makes, run after ``first``."""
    with tf.control_dependencies([first]):
        return then()


def one(tf, **options):
    return tf.TensorArray(tf.int32, 1, **options).write(0, 1)


def two(tf, size=2, dtype=None, **options):
    return tf.TensorArray(dtype or tf.int32, size, **options)


def unknown(tf, value):
    """``value`` as a tensor of unknown static shape."""
    return tf.placeholder_with_default(value, None)


def floats(tf, **options):
    return tf.TensorArray(tf.float32, 2, **options).write(0, 1.0).write(1, 2.0)


PROGRAMS = {
    "write too high": lambda tf: two(tf).write(2, 1).flow,
    "write too low": lambda tf: two(tf).write(-1, 1).flow,
    "read too high": lambda tf: two(tf).write(0, 1).read(7),
    "read too low": lambda tf: two(tf).write(0, 1).read(-1),
    "read what was not written": lambda tf: two(tf).read(0),
    "read zeros of the given shape": lambda tf: two(tf, element_shape=[2]).read(0),
    "read zeros of the shape of another": lambda tf: two(tf).write(0, [1, 2]).read(1),
    "write twice": lambda tf: two(tf).write(0, 1).write(0, 1).flow,
    "write after reading": lambda tf: (lambda a: after(tf, a.read(0), lambda: a.write(0, 2).flow))(
        one(tf)
    ),
    "read twice": lambda tf: (lambda a: after(tf, a.read(0), lambda: a.read(0)))(one(tf)),
    "read twice, kept": lambda tf: (lambda a: after(tf, a.read(0), lambda: a.read(0)))(
        one(tf, clear_after_read=False)
    ),
    "read after stacking": lambda tf: (lambda a: after(tf, a.stack(), lambda: a.read(0)))(one(tf)),
    "shapes that differ when run": lambda tf: (
        two(tf).write(0, unknown(tf, [1, 2])).write(1, unknown(tf, [1, 2, 3])).flow
    ),
    "shapes that differ": lambda tf: two(tf).write(0, [1]).write(1, [1, 2]).flow,
    "another than the given shape": lambda tf: two(tf, element_shape=[2]).write(0, [1]).flow,
    "another than the given shape, when run": lambda tf: (
        two(tf, element_shape=[2]).write(0, unknown(tf, [1, 2, 3])).flow
    ),
    "stack different shapes": lambda tf: (
        two(tf, infer_shape=False).write(0, [1, 2]).write(1, [1, 2, 3]).stack()
    ),
    "concat different lengths": lambda tf: (
        two(tf, infer_shape=False).write(0, [1, 2]).write(1, [1, 2, 3]).concat()
    ),
    "concat different rows": lambda tf: (
        two(tf, infer_shape=False).write(0, [[1, 2]]).write(1, [[1, 2, 3]]).concat()
    ),
    "concat equal lengths": lambda tf: two(tf).write(0, [1, 2]).write(1, [3, 4]).concat(),
    "split of another length": lambda tf: two(tf, infer_shape=False).split([1, 2, 3], [1, 1]).flow,
    "split into too few": lambda tf: two(tf, 3, infer_shape=False).split([1, 2, 3], [1, 2]).flow,
    "split into more": lambda tf: (
        two(tf, 1, infer_shape=False, dynamic_size=True).split([1, 2, 3], [1, 2]).size()
    ),
    "split equally": lambda tf: two(tf).split([1, 2, 3, 4], [2, 2]).read(1),
    "unstack too many": lambda tf: two(tf).unstack([1, 2, 3]).flow,
    "unstack too few": lambda tf: two(tf, 4).unstack([1, 2, 3]).stack(),
    "scatter": lambda tf: two(tf, 3).scatter([2, 0], [[1], [2]]).stack(),
    "scatter of another length": lambda tf: two(tf, 3).scatter([0, 1], [1, 2, 3]).flow,
    "scatter twice": lambda tf: two(tf, 3).scatter([0, 0], [1, 2]).flow,
    "gather": lambda tf: two(tf, 3).unstack([[1], [2], [3]]).gather([2, 0]),
    "gather too high": lambda tf: two(tf, 3).unstack([1, 2, 3]).gather([0, 5]),
    "gather nothing": lambda tf: two(tf, 3).unstack([1, 2, 3]).gather(np.zeros([0], np.int32)),
    "stack nothing": lambda tf: two(tf, 0).stack(),
    "stack nothing of a shape": lambda tf: two(tf, 0, element_shape=[2]).stack(),
    "concat nothing": lambda tf: two(tf, 0).concat(),
    "concat nothing of a shape": lambda tf: two(tf, 0, element_shape=[None, 2]).concat(),
    "a negative size": lambda tf: two(tf, -1).flow,
    "read from a closed one": lambda tf: (lambda a: after(tf, a.close(), lambda: a.read(0)))(
        one(tf)
    ),
    "the size of a closed one": lambda tf: (lambda a: after(tf, a.close(), lambda: a.size()))(
        one(tf, dynamic_size=True)
    ),
    "no size": lambda tf: tf.TensorArray(tf.int32).flow,
    "a handle and a size": lambda tf: tf.TensorArray(tf.int32, 1, handle=two(tf).handle).flow,
    "not a handle": lambda tf: tf.TensorArray(tf.int32, handle=3).flow,
    "growing": lambda tf: two(tf, 0, tf.float32, dynamic_size=True).write(4, 1.0).size(),
    "growing past a gap": lambda tf: (
        two(tf, 0, tf.float32, dynamic_size=True, element_shape=[]).write(2, 1.0).stack()
    ),
    "a size that is fed": lambda tf: two(tf, unknown(tf, 2)).unstack([[1], [2]]).stack(),
    "gradients add up": lambda tf: floats(tf).grad("g").write(0, 3.0).write(0, 4.0).read(0),
    "gradients not written": lambda tf: floats(tf).grad("g").stack(),
    "gradients of a dynamic one": lambda tf: floats(tf, dynamic_size=True).grad("g").size(),
    "gradients of another shape": lambda tf: floats(tf).grad("g").write(0, [1.0, 2.0]).flow,
    "identity": lambda tf: one(tf).identity().read(0),
    "inside a loop": lambda tf: tf.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, [i, i])), [0, two(tf, 3)]
    )[1].stack(),
}


def outcome(tf: Any, program: str) -> tuple[Any, ...]:
    """The value, its type and static shape; or the kind of the error."""
    with tf.Graph().as_default():
        try:
            tensor = PROGRAMS[program](tf)
            with tf.Session() as sess:
                value = sess.run(tensor)
        except (ValueError, TypeError, tf.errors.OpError) as error:
            return (type(error).__name__,)
        return np.asarray(value).tolist(), value.dtype.name, tensor.shape


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_outcome(program):
    mine, theirs = outcome(runnel, program), outcome(reference, program)
    assert mine[:2] == theirs[:2]
    if len(mine) > 1:
        assert knows_at_least(mine[2], theirs[2])


def knows_at_least(ours: Any, theirs: Any) -> bool:
    """True when our static shape says everything that TensorFlow's says."""
    if theirs.ndims is None:
        return True
    pairs = zip(ours.as_list(), theirs.as_list(), strict=True)
    return all(b is None or a == b for a, b in pairs)


def test_the_graph_is_tensorflows():
    def program(tf):
        x = tf.placeholder(tf.float32, [3, 2], name="x")
        a = tf.TensorArray(tf.float32, size=3, name="a", clear_after_read=False)
        a = a.write(0, x[0]).write(1, x[1]).write(2, x[2])
        a.read(1), a.stack(), a.concat(), a.close()
        b = tf.TensorArray(tf.float32, size=0, dynamic_size=True, name="b").unstack(x)
        b.size(), b.stack()
        c = tf.TensorArray(tf.float32, 2, name="c", colocate_with_first_write_call=False)
        c.split(x[:2], [1, 1])

    found = []
    for tf in (runnel, reference):
        with tf.Graph().as_default() as graph:
            program(tf)
            found.append(
                {
                    op.name: (
                        op.type,
                        [tensor.name for tensor in op.inputs],
                        [group.decode() for group in op.colocation_groups()],
                    )
                    for op in graph.get_operations()
                }
            )
    ours, theirs = found
    assert ours == theirs
