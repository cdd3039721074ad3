"""Savers whose operations a program's own builder makes."""

from __future__ import annotations

import numpy as np
import pytest
from runnel.python.training import saver as our_savers

import runnel as tf

reference = pytest.importorskip("tensorflow").compat.v1
reference.disable_v2_behavior()
from tensorflow.python.training import saver as their_savers  # noqa: E402

BOTH = pytest.mark.parametrize(
    ("lib", "savers"), [(tf, our_savers), (reference, their_savers)], ids=["ours", "theirs"]
)
VALUES = {"a": [1.0, 2.0], "b": [[3.0], [4.0]], "p": np.full(6, 7.0)}


def build(lib, resource=False):
    """Variables of a few kinds; a function that gives their values."""
    lib.get_variable("a", initializer=VALUES["a"], use_resource=resource)
    lib.get_variable("b", initializer=VALUES["b"], use_resource=resource)
    whole = lib.get_variable(
        "p",
        [6],
        initializer=lib.constant_initializer(7.0),
        partitioner=lib.fixed_size_partitioner(3),
        use_resource=resource,
    )
    tensors = {v.op.name: v.value() for v in lib.global_variables()[:2]}
    tensors["p"] = whole.as_tensor()
    return lambda sess: {name: np.asarray(v).tolist() for name, v in sess.run(tensors).items()}


CARRIERS = {"Identity", "ReadVariableOp"}
"""How a value gets from a variable to where it is saved is each system's own business."""
LATER = {"Select", "StaticRegexFullMatch", "DisableCopyOnRead"}
"""What TensorFlow has added to Savers since 1.15: names for remote files, fewer copies."""


def added_types(lib):
    """The types of the operations that a Saver has added."""
    nodes = lib.get_default_graph().as_graph_def().node
    types = [node.op for node in nodes if node.name.startswith("save/") and node.op != "Const"]
    return sorted(kind for kind in types if kind not in CARRIERS | LATER)


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("kind", ["BaseSaverBuilder", "BulkSaverBuilder"])
def test_the_graph_is_theirs(kind, sharded, resource):
    graphs = []
    for lib, savers in ((tf, our_savers), (reference, their_savers)):
        with lib.Graph().as_default():
            build(lib, resource)
            builder = getattr(savers, kind)()
            lib.train.Saver(builder=builder, sharded=sharded)
            graphs.append(added_types(lib))
    assert graphs[0] == graphs[1]


@BOTH
@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("version", [1, 2])
def test_checkpoints_of_a_builder_that_restores_each_by_itself(
    tmp_path, lib, savers, sharded, version
):
    path = str(tmp_path / "m")
    with lib.Graph().as_default(), lib.Session() as sess:
        read = build(lib)
        builder = savers.BaseSaverBuilder(write_version=version)
        saver = lib.train.Saver(builder=builder, sharded=sharded, write_version=version)
        sess.run(lib.global_variables_initializer())
        path = saver.save(sess, path)
        sess.run([v.assign(lib.zeros_like(v)) for v in lib.global_variables()])
        saver.restore(sess, path)
        assert read(sess) == {name: np.asarray(value).tolist() for name, value in VALUES.items()}
    for other in (tf, reference):
        assert dict(other.train.list_variables(path)) == {"a": [2], "b": [2, 1], "p": [6]}


