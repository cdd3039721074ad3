"""Records random values from TensorFlow into ``tests/ops/sampling/data/random.json``.

The tests of the random kernels compare with this file, so that they need no TensorFlow. Run it
where ``tensorflow-cpu`` 2.21 is installed::

    python tools/record_random.py

Each line is one op: its seeds and inputs, and the values of its first two executions as the base64
of their little-endian bytes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

TESTS = Path(__file__).resolve().parent.parent / "tests"
FILE = TESTS / "ops" / "sampling" / "data" / "random.json"
EXECUTIONS = 2
SEEDS = [(87654321, 42), (-5, (7 << 40) + 99), ((3 << 33) + 1, -1)]
SHAPES: list[list[int]] = [[7], [2, 3, 3], []]


def cases() -> Iterator[dict[str, Any]]:
    """The ops to record: every element type, shapes that do and do not fill their last group."""
    for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        for dtype in ("float32", "float64", "float16", "bfloat16"):
            for (seed, seed2), shape in zip(SEEDS, SHAPES):
                yield dict(op=op, seed=seed, seed2=seed2, dtype=dtype, shape=shape)
    # A stream of which three of the first four draws fall outside the limits.
    yield dict(op="TruncatedNormal", seed=8, seed2=289, dtype="float64", shape=[11])
    for dtype in ("int32", "int64"):
        limits = np.iinfo(dtype)
        ranges = [(0, 10), (-7, 1_000_003), (int(limits.min), int(limits.max))]
        for (seed, seed2), shape, (minval, maxval) in zip(SEEDS, SHAPES, ranges):
            yield dict(
                op="RandomUniformInt",
                seed=seed,
                seed2=seed2,
                dtype=dtype,
                shape=shape,
                minval=minval,
                maxval=maxval,
            )
    for (seed, seed2), size in zip(SEEDS, (2, 9, 30)):
        yield dict(op="RandomShuffle", seed=seed, seed2=seed2, dtype="int64", size=size)
    logits = [[0.0, 1.0, -1.0, 0.5], [3.0, -40.0, 3.0, 2.0], [-1e30, 0.25, 0.125, -2.0]]
    for (seed, seed2), samples in zip(SEEDS, (1, 6, 9)):
        yield dict(
            op="Multinomial", seed=seed, seed2=seed2, dtype="int64", logits=logits, samples=samples
        )


def run(case: dict[str, Any]) -> list[np.ndarray]:
    """The values of the op's first executions in a new session."""
    with tf.Graph().as_default(), tf.Session() as session:
        seeds = {"seed": case["seed"], "seed2": case["seed2"]}
        if case["op"] == "RandomShuffle":
            rows = tf.range(case["size"], dtype=tf.int64)
            values = tf.raw_ops.RandomShuffle(value=rows, **seeds)
        elif case["op"] == "Multinomial":
            values = tf.raw_ops.Multinomial(
                logits=np.array(case["logits"], np.float32), num_samples=case["samples"], **seeds
            )
        elif case["op"] == "RandomUniformInt":
            values = tf.raw_ops.RandomUniformInt(
                shape=np.array(case["shape"], np.int32),
                minval=tf.constant(case["minval"], case["dtype"]),
                maxval=tf.constant(case["maxval"], case["dtype"]),
                **seeds,
            )
        else:
            op = getattr(tf.raw_ops, case["op"])
            shape = np.array(case["shape"], np.int32)
            values = op(shape=shape, dtype=case["dtype"], **seeds)
        return [session.run(values) for _ in range(EXECUTIONS)]


def main() -> None:
    """Writes the file."""
    tf.disable_v2_behavior()
    lines = []
    for case in cases():
        values = run(case)
        assert all(value.dtype.name == case["dtype"] for value in values), case
        case["values"] = [base64.b64encode(value.tobytes()).decode() for value in values]
        lines.append(json.dumps(case))
    header = json.dumps({"tensorflow": tf.__version__})[1:-1]
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text("{" + header + ', "cases": [\n' + ",\n".join(lines) + "\n]}\n")
    print(f"{len(lines)} ops, {FILE.stat().st_size} bytes: {FILE}")


if __name__ == "__main__":
    main()
