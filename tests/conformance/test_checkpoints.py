"""Checkpoints and MetaGraphs: what either system writes, the other reads."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.checkpoint.bundle import BundleReader
from runnel.checkpoint.v1 import V1Reader
from tests.checkpoint.test_bundle import TYPES, values

reference = pytest.importorskip("tensorflow").compat.v1
reference.disable_v2_behavior()

STRINGS = np.array([b"", b"\x00\xff", b"x" * 70_000], object)


def build(lib, resource):
    """A graph with variables of some kinds; its initial values, by name in the checkpoint."""
    rng = np.random.default_rng(1)
    lib.get_variable("w", initializer=rng.normal(size=(3, 4)), use_resource=resource)
    lib.get_variable("s", initializer=lib.constant(STRINGS), use_resource=resource)
    lib.get_variable("empty", [0, 3], use_resource=resource)
    lib.get_variable("n", initializer=np.int64(5), use_resource=resource)
    lib.get_variable(
        "p",
        [10, 3],
        initializer=lib.random_normal_initializer(seed=3),
        partitioner=lib.fixed_size_partitioner(3),
        use_resource=resource,
    )


def read_back(lib, path, resource):
    with lib.Graph().as_default(), lib.Session() as sess:
        build(lib, resource)
        lib.train.Saver().restore(sess, path)
        return {v.op.name: sess.run(v) for v in lib.global_variables()}


OPTIMIZERS = {
    "GradientDescent": lambda train: train.GradientDescentOptimizer(0.1),
    "Momentum": lambda train: train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "Adam": lambda train: train.AdamOptimizer(0.01),
    "Adagrad": lambda train: train.AdagradOptimizer(0.1),
    "Adadelta": lambda train: train.AdadeltaOptimizer(0.1),
    "RMSProp": lambda train: train.RMSPropOptimizer(0.01, centered=True),
    "Ftrl": lambda train: train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
}
NOT_IN_V1 = ("uint16", "uint32", "uint64", "float16", "bfloat16", "complex64", "complex128")
RESOURCE = pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])


@RESOURCE
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("sharded", [False, True])
def test_checkpoints_go_both_ways(tmp_path, resource, version, sharded):
    for name, lib in (("ours", tf), ("theirs", reference)):
        (tmp_path / name).mkdir()
        with lib.Graph().as_default(), lib.Session() as sess:
            build(lib, resource)
            sess.run(lib.global_variables_initializer())
            saver = lib.train.Saver(write_version=version, sharded=sharded)
            path = saver.save(sess, str(tmp_path / name / "m"), global_step=3)
        here, there = read_back(tf, path, resource), read_back(reference, path, resource)
        assert here.keys() == there.keys()
        for variable, value in here.items():
            np.testing.assert_array_equal(value, there[variable], err_msg=variable)
        assert lib.train.latest_checkpoint(str(tmp_path / name)) == path
        other = reference if lib is tf else tf
        assert other.train.latest_checkpoint(str(tmp_path / name)) == path
        assert tf.train.list_variables(path) == [
            (n, list(shape)) for n, shape in reference.train.list_variables(path)
        ]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.name)
def test_every_type_is_read(tmp_path, dtype, version):
    array = values(dtype, (3, 5))
    theirs = reference.as_dtype(dtype.name)
    if version == 1 and dtype.name in NOT_IN_V1:
        pytest.skip("TensorFlow writes or shows no such V1 checkpoints")
    with reference.Graph().as_default(), reference.Session() as sess:
        fed = reference.placeholder(theirs, [3, 5])
        v = reference.Variable(fed, name="v", validate_shape=False)
        sess.run(v.initializer, {fed: array})
        saver = reference.train.Saver(write_version=version)
        path = saver.save(sess, str(tmp_path / "theirs"))
    reader = (BundleReader if version == 2 else V1Reader)(path)
    np.testing.assert_array_equal(reader.tensor("v"), array)
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.Variable(tf.constant(array, dtype), name="v")
        sess.run(v.initializer)
        saver = tf.train.Saver(write_version=version)
        path = saver.save(sess, str(tmp_path / "ours"))
    found = reference.train.load_checkpoint(path).get_tensor("v")
    np.testing.assert_array_equal(found, array)


@RESOURCE
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_meta_graph_is_trained_on_elsewhere(tmp_path, resource, optimizer):
    """With what the file says only."""

    def model(lib):
        x = lib.placeholder(lib.float64, [None, 3], name="x")
        w = lib.get_variable("w", initializer=np.ones([3, 1]), use_resource=resource)
        p = lib.get_variable(
            *("p", [4, 3]),
            initializer=lib.constant_initializer(0.5),
            dtype=lib.float64,
            partitioner=lib.fixed_size_partitioner(2),
            use_resource=resource,
        )
        table = lib.get_variable("table", initializer=np.ones([5, 1]), use_resource=resource)
        rows = lib.gather(table, [1, 3, 1])
        y = lib.tanh(lib.matmul(x, w)) + lib.reduce_sum(p) + lib.reduce_sum(rows)
        loss = lib.reduce_mean(lib.square(y - 1.0), name="loss")
        train = OPTIMIZERS[optimizer](lib.train).minimize(loss, name="train")
        lib.add_to_collection("train", train)
        return train

    fed = {"x:0": np.arange(6.0).reshape(2, 3) / 6}
    losses = []
    for writer, reader in ((tf, reference), (reference, tf), (tf, tf)):
        folder = tmp_path / f"{writer.__name__}-{reader.__name__}"
        folder.mkdir()
        with writer.Graph().as_default(), writer.Session() as sess:
            train = model(writer)
            sess.run(writer.global_variables_initializer())
            for _ in range(3):
                sess.run(train, fed)
            path = writer.train.Saver().save(sess, str(folder / "m"))
        with reader.Graph().as_default(), reader.Session() as sess:
            saver = reader.train.import_meta_graph(f"{path}.meta")
            saver.restore(sess, path)
            [train] = reader.get_collection("train")
            assert len(reader.trainable_variables()) == 4
            for _ in range(3):
                sess.run(train, fed)
            losses.append(sess.run("loss:0", fed))
    np.testing.assert_allclose(losses, losses[0], rtol=1e-9)


@RESOURCE
def test_a_meta_graph_of_theirs_is_read(tmp_path, resource):
    with reference.Graph().as_default(), reference.Session() as sess:
        x = reference.placeholder(reference.float64, [None, 3], name="x")
        w = reference.get_variable("w", initializer=np.ones([3, 2]), use_resource=resource)
        y = reference.while_loop(
            lambda i, a: i < 3, lambda i, a: (i + 1, reference.tanh(a)), [0, reference.matmul(x, w)]
        )[1]
        reference.add_to_collection("outputs", y)
        sess.run(reference.global_variables_initializer())
        fed = {"x:0": np.arange(6.0).reshape(2, 3)}
        expected = sess.run(y, fed)
        path = reference.train.Saver().save(sess, str(tmp_path / "m"))
    with tf.Graph().as_default(), tf.Session() as sess:
        saver = tf.train.import_meta_graph(f"{path}.meta")
        saver.restore(sess, path)
        [y] = tf.get_collection("outputs")
        np.testing.assert_allclose(sess.run(y, fed), expected, rtol=1e-12)


def trained_table(lib, shards, path, restore, steps):
    """The table and its slot after some steps, from a checkpoint of any partitioning or none."""
    with lib.Graph().as_default():
        ids = lib.placeholder(lib.int64, [None])
        table = lib.get_variable(
            "table",
            [11, 3],
            initializer=lib.ones_initializer(),
            partitioner=lib.fixed_size_partitioner(shards) if shards else None,
        )
        rows = lib.nn.embedding_lookup(table, ids, partition_strategy="div")
        optimizer = lib.train.AdagradOptimizer(0.5)
        train = optimizer.minimize(lib.reduce_sum(lib.square(rows)))
        parts = list(table) if shards else [table]
        slots = [optimizer.get_slot(part, "accumulator") for part in parts]
        saver = lib.train.Saver()
        with lib.Session() as sess:
            sess.run(lib.global_variables_initializer())
            if restore:
                saver.restore(sess, path)
            for step in range(steps):
                sess.run(train, {ids: [step, 3, 10, 3]})
            if not restore:
                saver.save(sess, path)
            return [np.concatenate(sess.run(each)) for each in (parts, slots)]


@pytest.mark.parametrize("writer", ["runnel", "tensorflow"])
def test_training_goes_on_with_tables_that_are_cut_otherwise(writer, tmp_path):
    libraries = {"runnel": tf, "tensorflow": reference}
    path = str(tmp_path / "model")
    trained_table(libraries[writer], 3, path, False, 4)
    expected = trained_table(reference, 3, path, True, 2)
    for lib in libraries.values():
        for shards in (0, 1, 2, 5):
            found = trained_table(lib, shards, path, True, 2)
            for got, wanted in zip(found, expected, strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-6)


@pytest.mark.parametrize("name", ["qint8", "quint8", "qint16", "quint16", "qint32"])
def test_quantized_tensors_go_both_ways(tmp_path, name):
    for k, (one, other) in enumerate([(tf, reference), (reference, tf)]):
        dtype, path = getattr(one, name), str(tmp_path / str(k))
        save, restore = (lib.raw_ops if lib is reference else None for lib in (one, other))
        with one.Graph().as_default(), one.Session() as sess:
            values = one.bitcast(one.constant([1, 2, 100], getattr(one, name[1:])), dtype)
            arguments = {"tensor_names": ["x"], "shape_and_slices": [""], "tensors": [values]}
            if save is not None:
                sess.run(save.SaveV2(prefix=path, **arguments))
            else:
                sess.run(tf.registered_ops()["SaveV2"](path, *arguments.values()))
        with other.Graph().as_default(), other.Session() as sess:
            kind = getattr(other, name)
            if restore is not None:
                (found,) = restore.RestoreV2(
                    prefix=path, tensor_names=["x"], shape_and_slices=[""], dtypes=[kind]
                )
            else:
                (found,) = tf.registered_ops()["RestoreV2"](path, ["x"], [""], dtypes=[kind])
            assert found.dtype == kind
            plain = sess.run(other.bitcast(found, getattr(other, name[1:])))
        assert plain.tolist() == [1, 2, 100]
