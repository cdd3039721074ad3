"""Random ops: both tiers, seeds and positions, failed and concurrent steps, distributions."""

import threading

import ml_dtypes
import numpy as np
import pytest
from scipy import stats

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, assert_same, run_both, session

TIERS = pytest.mark.parametrize("level", [INTERPRETED, COMPILED], ids=["interpreted", "compiled"])
FLOATS = [tf.float16, tf.bfloat16, tf.float32, tf.float64]


def draws(fetches, level, executions=3, feed_dict=None):
    """The values of ``fetches`` in the first executions of a new session."""
    with session(level) as sess:
        return [sess.run(fetches, feed_dict) for _ in range(executions)]


# ------------------------------------------------------------------------------- the two tiers


def test_both_tiers_draw_the_same_bits():
    fetches = [
        *(tf.random_uniform([7, 3], dtype=dtype, seed=1) for dtype in FLOATS),
        tf.random_uniform([50], -3, 1000, tf.int32, seed=2),
        tf.random_uniform([50], -3, 1 << 40, tf.int64, seed=2),
        tf.random_shuffle(tf.constant(np.arange(200).reshape(100, 2)), seed=3),
        tf.multinomial([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]], 50, seed=4),
        tf.multinomial(tf.constant([[1, 2, 3]]), 50, seed=4, output_dtype=tf.int32),
        tf.random_poisson([0.0, 2.0, 70.0], [30], seed=5),
    ]
    for a, b in zip(draws(fetches, INTERPRETED), draws(fetches, COMPILED), strict=True):
        for x, y in zip(a, b, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda t: t.name)
def test_both_tiers_draw_the_same_normals(dtype):
    fetches = [
        tf.random_normal([1000], 2.0, 0.5, dtype, seed=1),
        tf.truncated_normal([1000], 2.0, 0.5, dtype, seed=2),
    ]
    eps = float(ml_dtypes.finfo(dtype.np_dtype).eps)
    for a, b in zip(draws(fetches, INTERPRETED), draws(fetches, COMPILED), strict=True):
        assert a[0].dtype == a[1].dtype == dtype.np_dtype
        assert_same(a, b, rtol=8 * eps, atol=8 * eps)


def test_both_tiers_draw_the_same_gammas():
    assert_same(*(draws(tf.random_gamma([30], [0.1, 1.0, 9.0], seed=1), t) for t in (-1, 1)))


