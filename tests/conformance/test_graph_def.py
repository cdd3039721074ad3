"""Graphs are exchanged with TensorFlow: it runs what runnel writes, and runnel what it writes.

For every registered op type there is an example (``op_examples``); a missing one is a failure.
"""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as reference

import runnel
from tests.conformance import exchange
from tests.conformance.op_examples import (
    arrays,
    control_flow,
    datasets,
    effects,
    elementwise,
    files,
    images,
    neural,
    parsing,
    queues,
    ragged,
    random,
    readers,
    recurrent,
    sparse,
    spectral,
    state,
    strings,
    summaries,
    tables,
    tensor_lists,
    training,
)
from tests.summary_meaning import meaning

# Op types without an example, and why.
NOT_EXCHANGED = {
    "Abort": "it ends TensorFlow's process",
    "_Recv": "partitioning makes it; it has no place in a graph that users describe",
    "_RecvMany": "partitioning makes it; it has no place in a graph that users describe",
    "_StackPopJoined": "a pass makes it; it has no place in a graph that users describe",
    "_Send": "partitioning makes it; it has no place in a graph that users describe",
    "_SendMany": "partitioning makes it; it has no place in a graph that users describe",
    "AccumulatorNumDropped": "TensorFlow's accumulators do not count stale gradients",
    **dict.fromkeys(
        [
            *("BipartiteMatch", "GatherTree", "Resampler", "ResamplerGrad"),
            *("SparseFeatureCross", "SparseFeatureCrossV2"),
        ],
        "TensorFlow 1.15 has it, in its contrib; 2.21 does not",
    ),
    "ResourceAccumulatorNumDropped": "TensorFlow's accumulators do not count stale gradients",
    "ComputationBarrier": "TensorFlow's optimizer keeps what tf.recompute_grad computes again",
    "CollectiveBcastRecv": "it waits for its fellows; test_collectives.py compares them",
    "CollectiveBcastSend": "it waits for its fellows; test_collectives.py compares them",
    "CollectiveGather": "it waits for its fellows; test_collectives.py compares them",
    "CollectiveReduce": "it waits for its fellows; test_collectives.py compares them",
    "Timestamp": "what it gives is when it is asked",
    "PyFunc": "its function lives in one process; it has no meaning in a file",
    "PyFuncStateless": "its function lives in one process; it has no meaning in a file",
    "EagerPyFunc": "its function lives in one process; it has no meaning in a file",
    "MaxPoolGradGradWithArgmax": "TensorFlow has a kernel for it on a GPU only",
    "TopK": "TensorFlow removed it from version 7 of the format: it stands in old files only",
    "BatchNormWithGlobalNormalization": "likewise, from version 9",
    "BatchNormWithGlobalNormalizationGrad": "likewise, from version 9",
    "AudioSummary": "likewise, from version 15",
    "PythonGeneratorDataset": "its generator lives in one process; it has no meaning in a file",
    "CopyToDeviceDataset": "TensorFlow has functions that call another device in its place",
    "SerializeIterator": "where an iterator stands is written in words of our own",
    "DeserializeIterator": "where an iterator stands is written in words of our own",
    "SerializeQueue": "checkpoints of TensorFlow's have no queues",
    "DeserializeQueue": "checkpoints of TensorFlow's have no queues",
    "SerializeReader": "checkpoints of TensorFlow's have no readers",
    "DeserializeReader": "checkpoints of TensorFlow's have no readers",
    "ShuffleAndRepeatDataset": "its order is that of TensorFlow 1.15; 2.21 has another",
    "StatsAggregatorSummary": "TensorFlow 2.21 reads ahead, and counts what it has read",
    "WindowDataset": "its elements are datasets: only a function can take them",
    **dict.fromkeys(
        (
            *("MapDataset", "ParallelMapDataset", "FlatMapDataset", "InterleaveDataset"),
            *("FilterDataset", "ReduceDataset", "OneShotIterator", "ScanDataset"),
            *("TakeWhileDataset", "GroupByWindowDataset", "GroupByReducerDataset"),
            *("ParallelInterleaveDataset", "ParallelInterleaveDatasetV2"),
            *("ParallelInterleaveDatasetV3", "ParallelInterleaveDatasetV4"),
            *("ParallelMapDatasetV2", "MapAndBatchDataset"),
        ),
        "its function is part of our graph; TensorFlow has a library of functions beside it",
    ),
}
EXAMPLES: dict[str, Any] = {}
FAMILIES = (elementwise, arrays, neural, state, effects, random, control_flow, queues)
for family in (
    *FAMILIES,
    datasets,
    files,
    images,
    parsing,
    ragged,
    readers,
    recurrent,
    sparse,
    spectral,
    strings,
    summaries,
    tables,
    tensor_lists,
    training,
):
    EXAMPLES |= family.EXAMPLES

REGISTERED = sorted(runnel.registered_ops())
CASES: dict[str, Any] = {}
for op_type in REGISTERED:
    examples = EXAMPLES.get(op_type, [])
    for i, example in enumerate(examples if isinstance(examples, list) else [examples]):
        CASES[f"{op_type}-{i}" if i else op_type] = (op_type, example)


