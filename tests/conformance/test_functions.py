"""GraphDefs with functions: what TensorFlow writes, runnel runs, with the same values."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf

tensorflow = pytest.importorskip("tensorflow")
reference = tensorflow.compat.v1
reference.disable_v2_behavior()

X = np.array([[1.0, -2.0], [0.5, 0.25]], np.float32)
TIERS = pytest.mark.parametrize("level", [tf.OptimizerOptions.OFF, tf.OptimizerOptions.ON_1])


@pytest.fixture
def second_control_flow():
    """Conditionals and loops outside of functions are functional, too."""
    reference.enable_control_flow_v2()
    reference.enable_resource_variables()
    yield
    reference.disable_control_flow_v2()
    reference.disable_resource_variables()


def session(level):
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    return tf.Session(config=config)


# Functions of one tensor --------------------------------------------------------------------------


@tensorflow.function(autograph=False)
def simple(x):
    return tensorflow.tanh(x) * 2.0 + 1.0


@tensorflow.function(autograph=False)
def nested(x):
    def several(a, b):
        return {"sum": simple(a) + simple(b) * 3.0, "same": a}

    results = tensorflow.function(several, autograph=False)(x, x * 2.0)
    return results["sum"] * results["same"]


@tensorflow.function(autograph=False)
def branch(x):
    return tensorflow.cond(tensorflow.reduce_sum(x) > 0.0, lambda: simple(x), lambda: x * 3.0)


@tensorflow.function(autograph=False)
def loop(x):
    return tensorflow.while_loop(
        lambda i, s: i < 4, lambda i, s: (i + 1, tensorflow.tanh(s) * x + 1.0), [0, x]
    )[1]


@tensorflow.function(autograph=False)
def loops_in_loops(x):
    def body(i, s):
        _, t = tensorflow.while_loop(
            lambda j, t: j < i, lambda j, t: (j + 1, t * x + branch(t) * 0.5), [0, s]
        )
        return i + 1, tensorflow.cond(i > 1, lambda: loop(t), lambda: t * 0.5)

    return tensorflow.while_loop(lambda i, s: i < 3, body, [0, x])[1]


@tensorflow.function(autograph=False)
def numbered(x):
    chosen = tensorflow.cast(x[0, 0], tensorflow.int32)
    return tensorflow.switch_case(
        chosen, [lambda: x + 1.0, lambda: simple(x), lambda: x * x, lambda: loop(x)]
    )


@tensorflow.function(autograph=False)
def arrays(x):
    array = tensorflow.TensorArray(tensorflow.float32, size=2).unstack(x)
    rows = tensorflow.stack([array.read(0) * array.read(1), array.read(1)])
    return rows + tensorflow.map_fn(lambda row: row * row, x)


@tensorflow.function(autograph=False)
def growing(x):
    def body(i, row, array):
        row = tensorflow.tanh(row * x[1])
        return i + 1, row, array.write(i, row)

    array = tensorflow.TensorArray(tensorflow.float32, 0, dynamic_size=True, element_shape=[2])
    return tensorflow.while_loop(lambda i, *_: i < 3, body, [0, x[0], array])[2].stack()


@tensorflow.function(autograph=False)
def scanned(x):
    return tensorflow.scan(lambda state, row: tensorflow.tanh(state * row + 1.0), x)


def called_by_name(x):
    from tensorflow.python.framework import function

    @function.Defun(reference.float32, reference.float32, func_name="product_and_sum")
    def product_and_sum(a, b):
        return a * b, a + b

    product, total = product_and_sum(x, x + 1.0)
    return product * total


def calls_in_a_loop_of_primitives(x):
    def body(i, s):
        return i + 1, simple(s) * loop(s) * 0.1

    return reference.while_loop(lambda i, s: i < 3, body, [0, x])[1]


def calls_in_a_branch_of_primitives(x):
    total = reference.reduce_sum(x)
    return reference.cond(total > 0.0, lambda: branch(x), lambda: loop(x))


FUNCTIONS = [
    simple,
    nested,
    branch,
    loop,
    loops_in_loops,
    numbered,
    arrays,
    growing,
    scanned,
    called_by_name,
    calls_in_a_loop_of_primitives,
    calls_in_a_branch_of_primitives,
]
BY_NAME = [getattr(f, "__name__", None) or f.python_function.__name__ for f in FUNCTIONS]


def written(function, with_gradient=False):
    """A GraphDef of ``function``, and TensorFlow's values of it and of its gradient."""
    with reference.Graph().as_default() as graph, reference.Session() as sess:
        x = reference.placeholder(reference.float32, [2, 2], name="x")
        y = reference.identity(function(x), name="y")
        alone = graph.as_graph_def()
        dx = reference.identity(reference.gradients(y, x)[0], name="dx")
        values = [sess.run([y, dx], {x: fed}) for fed in (X, -X, X + 1.0)]
        return graph.as_graph_def() if with_gradient else alone, values


