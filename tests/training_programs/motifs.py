"""What training programs are made of: functions from one matrix to another, of four columns.

Each takes the program that is being built, for its variables and its chance, and a matrix of a
number of rows that only the step knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

WIDTH = 4
MOTIFS: dict[str, Callable[[Any, Any], Any]] = {}


def motif(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    MOTIFS[function.__name__] = function
    return function


# Layers ---------------------------------------------------------------------------------------


@motif
def dense(p, x):
    activation = p.one_of([p.tf.tanh, p.tf.sigmoid, p.tf.nn.softplus, p.tf.nn.elu])
    return activation(p.tf.nn.bias_add(p.tf.matmul(x, p.variable(4, 4)), p.variable(4)))


@motif
def equal_layers(p, x):
    tf, shared, kept = p.tf, p.flip(), []
    weights, bias = p.variable(4, 4), p.variable(4)
    for _ in range(p.one_of([4, 9, 20])):
        if not shared:
            weights, bias = p.variable(4, 4), p.variable(4)
        mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
        x = x + 0.3 * tf.tanh(tf.matmul((x - mean) * tf.rsqrt(variance + 0.1), weights) + bias)
        kept.append(x)
    return p.one_of([x, tf.add_n(kept[::2]), tf.reduce_max(tf.stack(kept), 0)])


@motif
def attention(p, x):
    tf = p.tf
    for _ in range(p.one_of([1, 3])):
        q, k, v = (tf.matmul(x, p.variable(4, 4)) for _ in range(3))
        x = x + tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v)
    return x


@motif
def convolution(p, x):
    tf = p.tf
    strides = [1, p.one_of([1, 2]), 1, 1]
    y = tf.nn.conv2d(tf.reshape(x, [-1, 2, 2, 1]), p.variable(2, 2, 1, 3), strides, "SAME")
    pool = p.one_of([tf.nn.max_pool, tf.nn.avg_pool])
    y = pool(tf.nn.relu(y + 0.05), [1, 2, 2, 1], [1, 1, 1, 1], "SAME")
    return x + tf.reduce_mean(y, [1, 2, 3])[:, None]


@motif
def dropout(p, x):
    tf, seed = p.tf, p.number(100)
    kept = lambda: tf.nn.dropout(x, keep_prob=0.6, seed=seed)  # noqa: E731
    return p.one_of([kept, lambda: tf.cond(p.training, kept, lambda: tf.identity(x))])()


@motif
def recurrent(p, x):
    tf = p.tf
    kind = p.one_of(["LSTMCell", "GRUCell", "BasicRNNCell"])
    cell = getattr(tf.nn.rnn_cell, kind)(4, name=p.name())
    steps = tf.stack([x, 0.5 * x, -x], 1)
    lengths = p.one_of([None, p.rows(4)])
    with tf.variable_scope(p.name(), initializer=tf.constant_initializer(0.3)):
        outputs, state = tf.nn.dynamic_rnn(cell, steps, lengths, dtype=x.dtype)
    return tf.reduce_sum(outputs, 1) + (state.h if kind == "LSTMCell" else state)


@motif
def unrolled(p, x):
    tf = p.tf
    inputs = [x * 0.9**i for i in range(p.one_of([2, 6]))]
    cells = [tf.nn.rnn_cell.BasicLSTMCell(4, name=p.name()) for _ in range(2)]
    with tf.variable_scope(p.name(), initializer=tf.constant_initializer(0.2)):
        outputs, _ = tf.nn.static_rnn(tf.nn.rnn_cell.MultiRNNCell(cells), inputs, dtype=x.dtype)
    return p.one_of([outputs[-1], tf.add_n(outputs)])


# Tables ---------------------------------------------------------------------------------------


@motif
def lookup(p, x):
    tables = p.one_of([[p.variable(7, 4)], [p.variable(3, 4), p.variable(2, 4), p.variable(2, 4)]])
    strategy = p.one_of(["mod", "div"])
    return x + p.tf.nn.embedding_lookup(tables, p.rows(7), partition_strategy=strategy)


@motif
def lookup_of_a_sum(p, x):
    tf, table = p.tf, p.variable(6, 4)
    return x + tf.gather(
        p.one_of([table + 1.0, 2.0 - table, tf.concat([table, table], 0)]), p.rows(6)
    )


@motif
def scattered(p, x):
    tf, table, rows = p.tf, p.variable(5, 4), p.rows(5)
    return tf.gather(tf.tensor_scatter_nd_add(tf.identity(table), rows[:, None], x), rows)


@motif
def updated_rows(p, x):
    tf, table, rows = p.tf, p.state(5, 4), p.rows(5)
    update = p.one_of([tf.scatter_add, tf.scatter_sub])(table, rows, tf.tanh(x))
    with tf.control_dependencies([update]):
        return x + tf.gather(table.read_value(), rows)


@motif
def by_segment(p, x):
    tf, rows = p.tf, p.rows(4)
    kinds = [tf.unsorted_segment_sum, tf.unsorted_segment_mean, tf.unsorted_segment_max]
    return tf.tanh(tf.gather(p.one_of(kinds)(x, rows, 4), rows))


@motif
def partitioned(p, x):
    tf, rows = p.tf, p.rows(2)
    places = tf.dynamic_partition(tf.range(tf.shape(x)[0]), rows, 2)
    parts = tf.dynamic_partition(x, rows, 2)
    joined = tf.dynamic_stitch(places, [parts[0] * p.variable(4), tf.sin(parts[1])])
    return tf.reshape(joined, tf.shape(x))


@motif
def masked(p, x):
    return x + p.tf.reduce_sum(p.tf.sin(p.tf.boolean_mask(x, x[:, 0] > 0)), 0)


@motif
def sparse_product(p, x):
    tf, where = p.tf, p.tf.where(x > 0)
    sparse = tf.SparseTensor(where, tf.gather_nd(x, where), tf.shape(x, out_type=tf.int64))
    return tf.reshape(tf.sparse_tensor_dense_matmul(sparse, p.variable(4, 4)), [-1, 4])


# Control flow ---------------------------------------------------------------------------------


@motif
def loop(p, x):
    tf, weights, bias, count = p.tf, p.variable(4, 4), p.variable(4), p.one_of([3, p.count])
    body = lambda i, a: (i + 1, tf.tanh(tf.matmul(a, weights) + bias))  # noqa: E731
    return tf.while_loop(lambda i, _: i < count, body, [0, x])[1]


@motif
def written_loop(p, x):
    tf, weights, count = p.tf, p.variable(4, 4), p.one_of([4, p.count + 1])
    array = tf.TensorArray(x.dtype, p.one_of([count, 0]), dynamic_size=True, clear_after_read=False)

    def body(i, a, array):
        a = tf.tanh(tf.matmul(a, weights))
        return i + 1, a, array.write(i, a * tf.cast(i, a.dtype))

    _, last, array = tf.while_loop(lambda i, *_: i < count, body, [0, x, array])
    taken = p.one_of(
        [
            lambda: tf.reduce_sum(array.stack(), 0),
            lambda: tf.reduce_sum(array.gather(tf.range(count)[::-1]), 0),
            lambda: array.read(count - 1) + array.read(0),
        ]
    )()
    return tf.reshape(taken, [-1, 4]) * 0.2 + last


@motif
def loop_with_branches(p, x):
    tf, one, other = p.tf, p.variable(4), p.variable(4)

    def body(i, a):
        sign = lambda: tf.cond(tf.reduce_sum(a) > 0, lambda: other + 0.0, lambda: -other)  # noqa: E731
        even = tf.equal(tf.floormod(i, 2), 0)
        found = tf.cond(even, lambda: a * one, lambda: tf.sin(a) + sign())
        found.set_shape(a.shape)
        return i + 1, found

    return tf.while_loop(lambda i, _: i < 4, body, [0, x])[1]


@motif
def loop_in_a_branch(p, x):
    tf, weights = p.tf, p.variable(4)
    body = lambda i, a: (i + 1, tf.sin(a * weights))  # noqa: E731
    run = lambda: tf.while_loop(lambda i, _: i < p.count, body, [0, x])[1]  # noqa: E731
    return tf.cond(tf.reduce_sum(x) > 0.2, run, lambda: x * weights)


@motif
def mapped(p, x):
    tf, weights = p.tf, p.variable(4)
    inner = lambda e: tf.sin(e) * tf.reduce_sum(weights)  # noqa: E731
    return tf.reshape(tf.map_fn(lambda row: tf.map_fn(inner, row) + weights, x), tf.shape(x))


@motif
def scanned(p, x):
    tf, weights = p.tf, p.variable(4, 4)
    step = lambda a, e: tf.tanh(tf.matmul(a[None], weights)[0] + e)  # noqa: E731
    start = tf.zeros([4], x.dtype)
    return tf.reshape(tf.scan(step, x, initializer=start, reverse=p.flip()), tf.shape(x))


@motif
def updated_in_a_branch(p, x):
    tf, state, total = p.tf, p.state(4), p.tf.reduce_sum(x[:1])

    def add():
        with tf.control_dependencies([state.assign_add(tf.fill([4], tf.tanh(total)))]):
            return state.read_value()

    return x + tf.cond(total > 0, add, lambda: state.read_value() * 2)


@motif
def updated_in_a_loop(p, x):
    tf, state, count = p.tf, p.state(), p.one_of([3, p.count])

    def body(i, a):
        with tf.control_dependencies([state.assign_add(0.1 * tf.cast(i, x.dtype))]):
            return i + 1, a * 0.9 + state.read_value()

    return tf.tanh(tf.while_loop(lambda i, _: i < count, body, [0, x], parallel_iterations=1)[1])


@motif
def cases(p, x):
    tf, weights, total = p.tf, p.variable(4), p.tf.reduce_sum(x)
    pairs = [(total > 1.0, lambda: x * weights), (total > 0.0, lambda: x + weights)]
    return tf.case(pairs, default=lambda: x - weights)


# Types, shapes, and the host --------------------------------------------------------------------


@motif
def narrowed(p, x):
    tf = p.tf
    return tf.cast(tf.cast(x, p.one_of([tf.float16, tf.bfloat16, tf.float32])), x.dtype)


@motif
def integers(p, x):
    tf = p.tf
    i = tf.cast(x * 10, p.one_of([tf.int32, tf.int64, tf.int8, tf.int16]))
    j = i // 3 + i % 4 - tf.cast(i > 2, i.dtype)
    return tf.where(tf.logical_xor(x > 0, tf.equal(j, i)), x * tf.cast(j, x.dtype), tf.sin(x))


@motif
def complex_numbers(p, x):
    tf = p.tf
    z = tf.complex(x, tf.sin(x))
    z = z * tf.conj(z) + tf.exp(tf.complex(tf.zeros_like(x), x))
    return tf.real(z) + tf.imag(z) + tf.abs(z)


@motif
def nothing(p, x):
    tf, empty = p.tf, x[:0]
    return tf.concat([empty, x, empty], 0) + tf.reduce_sum(tf.matmul(empty, p.variable(4, 4)))


@motif
def of_unknown_rank(p, x):
    tf = p.tf
    return tf.reshape(tf.tanh(tf.placeholder_with_default(x, None)) * p.variable(4), [-1, 4])


@motif
def on_the_host(p, x):
    found = p.tf.py_func(np.cos, [x], x.dtype)
    found.set_shape(x.shape)
    return found * x


@motif
def through_a_queue(p, x):
    tf = p.tf
    queue = tf.FIFOQueue(10, [x.dtype])
    with tf.control_dependencies([queue.enqueue([tf.stop_gradient(x)])]):
        found = queue.dequeue()
    found.set_shape([None, 4])
    return found + x


@motif
def elsewhere(p, x):
    with p.tf.device("/cpu:1"):
        return p.tf.tanh(p.tf.matmul(x, p.variable(4, 4)))


@motif
def its_own_gradient(p, x):
    tf, x = p.tf, p.tf.identity(x)
    return x + tf.gradients(tf.reduce_sum(tf.sin(x * p.variable(4)) * x), x)[0]


@motif
def pieces(p, x):
    tf = p.tf
    first, rest = tf.split(x, [1, 3], 1)
    a, b, c, d = tf.unstack(x, axis=1)
    return tf.concat([rest, first], 1) + tf.stack([d, a * b, c, -a], 1) + x[:, ::-1] * x[0]


@motif
def reduced(p, x):
    tf = p.tf
    kinds = [tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_prod, tf.reduce_logsumexp]
    return x * 0.5 + p.one_of(kinds)(tf.sin(x) + 1.5, 1, keepdims=True)


@motif
def sorted_and_summed(p, x):
    values, places = p.tf.nn.top_k(x, 2)
    largest = p.tf.reduce_sum(values, 1, keepdims=True) * p.tf.cast(places[:, :1], x.dtype)
    return p.tf.cumsum(x, p.one_of([0, 1]), exclusive=p.flip(), reverse=p.flip()) * 0.3 + largest


@motif
def solved(p, x):
    tf, a = p.tf, p.variable(4, 4)
    positive = tf.matmul(a, a, transpose_b=True) + tf.eye(4, dtype=x.dtype) * 2
    ways = [
        lambda: tf.transpose(tf.matrix_solve(positive, tf.transpose(x))),
        lambda: tf.matmul(x, tf.matrix_inverse(positive)),
        lambda: tf.matmul(x, tf.cholesky(positive)),
    ]
    return tf.reshape(p.one_of(ways)(), [-1, 4])


@motif
def checked(p, x):
    tf = p.tf
    with tf.control_dependencies([tf.assert_less(tf.abs(x), tf.constant(1e9, x.dtype))]):
        return tf.check_numerics(x, "x")
