"""Picking and scattering rows, and what is differentiated sparsely."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.programs.program import Program, integers, op, values

TABLE = values(6, 3)
INDICES = np.array([4, 0, 4, 2], np.int32)
SQUARE = integers(2, 3, high=6, seed=1)
BATCHED = integers(2, 2, high=3, seed=2)
CUBE = values(2, 3, 4, seed=3)
UPDATES = values(4, 3, seed=4)


def _variable_rows(method: str, resource: bool) -> Program:
    """A scattered update of a variable, with an index that stands twice where that is defined."""

    def build(tf: Any) -> list[list[Any]]:
        variable = tf.get_variable("table", initializer=TABLE, use_resource=resource)
        indices = [4, 1, 0, 2] if method == "update" else INDICES
        update = getattr(tf, f"scatter_{method}")(variable, indices, UPDATES)
        return [[update], [update], [variable]]

    return Program(build)


def _gradient_of_lookup(tf: Any, table: Any, square: Any) -> list[Any]:
    picked = tf.nn.embedding_lookup(table, square)
    slices = tf.gradients(tf.reduce_sum(picked * picked), table)[0]
    return [picked, slices.indices, slices.values, tf.convert_to_tensor(slices)]


PROGRAMS = {
    "gather": op(lambda tf, t, i: tf.gather(t, i), TABLE, INDICES),
    "gather_square": op(lambda tf, t, i: tf.gather(t, i), TABLE, SQUARE),
    "gather_axis": op(lambda tf, t, i: tf.gather(t, i, axis=1), TABLE, BATCHED),
    "gather_batch": op(lambda tf, c, i: tf.gather(c, i, axis=1, batch_dims=1), CUBE, BATCHED),
    "gather_nd": op(lambda tf, c, i: tf.gather_nd(c, i % 2), CUBE, SQUARE),
    "embedding_lookup": op(lambda tf, t, i: tf.nn.embedding_lookup(t, i), TABLE, SQUARE),
    "embedding_gradient": op(_gradient_of_lookup, TABLE, SQUARE, gradient=False),
    "one_hot": op(lambda tf, i: [tf.one_hot(i, 4), tf.one_hot(i, 6, 5.0, -1.0, axis=0)], SQUARE),
    "scatter_nd": op(lambda tf, i, u: tf.scatter_nd(i[:, None], u, [6, 3]), INDICES, UPDATES),
    "tensor_scatter": op(
        lambda tf, t, i, u: [
            tf.tensor_scatter_add(t, i[:, None], u),
            tf.tensor_scatter_sub(t, i[:, None], u),
            tf.tensor_scatter_update(t, [[1], [3], [0], [5]], u),
        ],
        TABLE,
        INDICES,
        UPDATES,
    ),
    **{
        f"scatter_{method}_{'resource' if resource else 'ref'}": _variable_rows(method, resource)
        for method in ("add", "sub", "mul", "div", "min", "max", "update")
        for resource in (False, True)
    },
}