def test_stateless_ops_with_fed_seeds_in_both_tiers():
    seed = tf.placeholder(tf.int64, [2])
    fetches = [
        tf.random.stateless_uniform([20], seed, -1.0, 1.0),
        tf.random.stateless_uniform([20], seed, 0, 77, tf.int32),
        tf.random.stateless_normal([20], seed),
        tf.random.stateless_truncated_normal([20], seed),
        tf.random.stateless_multinomial([[1.0, 2.0]], 20, seed),
    ]
    first = run_both(fetches, {seed: [1, 2]})
    assert_same(first, run_both(fetches, {seed: [1, 2]}))
    other = run_both(fetches, {seed: [1, 3]})
    assert all((a != b).any() for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("shape", [[], [0], [3, 0], [2, 1, 3]])
def test_shapes_known_only_when_the_step_runs(shape):
    fed = tf.placeholder(tf.int32, [None])
    fetches = [tf.random_uniform(fed, seed=1), tf.truncated_normal(fed, seed=1)]
    for value in run_both(fetches, {fed: shape}):
        assert value.shape == tuple(shape)


def test_a_step_goes_on_where_another_tier_stopped():
    drawn = tf.random_uniform([4], seed=1)
    traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with session(COMPILED) as sess:
        got = [
            sess.run(drawn),
            sess.run(drawn, options=traced, run_metadata=tf.RunMetadata()),  # is interpreted
            sess.run(drawn),
        ]
    np.testing.assert_array_equal(got, draws(drawn, INTERPRETED))


# ------------------------------------------------------------------------- seeds and positions


@TIERS
def test_the_same_seeds_draw_the_same_in_a_new_session(level):
    drawn = tf.random_normal([5], seed=1)
    np.testing.assert_array_equal(draws(drawn, level), draws(drawn, level))


@TIERS
def test_successive_executions_differ(level):
    ops = [
        tf.random_uniform([4], seed=1),
        tf.random_normal([4], seed=1),
        tf.truncated_normal([4], seed=1),
        tf.random_uniform([4], 0, 1 << 30, tf.int32, seed=1),
        tf.random_shuffle(tf.range(1000), seed=1),
        tf.multinomial([[0.0] * 1000], 4, seed=1),
        tf.random_gamma([4], 2.0, seed=1),
        tf.random_poisson(1e6, [4], seed=1),
    ]
    first, second, third = draws(ops, level)
    for values in zip(first, second, third, strict=True):
        assert len({value.tobytes() for value in values}) == 3


@TIERS
def test_ops_with_the_same_seed_draw_the_same(level):
    a, b, c = (tf.random_uniform([4], seed=seed) for seed in (5, 5, 6))
    for x, y, z in draws([a, b, c], level):
        np.testing.assert_array_equal(x, y)
        assert (x != z).all()


@TIERS
def test_each_op_has_its_own_position(level):
    a, b = tf.random_uniform([4], seed=5), tf.random_uniform([4], seed=5)
    first, second = draws(a, level, 2)
    with session(level) as sess:
        sess.run(a)
        x, y = sess.run([a, b])
    np.testing.assert_array_equal(x, second)
    np.testing.assert_array_equal(y, first)


def test_without_seeds_every_op_and_session_draws_its_own():
    a, b = tf.random_uniform([4]), tf.random_uniform([4])
    values = [*draws([a, b], INTERPRETED, 1)[0], *draws([a, b], COMPILED, 1)[0]]
    assert len({value.tobytes() for value in values}) == 4
    assert a.op.get_attr("seed") == a.op.get_attr("seed2") == 0


def test_a_graph_seed_makes_ops_without_seeds_repeatable():
    def values():
        with tf.Graph().as_default():
            tf.set_random_seed(7)
            tf.constant(1.0)
            return draws([tf.random_uniform([4]), tf.random_normal([4])], INTERPRETED)

    first, again = values(), values()
    assert_same(first, again, 0, 0)
    assert (first[0][0] != first[0][1]).any()


def test_a_graph_seed_and_op_seeds_together():
    def seeds(graph_seed, op_seed):
        with tf.Graph().as_default():
            tf.set_random_seed(graph_seed)
            op = tf.random_uniform([1], seed=op_seed).op
            return op.get_attr("seed"), op.get_attr("seed2")

    assert seeds(None, None) == (0, 0)
    assert seeds(None, 3) == (87654321, 3)
    assert seeds(4, 3) == (4, 3)
    assert seeds(0, 0) == (0, 2**31 - 1)  # (0, 0) would mean no seeds


@TIERS
def test_a_seeded_training_run_repeats_bit_for_bit(level):
    tf.set_random_seed(3)
    weights = tf.Variable(tf.truncated_normal([5, 3], stddev=0.1))
    x = tf.random_normal([20, 5])
    kept = tf.matmul(x, weights) * tf.floor(0.8 + tf.random_uniform([20, 3]))
    loss = tf.reduce_mean(tf.square(kept - x[:, :3]))
    train = weights.assign_sub(0.1 * tf.gradients(loss, weights)[0])
    runs = []
    for _ in range(2):
        with session(level) as sess:
            sess.run(tf.global_variables_initializer())
            losses = [sess.run([train, loss])[1] for _ in range(5)]
            runs.append((losses, sess.run(weights)))
    assert_same(*runs, 0, 0)
    assert len(set(runs[0][0])) == 5


# ------------------------------------------------------------------ failed and concurrent steps


@TIERS
def test_a_failed_step_draws_nothing(level):
    high = tf.placeholder(tf.int32, [])
    fetches = [tf.random_uniform([4], seed=1), tf.random_uniform([4], 0, high, tf.int32, seed=2)]
    expected = draws(fetches, level, 2, {high: 9})
    with session(level) as sess:
        first = sess.run(fetches, {high: 9})
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match="0 >= 0"):
                sess.run(fetches, {high: 0})
        second = sess.run(fetches, {high: 9})
    assert_same([first, second], expected, 0, 0)


@TIERS
def test_concurrent_steps_never_draw_the_same(level):
    threads, executions = 4, 25
    drawn = tf.random_uniform([3], seed=1, dtype=tf.float64)
    expected = {v.tobytes() for v in draws(drawn, level, threads * executions)}
    got = []
    with session(level) as sess:

        def work():
            for _ in range(executions):
                got.append(sess.run(drawn).tobytes())

        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert len(got) == len(set(got)) == threads * executions
    assert set(got) == expected


