"""Batches of images: photographs from files, and small pictures from memory, distorted."""

from __future__ import annotations

import io
import os
import tempfile
from typing import Any

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload

BATCH = 32
FILES = 64
SIZE = (375, 500)


def photographs(folder: str) -> list[str]:
    """JPEG files of the size and content that photographs have: waves of colour, and noise."""
    from PIL import Image

    rng = numpy.random.default_rng(0)
    rows, columns = numpy.mgrid[0 : SIZE[0], 0 : SIZE[1]]
    paths = []
    for number in range(FILES):
        waves = rng.uniform(10, 90, (3, 2))
        image = [numpy.sin(rows / a) * numpy.cos(columns / b) for a, b in waves]
        noisy = numpy.stack(image, -1) * 100 + 128 + rng.normal(0, 6, (*SIZE, 3))
        pixels = numpy.clip(noisy, 0, 255).astype(numpy.uint8)
        paths.append(os.path.join(folder, f"{number}.jpg"))
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "JPEG", quality=85)
        with open(paths[-1], "wb") as file:
            file.write(buffer.getvalue())
    return paths


def _taken(tf: Any, dataset: Any) -> Workload:
    """A workload that takes batches from a dataset; an iteration is one batch."""
    images = dataset.make_one_shot_iterator().get_next()
    session = tf.Session()
    take = session.make_callable(images)

    def run(iterations: int) -> None:
        for _ in range(iterations):
            take()

    first = take()

    def facts() -> dict[str, Any]:
        return {"right": bool(numpy.isfinite(first).all()), "shape": list(first.shape)}

    return Workload(run, facts)


def resized_files(frontend: str, threads: int) -> Workload:
    """JPEG files, decoded, resized to 224 by 224 and batched."""
    tf = load_frontend(frontend)
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    paths = photographs(folder.name)

    def load(path: Any) -> Any:
        image = tf.image.decode_jpeg(tf.read_file(path), channels=3)
        return tf.image.resize_images(image, [224, 224])

    with tf.Graph().as_default():
        dataset = tf.data.Dataset.from_tensor_slices(paths).repeat()
        dataset = dataset.map(load, num_parallel_calls=threads).batch(BATCH).prefetch(1)
        workload = _taken(tf, dataset)
    return Workload(
        workload.run, lambda: {**workload.facts(), "files": len(os.listdir(folder.name))}
    )


def distorted_slices(frontend: str, threads: int) -> Workload:
    """Pictures of 32 by 32 from memory: shuffled, cropped, mirrored, normalised and batched."""
    tf = load_frontend(frontend)
    pictures = numpy.random.default_rng(1).integers(0, 256, (5000, 32, 32, 3)).astype(numpy.uint8)

    def distort(picture: Any) -> Any:
        image = tf.random_crop(picture, [24, 24, 3])
        image = tf.image.random_flip_left_right(image)
        return tf.image.per_image_standardization(image)

    with tf.Graph().as_default():
        dataset = tf.data.Dataset.from_tensor_slices(pictures).shuffle(2000).repeat()
        dataset = dataset.map(distort, num_parallel_calls=threads).batch(BATCH).prefetch(1)
        return _taken(tf, dataset)
