"""What a MetaGraph keeps, and what it leaves out."""

import numpy as np
import pytest

import runnel as tf


def test_information_of_the_caller_is_kept():
    tf.constant(1.0)
    info = tf.MetaGraphDef.MetaInfoDef(meta_graph_version="v7", tags=["a", "b"])
    found = tf.train.export_meta_graph(meta_info_def=info).meta_info_def
    assert (found.meta_graph_version, list(found.tags)) == ("v7", ["a", "b"])
    assert [op.name for op in found.stripped_op_list.op] == ["Const"]


def test_other_savers_leave_no_operations():
    tf.get_variable("v", [2])
    kept, other = tf.train.Saver(), tf.train.Saver(sharded=True)
    options = {"clear_extraneous_savers": True}
    names = [n.name for n in kept.export_meta_graph(**options).graph_def.node]
    assert "save/RestoreV2" in names and not [n for n in names if n.startswith("save_1/")]
    names = [n.name for n in other.export_meta_graph(**options).graph_def.node]
    assert "save_1/RestoreV2" in names and not [n for n in names if n.startswith("save/")]
    names = [n.name for n in tf.train.export_meta_graph(**options).graph_def.node]
    assert "v" in names and not [n for n in names if n.startswith("save")]
    both = [n.name for n in tf.train.export_meta_graph().graph_def.node]
    assert {"save/RestoreV2", "save_1/RestoreV2"} <= set(both)


def test_devices_and_collections_are_left_out_on_request():
    with tf.device("/job:ps/task:1"):
        tf.get_variable("v", [2])
    tf.add_to_collection("mine", tf.constant(1.0))
    whole = tf.train.export_meta_graph()
    assert {n.device for n in whole.graph_def.node if n.name == "v"} == {"/job:ps/task:1"}
    part = tf.train.export_meta_graph(clear_devices=True, collection_list=["mine"])
    assert {n.device for n in part.graph_def.node} == {""}
    assert list(part.collection_def) == ["mine"]


def test_the_events_of_a_job_have_its_meta_graph(tmp_path):
    step = tf.train.get_or_create_global_step()
    advance = tf.assign_add(step, 1)
    saves = tf.train.CheckpointSaverHook(tmp_path, save_steps=10)
    with tf.train.MonitoredSession(hooks=[saves]) as sess:
        sess.run(advance)
    tf.summary.FileWriterCache.clear()
    (path,) = tmp_path.glob("events*")
    events = list(tf.train.summary_iterator(str(path)))
    *_, content = [event.meta_graph_def for event in events if event.meta_graph_def]
    meta_graph = tf.MetaGraphDef.FromString(content)
    assert "global_step" in [node.name for node in meta_graph.graph_def.node]
    assert meta_graph.saver_def.restore_op_name


def test_options_of_all_hooks_reach_the_step():
    class Asking(tf.train.SessionRunHook):
        def __init__(self, **options):
            self.options = tf.RunOptions(**options)

        def before_run(self, run_context):
            return tf.train.SessionRunArgs(None, options=self.options)

        def after_run(self, run_context, run_values):
            self.seen = run_values.options

    x = tf.constant(1.0)
    hooks = [
        Asking(inter_op_thread_pool=2, timeout_in_ms=60_000),
        Asking(report_tensor_allocations_upon_oom=True),
        Asking(debug_options={"debug_tensor_watch_opts": [{"node_name": "x"}]}),
    ]
    with tf.train.MonitoredSession(hooks=hooks) as sess:
        sess.run(x)
    seen = hooks[0].seen
    assert (seen.inter_op_thread_pool, seen.timeout_in_ms) == (2, 60_000)
    assert seen.report_tensor_allocations_upon_oom
    assert [watch.node_name for watch in seen.debug_options.debug_tensor_watch_opts] == ["x"]


@pytest.mark.parametrize("relative", [False, True])
def test_the_state_keeps_its_times(tmp_path, relative):
    tf.train.update_checkpoint_state(
        tmp_path,
        str(tmp_path / "m-1"),
        all_model_checkpoint_timestamps=[5.0],
        last_preserved_timestamp=4.0,
        save_relative_paths=relative,
    )
    state = tf.train.get_checkpoint_state(tmp_path)
    assert state.last_preserved_timestamp == 4.0
    assert list(state.all_model_checkpoint_timestamps) == [5.0]
    assert state.model_checkpoint_path == str(tmp_path / "m-1")


def test_sparse_tensors_in_signatures():
    given = tf.SparseTensor(np.int64([[0]]), [1.0], np.int64([3]))
    info = tf.saved_model.build_tensor_info(given)
    assert info.WhichOneof("encoding") == "coo_sparse"
    found = tf.saved_model.get_tensor_from_tensor_info(info)
    assert (found.indices, found.values) == (given.indices, given.values)
