"""Candidate samplers and the losses over them against TensorFlow, live."""

import numpy as np
import pytest

import runnel as rn
from tests.both_tiers import COMPILED, INTERPRETED, session
from tests.conformance.side_by_side import compare

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as tf  # noqa: E402

EXECUTIONS = 4
WEIGHTS = [float(w) for w in np.random.default_rng(0).zipf(1.3, 200).clip(1, 500)]


def true_classes(m, columns=2, below=40):
    labels = np.random.default_rng(1).integers(0, below, (6, columns))
    return m.constant(labels, m.int64)


SAMPLERS = {
    "uniform": lambda m: m.nn.uniform_candidate_sampler(true_classes(m), 2, 30, True, 1000, seed=3),
    "uniform of a power of two": lambda m: m.nn.uniform_candidate_sampler(
        true_classes(m), 2, 30, False, 1024, seed=3
    ),
    "uniform of all there are": lambda m: m.nn.uniform_candidate_sampler(
        true_classes(m), 2, 40, True, 40, seed=3
    ),
    "uniform of a huge range": lambda m: m.nn.uniform_candidate_sampler(
        true_classes(m), 2, 30, True, 3 << 61, seed=3
    ),
    "log uniform": lambda m: m.nn.log_uniform_candidate_sampler(
        true_classes(m), 2, 512, True, 40000, seed=3
    ),
    "log uniform with repetitions": lambda m: m.nn.log_uniform_candidate_sampler(
        true_classes(m), 2, 512, False, 40000, seed=3
    ),
    "log uniform of all there are": lambda m: m.nn.log_uniform_candidate_sampler(
        true_classes(m), 2, 40, True, 40, seed=3
    ),
    "learned unigram": lambda m: m.nn.learned_unigram_candidate_sampler(
        true_classes(m), 2, 25, True, 50, seed=3
    ),
    "learned unigram with repetitions": lambda m: m.nn.learned_unigram_candidate_sampler(
        true_classes(m), 2, 200, False, 50, seed=3
    ),
    "fixed unigram": lambda m: m.nn.fixed_unigram_candidate_sampler(
        true_classes(m), 2, 60, True, 200, unigrams=WEIGHTS, seed=3
    ),
    "fixed unigram of a power of two": lambda m: m.nn.fixed_unigram_candidate_sampler(
        true_classes(m), 2, 60, False, 64, unigrams=WEIGHTS[:64], seed=3
    ),
    "fixed unigram, distorted, with reserved classes": lambda m: (
        m.nn.fixed_unigram_candidate_sampler(
            true_classes(m),
            2,
            60,
            False,
            203,
            unigrams=WEIGHTS,
            distortion=0.75,
            num_reserved_ids=3,
            seed=3,
        )
    ),
    "fixed unigram of a shard": lambda m: m.nn.fixed_unigram_candidate_sampler(
        true_classes(m),
        2,
        20,
        True,
        68,
        unigrams=WEIGHTS,
        num_reserved_ids=4,
        num_shards=3,
        shard=1,
        seed=3,
    ),
    "all": lambda m: m.nn.all_candidate_sampler(true_classes(m), 2, 40, True, seed=3),
}


def executions(module, build, level=INTERPRETED):
    with module.Graph().as_default() as graph:
        fetches = build(module)
        with module.Session() if module is tf else session(level, graph) as sess:
            return [sess.run(fetches) for _ in range(EXECUTIONS)]


