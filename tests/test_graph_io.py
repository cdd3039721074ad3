"""Writing graphs to files."""

import pytest
from google.protobuf import text_format

import runnel as tf


@pytest.fixture
def graph():
    with tf.Graph().as_default() as g:
        yield g


@pytest.mark.parametrize("as_text", [True, False])
@pytest.mark.parametrize("as_graph_def", [True, False])
def test_write_graph(graph, tmp_path, as_text, as_graph_def):
    tf.constant([1.0, 2.0], name="c")
    what = graph.as_graph_def() if as_graph_def else graph
    path = tf.io.write_graph(what, tmp_path / "a" / "b", "graph.pb", as_text=as_text)
    data = (tmp_path / "a" / "b" / "graph.pb").read_bytes()
    assert path == str(tmp_path / "a" / "b" / "graph.pb")
    read = text_format.Parse(data, tf.GraphDef()) if as_text else tf.GraphDef.FromString(data)
    assert read == graph.as_graph_def()
    assert [p.name for p in (tmp_path / "a" / "b").iterdir()] == ["graph.pb"]


def test_both_names():
    assert tf.train.write_graph is tf.io.write_graph


def test_write_graph_wants_a_graph(tmp_path):
    with pytest.raises(TypeError, match="Graph"):
        tf.io.write_graph("graph", tmp_path, "graph.pb")