def test_every_registered_op_has_an_example():
    missing = [op for op in REGISTERED if op not in EXAMPLES and op not in NOT_EXCHANGED]
    assert not missing, "add examples to tests/conformance/op_examples"


def assert_same_outcome(op_type, ours, theirs):
    exchange.assert_same_outcome(
        ours,
        theirs,
        values=op_type not in random.EXAMPLES,
        meaning=meaning if op_type in summaries.EXAMPLES else None,
    )


@pytest.mark.parametrize("case", CASES)
def test_tensorflow_runs_what_runnel_writes(case):
    op_type, example_for = CASES[case]
    serialized, steps, ours = exchange.build_in_runnel(example_for(op_type))
    theirs = exchange.run_in_reference(serialized, steps)
    assert_same_outcome(op_type, ours, theirs)


@pytest.mark.parametrize("case", CASES)
def test_runnel_runs_what_tensorflow_writes(case):
    op_type, example_for = CASES[case]
    serialized, steps, theirs = exchange.build_in_reference(example_for(op_type))
    ours = exchange.run_in_runnel(serialized, steps)
    assert_same_outcome(op_type, ours, theirs)


# Whole graphs ------------------------------------------------------------------------------------


def to_reference(graph):
    return reference.GraphDef.FromString(graph.as_graph_def().SerializeToString())


def to_runnel(graph):
    return runnel.GraphDef.FromString(graph.as_graph_def().SerializeToString())


BATCH = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
LABELS = np.eye(3, dtype=np.float32)[np.arange(8) % 3]


def classifier(tf, optimizer=None):
    """A graph with its whole training step; every random number comes from NumPy."""
    rng = np.random.default_rng(1)
    x = tf.placeholder(tf.float32, [None, 6], name="x")
    labels = tf.placeholder(tf.float32, [None, 3], name="labels")
    weights = [
        tf.Variable(rng.normal(size=shape).astype(np.float32) / 3, name=name)
        for name, shape in (("w1", (6, 5)), ("w2", (5, 3)))
    ]
    bias = tf.Variable(tf.zeros([3]), name="b")
    hidden = tf.nn.relu(tf.matmul(x, weights[0]))
    logits = tf.add(tf.matmul(hidden, weights[1]), bias, name="logits")
    loss = tf.reduce_mean(
        tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits), name="loss"
    )
    if optimizer is None:
        variables = [*weights, bias]
        grads = tf.gradients(loss, variables)
        with tf.control_dependencies(grads):
            updates = [tf.assign_sub(v, 0.5 * g) for v, g in zip(variables, grads)]
        step = tf.group(*updates, name="step")
    else:
        # TensorFlow orders an update after a read only where an edge says so.
        step = optimizer.minimize(loss, name="step", gate_gradients=optimizer.GATE_GRAPH)
    init = tf.global_variables_initializer()
    return [init.name, step.name, loss.name]


def train(sess, graph, names, steps=5):
    init, step, loss = map(graph.as_graph_element, names)
    feeds = {"x:0": BATCH, "labels:0": LABELS}
    sess.run(init)
    losses = []
    for _ in range(steps):
        sess.run(step, feeds)
        losses.append(sess.run(loss, feeds))
    return losses


@pytest.mark.parametrize("optimizer", [None, "Momentum", "Adam"])
def test_tensorflow_trains_a_model_that_runnel_wrote(optimizer):
    made = {
        None: lambda: None,
        "Momentum": lambda: runnel.train.MomentumOptimizer(0.3, 0.9),
        "Adam": lambda: runnel.train.AdamOptimizer(0.05),
    }[optimizer]()
    names = classifier(runnel, made)
    graph = runnel.get_default_graph()
    with runnel.Session() as sess:
        ours = train(sess, graph, names)
    with reference.Graph().as_default() as imported:
        reference.import_graph_def(to_reference(graph), name="")
        with reference.Session() as sess:
            theirs = train(sess, imported, names)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)
    assert ours[-1] < ours[0]


