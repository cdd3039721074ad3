"""The cost of a step that does almost nothing, through `session.run` and `make_callable`."""

from __future__ import annotations

from typing import Any

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload

SCALAR = numpy.float32(3.0)
VECTOR = numpy.arange(100, dtype=numpy.float32)


def describe(tf: Any, program: str) -> tuple[Any, Any, Any]:
    """Build the program: what is fetched, what is fed (or None), the value to feed."""
    if program == "constant":
        return tf.constant(3.0), None, None
    if program == "fed_scalar":
        scalar = tf.placeholder(tf.float32, [])
        return tf.identity(scalar), scalar, SCALAR
    vector = tf.placeholder(tf.float32, [100])
    if program == "fed_vector":
        return tf.identity(vector), vector, VECTOR
    if program == "fed_vector_plus_one":
        return vector + 1.0, vector, VECTOR
    raise ValueError(f"no program named {program!r}")


EXPECTED: dict[str, Any] = {
    "constant": SCALAR,
    "fed_scalar": SCALAR,
    "fed_vector": VECTOR,
    "fed_vector_plus_one": VECTOR + 1,
}


def dispatch(frontend: str, program: str, through: str) -> Workload:
    """Run the program again and again, through "session.run" or through "make_callable"."""
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        fetch, placeholder, value = describe(tf, program)
        session = tf.Session()
    run = _loop(session, through, fetch, placeholder, value)

    def facts() -> dict[str, Any]:
        result = session.run(fetch, None if placeholder is None else {placeholder: value})
        return {"right": bool(numpy.array_equal(result, EXPECTED[program]))}

    return Workload(run, facts)


def _loop(session: Any, through: str, fetch: Any, placeholder: Any, value: Any) -> Any:
    if through == "session.run":

        def run_constant(iterations: int) -> None:
            for _ in range(iterations):
                session.run(fetch)

        def run_fed(iterations: int) -> None:
            for _ in range(iterations):
                session.run(fetch, feed_dict={placeholder: value})

        return run_constant if placeholder is None else run_fed

    step = session.make_callable(fetch, feed_list=[] if placeholder is None else [placeholder])

    def call(iterations: int) -> None:
        for _ in range(iterations):
            step()

    def call_fed(iterations: int) -> None:
        for _ in range(iterations):
            step(value)

    return call if placeholder is None else call_fed
