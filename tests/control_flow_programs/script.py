"""A program as a whole script: what runs here, and what a failing program prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.control_flow_programs.program import Program

START = (0.5, -0.2, 0.1)
"""The first value of the variable."""
QUEUED = 40
"""Elements in each queue: more than the iterations that a program runs."""


def elements(queue: int) -> np.ndarray:
    """What is put into a queue: rows."""
    return np.sin(np.arange(3.0 * QUEUED).reshape(QUEUED, 3) + queue)


def script(program: Program) -> str:
    """Builds ``program``; ``run(config)`` gives its values and derivatives for each feed."""
    return "\n".join(_lines(program))


def _lines(program: Program) -> Iterator[str]:
    yield f"# program {program.seed}"
    yield "import numpy as np"
    yield "import runnel as tf"
    yield "from tests.control_flow_programs.vocabulary import Vocabulary"
    yield ""
    yield "globals().update(Vocabulary(tf).names())"
    for name, shape in zip("xy", program.shapes, strict=True):
        yield f"{name} = tf.placeholder(tf.float64, {shape})"
    yield "p, q = tf.placeholder(tf.bool, ()), tf.placeholder(tf.bool, ())"
    yield "n, c = tf.placeholder(tf.int32, ()), tf.constant(0.7, tf.float64)"
    if program.uses("v0"):
        resource = "reference" not in program.features
        yield f"v = tf.Variable({START}, dtype=tf.float64, use_resource={resource})"
        yield "v0 = v.read_value()"
    numbers = [k for k in range(program.queues) if f"queues[{k}]" in program.source()]
    if numbers:
        # Without a declared shape, the shape of what comes out is not known.
        shapes = {k: "[[3]]" if k % 2 else "None" for k in numbers}
        made = ", ".join(f"{k}: tf.FIFOQueue(100, tf.float64, {s})" for k, s in shapes.items())
        yield f"queues = {{{made}}}"
    yield ""
    yield program.source()
    yield "zero = tf.UnconnectedGradients.ZERO"
    yield "fetches = grads = [program(x, y)]"
    for _ in range(program.orders):
        yield "grads = [tf.sin(g) for g in grads]"
        yield "grads = tf.gradients(grads, [x, y], unconnected_gradients=zero)"
        yield "grads = [tf.convert_to_tensor(g) for g in grads]"
        yield "fetches = fetches + grads"
    if program.uses("v0"):
        yield "with tf.control_dependencies(fetches):"
        yield "    fetches = fetches + [v.read_value()]"
    yield "feeds = ["
    for feed in program.feeds:
        values = ", ".join(
            f"{name}: {value.tolist() if isinstance(value, np.ndarray) else value}"
            for name, value in feed.items()
        )
        yield f"    {{{values}}},"
    yield "]"
    yield ""
    yield "def run(config=None, *traced):"
    yield "    with tf.Session(config=config) as sess:"
    yield "        sess.run(tf.global_variables_initializer())"
    if numbers:
        yield f"        rows = np.arange({3.0 * QUEUED}).reshape(-1, 3)"
        yield "        for k, queue in queues.items():"
        yield "            for row in np.sin(rows + k):"
        yield "                sess.run(queue.enqueue(row))"
    yield "        found = [sess.run(fetches, feed, *traced) for feed in feeds]"
    left = "[sess.run(queue.size()) for queue in queues.values()]" if numbers else "[]"
    yield f"        return found, {left}"
    yield ""


def run_script(program: Program) -> Any:
    """The function ``run`` of the script, whose graph has been built."""
    scope: dict[str, Any] = {}
    exec(compile(script(program), f"<program {program.seed}>", "exec"), scope)
    return scope["run"]
