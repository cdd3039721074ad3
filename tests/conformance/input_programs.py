"""Input as programs of TensorFlow 1.15 write it, each a function of the module and a folder.

A program gives what its steps fetched. Of what is drawn at random it gives the shapes and types,
or what does not depend on the order.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

LABELS = 4


def described(values: Any) -> list[Any]:
    """The shapes and types of what was fetched."""
    return [(np.shape(value), np.asarray(value).dtype.name) for value in values]


def all_of(tf: Any, fetch: Any, sess: Any, most: int = 1000) -> list[Any]:
    """What steps fetch until the input ends."""
    found = []
    try:
        while len(found) < most:
            found.append(sess.run(fetch))
    except tf.errors.OutOfRangeError:
        pass
    return found


def run_queues(tf: Any, fetch: Any) -> list[Any]:
    """What steps fetch from queues that threads fill, until they are empty."""
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        found = all_of(tf, fetch, sess)
        coord.request_stop()
        coord.join(threads)
    return found


# Images: shards of examples with JPEG files, boxes, distortions -----------------------------------


def _int64s(tf: Any, *values: int) -> Any:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def _floats(tf: Any, *values: float) -> Any:
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def _texts(tf: Any, *values: bytes) -> Any:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def _pictures(count: int = 12) -> Any:
    rows, columns = np.mgrid[0:40, 0:56]
    return [
        np.stack([rows * (n % 5), columns * 3, rows + columns + n], -1).astype(np.uint8)
        for n in range(count)
    ]


def write_image_shards(tf: Any, folder: Any) -> None:
    """Three record files of examples as the ImageNet scripts write them."""
    with tf.Graph().as_default(), tf.Session() as sess:
        content = tf.placeholder(tf.uint8, [None, None, 3])
        encoded = tf.image.encode_jpeg(content, quality=95)
        for shard in range(3):
            path = str(folder / f"train-{shard:05d}-of-00003")
            with tf.python_io.TFRecordWriter(path) as writer:
                for n, picture in list(enumerate(_pictures()))[shard::3]:
                    boxes = [[0.1, 0.2], [0.5, 0.25], [0.6, 0.7], [0.9, 1.0]][: 4 * (n % 2)]
                    names = ("ymin", "xmin", "ymax", "xmax")
                    features = {
                        "image/encoded": _texts(tf, sess.run(encoded, {content: picture})),
                        "image/class/label": _int64s(tf, 1 + n % LABELS),
                        "image/class/text": _texts(tf, b"class %d" % n),
                        **{
                            f"image/object/bbox/{name}": _floats(tf, *values)
                            for name, values in zip(names, boxes or [[]] * 4, strict=True)
                        },
                    }
                    example = tf.train.Example(features=tf.train.Features(feature=features))
                    writer.write(example.SerializeToString())


def _parsed_image(tf: Any, serialized: Any) -> tuple[Any, Any, Any, Any]:
    features = {
        "image/encoded": tf.FixedLenFeature([], dtype=tf.string, default_value=""),
        "image/class/label": tf.FixedLenFeature([1], dtype=tf.int64, default_value=-1),
        "image/class/text": tf.FixedLenFeature([], dtype=tf.string, default_value=""),
    }
    sides = ["image/object/bbox/" + side for side in ("ymin", "xmin", "ymax", "xmax")]
    features.update({side: tf.VarLenFeature(dtype=tf.float32) for side in sides})
    found = tf.parse_single_example(serialized, features)
    label = tf.cast(found["image/class/label"], dtype=tf.int32)
    columns = [tf.expand_dims(found[side].values, 0) for side in sides]
    boxes = tf.transpose(tf.expand_dims(tf.concat(columns, 0), 0), [0, 2, 1])
    return found["image/encoded"], label, boxes, found["image/class/text"]


def image_evaluation(tf: Any, folder: Any) -> Any:
    """Central crops, resized and scaled: all values."""
    write_image_shards(tf, folder)
    files = tf.data.Dataset.list_files(str(folder / "train-*"), shuffle=False)
    records = files.interleave(tf.data.TFRecordDataset, cycle_length=2, block_length=2)

    def prepared(serialized: Any) -> Any:
        content, label, _, text = _parsed_image(tf, serialized)
        image = tf.image.decode_jpeg(content, channels=3, dct_method="INTEGER_ACCURATE")
        image = tf.image.convert_image_dtype(image, dtype=tf.float32)
        image = tf.image.central_crop(image, central_fraction=0.875)
        image = tf.expand_dims(image, 0)
        image = tf.image.resize_bilinear(image, [24, 24], align_corners=False)
        image = tf.squeeze(image, [0])
        image = tf.multiply(tf.subtract(image, 0.5), 2.0)
        return image, tf.reshape(label, []), text

    batches = records.map(prepared, num_parallel_calls=2).batch(5).prefetch(1)
    element = tf.data.make_one_shot_iterator(batches).get_next()
    with tf.Session() as sess:
        return all_of(tf, element, sess)


def image_training(tf: Any, folder: Any) -> Any:
    """Random crops by boxes, flips and colours, shuffled: what comes out of it, not which."""
    write_image_shards(tf, folder)

    def distorted(serialized: Any) -> Any:
        content, label, boxes, _ = _parsed_image(tf, serialized)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(content),
            bounding_boxes=boxes,
            min_object_covered=0.1,
            aspect_ratio_range=[0.75, 1.33],
            area_range=[0.05, 1.0],
            max_attempts=100,
            use_image_if_no_bounding_boxes=True,
        )
        y, x, _ = tf.unstack(begin)
        height, width, _ = tf.unstack(size)
        image = tf.image.decode_and_crop_jpeg(content, tf.stack([y, x, height, width]), channels=3)
        image = tf.image.resize_images(image, [20, 20], method=tf.image.ResizeMethod.BICUBIC)
        image.set_shape([20, 20, 3])
        image = tf.image.random_flip_left_right(image / 255.0)
        image = tf.image.random_brightness(image, max_delta=32.0 / 255.0)
        image = tf.image.random_saturation(image, lower=0.5, upper=1.5)
        image = tf.image.random_hue(image, max_delta=0.2)
        image = tf.clip_by_value(tf.image.random_contrast(image, 0.5, 1.5), 0.0, 1.0)
        return {"image": image, "label": tf.reshape(label, [])}

    files = tf.data.Dataset.list_files(str(folder / "train-*"))
    records = files.apply(
        tf.data.experimental.parallel_interleave(tf.data.TFRecordDataset, cycle_length=3)
    )
    records = records.apply(tf.data.experimental.shuffle_and_repeat(8, 2))
    batches = records.apply(
        tf.data.experimental.map_and_batch(distorted, 4, num_parallel_batches=1)
    ).prefetch(2)
    element = tf.data.make_one_shot_iterator(batches).get_next()
    with tf.Session() as sess:
        found = all_of(tf, element, sess)
    labels = np.concatenate([one["label"] for one in found])
    within = all(0 <= one["image"].min() <= one["image"].max() <= 1 for one in found)
    spread = all(one["image"].std() > 0.01 for one in found)
    return [described([one["image"] for one in found]), np.bincount(labels), within, spread]


# Words: vocabularies, ragged lines, buckets of lengths --------------------------------------------

LINES = [
    "the cat sat on the mat",
    "a dog",
    "the dog sat",
    "on a mat the cat and the dog sat",
    "cat",
    "",
    "an unknown word",
    "the the the the the",
    "dog and cat",
]


def translation(tf: Any, folder: Any) -> Any:
    """Pairs of lines through vocabularies into padded buckets, with lengths and shifted targets."""
    (folder / "source.txt").write_text("\n".join(LINES) + "\n")
    (folder / "target.txt").write_text("\n".join(reversed(LINES)) + "\n")
    words = sorted({word for line in LINES for word in line.split()} - {"unknown"})
    (folder / "vocabulary.txt").write_text("\n".join(["<unk>", "<s>", "</s>", *words]) + "\n")
    table = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(
            str(folder / "vocabulary.txt"),
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        ),
        0,
    )
    begin, end = (tf.cast(table.lookup(tf.constant(t)), tf.int32) for t in ("<s>", "</s>"))
    source = tf.data.TextLineDataset(str(folder / "source.txt"))
    target = tf.data.TextLineDataset(str(folder / "target.txt"))
    pairs = tf.data.Dataset.zip((source, target))
    pairs = pairs.map(lambda s, t: (tf.string_split([s]).values, tf.string_split([t]).values))
    pairs = pairs.filter(lambda s, t: tf.logical_and(tf.size(s) > 0, tf.size(t) > 0))
    pairs = pairs.map(lambda s, t: (s[:6], t[:6]), num_parallel_calls=2)
    numbers = pairs.map(
        lambda s, t: (tf.cast(table.lookup(s), tf.int32), tf.cast(table.lookup(t), tf.int32))
    )
    shifted = numbers.map(lambda s, t: (s, tf.concat(([begin], t), 0), tf.concat((t, [end]), 0)))
    lengths = shifted.map(lambda s, i, o: (s, i, o, tf.size(s), tf.size(i)))

    def batched(dataset: Any) -> Any:
        return dataset.padded_batch(
            2,
            padded_shapes=(
                tf.TensorShape([None]),
                tf.TensorShape([None]),
                tf.TensorShape([None]),
                tf.TensorShape([]),
                tf.TensorShape([]),
            ),
            padding_values=(end, end, end, 0, 0),
        )

    def key(s: Any, i: Any, o: Any, s_length: Any, t_length: Any) -> Any:
        width = (6 + 3 - 1) // 3
        bucket = tf.maximum(s_length // width, t_length // width)
        return tf.cast(tf.minimum(3, bucket), tf.int64)

    buckets = lengths.apply(
        tf.data.experimental.group_by_window(
            key_func=key, reduce_func=lambda key, rows: batched(rows), window_size=2
        )
    )
    iterator = tf.data.make_initializable_iterator(buckets)
    element = iterator.get_next()
    with tf.Session() as sess:
        sess.run(tf.tables_initializer())
        sess.run(iterator.initializer)
        return all_of(tf, element, sess)


def words_by_length(tf: Any, folder: Any) -> Any:
    """``bucket_by_sequence_length`` over words that a table numbers, or hash buckets."""
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.constant(["the", "cat", "dog"]), tf.constant([0, 1, 2], tf.int64)
        ),
        num_oov_buckets=3,
    )
    rows = tf.data.Dataset.from_tensor_slices((LINES, np.arange(len(LINES)) % 2))
    rows = rows.map(
        lambda line, label: (
            {
                "tokens": table.lookup(tf.strings.split([line]).values),
                "characters": tf.strings.unicode_decode(line, "UTF-8"),
            },
            label,
        )
    )
    batches = rows.apply(
        tf.data.experimental.bucket_by_sequence_length(
            lambda features, label: tf.size(features["tokens"]),
            bucket_boundaries=[2, 5],
            bucket_batch_sizes=[3, 2, 2],
            padded_shapes=({"tokens": [None], "characters": [None]}, []),
            padding_values=(
                {"tokens": np.int64(-1), "characters": np.int32(0)},
                np.int64(0),
            ),
            pad_to_bucket_boundary=False,
        )
    )
    iterator = tf.data.make_initializable_iterator(batches)
    element = iterator.get_next()
    with tf.Session() as sess:
        sess.run([tf.tables_initializer(), iterator.initializer])
        return all_of(tf, element, sess)


# Tables: CSV, wide and deep columns ---------------------------------------------------------------


def census(tf: Any, folder: Any) -> Any:
    """Lines of CSV, decoded in batches, through feature columns into an input layer."""
    path = folder / "adult.csv"
    path.write_text(
        "39, State-gov,77516,Bachelors,13,<=50K\n"
        '50,"Self-emp, inc",83311,Bachelors,13,<=50K\n'
        "38, Private,,HS-grad,9,<=50K\n"
        ",Private,234721,11th,7,>50K\n"
        "28, Private,338409,Bachelors,,>50K\n"
        "37,,284582,Masters,14,<=50K\n"
    )
    names = ["age", "workclass", "weight", "education", "years", "income"]
    defaults = [[0], ["none"], [0.0], [""], [10], [""]]

    def parsed(lines: Any) -> Any:
        columns = tf.decode_csv(lines, record_defaults=defaults)
        features = dict(zip(names, columns, strict=True))
        return features, tf.equal(features.pop("income"), ">50K")

    dataset = tf.data.TextLineDataset(str(path)).batch(4).map(parsed, num_parallel_calls=2)
    features, labels = tf.data.make_one_shot_iterator(dataset).get_next()
    columns = tf.feature_column
    age = columns.numeric_column("age")
    ages = columns.bucketized_column(age, boundaries=[30, 38, 45])
    education = columns.categorical_column_with_vocabulary_list(
        "education", ["Bachelors", "HS-grad", "Masters"], num_oov_buckets=1
    )
    work = columns.categorical_column_with_hash_bucket("workclass", hash_bucket_size=7)
    crossed = columns.crossed_column([ages, "education"], hash_bucket_size=11)
    years = columns.numeric_column("years", normalizer_fn=lambda x: tf.cast(x, tf.float32) / 10)
    layer = columns.input_layer(
        features,
        [
            age,
            ages,
            columns.indicator_column(education),
            columns.indicator_column(work),
            columns.indicator_column(crossed),
            years,
        ],
    )
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return all_of(tf, [layer, labels], sess)


def csv_dataset(tf: Any, folder: Any) -> Any:
    """``make_csv_dataset`` with names from the header, chosen columns and a label."""
    path = folder / "flowers.csv"
    path.write_text(
        "sepal,petal,count,species\n"
        "5.1,1.4,3,setosa\n7.0,4.7,2,versicolor\n6.3,6.0,,virginica\n4.9,NA,5,setosa\n"
    )
    dataset = tf.data.experimental.make_csv_dataset(
        str(path),
        batch_size=3,
        column_defaults=[tf.float32, 0.5, [7], tf.string],
        label_name="species",
        na_value="NA",
        num_epochs=1,
        shuffle=False,
    )
    element = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as sess:
        return [(dict(features), label) for features, label in all_of(tf, element, sess)]


# Sound --------------------------------------------------------------------------------------------


def speech(tf: Any, folder: Any) -> Any:
    """WAV files by pattern, decoded, cut to length, spectrograms, labels from the folder's name."""
    with tf.Graph().as_default(), tf.Session() as sess:
        for label in ("no", "yes"):
            (folder / label).mkdir()
            for n in range(2):
                time = np.arange(400 + 100 * n)[:, None] / 800
                wave = np.sin(time * (9 + 5 * n + len(label))) * 0.5
                encoded = sess.run(tf.audio.encode_wav(np.float32(wave), 800))
                (folder / label / f"{n}.wav").write_bytes(encoded)
    words = tf.constant(["no", "yes"])

    def decoded(path: Any) -> Any:
        audio, rate = tf.audio.decode_wav(
            tf.read_file(path), desired_channels=1, desired_samples=480
        )
        spectrum = tf.signal.stft(
            tf.squeeze(audio, 1), frame_length=128, frame_step=64, pad_end=True
        )
        mel = tf.signal.linear_to_mel_weight_matrix(10, 65, 800, 20.0, 380.0)
        mels = tf.log(tf.tensordot(tf.abs(spectrum), mel, 1) + 0.01)
        parts = tf.string_split([path], "/").values
        label = tf.argmax(tf.cast(tf.equal(words, parts[-2]), tf.int32))
        return {"mels": mels, "rate": rate}, label

    files = tf.data.Dataset.list_files(str(folder / "*" / "*.wav"), shuffle=False)
    batches = files.map(decoded).batch(3, drop_remainder=False)
    element = tf.data.make_one_shot_iterator(batches).get_next()
    with tf.Session() as sess:
        return all_of(tf, element, sess)


