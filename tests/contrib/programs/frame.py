"""Programs with ``tf.contrib`` that run under TensorFlow 1.15 and under runnel.

A program is a function of ``(tf, run)``. It builds a graph and returns ``run(fetches, ...)``. That
first gives every variable a value that its name and shape determine, so that one that is named or
shaped differently shows. ``tools/record_contrib.py`` records the values under TensorFlow
1.15, so files here are Python 3.7.
"""

import importlib
import zlib
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy as np

# ruff: noqa: UP006, UP035

MODULES = (
    "beams",
    "cells",
    "distributions",
    "edited_graphs",
    "feature_maps",
    "functions",
    "keras",
    "keras_around",
    "keras_training",
    "lists",
    "metrics",
    "networks",
    "optimizers",
)


def programs(module: str) -> Dict[str, Callable[..., Any]]:
    """The programs of a module by name."""
    found = importlib.import_module("tests.contrib.programs." + module)
    return {
        name: value
        for name, value in sorted(vars(found).items())
        if callable(value) and getattr(value, "__module__", None) == found.__name__
        if not name.startswith("_")
    }


def values(seed: int, *shape: int) -> Any:
    """Numbers in (-1, 1)."""
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


def run_program(tf: Any, program: Any, open_session: Any) -> Tuple[List[Any], List[str]]:
    """What a program gives: a list of arrays, and a description of its variables."""
    with tf.Graph().as_default() as graph, open_session(graph) as session:
        found = program(tf, lambda *args, **kwargs: _run(tf, session, *args, **kwargs))
        variables = [_describe(variable, session) for variable in tf.global_variables()]
    return [np.asarray(value) for value in found], sorted(variables)


def _run(
    tf: Any,
    session: Any,
    fetches: Any,
    feed_dict: Any = None,
    train: Any = None,
    steps: int = 3,
) -> List[Any]:
    """The fetches; with ``train``, after each of some steps."""
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    for variable in tf.trainable_variables():
        name = variable.op.name
        shape = variable.shape.as_list()
        value = np.random.RandomState(zlib.crc32(name.encode()) % 2**31).uniform(-0.5, 0.5, shape)
        variable.load(value.astype(variable.dtype.as_numpy_dtype), session)
    found = [] if train is not None else list(session.run(fetches, feed_dict))
    for _ in range(steps if train is not None else 0):
        session.run(train, feed_dict)
        found.extend(session.run(fetches, feed_dict))
    return found


def _describe(variable: Any, session: Any) -> str:
    """Name, type, shape, and the value that it begins with, where that is the same everywhere."""
    begin = np.unique(session.run(variable.initializer.inputs[1]).astype(np.float64))
    parts = [variable.op.name, variable.dtype.base_dtype.name, str(variable.shape.as_list())]
    return " ".join(parts + [repr(round(float(begin[0]), 6)) if len(begin) == 1 else "varied"])


@contextmanager
def plain_session(tf: Any, graph: Any) -> Iterator[Any]:
    """A session as a program opens it."""
    with tf.Session(graph=graph) as session:
        yield session
