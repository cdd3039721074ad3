"""Running a table of programs under one library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.programs.program import Program

Steps = list[list[Any]]
"""For each step the values that it fetched, None for an operation."""


def run_table(
    tf: Any, table: Mapping[str, Program], open_session: Callable[[Any], Any]
) -> dict[str, Steps | Exception]:
    """What each program of ``table`` gives, or the error that it met.

    All are built in one graph and their steps run together, so that a table is compiled as a
    whole; when that fails they are run one by one, to tell which it was.
    """
    try:
        return dict(_run_together(tf, table, open_session))
    except Exception as error:
        if len(table) == 1:
            return dict.fromkeys(table, error)
    found: dict[str, Steps | Exception] = {}
    for name, program in table.items():
        found |= run_table(tf, {name: program}, open_session)
    return found


def _run_together(
    tf: Any, table: Mapping[str, Program], open_session: Callable[[Any], Any]
) -> dict[str, Steps]:
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(1234)
        feeds: dict[Any, np.ndarray] = {}
        plans: dict[str, Any] = {}
        for name, program in table.items():
            with tf.variable_scope(name):
                tensors = [tf.placeholder(a.dtype, a.shape) for a in program.inputs]
                feeds |= dict(zip(tensors, program.inputs, strict=True))
                plans[name] = program.build(tf, *tensors)
        init = [tf.global_variables_initializer(), tf.local_variables_initializer()]
        results: dict[str, Steps] = {name: [] for name in table}
        with open_session(graph) as session:
            session.run(init, feeds)
            for number in range(max(len(steps) for steps in plans.values())):
                fetches = {
                    name: list(steps[number])
                    for name, steps in plans.items()
                    if number < len(steps)
                }
                for name, fetched in session.run(fetches, feeds).items():
                    results[name].append([None if v is None else np.asarray(v) for v in fetched])
        return results