def assert_same_draws(got, expected):
    for ours, theirs in zip(got, expected, strict=True):
        assert [x.dtype for x in ours] == [x.dtype for x in theirs]
        np.testing.assert_array_equal(ours[0], theirs[0])
        for a, b in zip(ours[1:], theirs[1:], strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-6)


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED], ids=["interpreted", "compiled"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_draws_the_same_classes(name, level):
    assert_same_draws(executions(rn, SAMPLERS[name], level), executions(tf, SAMPLERS[name]))


def test_words_that_would_be_biased_are_drawn_again():
    # A range just above a half of 2**32 has every second word drawn again.
    def build(m):
        size = (1 << 62) + (1 << 61) + 1
        return m.nn.uniform_candidate_sampler(true_classes(m), 2, 200, False, size, seed=5)

    assert_same_draws(executions(rn, build), executions(tf, build))


def test_the_weights_of_classes_come_from_a_file(tmp_path):
    path = tmp_path / "vocabulary.csv"
    path.write_text("".join(f"word {i}, a {i},{w}\n" for i, w in enumerate(WEIGHTS)))

    def build(m):
        return m.nn.fixed_unigram_candidate_sampler(
            true_classes(m), 2, 60, True, 200, vocab_file=str(path), distortion=0.5, seed=3
        )

    assert_same_draws(executions(rn, build), executions(tf, build))


@pytest.mark.parametrize("sampled", [[5, 7, 3], [7, 7, 5, 7], []], ids=str)
def test_accidental_hits_are_found(sampled):
    def build(m):
        hits = m.nn.compute_accidental_hits(
            m.constant([[5, 7], [9, 5], [7, 7]], m.int64), m.constant(sampled, m.int64), 2
        )
        return list(hits)

    for ours, theirs in zip(executions(rn, build)[0], executions(tf, build)[0], strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def test_the_same_static_shapes():
    def shapes(m):
        with m.Graph().as_default():
            labels = m.placeholder(m.int64, [None, 2])
            drawn = m.nn.log_uniform_candidate_sampler(labels, 2, 7, True, 100)
            hits = m.nn.compute_accidental_hits(labels, drawn[0], 2)
            return [x.shape.as_list() for x in (*drawn, *hits)]

    assert shapes(rn) == shapes(tf)


RNG = np.random.default_rng(2)
TABLE = RNG.normal(size=(30, 4)).astype(np.float32)
BIASES = RNG.normal(size=30).astype(np.float32)
INPUTS = RNG.normal(size=(6, 4)).astype(np.float32)


def loss(m, table, biases, inputs, which, shards=1, strategy="mod", num_true=1, **options):
    """``which`` loss of a table that is cut into shards."""
    order = np.arange(30)
    if strategy == "mod":
        cut = [order[i::shards] for i in range(shards)]
    else:
        cut = np.array_split(order, shards)
    tables = [m.gather(table, rows) for rows in cut]
    bias_shards = [m.gather(biases, rows) for rows in cut]
    function = getattr(m.nn, which)
    return function(
        tables if shards > 1 else table,
        bias_shards if shards > 1 else biases,
        true_classes(m, num_true, 30),
        inputs,
        10,
        30,
        num_true=num_true,
        partition_strategy=strategy,
        **options,
    )


LOSSES = {
    "sampled softmax": ("sampled_softmax_loss", {"seed": 7}),
    "with accidental hits": (
        "sampled_softmax_loss",
        {"seed": 7, "remove_accidental_hits": False},
    ),
    "of several true classes": ("sampled_softmax_loss", {"seed": 7, "num_true": 3}),
    "over shards": ("sampled_softmax_loss", {"seed": 7, "shards": 3}),
    "over shards of neighbours": (
        "sampled_softmax_loss",
        {"seed": 7, "shards": 4, "strategy": "div"},
    ),
    "nce": ("nce_loss", {}),
    "nce of several true classes over shards": ("nce_loss", {"num_true": 2, "shards": 3}),
    "nce without accidental hits": ("nce_loss", {"remove_accidental_hits": True}),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_and_its_gradients_are_the_same(name):
    which, options = LOSSES[name]

    def build(m, table, biases, inputs):
        m.set_random_seed(4)
        given = dict(options)
        if which == "nce_loss":
            labels = true_classes(m, given.get("num_true", 1), 30)
            given["sampled_values"] = m.nn.uniform_candidate_sampler(
                labels, given.get("num_true", 1), 10, False, 30, seed=8
            )
        return loss(m, table, biases, inputs, which, **given)

    compare(build, TABLE, BIASES, INPUTS, atol=1e-5)


def test_a_loss_makes_the_same_operations_before_its_sampler():
    # An operation without a seed of its own takes the number of operations before it.
    def before(m):
        with m.Graph().as_default() as graph:
            table, biases, inputs = (m.constant(x) for x in (TABLE, BIASES, INPUTS))
            labels = m.constant(np.arange(6).reshape(6, 1), m.int32)
            m.nn.nce_loss(table, biases, labels, inputs, 10, 30)
            names = [op.name for op in graph.get_operations()]
            return names[: names.index("nce_loss/LogUniformCandidateSampler")]

    assert before(rn) == before(tf)
