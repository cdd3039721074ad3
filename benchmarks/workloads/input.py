"""Input pipelines: files, examples, images, generators, and a training step that they feed."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from typing import Any

import numpy as np

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload

IMAGES, SIDE, CROP, BATCH = 2_000, 32, 28, 64
EXAMPLES = 256
HIDDEN = 1_500
"""Units of a layer with which a training step takes about 5 ms on two cores."""


def folder() -> str:
    """A folder that is gone when the process ends."""
    made = tempfile.mkdtemp(prefix="runnel-bench-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def repeated(tf: Any, dataset: Any, checked: Any = None) -> Workload:
    """Steps that take the next element of a dataset, and leave it in the session."""
    element = tf.data.make_one_shot_iterator(dataset.repeat()).get_next()
    while isinstance(element, dict | tuple):
        element = next(iter(element.values() if isinstance(element, dict) else element))
    session = tf.Session()
    facts = {} if checked is None else {"values": checked(session.run(element))}

    def run(iterations: int) -> None:
        for _ in range(iterations):
            session.run(element.op)

    return Workload(run, facts=lambda: facts)


def write_records(path: str, size: int, count: int) -> None:
    """A record file of ``count`` records of ``size`` bytes."""
    from runnel.python_io import TFRecordWriter

    random = np.random.default_rng(0)
    with TFRecordWriter(path) as writer:
        for _ in range(count):
            writer.write(random.bytes(size))


def records(frontend: str, size: int, batch: int) -> Workload:
    """Batches of records out of a file."""
    tf = load_frontend(frontend)
    path = os.path.join(folder(), "records")
    write_records(path, size, (32 << 20) // size)
    dataset = tf.data.TFRecordDataset(path).repeat().batch(batch).prefetch(2)
    return repeated(tf, dataset, lambda found: [len(text) for text in found])


def examples() -> list[bytes]:
    """Serialized examples with 10 features, whose strings and numbers differ in length."""
    from runnel.records.example_protos import Example

    random = np.random.default_rng(0)
    made = []
    for _ in range(EXAMPLES):
        example = Example()
        feature = example.features.feature
        for i in range(4):
            feature[f"float{i}"].float_list.value.extend(random.random(8, np.float32))
        for i in range(3):
            feature[f"int{i}"].int64_list.value.append(int(random.integers(1, 100_000)))
        for i in range(2):
            feature[f"text{i}"].bytes_list.value.append(b"x" * int(random.integers(4, 20)))
        feature["list"].int64_list.value.extend(
            random.integers(0, 1000, random.integers(1, 6)).tolist()
        )
        made.append(example.SerializeToString())
    return made


def parsing(frontend: str) -> Workload:
    """``parse_example`` of a batch."""
    tf = load_frontend(frontend)
    features: dict[str, Any] = {f"float{i}": tf.FixedLenFeature([8], tf.float32) for i in range(4)}
    features |= {f"int{i}": tf.FixedLenFeature([], tf.int64) for i in range(3)}
    features |= {f"text{i}": tf.FixedLenFeature([], tf.string) for i in range(2)}
    features["list"] = tf.VarLenFeature(tf.int64)
    serialized = tf.constant(examples())
    parsed = tf.parse_example(tf.identity(serialized), features)
    session = tf.Session()
    found = session.run(parsed)
    sums = (found["float1"].sum(), found["int2"].sum(), found["list"].values.sum())
    given = tf.placeholder(tf.string, [None])
    first = tf.parse_example(given, features)["float0"]
    fed = {given: np.array(examples(), object)}

    def run(iterations: int) -> None:
        for _ in range(iterations):
            session.run(first, fed)

    return Workload(run, facts=lambda: {"values": [float(one) for one in sums]})


def pictures() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    shape = (IMAGES, SIDE, SIDE, 3)
    return random.integers(0, 255, shape, np.uint8), random.integers(0, 10, IMAGES)


def images(frontend: str) -> Workload:
    """Batches of shuffled, cropped, flipped, normalised images."""
    tf = load_frontend(frontend)

    def prepared(image: Any, label: Any) -> Any:
        cropped = tf.random_crop(image, [CROP, CROP, 3])
        flipped = tf.cond(
            tf.random_uniform([]) < 0.5, lambda: tf.reverse(cropped, [1]), lambda: cropped
        )
        return (tf.cast(flipped, tf.float32) - 120.0) / 70.0, label

    dataset = tf.data.Dataset.from_tensor_slices(pictures()).shuffle(IMAGES).repeat()
    dataset = dataset.map(prepared, num_parallel_calls=2).batch(BATCH).prefetch(2)
    return repeated(tf, dataset, lambda found: list(found.shape))


def shapes(frontend: str, kind: str) -> Workload:
    """Pipelines of other shapes, whose functions do little: what each element costs."""
    tf = load_frontend(frontend)
    random = np.random.default_rng(0)
    rows = {"x": random.random((4_096, 16), np.float32), "n": random.integers(0, 50, 4_096)}
    slices = tf.data.Dataset.from_tensor_slices(rows)

    def changed(row: Any) -> Any:
        return {"x": row["x"] * 2.0 + 1.0, "n": row["n"] + 1}

    if kind == "filtered":
        dataset = slices.map(changed).filter(lambda row: row["n"] % 2 > 0).batch(BATCH)
    elif kind == "padded":
        lengths = slices.map(lambda row: tf.fill([tf.cast(row["n"], tf.int32)], row["n"]))
        dataset = lengths.padded_batch(BATCH, [-1])
    elif kind == "interleaved":
        numbers = tf.data.Dataset.range(8)
        many = numbers.interleave(lambda n: tf.data.Dataset.range(n * 1_000, n * 1_000 + 500), 4)
        dataset = many.map(lambda n: tf.cast(n, tf.float32) / 3.0).batch(BATCH)
    elif kind == "strings":
        texts = tf.data.Dataset.from_tensor_slices([f"{i},{i / 7:.3f}" for i in range(4_096)])
        dataset = texts.map(lambda t: tf.string_to_hash_bucket_fast(t, 1_000)).batch(BATCH)
    elif kind == "examples":
        features = {f"float{i}": tf.FixedLenFeature([8], tf.float32) for i in range(4)}
        features["list"] = tf.VarLenFeature(tf.int64)
        made = tf.data.Dataset.from_tensor_slices(examples())

        def parsed(one: Any) -> Any:
            found = tf.parse_single_example(one, features)
            return found["float0"], tf.sparse_tensor_to_dense(found["list"])

        dataset = made.map(parsed).padded_batch(BATCH, ([8], [-1]))
    else:
        dataset = slices.map(changed).shuffle(1_000).batch(BATCH)
    return repeated(tf, dataset, lambda found: list(found.shape))


def images_torch() -> Workload:
    """The same by PyTorch's DataLoader, with a worker process for each core."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Pictures(Dataset):
        def __init__(self) -> None:
            images, labels = pictures()
            self.images = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
            self.labels = torch.from_numpy(labels)

        def __len__(self) -> int:
            return IMAGES

        def __getitem__(self, place: int) -> Any:
            y, x = torch.randint(0, SIDE - CROP + 1, (2,)).tolist()
            image = self.images[place, :, y : y + CROP, x : x + CROP]
            if torch.rand(()) < 0.5:
                image = image.flip(2)
            return (image.float() - 120.0) / 70.0, self.labels[place]

    loader = DataLoader(
        Pictures(), BATCH, shuffle=True, num_workers=2, persistent_workers=True, drop_last=True
    )

    def batches() -> Any:
        while True:
            yield from loader

    given = batches()
    shape = list(next(given)[0].shape)

    def run(iterations: int) -> None:
        for _ in range(iterations):
            next(given)

    return Workload(run, facts=lambda: {"values": [shape[0], shape[2], shape[3], shape[1]]})


