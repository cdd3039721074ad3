"""What input is made of, damaged: images, sounds, texts, compressed records, messages of examples.

Their bytes are given to the operations that decode them, in one session for each kind.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import runnel as tf
from runnel.ops.parsing.message_fields import message_fields
from tests.mutated_files.mutations import mutate_message, mutated_bytes
from tests.mutated_files.subject import Subject

_NAME = "content"
Decoders = Callable[[Any], list[Any]]


@functools.cache
def _decoding(decoders: Decoders) -> tuple[tf.Session, Any, list[Any]]:
    """A session, where bytes go, and what is decoded of them."""
    with tf.Graph().as_default():
        content = tf.placeholder(tf.string, [])
        return tf.Session(), content, decoders(content)


def _decoded(decoders: Decoders, folder: Path) -> None:
    """Runs every decoder; fails if all of them do."""
    sess, content, made = _decoding(decoders)
    given = (folder / _NAME).read_bytes()
    errors = []
    for one in made:
        try:
            sess.run(one, {content: given})
        except tf.errors.OpError as error:
            errors.append(error)
    if len(errors) == len(made):
        raise errors[0]


def _damage(folder: Path, chance: random.Random) -> bool:
    path = folder / _NAME
    path.write_bytes(mutated_bytes(path.read_bytes(), chance))
    return True


def _bytes_subject(encode: Callable[[], bytes], decoders: Decoders) -> Subject:
    def make(folder: Path) -> None:
        (folder / _NAME).write_bytes(encode())

    return Subject(make, _damage, functools.partial(_decoded, decoders))


# Images and sounds --------------------------------------------------------------------------------


def _picture(depth: Any = np.uint8) -> Any:
    return np.random.default_rng(0).integers(0, 255, (23, 31, 3)).astype(depth)


def _encoded(encode: Callable[[], Any]) -> bytes:
    with tf.Graph().as_default(), tf.Session() as sess:
        return bytes(sess.run(encode()))


def _pillow(kind: str, **options: Any) -> bytes:
    import io

    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(_picture()).save(buffer, kind, **options)
    return buffer.getvalue()


def _gif() -> bytes:
    import io

    from PIL import Image

    frames = [Image.fromarray(np.roll(_picture(), n, 0)) for n in range(3)]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    return buffer.getvalue()


def _jpeg_decoders(content: Any) -> list[Any]:
    return [
        tf.image.decode_jpeg(content),
        tf.image.decode_jpeg(content, channels=1, ratio=2, try_recover_truncated=True),
        tf.image.decode_jpeg(content, channels=3, dct_method="INTEGER_FAST"),
        tf.image.decode_and_crop_jpeg(content, [2, 3, 8, 9]),
        tf.image.extract_jpeg_shape(content),
        tf.image.is_jpeg(content),
        tf.image.decode_image(content),
    ]


def _png_decoders(content: Any) -> list[Any]:
    return [
        tf.image.decode_png(content),
        tf.image.decode_png(content, channels=4, dtype=tf.uint16),
        tf.image.decode_image(content, channels=3),
    ]


def _gif_decoders(content: Any) -> list[Any]:
    return [tf.image.decode_gif(content), tf.image.decode_image(content)]


def _bmp_decoders(content: Any) -> list[Any]:
    return [tf.image.decode_bmp(content), tf.image.decode_image(content, channels=3)]


def _wav_decoders(content: Any) -> list[Any]:
    return [
        tf.audio.decode_wav(content),
        tf.audio.decode_wav(content, desired_channels=1, desired_samples=64),
    ]


# Texts ------------------------------------------------------------------------------------------


def _text_decoders(content: Any) -> list[Any]:
    lines = tf.string_split([content], "\n").values
    unicode = tf.strings.unicode_decode([content], "UTF-8")
    return [
        tf.decode_csv(lines, [[0], [0.5], ["x"], tf.constant([], tf.int64)]),
        tf.decode_csv(lines, [[""]] * 4, use_quote_delim=False, na_value="NA"),
        tf.string_to_number(tf.string_split([content], ",").values),
        tf.decode_base64(content),
        tf.strings.unicode_transcode(content, "UTF-16-BE", "UTF-8"),
        unicode.values,
        tf.strings.unicode_split_with_offsets([content], "UTF-8")[0].values,
        tf.string_to_hash_bucket_strong(content, 10, [1, 2]),
        tf.decode_raw(content, tf.float32),
        tf.decode_raw(content, tf.uint16, little_endian=False),
    ]


_JSON = (
    b'{"features": {"feature": {"n": {"int64List": {"value": ["3", 4]}}, "f": {"floatList": '
    b'{"value": [0.5, "NaN"]}}, "s": {"bytesList": {"value": ["dGV4dA=="]}}}}}'
)


def _json_decoders(content: Any) -> list[Any]:
    return [tf.decode_json_example(content)]


def _tensor_decoders(content: Any) -> list[Any]:
    return [
        tf.parse_tensor(content, tf.float32),
        tf.parse_tensor(content, tf.string),
        tf.parse_tensor(content, tf.int64),
    ]


def _compressed_decoders(content: Any) -> list[Any]:
    return [tf.decode_compressed(content, kind) for kind in ("ZLIB", "GZIP")]


def _zlib() -> bytes:
    import zlib

    return zlib.compress(b"what stands in a record " * 400)


# Record files of every reader ---------------------------------------------------------------------


def _make_records(compression: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        with tf.python_io.TFRecordWriter(str(folder / _NAME), compression) as writer:
            for n in range(6):
                writer.write(bytes([n]) * (n * 37))

    return make


@functools.cache
def _readers(compression: str) -> tuple[tf.Session, Any, list[tuple[Any, Any]]]:
    """A session, where a path goes, and what begins with the file and gives the next of it."""
    with tf.Graph().as_default():
        path = tf.placeholder(tf.string, [])
        datasets = [
            tf.data.TFRecordDataset(path, compression),
            tf.data.TextLineDataset(path, compression),
            tf.data.FixedLengthRecordDataset(path, 7, 3, 2),
            tf.data.experimental.CsvDataset(
                path, [tf.constant([""]), tf.constant([0.5])], compression_type=compression or None
            ),
        ]
        pairs = []
        for dataset in datasets:
            iterator = dataset.batch(2).make_initializable_iterator()
            pairs.append((iterator.initializer, iterator.get_next()))
        queue = tf.FIFOQueue(1, tf.string, [[]])
        options = {"": None, "GZIP": 2, "ZLIB": 1}[compression]
        reader = tf.TFRecordReader(
            options=None if options is None else tf.python_io.TFRecordOptions(options)
        )
        with tf.control_dependencies([reader.reset()]):
            pairs.append((queue.enqueue(path), reader.read_up_to(queue, 3)[1]))
        return tf.Session(), path, pairs


_MOST = 200


def _read_records(compression: str, folder: Path) -> None:
    sess, path, pairs = _readers(compression)
    errors = []
    for begin, element in pairs:
        is_reader = isinstance(element, tf.Tensor) and element.op.type.startswith("Reader")
        options = tf.RunOptions(timeout_in_ms=100 if is_reader else 10_000)
        try:
            sess.run(begin, {path: str(folder / _NAME)}, options)
            for _ in range(_MOST):
                sess.run(element, options=options)
        except tf.errors.OutOfRangeError:
            pass
        except tf.errors.DeadlineExceededError:
            if not is_reader:  # which waits for the name of another file
                raise AssertionError("reading took more than ten seconds") from None
        except tf.errors.OpError as error:
            errors.append(error)
    if len(errors) == len(pairs):
        raise errors[0]


def _records_subject(compression: str) -> Subject:
    return Subject(
        _make_records(compression), _damage, functools.partial(_read_records, compression)
    )


# Messages of examples, by every way to parse them -------------------------------------------------


def _sequence() -> Any:
    example = tf.train.SequenceExample()
    example.context.feature["n"].int64_list.value.append(3)
    for n in range(4):
        frame = example.feature_lists.feature_list["frames"].feature.add()
        frame.float_list.value.extend([n, n / 2])
        tokens = example.feature_lists.feature_list["tokens"].feature.add()
        tokens.bytes_list.value.extend([b"word"] * n)
    return example


def _sequence_decoders(content: Any) -> list[Any]:
    frames = {
        "frames": tf.FixedLenSequenceFeature([2], tf.float32),
        "tokens": tf.VarLenFeature(tf.string),
    }
    context = {"n": tf.FixedLenFeature([], tf.int64)}
    one = tf.io.parse_single_sequence_example(content, context, frames)
    many = tf.io.parse_sequence_example(tf.stack([content, content]), context, frames)
    return [[one[0]["n"], one[1]["frames"], one[1]["tokens"]], many[0]["n"], many[1]["frames"]]


def _example() -> Any:
    example = tf.train.Example()
    feature = example.features.feature
    feature["n"].int64_list.value.extend([3, 4])
    feature["f"].float_list.value.extend([0.5, 1.5, 2.5])
    feature["v"].float_list.value.extend([0.25, 0.125])
    feature["s"].bytes_list.value.extend([b"text", b""])
    return example


def _example_decoders(content: Any) -> list[Any]:
    features = {
        "n": tf.VarLenFeature(tf.int64),
        "f": tf.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
        "s": tf.FixedLenFeature([2], tf.string, ["", ""]),
        "w": tf.SparseFeature("n", "v", tf.float32, 10),
    }
    whole = tf.parse_example(tf.stack([content, _example().SerializeToString(), content]), features)
    return [whole, tf.parse_single_example(content, features)]


def _message_subject(example: Any, decoders: Decoders) -> Subject:
    def make(folder: Path) -> None:
        (folder / _NAME).write_bytes(example().SerializeToString())

    def damage(folder: Path, chance: random.Random) -> bool:
        if chance.random() < 0.5:
            return _damage(folder, chance)
        message = example()
        for _ in range(chance.choice([1, 1, 3])):
            mutate_message(message, chance)
        (folder / _NAME).write_bytes(message.SerializeToString())
        return True

    return Subject(make, damage, functools.partial(_decoded, decoders))


# Messages of any kind, and their descriptions -----------------------------------------------------


def _descriptions() -> bytes:
    from google.protobuf import descriptor_pb2

    described = descriptor_pb2.FileDescriptorSet()
    tf.train.Example.DESCRIPTOR.file.CopyToProto(described.file.add())
    return described.SerializeToString()


def _message_decoders(content: Any) -> list[Any]:
    names, types = ["features"], [tf.string]
    text = tf.io.decode_proto(content, "tensorflow.Example", names, types, message_format="text")
    made = tf.io.decode_proto(content, "tensorflow.Example", names, types)
    inner = tf.io.decode_proto(made.values[0], "tensorflow.Features", ["feature"], types)
    return [text, made, inner]


def _read_descriptions(folder: Path) -> None:
    kind = tf.train.Example.DESCRIPTOR.full_name
    message_fields.cache_clear()
    with tf.Graph().as_default(), tf.Session() as sess:
        example = _example().SerializeToString()
        sess.run(tf.io.decode_proto(example, kind, ["features"], [tf.string], str(folder / _NAME)))


def _make_descriptions(folder: Path) -> None:
    (folder / _NAME).write_bytes(_descriptions())


INPUT_SUBJECTS = {
    "message": _bytes_subject(lambda: _example().SerializeToString(), _message_decoders),
    "descriptions": Subject(_make_descriptions, _damage, _read_descriptions),
    "jpeg": _bytes_subject(
        lambda: _encoded(lambda: tf.image.encode_jpeg(_picture())), _jpeg_decoders
    ),
    "progressive_jpeg": _bytes_subject(lambda: _pillow("JPEG", progressive=True), _jpeg_decoders),
    "png": _bytes_subject(lambda: _encoded(lambda: tf.image.encode_png(_picture())), _png_decoders),
    "png_16": _bytes_subject(
        lambda: _encoded(lambda: tf.image.encode_png(_picture(np.uint16))), _png_decoders
    ),
    "gif": _bytes_subject(_gif, _gif_decoders),
    "bmp": _bytes_subject(lambda: _pillow("BMP"), _bmp_decoders),
    "wav": _bytes_subject(
        lambda: _encoded(lambda: tf.audio.encode_wav(np.zeros((50, 2), np.float32), 8000)),
        _wav_decoders,
    ),
    "csv": _bytes_subject(lambda: b'1,2.5,"a, b",7\n,3,x,9\n-4,1e5,"q""q",12', _text_decoders),
    "json": _bytes_subject(lambda: _JSON, _json_decoders),
    "tensor": _bytes_subject(
        lambda: tf.make_tensor_proto(np.arange(6.0, dtype=np.float32)).SerializeToString(),
        _tensor_decoders,
    ),
    "compressed": _bytes_subject(_zlib, _compressed_decoders),
    "records": _records_subject(""),
    "gzip_records": _records_subject("GZIP"),
    "zlib_records": _records_subject("ZLIB"),
    "example": _message_subject(_example, _example_decoders),
    "sequence_example": _message_subject(_sequence, _sequence_decoders),
}
