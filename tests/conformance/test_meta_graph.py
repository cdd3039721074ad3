"""MetaGraphs with loops, conditionals and queue runners: either system goes on with the other's."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf

reference = pytest.importorskip("tensorflow").compat.v1
reference.disable_v2_behavior()

POINTS = [[0.6, 1.2], [-0.7, 0.3]]


def loop(lib, n, step, start):
    return lib.while_loop(lambda i, _: i < n, lambda i, s: (i + 1, step(i, s)), [0, start])[1]


def in_cond_in_loop(lib, x):
    def step(i, s):
        def inner():
            return loop(lib, i, lambda _, t: lib.sin(t * s), x * s)

        return lib.cond(lib.equal(i % 2, 1), inner, lambda: s + x)

    return loop(lib, 3, step, x)


PROGRAMS = {
    "while": lambda lib, x: loop(lib, 3, lambda i, s: lib.sin(s * x), x),
    "limited": lambda lib, x: lib.while_loop(
        lambda s: s[0] < 100.0, lambda s: s * x + 1.0, [x], maximum_iterations=4
    ),
    "cond": lambda lib, x: lib.cond(x[0] > 0, lambda: x * x, lambda: lib.sin(x)) * x,
    "cond in while": lambda lib, x: loop(
        lib, 4, lambda i, s: lib.cond(lib.equal(i % 2, 0), lambda: s * x, lambda: lib.exp(-s)), x
    ),
    "while in cond": lambda lib, x: lib.cond(
        x[0] > 0, lambda: loop(lib, 3, lambda i, s: s * x, x), lambda: -x * x
    ),
    "while in cond in while": in_cond_in_loop,
    "scan": lambda lib, x: lib.scan(lambda s, e: lib.sin(s) * e + s * x, x, initializer=x),
}


def exported(lib, program, differentiated):
    """The MetaGraph of a program, and its values and gradients."""
    with lib.Graph().as_default():
        x = lib.placeholder(lib.float64, [2], name="x")
        y = lib.identity(PROGRAMS[program](lib, x), name="y")
        if not differentiated:
            meta = lib.train.export_meta_graph()
        (gradient,) = lib.gradients(y, x)
        lib.identity(gradient, name="gradient")
        if differentiated:
            meta = lib.train.export_meta_graph()
        with lib.Session() as sess:
            return meta.SerializeToString(), [sess.run([y, gradient], {x: p}) for p in POINTS]


def imported(lib, content, scope, differentiated):
    """Values and gradients of what was exported elsewhere, and it exported once more."""
    with lib.Graph().as_default() as graph:
        lib.train.import_meta_graph(lib.MetaGraphDef.FromString(content), import_scope=scope)
        inside = f"{scope}/" if scope else ""
        x, y = (graph.get_tensor_by_name(f"{inside}{name}:0") for name in "xy")
        again = lib.train.export_meta_graph().SerializeToString()
        if differentiated:
            gradient = graph.get_tensor_by_name(f"{inside}gradient:0")
        else:
            (gradient,) = lib.gradients(y, x)
        with lib.Session() as sess:
            return [sess.run([y, gradient], {x: p}) for p in POINTS], again


def require_close(found, expected):
    for point, values in zip(found, expected, strict=True):
        for a, b in zip(point, values, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize("differentiated", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("one,other", [(tf, reference), (reference, tf)], ids=["out", "in"])
def test_loops_and_conditionals_have_gradients_on_the_other_side(
    one, other, program, differentiated
):
    content, expected = exported(one, program, differentiated)
    for scope in (None, "scope"):
        found, again = imported(other, content, scope, differentiated)
        require_close(found, expected)
        if scope is None:
            found, _ = imported(one, again, scope, differentiated)
            require_close(found, expected)


@pytest.mark.parametrize("program", ["while", "while in cond in while"])
@pytest.mark.parametrize("one,other", [(tf, reference), (reference, tf)], ids=["out", "in"])
def test_a_scope_with_a_loop_is_exported_alone(one, other, program):
    with one.Graph().as_default(), one.Session() as sess:
        with one.name_scope("part"):
            x = one.placeholder(one.float64, [2], name="x")
            y = one.identity(PROGRAMS[program](one, x), name="y")
        content = one.train.export_meta_graph(export_scope="part").SerializeToString()
        gradient = one.gradients(y, x)[0]
        expected = [sess.run([y, gradient], {x: p}) for p in POINTS]
    for scope in (None, "scope"):
        found, _ = imported(other, content, scope, differentiated=False)
        require_close(found, expected)


def pipeline(lib):
    queue = lib.FIFOQueue(10, [lib.int32], [[]], name="q")
    lib.train.add_queue_runner(lib.train.QueueRunner(queue, [queue.enqueue(3)] * 2))
    values = lib.train.slice_input_producer([[5, 6, 7]], shuffle=False, num_epochs=2)
    lib.identity(values[0], name="value")
    lib.identity(queue.dequeue(), name="again")


@pytest.mark.parametrize("scope", [None, "scope"])
@pytest.mark.parametrize("one,other", [(tf, reference), (reference, tf)], ids=["out", "in"])
def test_queue_runners_run_on_the_other_side(one, other, scope):
    with one.Graph().as_default():
        pipeline(one)
        content = one.train.export_meta_graph().SerializeToString()
    with other.Graph().as_default(), other.Session() as sess:
        other.train.import_meta_graph(other.MetaGraphDef.FromString(content), import_scope=scope)
        inside = f"{scope}/" if scope else ""
        initial = other.global_variables_initializer(), other.local_variables_initializer()
        sess.run(initial)
        coordinator = other.train.Coordinator()
        threads = other.train.start_queue_runners(sess, coordinator)
        assert [sess.run(f"{inside}again:0") for _ in range(40)] == [3] * 40
        assert [sess.run(f"{inside}value:0") for _ in range(6)] == [5, 6, 7, 5, 6, 7]
        with pytest.raises(other.errors.OutOfRangeError):
            sess.run(f"{inside}value:0")
        coordinator.request_stop()
        coordinator.join(threads)


def test_default_attributes_are_stripped_as_tensorflow_strips_them():
    """Operation by operation, what is left of a graph that was made by the same calls."""

    def left(lib):
        with lib.Graph().as_default():
            x = lib.placeholder(lib.float32, [2, 2])
            lib.get_variable("w", [2, 2], use_resource=False)
            lib.reduce_sum(lib.matmul(x, lib.transpose(x)), axis=0)
            lib.FIFOQueue(10, [lib.int32], [[]]).enqueue(1)
            found = lib.train.export_meta_graph(strip_default_attrs=True)
            return {
                node.name: sorted(key for key in node.attr if not key.startswith("_"))
                for node in found.graph_def.node
            }

    assert left(tf) == left(reference)


@pytest.mark.parametrize("one,other", [(tf, reference), (reference, tf)], ids=["out", "in"])
def test_a_scope_that_takes_from_outside_is_bound_anew(one, other):
    with one.Graph().as_default():
        outside = one.constant([1.0, 2.0], name="outside")
        with one.name_scope("part"):
            one.add(outside, one.placeholder(one.float32, [2], name="x"), name="y")
        meta_graph = one.train.export_meta_graph(export_scope="part")
    names = [v.decode() for v in meta_graph.collection_def["unbound_inputs"].bytes_list.value]
    assert names == ["$unbound_inputs_outside"]
    content = other.MetaGraphDef.FromString(meta_graph.SerializeToString())
    with other.Graph().as_default() as graph, other.Session() as sess:
        with pytest.raises(ValueError, match="unbound inputs"):
            other.train.import_meta_graph(content)
        bound = {names[0]: other.constant([10.0, 20.0])}
        other.train.import_meta_graph(content, input_map=bound)
        found = sess.run(graph.get_tensor_by_name("y:0"), {"x:0": [1.0, 1.0]})
    assert found.tolist() == [11.0, 21.0]


def test_sparse_signatures_are_exchanged(tmp_path):
    for k, (one, other) in enumerate([(tf, reference), (reference, tf)]):
        folder = str(tmp_path / str(k))
        with one.Graph().as_default(), one.Session() as sess:
            given = one.sparse_placeholder(one.float32, name="given")
            doubled = one.SparseTensor(given.indices, given.values * 2.0, given.dense_shape)
            one.saved_model.simple_save(sess, folder, {"x": given}, {"y": doubled})
        with other.Graph().as_default() as graph, other.Session() as sess:
            model = other.saved_model.load(sess, ["serve"], folder)
            signature = model.signature_def["serving_default"]
            x, y = (
                other.saved_model.get_tensor_from_tensor_info(info, graph)
                for info in (signature.inputs["x"], signature.outputs["y"])
            )
            fed = other.SparseTensorValue([[0, 1], [1, 2]], [1.0, 5.0], [2, 3])
            found = sess.run(y, {x: fed})
        assert found.values.tolist() == [2.0, 10.0]
        assert np.asarray(found.indices).tolist() == [[0, 1], [1, 2]]
