"""More of ``tf.contrib``: HParams, unrolled decoders, vocabularies, predictors."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest

import runnel as tf


def _hparams():
    return tf.contrib.training.HParams(
        rate=0.1, steps=10, name="adam", deep=True, sizes=[64, 32], none=None
    )


def test_hyperparameters_keep_their_types():
    hparams = _hparams()
    assert hparams.parse("rate=1,name=sgd,deep=false,sizes=[1,2,3],sizes[1]=9") is hparams
    assert (hparams.rate, hparams.name, hparams.deep, hparams.sizes) == (
        1.0,
        "sgd",
        False,
        [1, 9, 3],
    )
    assert isinstance(hparams.rate, float)
    hparams.set_hparam("rate", 2)
    hparams.override_from_dict({"steps": 5, "sizes": [7]})
    hparams.parse_json('{"name": "x"}')
    hparams.add_hparam("extra", 3)
    assert hparams.values() == {
        **{"rate": 2.0, "steps": 5, "name": "x", "deep": False, "sizes": [7]},
        **{"none": None, "extra": 3},
    }
    assert json.loads(hparams.to_json()) == hparams.values()
    assert "rate" in hparams and "nothing" not in hparams
    assert hparams.get("nothing", 4) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing=1", "Unknown hyperparameter type for nothing"),
        ("steps=1.5", "'steps' of type 'int' with value '1.5'"),
        ("rate=x", "'rate' of type 'float' with value 'x'"),
        ("sizes=3", "Must pass a list for multi-valued parameter: sizes"),
        ("rate=[1]", "single-valued parameter: rate"),
        ("=", "Malformed"),
    ],
)
def test_a_wrong_hyperparameter_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        _hparams().parse(text)


@pytest.mark.parametrize(("name", "value"), [("steps", 1.5), ("name", 3), ("rate", "x")])
def test_a_value_of_another_type_is_refused(name, value):
    with pytest.raises(ValueError, match=f"Could not cast hparam '{name}'"):
        _hparams().set_hparam(name, value)


def test_an_unrolled_decoder_is_the_cell_step_by_step():
    seq2seq = tf.contrib.legacy_seq2seq
    cell = tf.nn.rnn_cell.BasicRNNCell(3)
    x = np.random.default_rng(0).normal(size=(4, 2, 3)).astype(np.float32)
    steps = [tf.constant(step) for step in x]
    start = cell.zero_state(2, tf.float32)
    outputs, last = seq2seq.rnn_decoder(steps, start, cell, scope="d")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        got, got_last, (w, b) = sess.run([outputs, last, tf.trainable_variables()])
    h = np.zeros((2, 3), np.float32)
    for step, output in zip(x, got, strict=True):
        h = np.tanh(np.concatenate([step, h], 1) @ w + b)
        np.testing.assert_allclose(output, h, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got_last, h, rtol=1e-4, atol=1e-5)


def test_a_decoder_can_be_fed_its_own_outputs():
    seq2seq = tf.contrib.legacy_seq2seq
    cell = tf.nn.rnn_cell.BasicRNNCell(3)
    x = tf.ones([2, 3])
    outputs, _ = seq2seq.rnn_decoder(
        [x, x * 100.0], cell.zero_state(2, tf.float32), cell, lambda previous, i: previous * 2.0
    )
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        (first, second), (w, b) = sess.run([outputs, tf.trainable_variables()])
    expected = np.tanh(np.concatenate([first * 2, first], 1) @ w + b)
    np.testing.assert_allclose(second, expected, rtol=1e-4, atol=1e-5)


def test_losses_of_lists_of_steps():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 2, 4)).astype(np.float32)
    targets = rng.integers(0, 4, (3, 2))
    weights = np.array([[1, 1], [1, 0.5], [0, 2]], np.float32)
    lists = [[tf.constant(step) for step in array] for array in (logits, targets, weights)]
    seq2seq = tf.contrib.legacy_seq2seq
    norm = np.log(np.exp(logits).sum(-1))
    each = (norm - np.take_along_axis(logits, targets[..., None], -1)[..., 0]) * weights
    expected = each.sum(0) / weights.sum(0)
    with tf.Session() as sess:
        got, total = sess.run(
            [seq2seq.sequence_loss_by_example(*lists), seq2seq.sequence_loss(*lists)]
        )
    np.testing.assert_allclose(got, expected, rtol=1e-4)
    np.testing.assert_allclose(total, expected.mean(), rtol=1e-4)


def test_texts_become_rows_of_numbers(tmp_path):
    processor = tf.contrib.learn.preprocessing.VocabularyProcessor(4)
    rows = np.array(list(processor.fit_transform(["the cat sat", "the dog's day, it is"])))
    np.testing.assert_array_equal(rows, [[1, 2, 3, 0], [1, 4, 5, 6]])
    assert len(processor.vocabulary_) == 8
    processor.save(tmp_path / "vocabulary")
    again = tf.contrib.learn.preprocessing.VocabularyProcessor.restore(tmp_path / "vocabulary")
    np.testing.assert_array_equal(list(again.transform(["cat bird the"])), [[2, 0, 1, 0]])
    assert list(again.reverse([[1, 2, 0]])) == ["the cat <UNK>"]
    rare = tf.contrib.learn.preprocessing.VocabularyProcessor(3, min_frequency=1)
    np.testing.assert_array_equal(list(rare.fit_transform(["b a a", "c b a"]))[0], [2, 1, 1])


def test_a_saved_model_is_a_function(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
        sess.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(sess, str(tmp_path / "m"), {"x": x}, {"y": tf.matmul(x, w)})
    predict = tf.contrib.predictor.from_saved_model(str(tmp_path / "m"))
    np.testing.assert_array_equal(predict({"x": [[1.0, 2.0]]})["y"], [[3.0]])
    with pytest.raises(ValueError, match="unexpected keys"):
        predict({"z": 1})
    predict.session.close()


def test_datasets_under_their_older_name():
    data = tf.contrib.data
    dataset = data.Dataset.range(5).apply(data.batch_and_drop_remainder(2))
    assert data.shuffle_and_repeat is tf.data.experimental.shuffle_and_repeat
    batch = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert [list(sess.run(batch)) for _ in range(2)] == [[0, 1], [2, 3]]
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(batch)


def test_scopes_and_signals_have_their_old_names_too():
    x = tf.constant(1.0)
    with tf.op_scope([x], None, "old_name") as scope:
        assert tf.identity(x).op.name.startswith("old_name")
    assert scope.startswith("old_name")
    assert tf.contrib.signal.stft is tf.signal.stft


def test_spectrograms_of_audio_have_their_module():
    audio = importlib.import_module("runnel.contrib.framework.python.ops.audio_ops")
    tone = np.sin(np.arange(64, dtype=np.float32))[:, None]
    spectrogram = audio.audio_spectrogram(tone, window_size=32, stride=16, magnitude_squared=True)
    with tf.Session() as sess:
        assert sess.run(audio.mfcc(spectrogram, 8000, dct_coefficient_count=5)).shape == (1, 3, 5)
    assert callable(audio.decode_wav)
