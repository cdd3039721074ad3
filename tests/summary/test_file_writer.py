"""``FileWriter``: what it adds to an event file."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf


@pytest.fixture(autouse=True)
def _closed_cache():
    yield
    tf.summary.FileWriterCache.clear()


def events_in(folder):
    files = sorted(folder.iterdir())
    return [event for file in files for event in tf.train.summary_iterator(file)][1:]


def summary_with(*tags):
    metadata = tf.SummaryMetadata(display_name="shown")
    return tf.Summary(
        value=[tf.Summary.Value(tag=tag, simple_value=1.0, metadata=metadata) for tag in tags]
    )


def test_the_metadata_of_a_tag_is_written_once_and_the_callers_message_stays(tmp_path):
    with tf.summary.FileWriter(tmp_path) as writer:
        given = summary_with("a", "b")
        writer.add_summary(given, 1)
        writer.add_summary(given, 2)
        writer.add_summary(summary_with("b", "c").SerializeToString(), 3)
    kept = [
        [value.tag for value in event.summary.value if value.HasField("metadata")]
        for event in events_in(tmp_path)
    ]
    assert kept == [["a", "b"], [], ["c"]]
    assert given == summary_with("a", "b")


@pytest.mark.parametrize("step", [7, np.int64(7), np.float32(7.0), np.array(7)])
def test_a_step_of_any_kind_of_number(tmp_path, step):
    with tf.summary.FileWriter(tmp_path) as writer:
        writer.add_summary(tf.Summary(), step)
    assert [event.step for event in events_in(tmp_path)] == [7]


def test_a_graph_has_its_scopes_devices_and_shapes(tmp_path):
    with tf.name_scope("layer"), tf.device("/cpu:0"):
        tf.placeholder(tf.float32, [None, 3], name="x")
    graph = tf.get_default_graph()
    tf.summary.FileWriter(tmp_path, graph).close()
    first, second = events_in(tmp_path)
    (node,) = tf.GraphDef.FromString(first.graph_def).node
    assert node.name == "layer/x" and "CPU:0" in node.device.upper()
    assert [d.size for d in node.attr["_output_shapes"].list.shape[0].dim] == [-1, 3]
    assert second.meta_graph_def


def test_what_is_no_graph(tmp_path):
    with tf.summary.FileWriter(tmp_path) as writer:
        with pytest.raises(TypeError, match="instance of `Graph`"):
            writer.add_graph("graph")
        with pytest.raises(ValueError, match="not both"):
            writer.add_graph(tf.Graph(), graph_def=tf.GraphDef())
        with pytest.raises(TypeError, match="must be type MetaGraphDef"):
            writer.add_meta_graph(tf.GraphDef())
        writer.add_graph(None, graph_def=tf.GraphDef())
    assert len(events_in(tmp_path)) == 1


def test_a_closed_writer_warns_and_can_be_opened_again(tmp_path):
    writer = tf.summary.FileWriter(tmp_path)
    writer.close()
    writer.close()
    for use in (lambda: writer.add_summary(tf.Summary(), 1), writer.flush):
        with pytest.warns(UserWarning, match="closed FileWriter"):
            use()
    writer.reopen()
    writer.add_summary(tf.Summary(), 2)
    writer.close()
    assert [e.step for e in events_in(tmp_path) if not e.file_version] == [2]


def test_run_metadata_has_a_tag_of_its_own(tmp_path):
    metadata = tf.RunMetadata()
    with tf.summary.FileWriter(tmp_path) as writer, tf.Session() as sess:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(tf.constant(1.0) + 2.0, options=options, run_metadata=metadata)
        writer.add_run_metadata(metadata, "step 1", 1)
        with pytest.raises(ValueError, match="already used"):
            writer.add_run_metadata(metadata, "step 1", 2)
    (event,) = events_in(tmp_path)
    assert event.tagged_run_metadata.tag == "step 1"
    assert tf.RunMetadata.FromString(event.tagged_run_metadata.run_metadata) == metadata


def test_the_cache_has_one_writer_for_each_folder(tmp_path):
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    writer = tf.summary.FileWriterCache.get(a)
    assert tf.summary.FileWriterCache.get(a) is writer
    assert tf.summary.FileWriterCache.get(b) is not writer
    tf.summary.FileWriterCache.clear()
    assert tf.summary.FileWriterCache.get(a) is not writer


def test_writers_of_one_session_and_folder_share_a_file(tmp_path):
    with tf.Session() as sess:
        writers = [tf.summary.FileWriter(tmp_path, session=sess) for _ in range(2)]
        for step, writer in enumerate(writers):
            writer.add_summary(tf.Summary(), step)
        writers[0].close()
        assert len(list(tmp_path.iterdir())) == 1
        assert [e.step for e in events_in(tmp_path)] == [0, 1]
        with tf.summary.FileWriter(tmp_path, session=sess) as later:
            later.add_summary(tf.Summary(), 2)
    assert [e.step for e in events_in(tmp_path) if not e.file_version] == [0, 1, 2]
