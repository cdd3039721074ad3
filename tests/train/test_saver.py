"""``tf.train.Saver``: variables into checkpoints and back."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import runnel as tf
from runnel.checkpoint.bundle import BundleReader
from runnel.checkpoint.saveable_object import SaveableObject, SaveSpec

RESOURCE = pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@RESOURCE
def test_what_was_saved_is_restored(tmp_path, resource):
    v = tf.get_variable("v", initializer=np.float32([[1, 2], [3, 4]]), use_resource=resource)
    n = tf.Variable(7, use_resource=resource)
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = saver.save(sess, str(tmp_path / "model"))
        sess.run([v.assign_add([[1, 1], [1, 1]]), n.assign(0)])
        saver.restore(sess, path)
        assert sess.run(v).tolist() == [[1, 2], [3, 4]] and sess.run(n) == 7
    with tf.Session() as sess:  # which has initialised nothing
        saver.restore(sess, path)
        assert sess.run(n) == 7
    assert files(tmp_path) == [
        *("checkpoint", "model.data-00000-of-00001", "model.index", "model.meta")
    ]


def test_names_in_the_checkpoint_may_be_others(tmp_path):
    v, w = tf.Variable([1.0], name="v"), tf.Variable([2.0], name="w")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = tf.train.Saver({"one": v, "two": w}).save(sess, tmp_path / "m")
        assert tf.train.list_variables(path) == [("one", [1]), ("two", [1])]
        tf.train.Saver({"two": v}).restore(sess, path)
        assert sess.run(v) == [2.0]


@RESOURCE
def test_a_partitioned_variable_is_saved_whole_and_restored_into_other_parts(tmp_path, resource):
    def parts(count):
        cut = tf.fixed_size_partitioner(count)
        return tf.get_variable("p", [7, 3], partitioner=cut, use_resource=resource)

    with tf.Graph().as_default(), tf.Session() as sess:
        p = parts(3)
        sess.run(tf.global_variables_initializer())
        written = sess.run(p.as_tensor())
        path = tf.train.Saver([p]).save(sess, str(tmp_path / "m"))
        again = tf.train.Saver().save(sess, str(tmp_path / "n"))
    assert tf.train.list_variables(path) == tf.train.list_variables(again) == [("p", [7, 3])]
    for count in (1, 2, 5):
        with tf.Graph().as_default(), tf.Session() as sess:
            p = parts(count)
            tf.train.Saver().restore(sess, path)
            np.testing.assert_array_equal(sess.run(p.as_tensor()), written)


@pytest.mark.parametrize("version", [1, 2])
def test_a_file_for_each_device(tmp_path, version):
    with tf.device("/cpu:0"):
        v = tf.Variable([1.0, 2.0], name="v")
    with tf.device("/cpu:1"):
        w = tf.Variable([3], name="w")
    saver = tf.train.Saver(sharded=True, write_version=version)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
        sess.run(tf.global_variables_initializer())
        path = saver.save(sess, str(tmp_path / "m"), global_step=5)
        sess.run([v.assign([0, 0]), w.assign([0])])
        saver.restore(sess, path)
        assert sess.run(v).tolist() == [1, 2] and sess.run(w).tolist() == [3]
    assert tf.train.latest_checkpoint(tmp_path) == path
    assert sum("-of-00002" in name for name in files(tmp_path)) == 2
    assert not [name for name in files(tmp_path) if "temp" in name]


def test_only_the_newest_are_kept(tmp_path):
    tf.Variable(1.0)
    saver = tf.train.Saver(max_to_keep=2)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        paths = [saver.save(sess, str(tmp_path / "m"), global_step=n) for n in range(4)]
    assert saver.last_checkpoints == paths[2:]
    assert [name for name in files(tmp_path) if name.endswith(".index")] == [
        *("m-2.index", "m-3.index")
    ]
    state = tf.train.get_checkpoint_state(tmp_path)
    assert state.model_checkpoint_path == paths[3]
    assert list(state.all_model_checkpoint_paths) == paths[2:]


def test_one_every_few_hours_is_kept_for_ever(tmp_path, monkeypatch):
    tf.Variable(1.0)
    clock = [1000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    saver = tf.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=1)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for n in range(6):
            clock[0] += 1500
            saver.save(sess, str(tmp_path / "m"), global_step=n, write_meta_graph=False)
    kept = [name for name in files(tmp_path) if name.endswith(".index")]
    assert kept == ["m-2.index", "m-4.index", "m-5.index"]


def test_a_new_saver_goes_on_where_another_stopped(tmp_path):
    tf.Variable(1.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        first = tf.train.Saver(max_to_keep=2)
        paths = [first.save(sess, str(tmp_path / "m"), global_step=n) for n in range(2)]
        second = tf.train.Saver(max_to_keep=2)
        found = tf.train.get_checkpoint_state(tmp_path).all_model_checkpoint_paths
        second.recover_last_checkpoints([*found, str(tmp_path / "gone")])
        paths.append(second.save(sess, str(tmp_path / "m"), global_step=2))
    assert second.last_checkpoints == paths[1:]
    assert not (tmp_path / "m-0.index").exists()


def test_relative_paths_let_a_folder_be_moved(tmp_path):
    v = tf.Variable(1.0)
    saver = tf.train.Saver(save_relative_paths=True)
    with tf.Session() as sess:
        sess.run(v.initializer)
        saver.save(sess, str(tmp_path / "old" / "m"), global_step=3)
        (tmp_path / "old").rename(tmp_path / "new")
        found = tf.train.latest_checkpoint(str(tmp_path / "new"))
        assert found == str(tmp_path / "new" / "m-3")
        saver.restore(sess, found)


@pytest.mark.parametrize("relative_paths", [False, True])
@pytest.mark.parametrize("folder", ["m", "m/n", "./m", "m/../k", "absolute"])
def test_the_latest_checkpoint_is_found_wherever_its_folder_is(
    tmp_path, monkeypatch, folder, relative_paths
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m" / "n").mkdir(parents=True)
    folder = str(tmp_path / "m") if folder == "absolute" else folder
    v = tf.Variable(1.0)
    saver = tf.train.Saver(save_relative_paths=relative_paths)
    with tf.Session() as sess:
        sess.run(v.initializer)
        for step in range(2):
            saver.save(sess, f"{folder}/model", global_step=step)
    assert tf.train.latest_checkpoint(folder) == f"{folder}/model-1"
    state = tf.train.get_checkpoint_state(folder)
    assert state.all_model_checkpoint_paths == [f"{folder}/model-0", f"{folder}/model-1"]
    with tf.Session() as sess:
        saver.restore(sess, tf.train.latest_checkpoint(folder))


@pytest.mark.parametrize("relative_paths", [False, True])
def test_the_state_of_a_relative_folder_takes_paths_of_both_kinds(
    tmp_path, monkeypatch, relative_paths
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").mkdir()
    paths = ["m/model-0", str(tmp_path / "m" / "model-1")]
    tf.train.update_checkpoint_state("m", paths[-1], paths, save_relative_paths=relative_paths)
    found = tf.train.get_checkpoint_state("m")
    assert found.all_model_checkpoint_paths[0] == "m/model-0"
    assert Path(found.model_checkpoint_path) == (
        Path("m/model-1") if relative_paths else tmp_path / "m" / "model-1"
    )


def test_the_step_may_be_a_variable(tmp_path):
    step = tf.train.get_or_create_global_step()
    saver = tf.train.Saver(pad_step_number=True)
    with tf.Session() as sess:
        sess.run(step.initializer)
        sess.run(step.assign(42))
        assert saver.save(sess, str(tmp_path / "m"), step) == str(tmp_path / "m-00000042")


def test_reshape_restores_as_many_elements(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.get_variable("v", initializer=np.arange(6.0))
        sess.run(v.initializer)
        path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.get_variable("v", [2, 3], tf.float64)
        tf.train.Saver(reshape=True).restore(sess, path)
        assert sess.run(v).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_checkpoint_that_does_not_fit_is_told_in_full(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.get_variable("same", [2])
        tf.get_variable("shape", [2, 3])
        tf.get_variable("kind", [2])
        tf.get_variable("unused", [])
        sess.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    tf.get_variable("same", [2])
    tf.get_variable("shape", [3, 2])
    tf.get_variable("kind", [2], tf.float64)
    tf.get_variable("missing", [])
    with tf.Session() as sess, pytest.raises(tf.errors.OpError) as caught:
        tf.train.Saver().restore(sess, path)
    text = str(caught.value)
    assert "3 of 4 tensors differ" in text
    assert "shape: float32 [3, 2] in the graph, float32 [2, 3] in the checkpoint" in text
    assert "kind: float64 [2] in the graph, float32 [2] in the checkpoint" in text
    assert "missing: float32 is not in the checkpoint" in text
    assert "1 are not wanted: unused" in text
    assert "test_saver.py" in text


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("use_resource", [False, True])
def test_a_saver_of_an_imported_graph_tells_as_much(tmp_path, use_resource, sharded):
    def variables(wide, kind):
        with tf.variable_scope("", use_resource=use_resource):
            tf.get_variable("same", [2])
            tf.get_variable("shape", [2, wide])
            tf.get_variable("kind", [2], kind)
            tf.get_variable("parts", [4, wide], partitioner=tf.fixed_size_partitioner(2))

    with tf.Graph().as_default(), tf.Session() as sess:
        variables(3, tf.float32)
        sess.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    with tf.Graph().as_default():
        variables(4, tf.float64)
        tf.get_variable("missing", [])
        meta_graph = tf.train.Saver(sharded=sharded).export_meta_graph()
    saver = tf.train.import_meta_graph(meta_graph)
    with tf.Session() as sess, pytest.raises(tf.errors.OpError) as caught:
        saver.restore(sess, path)
    text = str(caught.value)
    assert "4 of 5 tensors differ" in text
    assert "shape: float32 [2, 4] in the graph, float32 [2, 3] in the checkpoint" in text
    assert "kind: float64 [2] in the graph, float32 [2] in the checkpoint" in text
    assert "parts: float32 [4, 4] in the graph, float32 [4, 3] in the checkpoint" in text
    assert "missing: float32 is not in the checkpoint" in text


def test_names_of_a_damaged_graph_are_shown_as_they_are(tmp_path):
    tf.get_variable("weights", [2])
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        saver.save(sess, str(tmp_path / "ckpt"))
    meta = saver.export_meta_graph()
    for node in meta.graph_def.node:
        if node.name == "save/RestoreV2/tensor_names":
            node.attr["value"].tensor.string_val[:] = [b"weigh\x91s"]
    with tf.Graph().as_default(), tf.Session() as sess:
        loaded = tf.train.import_meta_graph(meta)
        with pytest.raises(tf.errors.OpError, match="weigh\ufffds"):
            loaded.restore(sess, str(tmp_path / "ckpt"))


def test_misuse_is_told(tmp_path):
    with pytest.raises(ValueError, match="no variables to save"):
        tf.train.Saver()
    empty = tf.train.Saver(allow_empty=True)
    with tf.Session() as sess:
        assert empty.save(sess, str(tmp_path / "m")) is None
        empty.restore(sess, "anything")
        late = tf.train.Saver(defer_build=True)
        with pytest.raises(RuntimeError, match="call build"):
            late.save(sess, str(tmp_path / "m"))
        v = tf.Variable(1.0)
        late.build()
        with pytest.raises(ValueError, match="save_path is None"):
            late.restore(sess, None)
        with pytest.raises(ValueError, match="not a valid checkpoint"):
            late.restore(sess, str(tmp_path / "none"))
        with pytest.raises(ValueError, match="latest_filename"):
            late.save(sess, str(tmp_path / "m"), latest_filename="a/b")
        with pytest.raises(tf.errors.FailedPreconditionError):
            late.save(sess, str(tmp_path / "m"))
        assert not list(tmp_path.iterdir()), "a failed save leaves nothing"
    with pytest.raises(TypeError, match="Only variables can be saved"):
        tf.train.Saver([tf.constant(1.0)])
    with pytest.raises(ValueError, match="two names"):
        tf.train.Saver({"a": v, "b": v})


def test_other_objects_can_be_saved(tmp_path):
    class Doubled(SaveableObject):
        """Stores half of a variable."""

        def __init__(self, variable):
            self._variable = variable
            specs = [SaveSpec(lambda: variable / 2.0, "", "half", tf.float32, "")]
            super().__init__(variable.op, specs, "half")

        def restore(self, restored_tensors, restored_shapes):
            return self._variable.assign(restored_tensors[0] * 2.0)

    v = tf.Variable(6.0, collections=[])
    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, Doubled(v))
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(v.initializer)
        path = saver.save(sess, str(tmp_path / "m"))
        sess.run(v.assign(0.0))
        saver.restore(sess, path)
        assert sess.run(v) == 6.0
    assert tf.train.load_variable(path, "half") == 3.0


def test_what_is_in_tables_is_saved_and_restored(tmp_path):
    first, second = (tf.contrib.lookup.MutableHashTable(tf.int64, tf.int64, -1) for _ in range(2))
    keys = tf.constant([4, 5], tf.int64)
    v = tf.Variable(1.0, name="v")
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run([first.insert(keys, keys * 2), second.insert(keys, keys * 3)])
        path = saver.save_in_background(sess, str(tmp_path / "m")).wait()
        sess.run([first.remove(keys), second.insert(keys, keys)])
        saver.restore(sess, path)
        assert [t.tolist() for t in sess.run([first.lookup(keys), second.lookup(keys)])] == [
            [8, 10],
            [12, 15],
        ]
        tf.train.save_safetensors(sess, str(tmp_path / "v.safetensors"))
    assert [name for name, _ in tf.train.list_variables(str(tmp_path / "v.safetensors"))] == ["v"]


def test_a_reader_goes_on_with_the_file_that_follows(tmp_path):
    class Position(SaveableObject):
        """Where a reader stands; what is in its queue is not saved."""

        def __init__(self, reader):
            self._reader = reader
            specs = [SaveSpec(reader.serialize_state(), "", "position")]
            super().__init__(reader.reader_ref.op, specs, "position")

        def restore(self, restored_tensors, restored_shapes):
            return self._reader.restore_state(restored_tensors[0])

    reader = tf.IdentityReader()
    queue = tf.FIFOQueue(9, [tf.string], [[]])
    put = queue.enqueue_many([["a", "b", "c"]])
    key, _ = reader.read(queue)
    saver = tf.train.Saver([Position(reader)])
    with tf.Session() as sess:
        sess.run(put)
        assert sess.run(key) == b"a"
        path = saver.save(sess, str(tmp_path / "m"))
    with tf.Session() as sess:
        saver.restore(sess, path)
        assert sess.run(reader.num_records_produced()) == 1
        sess.run(put)
        assert sess.run(key) == b"a", "the queue is filled from its beginning"
        assert sess.run(reader.num_records_produced()) == 2


# Looking into checkpoints -----------------------------------------------------------------------


def test_a_reader_tells_what_is_there(tmp_path):
    v = tf.Variable([[1.0, 2.0]], name="v")
    with tf.Session() as sess:
        sess.run(v.initializer)
        path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    for source in (path, str(tmp_path)):
        reader = tf.train.load_checkpoint(source)
        assert reader.has_tensor("v") and not reader.has_tensor("w")
        assert reader.get_variable_to_shape_map() == {"v": [1, 2]}
        assert reader.get_variable_to_dtype_map() == {"v": tf.float32}
        assert reader.get_tensor("v").tolist() == [[1, 2]]
        assert b"v (DT_FLOAT) [1,2]" in reader.debug_string()
    assert tf.train.checkpoint_exists(path) and not tf.train.checkpoint_exists(f"{path}x")
    with pytest.raises(ValueError, match="checkpoint"):
        tf.train.load_checkpoint(str(tmp_path.parent))
    assert tf.train.latest_checkpoint(str(tmp_path / "nowhere")) is None


@RESOURCE
def test_variables_begin_as_a_checkpoint_says(tmp_path, resource):
    with tf.Graph().as_default(), tf.Session() as sess:
        with tf.variable_scope("old"):
            tf.get_variable("w", initializer=[1.0, 2.0])
            tf.get_variable("p", initializer=tf.range(6.0))
        sess.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    with tf.Graph().as_default(), tf.Session() as sess:
        with tf.variable_scope("new", use_resource=resource):
            w = tf.get_variable("w", [2])
            p = tf.get_variable("p", [6], partitioner=tf.fixed_size_partitioner(2))
        other = tf.get_variable("other", [2], use_resource=resource)
        tf.train.init_from_checkpoint(str(tmp_path), {"old/": "new/", "old/w": other})
        sess.run(tf.global_variables_initializer())
        assert sess.run([w, other])[0].tolist() == sess.run(other).tolist() == [1, 2]
        assert sess.run(p.as_tensor()).tolist() == list(range(6))
        with pytest.raises(ValueError, match="is not found"):
            tf.train.init_from_checkpoint(path, {"none": w})
        with pytest.raises(ValueError, match="doesn't match"):
            tf.train.init_from_checkpoint(path, {"old/p": w})
    with tf.Graph().as_default(), tf.Session() as sess:
        w = tf.get_variable("old/w", [2], use_resource=resource)
        renamed = tf.get_variable("renamed", [6], use_resource=resource)
        tf.train.warm_start(path, ".*", None, {"renamed": "old/p"})
        sess.run(tf.global_variables_initializer())
        assert sess.run(w).tolist() == [1, 2] and sess.run(renamed)[5] == 5


def test_a_graph_is_read_back_with_its_collections_and_its_saver(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        w = tf.get_variable("w", initializer=[[1.0], [2.0]])
        local = tf.Variable(
            0, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES], name="local"
        )
        y = tf.matmul(x, w, name="y")
        total = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + y), [0, y])[1]
        tf.add_to_collection("outputs", tf.identity(total, name="total"))
        tf.add_to_collection("sizes", 2)
        sess.run([tf.global_variables_initializer(), local.initializer])
        path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    for scope in (None, "inside"):
        with tf.Graph().as_default() as graph, tf.Session() as sess:
            saver = tf.train.import_meta_graph(f"{path}.meta", import_scope=scope)
            saver.restore(sess, path)
            [total] = tf.get_collection("outputs")
            prefix = f"{scope}/" if scope else ""
            assert total.name == f"{prefix}total:0"
            found = sess.run(total, {f"{prefix}x:0": [[1.0, 1.0]]})
            assert found.tolist() == [[12.0]]
            assert [v.op.name for v in tf.trainable_variables()] == [f"{prefix}w"]
            assert tf.global_variables()[0] is tf.trainable_variables()[0]
            assert [v.op.name for v in tf.local_variables()] == [f"{prefix}local"]
            assert tf.get_collection("sizes") == [2]
            gradient = tf.gradients(total, tf.trainable_variables())[0]
            fed = {graph.get_tensor_by_name(f"{prefix}x:0"): [[1.0, 1.0]]}
            assert sess.run(gradient, fed).tolist() == [[4], [4]]
    with pytest.raises(OSError, match="does not exist"):
        tf.train.import_meta_graph(str(tmp_path / "none.meta"))
    (tmp_path / "bad.meta").write_bytes(b"\xff\xfe not a graph")
    with pytest.raises(OSError, match="no MetaGraphDef"):
        tf.train.import_meta_graph(str(tmp_path / "bad.meta"))


# A process that is killed -----------------------------------------------------------------------

SAVING = """
import sys
import numpy as np
import runnel as tf