def test_runnel_trains_a_model_that_tensorflow_wrote():
    with reference.Graph().as_default() as graph, reference.Session() as sess:
        names = classifier(reference)
        theirs = train(sess, graph, names)
    runnel.import_graph_def(to_runnel(graph), name="")
    with runnel.Session() as sess:
        ours = train(sess, runnel.get_default_graph(), names)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_tensorflow_runs_what_runnel_froze():
    names = classifier(runnel)
    graph = runnel.get_default_graph()
    with runnel.Session() as sess:
        train(sess, graph, names)
        expected = sess.run("logits:0", {"x:0": BATCH})
        frozen = runnel.graph_util.convert_variables_to_constants(
            sess, graph.as_graph_def(), ["logits"]
        )
    assert not [n.name for n in frozen.node if "Variable" in n.op or "labels" in n.name]
    slim = runnel.graph_util.remove_training_nodes(frozen, protected_nodes=["logits"])
    for graph_def in (frozen, slim):
        with reference.Graph().as_default():
            graph_def = reference.GraphDef.FromString(graph_def.SerializeToString())
            reference.import_graph_def(graph_def, name="")
            with reference.Session() as sess:
                given = sess.run("logits:0", {"x:0": BATCH})
        np.testing.assert_allclose(given, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("use_resource", [False, True])
def test_runnel_runs_what_tensorflow_froze(use_resource):
    with reference.Graph().as_default() as graph, reference.Session() as sess:
        with reference.variable_scope("", use_resource=use_resource):
            names = classifier(reference)
        train(sess, graph, names)
        expected = sess.run("logits:0", {"x:0": BATCH})
        frozen = reference.graph_util.convert_variables_to_constants(
            sess, graph.as_graph_def(), ["logits"]
        )
    runnel.import_graph_def(runnel.GraphDef.FromString(frozen.SerializeToString()), name="")
    with runnel.Session() as sess:
        given = sess.run("logits:0", {"x:0": BATCH})
    np.testing.assert_allclose(given, expected, rtol=1e-5, atol=1e-6)


def test_tensorflows_own_class_of_graph_def_is_accepted():
    with reference.Graph().as_default() as graph:
        reference.constant(3.0, name="c")
    (c,) = runnel.import_graph_def(graph.as_graph_def(), return_elements=["c:0"])
    with runnel.Session() as sess:
        assert sess.run(c) == 3.0


def test_shapes_and_devices_and_colocation_travel():
    with runnel.device("/job:worker/task:1/cpu:0"):
        x = runnel.placeholder(runnel.float32, [None, 3], name="x")
    with runnel.colocate_with(x):
        runnel.identity(x, name="y")
    with reference.Graph().as_default() as graph:
        graph_def = runnel.get_default_graph().as_graph_def(add_shapes=True)
        graph_def = reference.GraphDef.FromString(graph_def.SerializeToString())
        reference.import_graph_def(graph_def, name="p")
        y = graph.get_tensor_by_name("p/y:0")
    assert y.shape.as_list() == [None, 3]
    assert y.device == x.device == "/job:worker/task:1/device:CPU:0"
    assert y.op.colocation_groups() == [b"loc:@p/x"]


# The same import in both systems -----------------------------------------------------------------


def small_graph(tf):
    a = tf.constant(1.0, name="a")
    with tf.device("/cpu:0"):
        b = tf.identity(a, name="scope/b")
    with tf.colocate_with(b), tf.control_dependencies([a]):
        tf.add(b, 2.0, name="a_1")


def import_plain(tf, gd):
    tf.import_graph_def(gd)
    tf.import_graph_def(gd)


def import_taken_names(tf, gd):
    tf.constant(0.0, name="a")
    tf.import_graph_def(gd, name="")


def import_in_scopes(tf, gd):
    with tf.name_scope("outer"), tf.device("/job:ps"):
        tf.import_graph_def(gd, name="inner")
        tf.import_graph_def(gd)


def import_into_an_open_scope(tf, gd):
    with tf.name_scope("outer") as scope:
        tf.import_graph_def(gd, name=scope)


def import_mapped(tf, gd):
    c = tf.constant(5.0, name="c")
    tf.import_graph_def(gd, {"a:0": c, "^a": c})


def import_after_a_fence(tf, gd):
    with tf.control_dependencies([tf.no_op(name="fence")]):
        tf.import_graph_def(gd)


@pytest.mark.parametrize(
    "action",
    [
        import_plain,
        import_taken_names,
        import_in_scopes,
        import_into_an_open_scope,
        import_mapped,
        import_after_a_fence,
    ],
)
def test_imports_give_the_same_names_inputs_and_devices(action):
    with reference.Graph().as_default() as graph:
        small_graph(reference)
        serialized = graph.as_graph_def().SerializeToString()
    with reference.Graph().as_default() as theirs:
        action(reference, reference.GraphDef.FromString(serialized))
    with runnel.Graph().as_default() as ours:
        action(runnel, runnel.GraphDef.FromString(serialized))

    def described(graph):
        return {
            op.name: (
                [t.name for t in op.inputs],
                sorted(c.name for c in op.control_inputs),
                op.device,
                sorted(op.colocation_groups()),
            )
            for op in graph.get_operations()
        }

    assert described(ours) == described(theirs)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"input_map": {"zzz:0": 1.0}}, ValueError),
        ({"input_map": {"a:7": 1.0}}, ValueError),
        ({"return_elements": ["zzz:0"]}, ValueError),
        ({"return_elements": ["a:9"]}, ValueError),
        ({"return_elements": [3]}, TypeError),
        ({"input_map": {"a:0": 1.0}, "name": ""}, ValueError),
        ({"input_map": 7}, TypeError),
    ],
)
def test_both_refuse_the_same_arguments(arguments, error):
    with reference.Graph().as_default() as graph:
        small_graph(reference)
        serialized = graph.as_graph_def().SerializeToString()
    for tf in (reference, runnel):
        with tf.Graph().as_default(), pytest.raises(error):
            tf.import_graph_def(tf.GraphDef.FromString(serialized), **arguments)