@BOTH
def test_a_subclass_changes_names_and_values(tmp_path, lib, savers):
    """A checkpoint with halves under names of its own: both ways through overridden methods."""

    class Halves(savers.BulkSaverBuilder):
        calls: list[str] = []

        def save_op(self, filename_tensor, saveables):
            self.calls.append("save")
            changed = [
                savers.BaseSaverBuilder.SaveableObject(
                    each.op,
                    [
                        savers.BaseSaverBuilder.SaveSpec(
                            spec.tensor / 2.0, spec.slice_spec, f"half/{spec.name}"
                        )
                        for spec in each.specs
                    ],
                    each.name,
                )
                for each in saveables
            ]
            return super().save_op(filename_tensor, changed)

        def bulk_restore(self, filename_tensor, saveables, preferred_shard, restore_sequentially):
            self.calls.append(f"restore {preferred_shard} {restore_sequentially}")
            for each in saveables:
                for spec in each.specs:
                    spec.name = f"half/{spec.name}"
            halves = super().bulk_restore(
                filename_tensor, saveables, preferred_shard, restore_sequentially
            )
            return [half * 2.0 for half in halves]

    with lib.Graph().as_default(), lib.Session() as sess:
        read = build(lib)
        saver = lib.train.Saver(builder=Halves(), restore_sequentially=True)
        assert Halves.calls == ["save", "restore -1 True"]
        sess.run(lib.global_variables_initializer())
        path = saver.save(sess, str(tmp_path / "m"))
        sess.run([v.assign(lib.zeros_like(v)) for v in lib.global_variables()])
        saver.restore(sess, path)
        assert read(sess)["b"] == VALUES["b"]
    assert tf.train.load_variable(path, "half/a").tolist() == [0.5, 1.0]
    assert reference.train.load_variable(path, "half/a").tolist() == [0.5, 1.0]


@BOTH
def test_a_saveable_object_of_a_programs_own(tmp_path, lib, savers):
    """Two tensors of one object, restored to their shapes, by the classes of the inner module."""

    class Pair(savers.BaseSaverBuilder.SaveableObject):
        def __init__(self, first, second):
            self._pair = first, second
            make = savers.BaseSaverBuilder.SaveSpec
            specs = [make(first.value(), "", "pair/first"), make(second.value(), "", "pair/second")]
            super().__init__(first, specs, "pair")
            self.shapes_given = None

        def restore(self, restored_tensors, restored_shapes):
            self.shapes_given = [shape.as_list() for shape in restored_shapes]
            shaped = map(lib.reshape, restored_tensors, restored_shapes)
            return lib.group(*map(lib.assign, self._pair, shaped))

    with lib.Graph().as_default(), lib.Session() as sess:
        first = lib.Variable([1.0, 2.0], use_resource=False)
        second = lib.Variable([[3.0, 4.0]], use_resource=False)
        pair = Pair(first, second)
        saver = lib.train.Saver([pair], reshape=True)
        assert pair.shapes_given == [[2], [1, 2]]
        sess.run(lib.global_variables_initializer())
        path = saver.save(sess, str(tmp_path / "m"))
        sess.run([first.assign([0.0, 0.0]), second.assign([[0.0, 0.0]])])
        saver.restore(sess, path)
        assert sess.run(first).tolist() == [1, 2] and sess.run(second).tolist() == [[3, 4]]
    names = [name for name, _ in tf.train.list_variables(path)]
    assert names == ["pair/first", "pair/second"]


@BOTH
def test_restore_op_is_called_for_each_object(tmp_path, lib, savers):
    class Listing(savers.BaseSaverBuilder):
        restored: list[str] = []

        def restore_op(self, filename_tensor, saveable, preferred_shard):
            self.restored.append(saveable.name)
            return super().restore_op(filename_tensor, saveable, preferred_shard)

    with lib.Graph().as_default():
        build(lib)
        lib.train.Saver(builder=Listing())
    assert Listing.restored == ["a", "b", "p", "p", "p"]


@BOTH
def test_shards_of_a_programs_own_names(tmp_path, lib, savers):
    class Own(savers.BulkSaverBuilder):
        def sharded_filename(self, filename_tensor, shard, num_shards):
            return lib.string_join([filename_tensor, f"-own-{shard}"])

    with lib.Graph().as_default():
        with lib.device("/cpu:0"):
            lib.Variable(1.0, name="v", use_resource=False)
        saver = lib.train.Saver(builder=Own(1), sharded=True, write_version=1)
        with lib.Session() as sess:
            sess.run(lib.global_variables_initializer())
            saver.save(sess, str(tmp_path / "m"), write_meta_graph=False, write_state=False)
    assert [path.name for path in tmp_path.iterdir()] == ["m-own-0"]