folder, how = sys.argv[1:]
step = tf.Variable(0, name="step")
with tf.device("/cpu:0"):  # so that there are two shards
    rows = tf.Variable(np.zeros([500, 500]), name="rows")
advance = tf.group(step.assign_add(1), rows.assign_add(tf.ones([500, 500], tf.float64)))
saver = tf.train.Saver(max_to_keep=2, sharded=how == "sharded")
with tf.Session() as sess:
    save = saver.save_in_background if how == "in the background" else saver.save
    latest = tf.train.latest_checkpoint(folder)
    if latest is None:
        sess.run(tf.global_variables_initializer())
    else:
        saver.restore(sess, latest)
        state = tf.train.get_checkpoint_state(folder)
        saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
    print("ready", flush=True)
    while True:
        sess.run(advance)
        save(sess, folder + "/m", global_step=step, write_meta_graph=False)
        save(sess, folder + "/same", write_meta_graph=False, write_state=False)
        print("saved", flush=True)
"""


# More: RUNNEL_FUZZ=10 pytest tests/train/test_saver.py -k kill
KILLS = int(20 * float(os.environ.get("RUNNEL_FUZZ", "1")))


@pytest.mark.timeout(300 + 10 * KILLS)
@pytest.mark.parametrize(
    ("how", "kills"), [("plain", KILLS), ("sharded", KILLS // 4), ("in the background", KILLS // 4)]
)
def test_a_kill_at_any_instant_leaves_a_complete_latest_checkpoint(tmp_path, how, kills):
    script = tmp_path / "saving.py"
    script.write_text(textwrap.dedent(SAVING))
    folder = tmp_path / "model"
    folder.mkdir()
    rng = np.random.default_rng(0)
    newest = 0
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, str(script), str(folder), how], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for _ in range(1 + int(rng.integers(0, 4))):  # ready, or some saves later
            assert process.stdout.readline(), "it ended by itself"
        with contextlib.suppress(subprocess.TimeoutExpired):  # the instant is meant to be any
            process.wait(float(rng.uniform(0, 0.02)))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        latest = tf.train.latest_checkpoint(str(folder))
        for path in (latest, str(folder / "same")):
            if path is None or not tf.train.checkpoint_exists(path):
                assert newest == 0
                continue
            reader = BundleReader(path)
            step, rows = int(reader.tensor("step")), reader.tensor("rows")
            assert (rows == step).all(), "both are of one step"
            if path == latest:
                assert step >= newest
                newest = step
    assert newest > 0
