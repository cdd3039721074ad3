"""SavedModels: what can go wrong while one is written or read."""

from __future__ import annotations

import random

import numpy as np
import pytest

import runnel as tf
from runnel.saved_model.assets import _TYPE_URL
from runnel.saved_model.model_file import read_saved_model, write_saved_model


@pytest.fixture
def folder(tmp_path):
    """A model with a variable, a branch, a loop, a queue runner and a file."""
    asset = tmp_path / "words.txt"
    asset.write_text("words")
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [2], name="x")
        w = tf.get_variable("w", initializer=np.float32([1.0, 2.0]))
        y = tf.cond(x[0] > 0.0, lambda: x * w, lambda: x - w)
        _, y = tf.while_loop(lambda i, _: i < 2, lambda i, s: (i + 1, s * w), [0, y])
        tf.train.slice_input_producer([[1.0, 2.0]], shuffle=False)
        path = tf.constant(str(asset))
        tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, path)
        sess.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(
            sess, tmp_path / "model", {"x": x}, {"y": y}, tf.group(tf.identity(path))
        )
    return tmp_path / "model"


def load(folder, tags=("serve",)):
    # A damaged loop may have no end.
    with (
        tf.Graph().as_default(),
        tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=2000)) as sess,
    ):
        model = tf.saved_model.load(sess, tags, folder)
        signature = model.signature_def["serving_default"]
        x, y = signature.inputs["x"].name, signature.outputs["y"].name
        return sess.run(y, {x: [3.0, 4.0]})


def test_a_model_is_loaded_as_it_was_saved(folder):
    np.testing.assert_allclose(load(folder), [3.0, 32.0])
    assert (folder / "assets" / "words.txt").read_text() == "words"


def test_tags_that_are_not_there_are_answered_with_those_that_are(folder):
    with pytest.raises(RuntimeError, match="tags gpu, serve could not be found.*tags: serve"):
        load(folder, ["serve", "gpu"])


def test_a_folder_without_a_model_is_named(tmp_path):
    assert not tf.saved_model.contains_saved_model(tmp_path)
    with pytest.raises(OSError, match=str(tmp_path)):
        load(tmp_path)


def test_a_folder_that_has_files_is_not_written_to(folder):
    with pytest.raises(AssertionError, match="isn't empty"):
        tf.saved_model.Builder(folder)


def test_the_folder_is_no_model_until_it_is_saved(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.get_variable("w", [2])
        sess.run(tf.global_variables_initializer())
        builder = tf.saved_model.Builder(tmp_path / "m")
        with pytest.raises(AssertionError, match="add_meta_graph_and_variables"):
            builder.add_meta_graph(["serve"])
        builder.add_meta_graph_and_variables(sess, ["serve"])
        with pytest.raises(AssertionError, match="add_meta_graph()"):
            builder.add_meta_graph_and_variables(sess, ["serve"])
        assert not tf.saved_model.contains_saved_model(tmp_path / "m")
        builder.save()
        assert tf.saved_model.contains_saved_model(tmp_path / "m")


def test_two_files_of_one_name_are_both_kept(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "words.txt").write_text(name)
    with tf.Graph().as_default(), tf.Session() as sess:
        paths = [tf.constant(str(tmp_path / name / "words.txt")) for name in "aba"]
        builder = tf.saved_model.Builder(tmp_path / "m")
        builder.add_meta_graph_and_variables(sess, ["serve"], assets_collection=paths)
    found = {path.read_text() for path in (tmp_path / "m" / "assets").iterdir()}
    assert found == {"a", "b"}


def test_mistakes_are_told_while_the_model_is_built(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        builder = tf.saved_model.Builder(tmp_path / "m")
        add = builder.add_meta_graph_and_variables
        with pytest.raises(TypeError, match="constant string"):
            add(sess, ["serve"], assets_collection=[tf.placeholder(tf.string)])
        with pytest.raises(ValueError, match="there is no file"):
            add(sess, ["serve"], assets_collection=[tf.constant("/no/such/file")])
        with pytest.raises(TypeError, match="main_op must be an Operation"):
            add(sess, ["serve"], main_op=tf.constant(1))
        info = tf.saved_model.build_tensor_info(tf.constant(1))
        info.ClearField("dtype")
        with pytest.raises(AssertionError, match="'x' of the signature 'f' has no"):
            add(sess, ["serve"], {"f": tf.saved_model.build_signature_def({"x": info})})
        with pytest.raises(KeyError, match="reserved"):
            add(sess, ["serve"], {"__saved_model_init_op": tf.saved_model.build_signature_def()})


@pytest.mark.parametrize("name", ["../words.txt", "/etc/passwd", "a/../../b", "", "..", "a\0b"])
def test_an_asset_outside_of_the_folder_is_refused(folder, name):
    from tensorboard.compat.proto.meta_graph_pb2 import AssetFileDef

    model = read_saved_model(folder)
    [noted] = model.meta_graphs[0].collection_def["saved_model_assets"].any_list.value
    assert noted.type_url == _TYPE_URL
    described = AssetFileDef.FromString(noted.value)
    described.filename = name
    noted.value = described.SerializeToString()
    write_saved_model(folder, model, as_text=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="outside of its folder"):
        load(folder)


def test_a_call_of_a_function_that_the_model_lacks_is_named(folder):
    model = read_saved_model(folder)
    call = model.meta_graphs[0].graph_def.node.add(name="call", op="StatefulPartitionedCall")
    call.attr["f"].func.name = "serve"
    write_saved_model(folder, model, as_text=False)
    with pytest.raises(ValueError, match="'call'.*'serve'.*library is empty"):
        load(folder)


OURS = (OSError, ValueError, KeyError, TypeError, RuntimeError, tf.errors.OpError)


def test_damaged_models_are_refused_or_mean_the_same(folder):
    """Bytes changed, cut out and put in, everywhere: an exception that a caller can expect.

    What is loaded all the same gives a finite answer, or none.
    """
    path = folder / "saved_model.pb"
    content = path.read_bytes()
    chance = random.Random(7)
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(chance.choice([1, 1, 3, 20])):
            place = chance.randrange(len(damaged))
            kind = chance.randrange(3)
            if kind == 0:
                damaged[place] = chance.randrange(256)
            elif kind == 1:
                del damaged[place : place + chance.randrange(1, 9)]
            else:
                damaged[place:place] = chance.randbytes(chance.randrange(1, 5))
        path.write_bytes(damaged)
        try:
            load(folder)
        except OURS as error:
            assert not isinstance(error, RecursionError | NotImplementedError)
