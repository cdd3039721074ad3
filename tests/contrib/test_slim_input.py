"""``tf.contrib.slim``'s input: record files, readers that fill a queue, items, prefetching."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf

slim = tf.contrib.slim
decoders = slim.tfexample_decoder
SIDES = ("ymin", "xmin", "ymax", "xmax")
RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 255, (6, 4, 5, 3), np.uint8)
BOXES = [RNG.random((1 + i % 3, 4), np.float32) for i in range(6)]


def feature(values):
    if isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def write(path, numbers):
    with tf.python_io.TFRecordWriter(str(path)) as writer:
        for i in numbers:
            image = (
                IMAGES[i].tobytes() if i % 2 else tf.Session().run(tf.image.encode_png(IMAGES[i]))
            )
            made = {"image/encoded": [image], "image/format": [b"raw" if i % 2 else b"png"]}
            made |= {"label": [int(i)], "at": [0, 2], "values": [float(i), 0.5]}
            made |= {"matrix": [float(n) for n in range(6)], "height": [2], "width": [3]}
            for place, side in enumerate(SIDES):
                made[f"box/{side}"] = [float(x) for x in BOXES[i][:, place]]
            features = {name: feature(values) for name, values in made.items()}
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())


def data_set(folder):
    fixed, varying = tf.FixedLenFeature, tf.VarLenFeature
    features = {
        "image/encoded": fixed([], tf.string),
        "image/format": fixed([], tf.string, default_value="png"),
        "label": fixed([], tf.int64),
        "height": fixed([1], tf.int64),
        "width": fixed([1], tf.int64),
        "at": varying(tf.int64),
        "values": varying(tf.float32),
        "matrix": varying(tf.float32),
    }
    features |= {f"box/{side}": varying(tf.float32) for side in SIDES}
    handlers = {
        "image": decoders.Image(shape=[4, 5, 3]),
        "label": decoders.Tensor("label"),
        "boxes": decoders.BoundingBox(SIDES, "box/"),
        "scattered": decoders.SparseTensor("at", "values", shape=[4], densify=True),
        "matrix": decoders.Tensor("matrix", shape_keys=["height", "width"]),
        "area": decoders.ItemHandlerCallback(
            ["height", "width"], lambda given: given["height"] * given["width"]
        ),
        "boxes or matrix": decoders.BackupHandler(
            decoders.BoundingBox(SIDES, "box/"), decoders.Tensor("matrix", shape=[2, 3])
        ),
    }
    return slim.dataset.Dataset(
        str(folder / "part-*"),
        tf.TFRecordReader,
        decoders.TFExampleDecoder(features, handlers),
        num_samples=6,
        items_to_descriptions={"label": "a number"},
        num_classes=6,
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    with tf.Graph().as_default():
        write(folder / "part-0", range(3))
        write(folder / "part-1", range(3, 6))
    return folder


def test_items_are_decoded_by_their_handlers(files):
    provider = slim.dataset_data_provider.DatasetDataProvider(
        data_set(files), shuffle=False, num_epochs=1
    )
    assert provider.num_samples() == 6
    items = ["image", "label", "boxes", "scattered", "matrix", "area", "record_key"]
    tensors = provider.get(items)
    with tf.Session() as sess, slim.queues.QueueRunners(_initialized(sess)):
        for number in range(6):
            found = dict(zip(items, sess.run(tensors), strict=True))
            assert found["label"] == number
            np.testing.assert_array_equal(found["image"], IMAGES[number])
            np.testing.assert_array_equal(found["boxes"], BOXES[number])
            np.testing.assert_array_equal(found["scattered"], [number, 0, 0.5, 0])
            np.testing.assert_array_equal(found["matrix"], np.arange(6).reshape(2, 3))
            assert found["area"] == [6]
            assert str(files / f"part-{number // 3}").encode() in found["record_key"]
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(tensors)


def _initialized(sess):
    sess.run(tf.local_variables_initializer())
    return sess


def test_several_readers_read_every_record_once(files):
    provider = slim.dataset_data_provider.DatasetDataProvider(
        data_set(files), num_readers=2, num_epochs=1, common_queue_min=2, seed=3
    )
    (label,) = provider.get(["label"])
    with tf.Session() as sess, slim.queues.QueueRunners(_initialized(sess)):
        assert sorted(sess.run(label) for _ in range(6)) == list(range(6))


def test_a_prefetch_queue_gives_batches_by_name(files):
    provider = slim.dataset_data_provider.DatasetDataProvider(data_set(files), shuffle=False)
    images, labels = tf.train.batch(provider.get(["image", "label"]), batch_size=2)
    queue = slim.prefetch_queue.prefetch_queue({"image": images, "label": labels}, capacity=2)
    taken = queue.dequeue()
    with tf.Session() as sess, slim.queues.QueueRunners(_initialized(sess)):
        for first in (0, 2, 4, 0):
            found = sess.run(taken)
            assert found["label"].tolist() == [first, first + 1]
            np.testing.assert_array_equal(found["image"], IMAGES[first : first + 2])


def test_what_is_not_there_is_named(files):
    provider = slim.dataset_data_provider.DatasetDataProvider(data_set(files))
    with pytest.raises(ValueError, match="no item 'labels'"):
        provider.get(["labels"])
    with pytest.raises(ValueError, match="No data files found"):
        slim.parallel_reader.get_data_files(str(files / "absent-*"))


def test_variables_are_counted(capsys):
    slim.fully_connected(tf.zeros([2, 3]), 4, scope="layer")
    assert slim.model_analyzer.analyze_vars(tf.trainable_variables(), print_info=True) == (16, 64)
    assert "layer/weights:0 (float32_ref 3x4) [12, bytes: 48]" in capsys.readouterr().out