def assert_same(given, expected):
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@TIERS
@pytest.mark.parametrize("function", FUNCTIONS, ids=BY_NAME)
def test_values_and_gradients_are_tensorflows(function, level):
    graph_def, values = written(function)
    assert graph_def.library.function or function is called_by_name
    for scope in ("", "model"):
        with tf.Graph().as_default(), session(level) as sess:
            x, y = tf.import_graph_def(graph_def, return_elements=["x:0", "y:0"], name=scope)
            dx = tf.gradients(y, x)[0]
            for fed, expected in zip((X, -X, X + 1.0), values, strict=True):
                assert_same(sess.run([y, dx], {x: fed}), expected)


@TIERS
@pytest.mark.parametrize("function", FUNCTIONS, ids=BY_NAME)
def test_gradients_that_tensorflow_has_made_are_run(function, level, second_control_flow):
    graph_def, values = written(function, with_gradient=True)
    with tf.Graph().as_default(), session(level) as sess:
        x, y, dx = tf.import_graph_def(graph_def, return_elements=["x:0", "y:0", "dx:0"])
        for fed, expected in zip((X, -X, X + 1.0), values, strict=True):
            assert_same(sess.run([y, dx], {x: fed}), expected)


# Effects ------------------------------------------------------------------------------------------


def with_effects():
    v = reference.get_variable("v", initializer=1.0)

    @tensorflow.function(autograph=False)
    def change(x):
        v.assign_add(x)

        def body(i):
            v.assign(v * 2.0)
            return i + 1

        tensorflow.while_loop(lambda i: i < 2, body, [0])
        tensorflow.cond(x > 2.0, lambda: v.assign_add(100.0), lambda: v.assign_sub(1.0))
        return x

    @tensorflow.function(autograph=False)
    def around(x):
        change(x)
        return x * v

    first = around(reference.constant(3.0))
    with reference.control_dependencies([first]):
        second = change(reference.constant(2.0))
    with reference.control_dependencies([second]):
        reference.identity(v.read_value() + second, name="y")
    with reference.control_dependencies([change(reference.constant(1.0))]):
        reference.no_op(name="target")
    reference.identity(v.read_value(), name="value")


def steps(sess):
    """What a few steps give."""
    found = []
    for fetch in ("y:0", "y:0", "target", "value:0", "y:0", "value:0"):
        found.append(sess.run(fetch))
    return found


@TIERS
def test_effects_happen_once_and_in_order(level, second_control_flow):
    with reference.Graph().as_default() as graph, reference.Session() as sess:
        with_effects()
        sess.run("v/Assign")
        expected = steps(sess)
        graph_def = graph.as_graph_def()
    with tf.Graph().as_default(), session(level) as sess:
        tf.import_graph_def(graph_def, name="")
        sess.run("v/Assign")
        assert steps(sess) == expected


# Datasets -----------------------------------------------------------------------------------------

Dataset = reference.data.Dataset
experimental = tensorflow.data.experimental


def _collatz(x):
    return tensorflow.while_loop(lambda i, s: i < x, lambda i, s: (i + 1, s + i), [np.int64(0), x])[
        1
    ]