def generator(frontend: str) -> Workload:
    """Batches of what a Python generator gives."""
    tf = load_frontend(frontend)
    rows = np.random.default_rng(0).random((100, 28, 28), np.float32)

    def numbers() -> Any:
        for i, row in enumerate(rows):
            yield row, i

    dataset = tf.data.Dataset.from_generator(numbers, (tf.float32, tf.int64), ([28, 28], []))
    return repeated(tf, dataset.repeat().batch(32).prefetch(2), lambda found: list(found.shape))


def training(frontend: str, fed: bool) -> Workload:
    """A training step of about 5 ms, fed by a pipeline or with a batch that is constant."""
    tf = load_frontend(frontend)
    random = np.random.default_rng(0)
    rows = random.random((512, 784), np.float32)
    labels = random.integers(0, 10, 512)
    if fed:
        dataset = tf.data.Dataset.from_tensor_slices((rows, labels)).shuffle(512).repeat()
        dataset = dataset.batch(100).prefetch(2)
        x, y = tf.data.make_one_shot_iterator(dataset).get_next()
    else:
        x, y = tf.constant(rows[:100]), tf.constant(labels[:100])
    hidden = tf.nn.relu(dense(tf, tf.nn.relu(dense(tf, x, HIDDEN)), HIDDEN))
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=dense(tf, hidden, 10))
    )
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    session = tf.Session()
    session.run(tf.global_variables_initializer())

    def run(iterations: int) -> None:
        for _ in range(iterations):
            session.run(train)

    return Workload(run)


def dense(tf: Any, x: Any, units: int) -> Any:
    """A layer without a function."""
    shape = [int(x.shape[1]), units]
    scope = tf.get_default_graph().unique_name("dense")
    with tf.variable_scope(scope):
        weights = tf.get_variable("w", shape, initializer=tf.random_normal_initializer(stddev=0.05))
        return tf.matmul(x, weights)


def many_elements(frontend: str) -> Workload:
    """Numbers through a shuffle and batches, a million in each iteration."""
    tf = load_frontend(frontend)
    dataset = tf.data.Dataset.range(10**12).shuffle(10_000).batch(1_000)
    op = tf.data.make_one_shot_iterator(dataset).get_next().op
    session = tf.Session()

    def run(iterations: int) -> None:
        for _ in range(1_000 * iterations):
            session.run(op)

    return Workload(run)