# ------------------------------------------------------------------------------- distributions


def test_uniform_covers_its_range_evenly():
    values = draws(tf.random_uniform([100_000], -2.0, 3.0, seed=1), INTERPRETED, 1)[0]
    assert values.min() >= -2 and values.max() < 3
    assert stats.kstest(values, stats.uniform(-2, 5).cdf).pvalue > 0.01


def test_integers_cover_their_range_evenly():
    values = draws(tf.random_uniform([50_000], -3, 4, tf.int64, seed=1), INTERPRETED, 1)[0]
    places, counts = np.unique(values, return_counts=True)
    assert places.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert stats.chisquare(counts).pvalue > 0.01


def test_normal_moments():
    values = draws(tf.random_normal([100_000], 5.0, 2.0, seed=1), INTERPRETED, 1)[0]
    assert stats.kstest(values, stats.norm(5, 2).cdf).pvalue > 0.01


def test_truncated_normal_moments():
    values = draws(tf.truncated_normal([100_000], 5.0, 2.0, seed=1), INTERPRETED, 1)[0]
    assert stats.kstest(values, stats.truncnorm(-2, 2, 5, 2).cdf).pvalue > 0.01


def test_gammas_of_every_shape():
    alphas, rate = [0.05, 0.5, 1.0, 1.2, 30.0], 3.0
    values = draws(tf.random_gamma([20_000], alphas, rate, tf.float64, seed=1), INTERPRETED, 1)[0]
    for alpha, column in zip(alphas, values.T, strict=True):
        assert stats.kstest(column, stats.gamma(alpha, scale=1 / rate).cdf).pvalue > 0.01


def test_poissons_of_every_rate():
    rates = [0.2, 3.0, 9.9, 10.0, 12.0, 400.0]
    values = draws(tf.random_poisson(rates, [20_000], tf.int32, seed=1), INTERPRETED, 1)[0]
    for rate, column in zip(rates, values.T, strict=True):
        expected = stats.poisson(rate)
        places = np.arange(expected.ppf(0.001), expected.ppf(0.999) + 1)
        inner = [(column <= places[0]).sum(), *((column == p).sum() for p in places[1:])]
        counts = np.array([*inner, (column > places[-1]).sum()])
        chances = np.diff([0.0, *expected.cdf(places), 1.0])
        assert stats.chisquare(counts, chances * column.size).pvalue > 0.01


def test_parameters_that_have_no_distribution():
    rates = tf.random_poisson([np.inf, np.nan, -1.0], [2], seed=1)
    alphas = tf.random_gamma([2], [0.0, -1.0, np.nan], seed=1)
    poissons, gammas = run_both([rates, alphas])
    np.testing.assert_array_equal(poissons, [[np.inf, np.nan, 0.0]] * 2)
    tiny = np.finfo(np.float32).tiny
    np.testing.assert_array_equal(gammas, [[tiny, np.nan, np.nan]] * 2)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 1000])
def test_shuffle_keeps_every_row(size):
    rows = np.arange(2 * size).reshape(size, 2)
    value = run_both(tf.random_shuffle(tf.constant(rows), seed=1))
    np.testing.assert_array_equal(np.sort(value, axis=0), rows)
    assert size < 1000 or (value != rows).any()


def test_shuffle_of_a_scalar_and_of_strings():
    assert run_both(tf.random_shuffle(tf.constant(7))) == 7
    words = run_both(tf.random_shuffle(tf.constant(["a", "b", "c"]), seed=1))
    assert sorted(words.tolist()) == [b"a", b"b", b"c"]


@TIERS
def test_crops_are_parts_at_every_place(level):
    image = np.arange(30).reshape(5, 6)
    drawn = tf.random_crop(tf.constant(image), [4, 4], seed=1)
    assert drawn.shape.as_list() == [4, 4]
    places = set()
    for crop in draws(drawn, level, 60):
        row, column = divmod(int(crop[0, 0]), 6)
        np.testing.assert_array_equal(crop, image[row : row + 4, column : column + 4])
        places.add((row, column))
    assert places == {(row, column) for row in range(2) for column in range(3)}