DATASETS = {
    "map": lambda: Dataset.range(5).map(lambda x: x * 2),
    "map in parallel": lambda: Dataset.range(5).map(lambda x: x + 1, 2).batch(2).prefetch(1),
    "filter": lambda: Dataset.range(9).filter(lambda x: x % 2 > 0),
    "flat_map": lambda: Dataset.range(4).flat_map(lambda x: Dataset.range(x).map(lambda y: x * y)),
    "interleave": lambda: Dataset.range(4).interleave(
        lambda x: Dataset.from_tensors(x).repeat(3), cycle_length=2
    ),
    "interleave in parallel": lambda: Dataset.range(4).interleave(
        lambda x: Dataset.from_tensors(x).repeat(3), cycle_length=2, num_parallel_calls=2
    ),
    "windows": lambda: Dataset.range(10).apply(
        experimental.group_by_window(lambda x: x % 2, lambda key, of: of.batch(3), 3)
    ),
    "scan": lambda: Dataset.range(6).apply(
        experimental.scan(np.int64(0), lambda s, x: (s + x, s * x))
    ),
    "while": lambda: Dataset.range(10).apply(experimental.take_while(lambda x: x < 4)),
    "branches": lambda: Dataset.range(6).map(
        lambda x: tensorflow.cond(x > 2, lambda: x * 10, lambda: x)
    ),
    "loops": lambda: Dataset.range(6).map(_collatz),
    "text": lambda: Dataset.from_tensor_slices({"a": [1, 2], "b": ["x", "y"]}).map(
        lambda row: {"c": row["a"] + 1, "s": tensorflow.strings.join([row["b"], "!"])}
    ),
}


def drained(sess, fetches, error):
    found = []
    with pytest.raises(error):
        for _ in range(50):
            found.append(sess.run(fetches))
    return found


def assert_same_elements(given, expected):
    assert len(given) == len(expected)
    for one, other in zip(given, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("build", DATASETS.values(), ids=DATASETS)
@pytest.mark.parametrize("scope", ["", "input"])
def test_datasets_call_their_functions(build, scope):
    with reference.Graph().as_default() as graph, reference.Session() as sess:
        following = reference.data.make_one_shot_iterator(build()).get_next()
        tensors = tensorflow.nest.flatten(following)
        names = [reference.identity(tensor).name for tensor in tensors]
        expected = drained(sess, names, reference.errors.OutOfRangeError)
        graph_def = graph.as_graph_def()
    with tf.Graph().as_default(), tf.Session() as sess:
        tensors = tf.import_graph_def(graph_def, return_elements=names, name=scope)
        assert_same_elements(drained(sess, tensors, tf.errors.OutOfRangeError), expected)


def test_functions_of_datasets_take_variables_tables_and_tensors_from_outside(second_control_flow):
    with reference.Graph().as_default() as graph, reference.Session() as sess:
        v = reference.get_variable("v", initializer=np.int64(7))
        factor = reference.placeholder(reference.int64, [], name="factor")
        pairs = tensorflow.lookup.KeyValueTensorInitializer(
            [0, 1], [5, 6], tensorflow.int64, tensorflow.int64
        )
        table = tensorflow.lookup.StaticHashTable(pairs, -1)
        dataset = Dataset.range(4).map(lambda x: x * factor + v + table.lookup(x))
        iterator = reference.data.make_initializable_iterator(dataset)
        reference.group(iterator.initializer, name="begin")
        output = reference.identity(iterator.get_next()).name
        first = ["v/Assign", *(op.name for op in reference.tables_initializer().control_inputs)]
        sess.run(first)
        sess.run("begin", {factor: 3})
        expected = drained(sess, [output], reference.errors.OutOfRangeError)
        graph_def = graph.as_graph_def()
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(graph_def, name="")
        sess.run(first)
        sess.run("begin", {"factor:0": 3})
        assert_same_elements(drained(sess, [output], tf.errors.OutOfRangeError), expected)