# Queues -------------------------------------------------------------------------------------------


def write_cifar(folder: Any, count: int = 20) -> list[str]:
    """Two files of records: a label, then the planes of an image."""
    paths = []
    random = np.random.default_rng(0)
    for n in range(2):
        rows = random.integers(0, 255, (count // 2, 1 + 3 * 8 * 8), np.uint8)
        rows[:, 0] = np.arange(count // 2) + n * count // 2
        path = folder / f"data_batch_{n + 1}.bin"
        path.write_bytes(rows.tobytes())
        paths.append(str(path))
    return paths


def _cifar_example(tf: Any, paths: list[str], epochs: int, shuffle: bool) -> Any:
    queue = tf.train.string_input_producer(paths, num_epochs=epochs, shuffle=shuffle)
    reader = tf.FixedLengthRecordReader(record_bytes=1 + 3 * 8 * 8)
    key, value = reader.read(queue)
    record = tf.decode_raw(value, tf.uint8)
    label = tf.cast(tf.strided_slice(record, [0], [1]), tf.int32)
    planes = tf.reshape(tf.strided_slice(record, [1], [1 + 3 * 8 * 8]), [3, 8, 8])
    image = tf.cast(tf.transpose(planes, [1, 2, 0]), tf.float32)
    label.set_shape([1])
    return key, image, label


def cifar_in_order(tf: Any, folder: Any) -> Any:
    """One reader, ``tf.train.batch`` with a smaller last batch: all values."""
    key, image, label = _cifar_example(tf, write_cifar(folder), epochs=2, shuffle=False)
    image = tf.image.per_image_standardization(tf.image.resize_image_with_crop_or_pad(image, 6, 6))
    names = tf.regex_replace(key, ".*/", "")
    batch = tf.train.batch(
        [names, image, label], 7, num_threads=1, capacity=30, allow_smaller_final_batch=True
    )
    return run_queues(tf, batch)


def cifar_shuffled(tf: Any, folder: Any) -> Any:
    """Distorted images out of ``tf.train.shuffle_batch``, several epochs: every label comes."""
    _, image, label = _cifar_example(tf, write_cifar(folder), epochs=3, shuffle=True)
    image = tf.random_crop(image, [6, 6, 3])
    image = tf.image.random_flip_left_right(image)
    image = tf.image.per_image_standardization(tf.image.random_brightness(image, 63))
    images, labels = tf.train.shuffle_batch(
        [image, label],
        batch_size=10,
        num_threads=2,
        capacity=50,
        min_after_dequeue=20,
        enqueue_many=False,
    )
    labels = tf.reshape(labels, [10])
    found = run_queues(tf, [images, labels])
    counts = np.bincount(np.concatenate([labels for _, labels in found]))
    means = all(abs(images.mean()) < 1e-4 for images, _ in found)
    return [described([images for images, _ in found]), counts, means]


def several_readers(tf: Any, folder: Any) -> Any:
    """``shuffle_batch_join`` over readers of text files, with sparse tensors among the values."""
    for n in range(3):
        lines = "".join(f"{n}{i} {'x' * i} {i}\n" for i in range(4))
        (folder / f"part{n}.txt").write_text("header\n" + lines)
    names = tf.train.match_filenames_once(str(folder / "part*.txt"))
    queue = tf.train.string_input_producer(names, num_epochs=1, shuffle=True)

    def example() -> Any:
        _, line = tf.TextLineReader(skip_header_lines=1).read(queue)
        parts = tf.string_split([line], " ")
        number = tf.string_to_number(tf.reshape(parts.values[0], []), tf.int32)
        return {"number": number, "line": line}

    joined = tf.train.shuffle_batch_join(
        [example() for _ in range(2)],
        batch_size=4,
        capacity=20,
        min_after_dequeue=4,
        allow_smaller_final_batch=True,
    )
    found = run_queues(tf, joined)
    numbers = np.concatenate([one["number"] for one in found])
    return [sorted(numbers.tolist()), sorted(len(one["line"]) for one in found)]


def slices_and_sparse(tf: Any, folder: Any) -> Any:
    """``slice_input_producer`` and ``maybe_batch`` with sparse tensors and padding, in order."""
    numbers, texts = tf.train.slice_input_producer(
        [np.arange(10), [str(n) * (n % 3 + 1) for n in range(10)]], num_epochs=1, shuffle=False
    )
    characters = tf.string_split([texts], "")
    kept = tf.not_equal(numbers % 4, 3)
    batch = tf.train.maybe_batch(
        {"n": numbers, "c": characters, "v": characters.values},
        kept,
        batch_size=3,
        dynamic_pad=True,
        allow_smaller_final_batch=True,
    )
    dense = tf.sparse_tensor_to_dense(
        tf.SparseTensor(batch["c"].indices, batch["c"].values, batch["c"].dense_shape),
        default_value="-",
    )
    return run_queues(tf, {"n": batch["n"], "dense": dense, "v": batch["v"]})


# Iterators ----------------------------------------------------------------------------------------


def train_and_validate(tf: Any, folder: Any) -> Any:
    """One iterator that is begun with training and validation data in turn, fed placeholders."""
    x, limit = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.int64, [])
    train = tf.data.Dataset.from_tensor_slices(x).shuffle(
        100, seed=3, reshuffle_each_iteration=False
    )
    train = train.map(lambda row: (row * 2.0, tf.reduce_sum(row))).batch(4, drop_remainder=True)
    valid = tf.data.Dataset.range(limit).map(
        lambda n: (tf.fill([2], tf.cast(n, tf.float32)), tf.cast(n, tf.float32))
    )
    valid = valid.batch(4, drop_remainder=True)
    iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
    element = iterator.get_next()
    begins = iterator.make_initializer(train), iterator.make_initializer(valid)
    found = []
    with tf.Session() as sess:
        for epoch in range(2):
            rows = np.arange(20, dtype=np.float32).reshape(10, 2) + epoch
            sess.run(begins[0], {x: rows})
            found += all_of(tf, element, sess)
            sess.run(begins[1], {limit: 9 + epoch})
            found += all_of(tf, element, sess)
    return [found, [str(shape) for shape in train.output_shapes]]


def feedable(tf: Any, folder: Any) -> Any:
    """A handle that is fed switches between an endless and a finite iterator."""
    train = tf.data.Dataset.range(100).repeat().batch(3)
    test = tf.data.Dataset.range(200, 206).batch(3)
    handle = tf.placeholder(tf.string, shape=[])
    either = tf.data.Iterator.from_string_handle(handle, train.output_types, train.output_shapes)
    value = either.get_next() * 2
    one, other = (
        tf.data.make_one_shot_iterator(train),
        tf.data.make_initializable_iterator(test),
    )
    found = []
    with tf.Session() as sess:
        first, second = sess.run([one.string_handle(), other.string_handle()])
        for _ in range(3):
            found += [sess.run(value, {handle: first}) for _ in range(2)]
            sess.run(other.initializer)
            try:
                while True:
                    found.append(sess.run(value, {handle: second}))
            except tf.errors.OutOfRangeError:
                found.append("end")
    return found


def generated(tf: Any, folder: Any) -> Any:
    """``from_generator`` with nested values, then ``py_func`` and a window of the elements."""

    def rows(limit: Any) -> Any:
        for n in range(int(limit)):
            yield {"ids": list(range(n)), "name": f"row {n}"}, n % 2 == 0

    def reversed_ids(ids: Any) -> Any:
        return ids[::-1].copy(), np.float64(ids.sum())

    dataset = tf.data.Dataset.from_generator(
        rows,
        output_types=({"ids": tf.int32, "name": tf.string}, tf.bool),
        output_shapes=({"ids": [None], "name": []}, []),
        args=(np.int64(7),),
    )

    def changed(features: Any, label: Any) -> Any:
        ids, total = tf.py_func(reversed_ids, [features["ids"]], [tf.int32, tf.float64])
        ids.set_shape([None])
        total.set_shape([])
        return {"ids": ids, "total": total, "name": features["name"]}, label

    dataset = dataset.map(changed).filter(lambda features, label: features["total"] < 12)
    batches = dataset.padded_batch(
        3, padded_shapes=({"ids": [-1], "total": [], "name": []}, []), drop_remainder=False
    )
    element = tf.data.make_one_shot_iterator(batches).get_next()
    with tf.Session() as sess:
        return all_of(tf, element, sess)


# Sequences ----------------------------------------------------------------------------------------


def video(tf: Any, folder: Any) -> Any:
    """SequenceExamples of frames and labels, sampled, padded, with masks."""
    path = str(folder / "videos.tfrecord")
    options = tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP)
    with tf.python_io.TFRecordWriter(path, options=options) as writer:
        for n in range(5):
            example = tf.train.SequenceExample()
            example.context.feature["id"].bytes_list.value.append(b"video %d" % n)
            example.context.feature["labels"].int64_list.value.extend(range(n))
            for i in range(n + 1):
                frame = example.feature_lists.feature_list["rgb"].feature.add()
                frame.bytes_list.value.append(bytes(range(i, i + 6)))
                audio = example.feature_lists.feature_list["audio"].feature.add()
                audio.float_list.value.extend([i, i / 2])
            writer.write(example.SerializeToString())

    def parsed(serialized: Any) -> Any:
        context, frames = tf.parse_single_sequence_example(
            serialized,
            context_features={
                "id": tf.FixedLenFeature([], tf.string),
                "labels": tf.VarLenFeature(tf.int64),
            },
            sequence_features={
                "rgb": tf.FixedLenSequenceFeature([], dtype=tf.string),
                "audio": tf.FixedLenSequenceFeature([2], dtype=tf.float32),
            },
        )
        labels = tf.cast(
            tf.sparse_to_dense(context["labels"].values, (5,), 1, validate_indices=False), tf.bool
        )
        rgb = tf.reshape(tf.cast(tf.decode_raw(frames["rgb"], tf.uint8), tf.float32), [-1, 6])
        count = tf.minimum(tf.shape(rgb)[0], 3)
        both = tf.concat([rgb[:3] / 255.0 - 0.5, frames["audio"][:3]], 1)
        return context["id"], both, labels, count

    dataset = tf.data.TFRecordDataset([path], compression_type="GZIP", num_parallel_reads=1)
    dataset = dataset.map(parsed).padded_batch(2, ([], [3, None], [5], []))
    name, frames, labels, counts = tf.data.make_one_shot_iterator(dataset).get_next()
    mask = tf.sequence_mask(counts, 3)
    mean = tf.reduce_sum(frames, 1) / tf.cast(counts, tf.float32)[:, None]
    with tf.Session() as sess:
        return all_of(tf, [name, frames, labels, counts, mask, mean], sess)


def sharded(tf: Any, folder: Any) -> Any:
    """Files shared among workers, read in turn by threads, batches of sparse features."""
    for shard in range(6):
        with tf.python_io.TFRecordWriter(str(folder / f"shard-{shard}")) as writer:
            for n in range(5):
                example = tf.train.Example()
                example.features.feature["id"].int64_list.value.append(10 * shard + n)
                example.features.feature["items"].int64_list.value.extend(range(n))
                example.features.feature["weights"].float_list.value.extend([0.5] * n)
                writer.write(example.SerializeToString())
    features = {
        "id": tf.FixedLenFeature([], tf.int64),
        "items": tf.SparseFeature("items", "weights", tf.float32, size=8),
        "missing": tf.FixedLenFeature([2], tf.float32, default_value=[1.0, 2.0]),
        "many": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True, default_value=-1),
    }

    def read(path: Any) -> Any:
        return tf.data.TFRecordDataset(path).take(4)

    found = []
    for worker in range(2):
        files = tf.data.Dataset.list_files(str(folder / "shard-*"), shuffle=False)
        files = files.shard(2, worker)
        records = files.interleave(read, cycle_length=2, block_length=3, num_parallel_calls=2)
        parsed = records.batch(5).map(functools.partial(tf.parse_example, features=features))
        cached = parsed.cache().repeat(2)
        counted = cached.apply(tf.data.experimental.enumerate_dataset(start=1))
        number, example = tf.data.make_one_shot_iterator(counted).get_next()
        example["items"] = tf.sparse_tensor_to_dense(example["items"])
        with tf.Session() as sess:
            found += all_of(tf, [number, example], sess)
    return found


