"""Iterators over operations that are in the graph already, as programs make them anew."""

from __future__ import annotations

import runnel as tf


def test_an_iterator_over_the_resource_of_an_imported_one(tmp_path):
    with tf.Graph().as_default() as graph:
        dataset = tf.data.Dataset.from_tensor_slices({"x": [1, 2], "y": [3.0, 4.0]})
        first = dataset.make_initializable_iterator()
        tf.add(tf.cast(first.get_next()["x"], tf.float32), 0.5, name="sum")
        names = first._iterator_resource.name, first.initializer.name
        described = first.output_types, first.output_shapes, first.output_classes
        graph_def = graph.as_graph_def()
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.import_graph_def(graph_def, name="")
        resource = graph.get_tensor_by_name(names[0])
        again = tf.data.Iterator(resource, graph.get_operation_by_name(names[1]), *described)
        sess.run(again.initializer)
        assert sess.run("sum:0") == 1.5
        assert sess.run(again.get_next()) == {"x": 2, "y": 4.0}
        other = tf.data.Dataset.from_tensor_slices({"x": [7], "y": [8.0]})
        sess.run(tf.data.Iterator(resource, None, *described).make_initializer(other))
        assert sess.run("sum:0") == 7.5
