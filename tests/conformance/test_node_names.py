"""The same line of a program gives the same nodes, by name, type and inputs, as in TensorFlow.

Programs find tensors by name, and checkpoints find variables by name, so names are part of
the interface.
"""

import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as reference

import runnel

OPERATORS = (
    *("x + y", "x - y", "x * y", "x / y", "x // y", "x % y", "x**y", "-x", "abs(x)"),
    *("x > y", "x >= y", "x < y", "x <= y", "x[0]", "x[:, 1:2]", "x[..., None]"),
    *("2.0 * x", "x + 1.0", "1.0 - x", "x / 2.0"),
)
ARITHMETIC = (
    *("tf.add(x, y)", "tf.subtract(x, y)", "tf.multiply(x, y)", "tf.divide(x, y)"),
    *("tf.div(x, y)", "tf.truediv(x, y)", "tf.floordiv(x, y)", "tf.pow(x, 2.0)"),
    *("tf.maximum(x, 0.0)", "tf.minimum(x, y)", "tf.squared_difference(x, y)"),
    *("tf.equal(x, y)", "tf.not_equal(x, y)", "tf.greater(x, y)", "tf.add_n([x, y])"),
    *("tf.logical_and(x > 0, y > 0)", "tf.logical_not(x > 0)", "tf.cast(x, tf.int32)"),
    *("tf.to_int32(x)", "tf.clip_by_value(x, 0.0, 1.0)"),
)
FUNCTIONS = tuple(
    f"tf.{name}(x)"
    for name in (
        *("exp", "log", "sqrt", "rsqrt", "square", "tanh", "sigmoid", "sin", "floor", "ceil"),
        *("round", "sign", "abs", "negative", "reciprocal", "log1p", "erf", "lgamma"),
        *("identity", "stop_gradient", "transpose", "shape", "size", "rank"),
        *("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "nn.relu", "nn.elu"),
        *("nn.softmax", "nn.log_softmax", "nn.leaky_relu", "nn.l2_loss", "where", "unstack"),
    )
)
ARRAYS = (
    *("tf.reshape(x, [3, 2])", "tf.transpose(x, [1, 0])", "tf.expand_dims(x, 0)"),
    *("tf.squeeze(tf.expand_dims(x, 0))", "tf.concat([x, y], 0)", "tf.stack([x, y])"),
    *("tf.split(x, 3, axis=1)", "tf.split(x, [1, 2], axis=1)", "tf.tile(x, [1, 2])"),
    *("tf.pad(x, [[1, 1], [0, 0]])", "tf.gather(x, [0, 1])", "tf.gather(x, [0, 1], axis=1)"),
    *("tf.gather_nd(x, [[0, 1]])", "tf.one_hot([0, 1], 3)", "tf.where(x > 0, x, y)"),
    *("tf.slice(x, [0, 0], [1, 2])", "tf.zeros([2, 2])", "tf.ones([2, 2])", "tf.range(5)"),
    *("tf.fill([2, 2], 1.0)", "tf.reverse(x, [0])", "tf.reduce_sum(x, 1)", "tf.cumsum(x, 1)"),
    *("tf.reduce_mean(x, axis=0, keepdims=True)", "tf.argmax(x, 1)"),
    *("tf.reduce_all(x > 0)", "tf.reduce_any(x > 0)", "tf.matmul(x, y, transpose_b=True)"),
    *("tf.einsum('ij,kj->ik', x, y)", "tf.nn.top_k(x, 2)", "tf.nn.moments(x, [0])"),
    *("tf.nn.l2_normalize(x, 1)", "tf.random_normal([2, 2], seed=1)"),
    *("tf.random_uniform([2, 2], seed=1)", "tf.truncated_normal([2, 2], seed=1)"),
    *("tf.random_shuffle(x, seed=1)",),
)
STATE = (
    *("tf.group(x, y)", "tf.tuple([x, y])", "tf.no_op()", "tf.check_numerics(x, 'message')"),
    *("tf.Variable([1.0, 2.0], name='v')", "tf.Variable(1.0).assign_add(1.0)"),
    *("tf.get_variable('w', [2], initializer=tf.zeros_initializer())",),
    *("tf.train.get_or_create_global_step()", "tf.global_variables_initializer()"),
)


@pytest.fixture(autouse=True)
def _reference_variables():
    before = reference.resource_variables_enabled()
    reference.disable_resource_variables()
    yield
    if before:
        reference.enable_resource_variables()


def nodes(tf, line):
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 3], name="x")
        y = tf.placeholder(tf.float32, [2, 3], name="y")
        eval(line, {"tf": tf, "x": x, "y": y})
        return {n.name: (n.op, sorted(n.input)) for n in graph.as_graph_def().node}


@pytest.mark.parametrize("line", [*OPERATORS, *ARITHMETIC, *FUNCTIONS, *ARRAYS, *STATE])
def test_nodes(line):
    assert nodes(runnel, line) == nodes(reference, line)


OPTIMIZERS = {
    "Adam": (),
    "Momentum": (0.1, 0.9),
    "RMSProp": (0.1,),
    "Adagrad": (0.1,),
    "Adadelta": (),
    "Ftrl": (0.1,),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_variables_of_optimizers(optimizer):
    found = []
    for tf in (runnel, reference):
        with tf.Graph().as_default():
            v, w = tf.Variable([1.0, 2.0], name="v"), tf.get_variable("w", [2])
            loss = tf.reduce_sum(v * w)
            for _ in range(2):  # a second optimizer's variables get names of their own
                getattr(tf.train, f"{optimizer}Optimizer")(*OPTIMIZERS[optimizer]).minimize(loss)
            found.append([variable.name for variable in tf.global_variables()])
    assert found[0] == found[1]