def weighted_mixture(tf: Any, folder: Any) -> Any:
    """Datasets mixed by choice, with running sums, ended by a condition, and summed up."""
    choice = tf.data.Dataset.from_tensor_slices(np.array([0, 1, 1, 2, 0, 2, 1, 0], np.int64))
    parts = [tf.data.Dataset.range(n, n + 4) for n in (0, 100, 200)]
    mixed = tf.data.experimental.choose_from_datasets(parts, choice)
    sums = mixed.apply(tf.data.experimental.scan(np.int64(0), lambda s, x: (s + x, s + x)))
    sums = sums.apply(tf.data.experimental.take_while(lambda s: s < 900))
    windows = sums.window(3, shift=2, drop_remainder=True).flat_map(lambda w: w.batch(3))
    total = mixed.reduce(np.int64(0), lambda s, x: s + x)
    uneven = windows.apply(tf.data.experimental.unbatch()).apply(tf.data.experimental.unique())
    optional = tf.data.experimental.get_next_as_optional(tf.data.make_one_shot_iterator(uneven))
    value = tf.cond(optional.has_value(), optional.get_value, lambda: np.int64(-1))
    element = tf.data.make_one_shot_iterator(windows).get_next()
    with tf.Session() as sess:
        found = all_of(tf, element, sess)
        return [found, sess.run(total), [sess.run(value) for _ in range(9)]]


PROGRAMS = {
    function.__name__: function
    for function in (
        image_evaluation,
        image_training,
        translation,
        words_by_length,
        census,
        csv_dataset,
        speech,
        cifar_in_order,
        cifar_shuffled,
        several_readers,
        slices_and_sparse,
        train_and_validate,
        feedable,
        generated,
        video,
        sharded,
        weighted_mixture,
    )
}
