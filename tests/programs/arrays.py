"""Shapes and the places of elements: nothing is computed, everything is moved."""

from __future__ import annotations

import numpy as np

from tests.programs.program import integers, op, values

X = values(2, 3, 4)
Y = values(2, 1, 4, seed=1)
MATRIX = values(3, 4, seed=2)
IMAGE = values(1, 4, 4, 2, seed=3)
I = integers(2, 3)
LENGTHS = np.array([3, 1], np.int32)

PROGRAMS = {
    "reshape": op(lambda tf, x: [tf.reshape(x, [4, -1]), tf.reshape(x, [-1])], X),
    "reshape_dynamic": op(lambda tf, x: tf.reshape(x, tf.stack([tf.shape(x)[1] * 2, 4])), X),
    "transpose": op(lambda tf, x: [tf.transpose(x), tf.transpose(x, [1, 2, 0])], X),
    "matrix_transpose": op(lambda tf, x: tf.matrix_transpose(x), X),
    "expand_squeeze": op(lambda tf, y: [tf.expand_dims(y, -1), tf.squeeze(y), y[:, 0]], Y),
    "concat": op(lambda tf, x, y: tf.concat([x, y, x], 1), X, Y),
    "stack_unstack": op(lambda tf, m: [tf.stack([m, m + 1], 1), *tf.unstack(m)], MATRIX),
    "split": op(lambda tf, x: [*tf.split(x, 2, 2), *tf.split(x, [1, 2], 1)], X),
    "slice": op(lambda tf, x: tf.slice(x, [0, 1, 1], [2, -1, 2]), X),
    "index": op(lambda tf, x: [x[1], x[:, -1], x[..., 2], x[0, 1:, ::2], x[::-1]], X),
    "index_new_axis": op(lambda tf, x: [x[:, tf.newaxis], x[..., None, 1]], X),
    "index_by_tensor": op(lambda tf, x, i: x[i[0, 0] % 2], X, I),
    "strided_slice_masks": op(
        lambda tf, m: tf.strided_slice(m, [0, 3], [3, 0], [1, -1], begin_mask=1, end_mask=2),
        MATRIX,
    ),
    "pad": op(lambda tf, m: tf.pad(m, [[1, 0], [2, 1]], constant_values=7.0), MATRIX),
    "pad_reflect": op(lambda tf, m: tf.pad(m, [[1, 1], [2, 2]], "REFLECT"), MATRIX),
    "pad_symmetric": op(lambda tf, m: tf.pad(m, [[2, 0], [0, 3]], "SYMMETRIC"), MATRIX),
    "tile": op(lambda tf, m: tf.tile(m, [2, 3]), MATRIX),
    "reverse": op(lambda tf, x: tf.reverse(x, [0, -1]), X),
    "reverse_sequence": op(lambda tf, x, n: tf.reverse_sequence(x, n, 1, batch_axis=0), X, LENGTHS),
    "broadcast_to": op(lambda tf, y: tf.broadcast_to(y, [3, 2, 3, 4]), Y),
    "meshgrid": op(lambda tf, m: tf.meshgrid(m[0], m[:, 1]), MATRIX),
    "space_to_depth": op(lambda tf, x: tf.space_to_depth(x, 2), IMAGE),
    "space_to_batch": op(lambda tf, x: tf.space_to_batch_nd(x, [2, 2], [[0, 0], [2, 0]]), IMAGE),
    "depth_to_space": op(lambda tf, x: tf.depth_to_space(tf.space_to_depth(x, 4), 2), IMAGE),
    "diag": op(lambda tf, m: [tf.diag(m[0]), tf.diag_part(m[:, :3])], MATRIX),
    "matrix_diag": op(lambda tf, m: [tf.matrix_diag(m), tf.matrix_diag_part(m)], MATRIX),
    "matrix_set_diag": op(lambda tf, m, x: tf.matrix_set_diag(x, m[:2, :3]), MATRIX, X),
    "band_part": op(lambda tf, m: tf.matrix_band_part(m, 1, 0), MATRIX),
    "fill_like": op(
        lambda tf, x: [tf.zeros_like(x), tf.ones_like(x), tf.fill(tf.shape(x)[:2], 2.5)], X
    ),
    "ranges": op(
        lambda tf, i: [tf.range(2, 20, 3), tf.range(i[0, 0] + 2), tf.linspace(0.0, 1.0, 5)], I
    ),
    "shapes": op(lambda tf, x: [tf.shape(x), tf.size(x), tf.rank(x)], X),
    "shapes_int64": op(lambda tf, x: [tf.shape(x, out_type=tf.int64), *tf.shape_n([x, x])], X),
    "sequence_mask": op(lambda tf, n: tf.sequence_mask(n, 4), LENGTHS),
    "boolean_mask": op(lambda tf, m: tf.boolean_mask(m, m[:, 0] > 0), MATRIX, gradient=False),
    "where_indices": op(lambda tf, m: tf.where(m > 0), MATRIX, gradient=False),
    "invert_permutation": op(lambda tf, i: tf.invert_permutation(i), np.array([2, 0, 1], np.int32)),
    "dynamic_partition": op(
        lambda tf, m, i: tf.dynamic_partition(m, i, 2),
        MATRIX,
        np.array([1, 0, 1], np.int32),
        gradient=False,
    ),
    "dynamic_stitch": op(
        lambda tf, m: tf.dynamic_stitch([[0, 2], [1]], [m[:2], m[2:]]), MATRIX, gradient=False
    ),
    "sort": op(lambda tf, x: [tf.sort(x), tf.argsort(x, axis=1, direction="DESCENDING")], X),
    "eye": op(lambda tf, m: tf.eye(3, 4) * m, MATRIX),
    "strings": op(
        lambda tf, s: [tf.identity(s), tf.reshape(s, [2, 2]), tf.equal(s, "b")],
        np.array([b"a", b"b", b"cc", b""], object),
    ),
}
