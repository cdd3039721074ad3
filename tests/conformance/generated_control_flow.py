"""Random programs of conditionals and loops against TensorFlow, in every way a step can run.

TensorFlow's graphs refuse second derivatives of their loops (or, with its later control flow, take
a second to build one). So the oracle is TensorFlow run eagerly: the same operations, with Python's
control flow under ``tf.cond`` and ``tf.while_loop``, and tapes for the derivatives.

The tests run some of the programs. To run others::

    python -m tests.conformance.generated_control_flow --seed 0 --programs 2000 --jobs 2

prints each program that differs, made as small as it can be, as a script.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
import tensorflow.compat.v1 as reference
from tensorflow.python.eager import context as eager

from tests.control_flow_programs.outcomes import WAYS, Outcome, graph_of, require_same
from tests.control_flow_programs.program import Program, random_program
from tests.control_flow_programs.script import START, elements, script
from tests.control_flow_programs.vocabulary import EagerVocabulary

reference.disable_v2_behavior()
reference.logging.set_verbosity(reference.logging.ERROR)

_PROGRAMS_A_PROCESS = 20
_MAX_SMALLER = 300


def expected_of(program: Program) -> Outcome:
    """What TensorFlow gives."""
    tf = reference
    with eager.eager_mode():
        queues = {}
        for k in range(program.queues):
            queues[k] = tf.FIFOQueue(100, tf.float64)
            for row in elements(k):
                queues[k].enqueue(row)
        v = tf.Variable(START, dtype=tf.float64, use_resource=True)
        names = EagerVocabulary(tf).names()
        names |= {"v": v, "queues": queues, "c": tf.constant(0.7, tf.float64)}
        found = []
        for feed in program.feeds:
            given = {name: tf.constant(value) for name, value in feed.items()}
            function = program.defined({**names, **given, "v0": v.read_value()})
            values = _derivatives(function, [given["x"], given["y"]], program.orders)
            if program.uses("v0"):
                values.append(v.read_value())
            found.append([value.numpy() for value in values])
        used = [k for k in queues if f"queues[{k}]" in program.source()]
        return found, [int(queues[k].size()) for k in used]


def _derivatives(function: Any, inputs: Sequence[Any], orders: int) -> list[Any]:
    """The value and its derivatives, each order of them taken of the sines of the last."""
    tf = reference
    if orders == 0:
        return [function(*inputs)]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        values = _derivatives(function, inputs, orders - 1)
        last = [tf.sin(value) for value in values[-2 if orders > 1 else -1 :]]
    zero = tf.UnconnectedGradients.ZERO
    found = tape.gradient(last, inputs, unconnected_gradients=zero)
    return values + [tf.convert_to_tensor(g) for g in found]


class Failure(Exception):
    """A program that differs, and the way in which it was run; None when it cannot be built."""

    def __init__(self, program: Program, way: str | None, cause: BaseException) -> None:
        super().__init__(f"{way or 'building'}: {cause}\n\n{script(program)}")
        self.program = program
        self.way = way
        self.cause = cause

    @property
    def symptom(self) -> tuple[Any, ...]:
        """What a smaller program must have in common with this one to be the same failure."""
        return self.way, type(self.cause)


def check(program: Program, ways: Iterable[str] = WAYS) -> bool:
    """Raises :class:`Failure`; False when TensorFlow has no numbers to compare with."""
    try:
        expected = expected_of(program)
    except TypeError as error:
        if "IndexedSlices" in str(error):  # which some of its gradients do not take
            return False
        raise
    if not all(np.isfinite(value).all() for values in expected[0] for value in values):
        return False
    try:
        outcome = graph_of(program)
    except Exception as error:
        raise Failure(program, None, error) from error
    for way in ways:
        try:
            require_same(outcome(way), expected)
        except Exception as error:
            raise Failure(program, way, error) from error
    return True


def smallest(failure: Failure) -> Failure:
    """The same failure with as small a program as a search finds."""
    tries = 0
    ways = () if failure.way is None else (failure.way,)
    progress = True
    while progress and tries < _MAX_SMALLER:
        progress = False
        for candidate in failure.program.simpler():
            if (
                candidate.size >= failure.program.size
                and candidate.orders >= failure.program.orders
            ):
                continue
            tries += 1
            if tries > _MAX_SMALLER:
                break
            try:
                check(candidate, ways)
            except Failure as found:
                if found.symptom == failure.symptom:
                    failure, progress = found, True
                    break
            except Exception:
                continue  # a name that is not there, or what TensorFlow refuses
    return failure


def report(seeds: Sequence[int], ways: Sequence[str], shrink: bool) -> list[str]:
    """Checks the programs of ``seeds``; a text for each that fails, and ``skipped`` ones."""
    import jax

    from runnel.passes.rewrites import rewrite
    from runnel.runtime.interpret import verification

    rewrite.check_between_passes = verification.enabled = True
    found = []
    for seed in seeds:
        try:
            if not check(random_program(seed), ways):
                found.append(f"skipped {seed}: TensorFlow's values are not finite")
        except Failure as failure:
            if shrink:
                failure = smallest(failure)
            trace = "".join(traceback.format_exception(failure.cause)[-4:])
            found.append(f"FAILED {seed} {failure}\n{trace}")
        except Exception:
            found.append(f"INVALID {seed}\n{traceback.format_exc()}{script(random_program(seed))}")
        jax.clear_caches()
    return found


def main() -> int:
    """Runs programs and prints those that fail; the exit status is 1 if any does."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first program")
    parser.add_argument("--programs", type=int, default=100, help="how many")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--cache", help="a folder for executables that later calls use again")
    parser.add_argument("--no-shrink", action="store_true", help="print programs as they are")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.programs)
    chunks = [
        seeds[start : start + _PROGRAMS_A_PROCESS]
        for start in range(0, len(seeds), _PROGRAMS_A_PROCESS)
    ]
    failed = 0
    with TemporaryDirectory() as temporary:
        # Programs have many parts in common.
        os.environ["RUNNEL_CACHE_DIR"] = options.cache or temporary
        # A new process for each chunk: executables of thousands of programs take memory.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(options.jobs, context, max_tasks_per_child=1) as pool:
            jobs = [pool.submit(report, c, options.ways, not options.no_shrink) for c in chunks]
            for chunk, job in zip(chunks, jobs, strict=True):
                texts = job.result()
                for text in texts:
                    print(text, flush=True)
                failed += sum(not text.startswith("skipped") for text in texts)
                print(f"programs {chunk[0]} to {chunk[-1]}: {failed} failed so far", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
