"""Long sequences in pieces that hand on their states."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf

UNROLL = 2


def _numbered():
    """Sequences 1, 2, 3 ... of lengths 4, 7, 3, 6, 2 ..., with elements that tell both."""
    count = tf.Variable(0, trainable=False).assign_add(1)
    length = 1 + (count * 3) % 7
    x = tf.cast(tf.range(length), tf.float32)[:, None] + 100.0 * tf.cast(count, tf.float32)
    x = x + tf.zeros([1, 2])
    x.set_shape([None, 2])
    return count, length, x


def _batch(count, length, x, **how):
    return tf.contrib.training.batch_sequences_with_states(
        tf.string_join(["k", tf.as_string(count)]),
        {"x": x},
        {"c": count * 10},
        length,
        {"s": tf.zeros([3])},
        num_unroll=UNROLL,
        **{"batch_size": 2, "num_threads": 1, "capacity": 10, **how},
    )


def _run(batch, steps, *more):
    """What ``steps`` batches hold; each piece adds its elements to the state."""
    added = batch.state("s") + tf.reduce_sum(batch.sequences["x"], axis=[1, 2])[:, None]
    save = batch.save_state("s", added)
    fetched = [batch.key, batch.next_key, batch.length, batch.state("s"), batch.context["c"], *more]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        found = [sess.run([*fetched, save])[:-1] for _ in range(steps)]
        coord.request_stop()
        coord.join(threads)
    return found


def test_pieces_come_in_tensorflows_order_with_the_states_before_them():
    found = _run(_batch(*_numbered(), allow_small_batch=False), 4)
    # As TensorFlow 1.15.5 gives them.
    assert [[key.decode() for key in keys] for keys, *_ in found] == [
        ["00000_of_00002:k1", "00000_of_00004:k2"],
        ["00001_of_00002:k1", "00001_of_00004:k2"],
        ["00002_of_00004:k2", "00000_of_00002:k3"],
        ["00003_of_00004:k2", "00001_of_00002:k3"],
    ]
    assert [list(row[1]) for row in found[1:]] == [
        [b"STOP:k1", b"00002_of_00004:k2"],
        [b"00003_of_00004:k2", b"00001_of_00002:k3"],
        [b"STOP:k2", b"STOP:k3"],
    ]
    assert [row[2].tolist() for row in found] == [[2, 2], [2, 2], [2, 2], [1, 1]]
    assert [row[3][:, 0].tolist() for row in found] == [
        [0.0, 0.0], [402.0, 802.0], [1612.0, 0.0], [2430.0, 1202.0],
    ]  # fmt: skip
    assert [row[4].tolist() for row in found] == [[10, 20], [10, 20], [20, 30], [20, 30]]


def test_no_more_sequences_are_held_than_the_capacity_allows():
    count, length, x = _numbered()
    batch = _batch(count, length, x, capacity=2, allow_small_batch=False)
    seen = _run(batch, 12, batch.insertion_index)
    for *_, places in seen:  # of the order in which sequences came: at most two at a time
        assert np.ptp(places - np.iinfo(np.int64).min) <= 2
    keys = [key for row in seen for key in row[0]]
    assert len(set(keys)) == len(keys)


def test_a_network_over_pieces_is_one_over_the_whole():
    rng = np.random.default_rng(3)
    whole = rng.normal(size=(6, 3)).astype(np.float32)
    cell = tf.nn.rnn_cell.GRUCell(4)
    given = tf.train.limit_epochs(tf.constant(whole), num_epochs=1)
    batch = tf.contrib.training.batch_sequences_with_states(
        "only", {"x": given}, None, 6, {"gru": tf.zeros([4])}, 2, 1, num_threads=1, capacity=4
    )
    pieces = tf.unstack(batch.sequences["x"], num=2, axis=1)
    outputs, _ = tf.nn.static_state_saving_rnn(cell, pieces, batch, "gru")
    with tf.variable_scope("rnn", reuse=True):
        state, wanted = tf.zeros([1, 4]), []
        for row in whole:
            out, state = cell(row[None], state)
            wanted.append(out)
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        found = np.concatenate([np.stack(sess.run(outputs), 1) for _ in range(3)], 1)
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(outputs)
        np.testing.assert_allclose(found, np.stack(sess.run(wanted), 1), rtol=1e-5, atol=1e-6)
        coord.request_stop()
        coord.join(threads)


def test_the_last_batch_may_be_smaller():
    length = tf.train.limit_epochs(tf.constant(4), num_epochs=1)
    x = tf.ones([4, 2])
    key = tf.as_string(length)
    batch = tf.contrib.training.batch_sequences_with_states(
        key, {"x": x}, None, length, {"s": tf.zeros([1])}, 2, batch_size=3, capacity=4
    )
    save = batch.save_state("s", batch.state("s") + 1.0)
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        fetched = [batch.batch_size, batch.state("s"), batch.total_length]
        rows = [sess.run([*fetched, save])[:-1] for _ in range(2)]
        assert [(int(n), s.tolist(), t.tolist()) for n, s, t in rows] == [
            (1, [[0.0]], [4]),
            (1, [[1.0]], [4]),
        ]
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(fetched)
        coord.request_stop()
        coord.join(threads)


def _of_length(steps: int) -> tf.Tensor:
    return tf.placeholder_with_default(np.zeros([steps, 1]), [None, 1])


def _saver(**how):
    given = {
        "batch_size": 1,
        "num_unroll": 2,
        "input_length": 3,
        "input_key": "k",
        "input_sequences": {"x": tf.zeros([4, 1])},
        "input_context": {},
        "initial_states": {"s": tf.zeros([1])},
    }
    return tf.contrib.training.SequenceQueueingStateSaver(**{**given, **how})


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="cannot fill batches"):
        _saver(capacity=1, batch_size=2)
    with pytest.raises(ValueError, match="initial_states"):
        _saver(initial_states={})
    with pytest.raises(ValueError, match="must be known"):
        _saver(initial_states={"s": tf.placeholder(tf.float32, [None])})
    with pytest.raises(TypeError, match="state 's' is a SparseTensor"):
        _saver(initial_states={"s": tf.SparseTensor([[0]], [1.0], [2])})
    with pytest.raises(KeyError, match="no state 't'"):
        _saver().next_batch.state("t")
    with tf.Session() as sess:
        for wrong, why in [
            ({"input_sequences": {"x": _of_length(3)}}, "multiple of num_unroll"),
            ({"input_length": 5}, "shorter than their length"),
            ({"input_sequences": {"x": _of_length(4), "y": _of_length(6)}}, "not as long"),
        ]:
            with pytest.raises(tf.errors.InvalidArgumentError, match=why):
                sess.run(_saver(**wrong).prefetch_op)


def test_a_closed_saver_takes_no_more():
    saver = _saver(capacity=2)
    with tf.Session() as sess:
        sess.run(saver.prefetch_op)
        sess.run(saver.close())
        with pytest.raises(tf.errors.CancelledError):
            sess.run(saver.prefetch_op)
        assert sess.run(saver.next_batch.key).tolist() == [b"00000_of_00002:k"]


def _sparse_steps(count, length):
    """A sparse sequence whose step t has t elements, in a matrix of as many columns as steps."""
    steps = tf.cast(tf.range(length), tf.int64)
    rows = tf.where(tf.sequence_mask(steps, tf.cast(length, tf.int64)))
    values = tf.cast(rows[:, 0], tf.float32) + 100.0 * tf.cast(count, tf.float32)
    wide = tf.cast(tf.stack([length, length]), tf.int64)
    return tf.SparseTensor(rows, values, wide)


@pytest.mark.parametrize("allow_small_batch", [False, True])
def test_sparse_sequences_and_contexts_come_in_pieces(allow_small_batch):
    count, length, x = _numbered()
    sparse = _sparse_steps(count, length)
    context = tf.SparseTensor([[1]], tf.reshape(count, [1]), [3])
    batch = tf.contrib.training.batch_sequences_with_states(
        tf.string_join(["k", tf.as_string(count)]),
        {"x": x, "s": sparse},
        {"c": count * 10, "of": context},
        length,
        {"s": tf.zeros([3])},
        num_unroll=UNROLL,
        batch_size=2,
        num_threads=1,
        capacity=10,
        allow_small_batch=allow_small_batch,
    )
    assert batch.sequences["s"].get_shape().ndims == 3
    pieces = tf.sparse_tensor_to_dense(batch.sequences["s"])
    numbers = tf.sparse_tensor_to_dense(batch.context["of"])
    found = _run(batch, 4, batch.sequence, batch.sequences["x"], pieces, numbers)
    for _, _, lengths, _, tens, places, dense, steps, of in found:
        np.testing.assert_array_equal(of, [[0, ten // 10, 0] for ten in tens])
        assert steps.shape[:2] == (2, UNROLL)
        for row in range(2):
            for t in range(UNROLL):
                step = places[row] * UNROLL + t
                expected = np.zeros(steps.shape[2])
                if t < lengths[row]:
                    expected[:step] = dense[row, t, 0]
                np.testing.assert_array_equal(steps[row, t], expected)
