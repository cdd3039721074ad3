"""Steps with equal blocks, compiled as loops, beside the interpreter."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import runnel as tf
from runnel.runtime.compile import compiler, gates
from tests.both_tiers import COMPILED, INTERPRETED, assert_same, run_both, session

TIMES = 7


@pytest.fixture(scope="module", autouse=True)
def saved():
    """Small repetitions are rolled; what compilations have saved is listed."""
    found = []
    original = compiler.compile_segment

    def compile_segment(*args, **options):
        executable = original(*args, **options)
        found.append(executable.saved)
        return executable

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(gates._FEWEST_SAVED, "cpu", 4)
        patch.setattr(compiler, "compile_segment", compile_segment)
        yield found


@pytest.fixture(autouse=True)
def _forgotten(saved):
    saved.clear()


BINARY = [tf.add, tf.subtract, tf.multiply, tf.maximum]
UNARY = [tf.tanh, tf.sigmoid, tf.nn.relu, lambda x: tf.matmul(x, x), tf.transpose]


@st.composite
def blocks(draw):
    """What a block does, by operations over its values; what it carries; what is used later."""
    steps = draw(
        st.lists(
            st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40)),
            min_size=1,
            max_size=6,
        )
    )
    carried = draw(st.integers(1, 3))
    kept = draw(st.sets(st.sampled_from(["all", "some", "last", "stacked", "joined", "summed"])))
    odd = draw(st.one_of(st.none(), st.integers(0, TIMES - 1)))
    return steps, carried, kept, odd, draw(st.booleans())


def build(steps, carried, kept, odd):
    rng = np.random.default_rng(5)

    def array():
        return (rng.standard_normal([3, 3]) * 0.4).astype(np.float32)

    given_rows = tf.placeholder(tf.float32, [TIMES, 3, 3])
    rows = tf.unstack(given_rows, TIMES)
    weights = [tf.Variable(array()) for _ in range(TIMES)]
    shared = tf.Variable(array())
    state = [tf.constant(array()) for _ in range(carried)]
    seen = []
    for block in range(TIMES):
        values = [*state, shared, weights[block], rows[block]]
        for kind, a, b in steps:
            kind += block == odd
            left, right = values[a % len(values)], values[b % len(values)]
            if kind % 2:
                values.append(BINARY[kind // 2 % len(BINARY)](left, right))
            else:
                values.append(UNARY[kind // 2 % len(UNARY)](left))
        state = [tf.tanh(values[-1 - i]) for i in range(carried)]
        seen.append(state[0])
    fetched = [tf.reduce_sum(value) for value in state]
    if "all" in kept:
        fetched += seen
    if "some" in kept:
        fetched += seen[1::3]
    if "last" in kept:
        fetched.append(seen[-1])
    if "stacked" in kept:
        fetched.append(tf.stack(seen, 1))
    if "joined" in kept:
        fetched.append(tf.concat(seen[::-1], 0))
    if "summed" in kept:
        fetched.append(tf.add_n(seen))
    return given_rows, [*weights, shared], fetched


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(blocks())
def test_random_blocks_give_what_the_interpreter_gives(block):
    steps, carried, kept, odd, differentiates = block
    with tf.Graph().as_default():
        rows, variables, fetched = build(steps, carried, kept, odd)
        if differentiates:
            loss = tf.add_n([tf.reduce_sum(value) for value in fetched])
            gradients = tf.gradients(loss, [*variables, rows])
            fetched += [g for g in gradients if g is not None]
        fed = np.random.default_rng(7).standard_normal([TIMES, 3, 3]).astype(np.float32)
        init = tf.global_variables_initializer()
        run_both(fetched, {rows: fed}, rtol=2e-4, atol=2e-5, init=init)


def trained(loss, optimizer, feeds, saved, steps=3):
    """Trains in both tiers from the same start, asserts that they agree; what was rolled."""
    train = optimizer.minimize(loss)
    variables = tf.global_variables()
    results = []
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            sess.run(tf.global_variables_initializer())  # which draws the same in both tiers
            saved.clear()
            losses = [sess.run([train, loss], feeds)[1] for _ in range(steps)]
            rolled = sum(saved)
            results.append([losses, sess.run(variables)])
    assert_same(*results, rtol=1e-3, atol=1e-5)
    return rolled


@pytest.mark.parametrize(("batch", "layers"), [(3, 1), (None, 2)])
def test_an_unrolled_lstm_is_compiled_as_loops_forward_and_backward(batch, layers, saved):
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, [batch, 9, 4])
        cells = [tf.nn.rnn_cell.BasicLSTMCell(5) for _ in range(layers)]
        cell = tf.nn.rnn_cell.MultiRNNCell(cells)
        outputs, _ = tf.nn.static_rnn(cell, tf.unstack(x, 9, 1), dtype=tf.float32)
        loss = tf.reduce_mean(tf.square(tf.stack(outputs)))
        fed = np.random.default_rng(1).random([3, 9, 4]).astype(np.float32)
        rolled = trained(loss, tf.train.AdamOptimizer(0.01), {x: fed}, saved)
    assert rolled > 150 * layers


@pytest.mark.parametrize(
    ("optimizer", "use_resource"),
    [
        (tf.train.GradientDescentOptimizer(0.01), True),
        (tf.train.MomentumOptimizer(0.01, 0.9), False),
    ],
    ids=["descent", "momentum"],
)
def test_equal_layers_are_compiled_as_loops_forward_and_backward(optimizer, use_resource, saved):
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        value = x = tf.placeholder(tf.float32, [None, 4])
        for layer in range(12):
            weight = tf.get_variable(f"w{layer}", [4, 4], use_resource=use_resource)
            bias = tf.get_variable(f"b{layer}", [4], use_resource=use_resource)
            value = tf.nn.tanh(tf.matmul(value, weight) + bias)
        loss = tf.reduce_mean(tf.square(value - 0.5))
        fed = np.random.default_rng(1).random([5, 4]).astype(np.float32)
        rolled = trained(loss, optimizer, {x: fed}, saved)
    assert rolled > 9 * 6


def test_residual_blocks_with_batch_normalisation_give_what_the_interpreter_gives(saved):
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, [4, 6, 6, 3])
        value = x
        for block in range(6):
            kernel = tf.get_variable(f"k{block}", [3, 3, 3, 3])
            scale = tf.get_variable(f"s{block}", [3])
            offset = tf.get_variable(f"o{block}", [3])
            path = tf.nn.conv2d(value, kernel, 1, "SAME")
            path, _, _ = tf.nn.fused_batch_norm(path, scale, offset, epsilon=1e-3)
            value = tf.nn.relu(path + value)
        loss = tf.reduce_mean(tf.square(value))
        fed = np.random.default_rng(1).random([4, 6, 6, 3]).astype(np.float32)
        rolled = trained(loss, tf.train.MomentumOptimizer(0.01, 0.9), {x: fed}, saved)
    assert rolled


def test_a_check_that_fails_in_a_block_names_its_operation_and_changes_nothing():
    with tf.Graph().as_default():
        table = tf.Variable(tf.ones([5, 3]))
        ids = tf.placeholder(tf.int32, [8])
        value = tf.zeros([3])
        for number, index in enumerate(tf.unstack(ids)):
            value = tf.tanh(value + tf.gather(table, index, name=f"looked_up_{number}"))
        change = tf.assign_add(table, tf.tile(value[None], [5, 1]))
        with session(COMPILED) as sess:
            sess.run(table.initializer)
            with pytest.raises(tf.errors.InvalidArgumentError, match="looked_up_5"):
                sess.run(change, {ids: [0, 1, 2, 3, 4, 5, 0, 0]})
            np.testing.assert_array_equal(sess.run(table), np.ones([5, 3], np.float32))
            expected = sess.run(change, {ids: [0, 1, 2, 3, 4, 0, 0, 0]})
        with session(INTERPRETED) as sess:
            sess.run(table.initializer)
            assert_same(sess.run(change, {ids: [0, 1, 2, 3, 4, 0, 0, 0]}), expected)


RANDOM = {
    "uniform": lambda seed: tf.random_uniform([4, 4], seed=seed),
    "normal": lambda seed: tf.random_normal([4, 4], 0.5, 0.1, seed=seed),
    "truncated": lambda seed: tf.truncated_normal([4, 4], 0.5, 0.1, seed=seed),
    "integers": lambda seed: tf.cast(tf.random_uniform([4, 4], 0, 3, tf.int32, seed), tf.float32),
    "gamma": lambda seed: tf.random_gamma([4, 4], 2.0, 4.0, seed=seed),
    "shuffle": lambda seed: tf.random_shuffle(tf.diag([0.5, 1.0, 0.2, 0.3]), seed),
    "without seeds": lambda seed: tf.random_uniform([4, 4]),
}


@pytest.mark.parametrize("draw", RANDOM)
def test_random_operations_in_blocks_draw_what_they_draw_interpreted(draw, saved):
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        value = x = tf.placeholder(tf.float32, [4, 4])
        for seed in range(8):
            value = tf.tanh(tf.matmul(value, value)) * RANDOM[draw](seed)
        fed = np.random.default_rng(1).random([4, 4]).astype(np.float32)
        results = []
        for level in (INTERPRETED, COMPILED):
            with session(level) as sess:
                results.append([sess.run(value, {x: fed}) for _ in range(3)])
    assert_same(*results)
    assert sum(saved)


def test_layers_with_dropout_are_compiled_as_loops_forward_and_backward(saved):
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        x, rate = tf.placeholder(tf.float32, [None, 6]), tf.placeholder(tf.float32, [])
        value = x
        for number in range(9):
            weights = tf.get_variable(f"w{number}", [6, 6])
            value += tf.nn.dropout(tf.nn.relu(tf.matmul(value, weights)), rate=rate)
            value = tf.nn.dropout(value, keep_prob=0.9)
        loss = tf.reduce_mean(tf.square(value - x))
        fed = {x: np.random.default_rng(1).random([5, 6]), rate: 0.2}
        rolled = trained(loss, tf.train.AdamOptimizer(0.01), fed, saved)
    assert rolled > 200  # of some 300


def test_a_check_that_fails_after_blocks_leaves_their_streams_where_they_were():
    with tf.Graph().as_default():
        value, limit = tf.ones([4]), tf.placeholder(tf.float32, [])
        for seed in range(8):
            value = value + tf.random_uniform([4], seed=seed)
        with tf.control_dependencies([tf.assert_less(tf.reduce_sum(value), limit)]):
            checked = tf.identity(value)
        runs = []
        for level in (INTERPRETED, COMPILED):
            with session(level) as sess:
                runs.append([sess.run(checked, {limit: 1e3})])
                with pytest.raises(tf.errors.InvalidArgumentError):
                    sess.run(checked, {limit: 0.0})
                runs[-1].append(sess.run(checked, {limit: 1e3}))
    assert_same(*runs)


def test_a_chain_that_changes_its_shape_is_compiled_unrolled(saved):
    with tf.Graph().as_default():
        value = x = tf.placeholder(tf.float32, None)
        for _ in range(8):
            value = tf.concat([tf.tanh(value), tf.square(value)], 0)
        result = run_both(value, {x: np.array([0.5, 1.0], np.float32)})
    assert result.shape == (512,)
    assert not sum(saved)


def equal_layers(optimizer, layers=10):
    """Variables, what is fed, the loss, and what trains the variables."""
    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, [None, 4])
    labels = tf.placeholder(tf.int32, [None])
    value = x
    for layer in range(layers):
        weight = tf.get_variable(f"w{layer}", [4, 4])
        bias = tf.get_variable(f"b{layer}", [4])
        value = tf.nn.tanh(tf.matmul(value, weight) + bias)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=value)
    loss = tf.reduce_mean(losses)
    return tf.global_variables(), (x, labels), loss, optimizer.minimize(loss)


def test_packed_variables_can_be_read_assigned_and_left_alone_by_a_failed_step(saved):
    rng = np.random.default_rng(2)
    rows, classes = rng.random([3, 4]).astype(np.float32), np.array([0, 3, 1])
    results = []
    with tf.Graph().as_default():
        variables, (x, labels), loss, train = equal_layers(tf.train.MomentumOptimizer(0.1, 0.9))
        changed = tf.assign(variables[4], tf.ones([4, 4]) * 0.25)
        init = tf.global_variables_initializer()
        for level in (INTERPRETED, COMPILED):
            with session(level) as sess:
                sess.run(init)
                feeds = {x: rows, labels: classes}
                seen = [sess.run([train, loss], feeds)[1] for _ in range(3)]
                seen += sess.run(variables)
                sess.run(changed)
                seen.append(sess.run([train, loss], feeds)[1])
                before = sess.run(variables)
                with pytest.raises(tf.errors.InvalidArgumentError):
                    sess.run(train, {x: rows, labels: [0, 9, 1]})
                assert_same(sess.run(variables), before, rtol=0, atol=0)
                seen.append(sess.run([train, loss], feeds)[1])
                results.append([*seen, *sess.run(variables)])
    assert_same(*results, rtol=1e-4, atol=1e-5)
    assert max(saved) > 9 * 12  # the updates too


def test_what_was_read_of_a_packed_variable_does_not_change_with_later_steps():
    feeds = np.random.default_rng(2).random([3, 4]).astype(np.float32), np.array([0, 3, 1])
    with tf.Graph().as_default():
        variables, fed, _, train = equal_layers(tf.train.GradientDescentOptimizer(0.5))
        with session(COMPILED) as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(train, dict(zip(fed, feeds, strict=True)))
            kept = sess.run(variables)
            copies = [value.copy() for value in kept]
            for _ in range(3):
                sess.run(train, dict(zip(fed, feeds, strict=True)))
            assert_same(kept, copies, rtol=0, atol=0)
            later = sess.run(variables)
    assert all(np.any(a != b) for a, b in zip(kept, later, strict=True))


def test_another_step_goes_on_with_variables_that_this_one_has_packed():
    feeds = np.random.default_rng(2).random([3, 4]).astype(np.float32), np.array([0, 3, 1])
    with tf.Graph().as_default():
        variables, fed, loss, train = equal_layers(tf.train.GradientDescentOptimizer(0.5))
        halve = tf.group(*[v.assign(v * 0.5) for v in variables])
        init = tf.global_variables_initializer()
        feeds = dict(zip(fed, feeds, strict=True))

        def losses(sess):
            sess.run(init)
            found = []
            for _ in range(3):
                sess.run(train, feeds)
                sess.run(halve)
                found.append(sess.run(loss, feeds))
            return found

        with session(INTERPRETED) as sess:
            expected = losses(sess)
        with session(COMPILED) as sess:
            np.testing.assert_allclose(losses(sess), expected, rtol=1e-4)