def test_multinomial_follows_the_logits():
    chances = np.array([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]])
    with np.errstate(divide="ignore"):
        logits = np.log(chances)
    values = run_both(tf.multinomial(logits, 20_000, seed=1))
    for row, chance in zip(values, chances, strict=True):
        counts = np.bincount(row, minlength=3)
        assert (counts[chance == 0] == 0).all()
        possible = chance > 0
        assert stats.chisquare(counts[possible], 20_000 * chance[possible]).pvalue > 0.01


# ----------------------------------------------------------------------- gradients and mistakes


def test_gradients_flow_through_the_parameters_only():
    mean, stddev = tf.constant(1.0), tf.constant(2.0)
    value = tf.random_normal([4], mean, stddev, seed=1)
    by_mean, by_stddev = tf.gradients(value, [mean, stddev])
    drawn, a, b = run_both([value, by_mean, by_stddev])
    assert a == 4
    np.testing.assert_allclose(b, ((drawn - 1) / 2).sum(), rtol=1e-5)


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: tf.random_uniform([2], dtype=tf.int32), "needs maxval"),
        (lambda: tf.random_uniform([2], dtype=tf.uint8), "not uint8"),
        (lambda: tf.random_uniform([[1]]), "shape must be a vector"),
        (lambda: tf.random_uniform([1], [1], [2], tf.int32), "minval must be a scalar"),
        (lambda: tf.multinomial([1.0], 2), "logits must be a matrix"),
        (lambda: tf.multinomial([[1.0]], 2, output_dtype=tf.uint8), "int32 or int64, not uint8"),
        (lambda: tf.random.stateless_uniform([1], [1, 2, 3]), r"seed must be of shape \(2,\)"),
    ],
)
def test_mistakes_found_when_building(build, message):
    with pytest.raises((ValueError, TypeError), match=message):
        build()


@TIERS
@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: tf.random_uniform([2], 7, 7, tf.int32), "7 >= 7"),
        (lambda: tf.random_uniform(tf.placeholder_with_default([-1], [1])), "negative"),
        (
            lambda: tf.random_crop(tf.placeholder_with_default([1, 2], [None]), [3]),
            "as large as the crop",
        ),
        (lambda: tf.multinomial(np.zeros((2, 0), np.float32), 2), "no classes"),
        (lambda: tf.multinomial([[1.0]], tf.placeholder_with_default(-1, [])), "negative"),
    ],
)
def test_mistakes_found_when_running(build, message, level):
    value = build()
    with session(level) as sess, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        sess.run(value)


# ------------------------------------------------------------------------- an op of one's own

dice_op = tf.register_op(
    "TestDice",
    inputs="shape: int32",
    outputs="dice: int32, pips: int32",
    attrs=["seed: int = 0", "seed2: int = 0"],
    static_inputs=("shape",),
    random=lambda shape: int(np.prod(shape)),
)


@dice_op.kernel
def _(xp, shape, *, stream):
    from runnel.ops.sampling.philox import words_at

    count = int(np.prod(shape))
    first = words_at(xp, stream, xp.arange(count, dtype=np.uint64))[0]
    dice = (first % np.uint32(6)).astype(np.int32).reshape(shape) + np.int32(1)
    return dice, xp.sum(dice, dtype=np.int32)


def test_kernels_draw_from_a_stream_if_and_only_if_the_op_is_random():
    with pytest.raises(ValueError, match="TestDice.*take 'stream'"):
        dice_op.kernel(lambda xp, shape: None, device="TPU")
    plain_op = tf.register_op("TestNotRandom", outputs="y: int32")
    with pytest.raises(ValueError, match="TestNotRandom.*no others do"):

        @plain_op.kernel
        def _(xp, *, stream):
            return stream


def test_an_op_of_ones_own_says_how_far_it_advances():
    dice, pips = dice_op([3], seed=4)
    (all_at_once, _), *_ = draws([dice_op([9], seed=4)[0], pips], INTERPRETED, 1)
    for level in (INTERPRETED, COMPILED):
        thrown = draws([dice, pips], level)
        np.testing.assert_array_equal(np.concatenate([d for d, _ in thrown]), all_at_once)
        assert [p for _, p in thrown] == [d.sum() for d, _ in thrown]


def test_a_shape_that_only_the_step_knows_is_a_vector():
    shape = tf.placeholder(tf.int32)
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match=r"shape must be a vector, not .* \(\)"),
    ):
        sess.run(tf.random_uniform(shape), {shape: 3})
