"""``tf.keras``'s training where TensorFlow's numbers cannot say what is right."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import runnel as tf

layers = tf.keras.layers
X = np.random.RandomState(0).uniform(-1, 1, (12, 4)).astype(np.float32)
Y = X.sum(axis=1, keepdims=True)


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def linear(**kwargs):
    model = tf.keras.Sequential([layers.Dense(1, input_shape=(4,), **kwargs)])
    model.compile("sgd", "mse")
    return model


def test_a_recurrent_layer_keeps_its_states(session):
    x = np.random.RandomState(1).uniform(-1, 1, (2, 6, 3)).astype(np.float32)
    for kind in (layers.LSTM, layers.GRU, layers.SimpleRNN):
        start = tf.keras.Input(batch_shape=(2, None, 3))
        keeps = kind(4, return_sequences=True, stateful=True)
        model = tf.keras.Model(start, keeps(start))
        other = tf.keras.Sequential([kind(4, return_sequences=True, input_shape=(None, 3))])
        other.set_weights(model.get_weights())
        whole = other.predict(x)
        parts = [model.predict(x[:, :2]), model.predict(x[:, 2:])]
        np.testing.assert_allclose(np.concatenate(parts, 1), whole, rtol=1e-5, atol=1e-6)
        model.reset_states()
        np.testing.assert_allclose(model.predict(x), whole, rtol=1e-5, atol=1e-6)
        states = [np.ones((2, 4), np.float32) for _ in keeps.states]
        keeps.reset_states(states)
        seen = session.run(keeps.states[0])
        np.testing.assert_array_equal(seen, states[0])
        model.compile("sgd", "mse")
        model.fit(x, np.zeros((2, 6, 4)), batch_size=2, verbose=0)
        assert not np.allclose(session.run(keeps.states[0]), 1.0)


def test_states_need_a_known_batch(session):
    with pytest.raises(ValueError, match="batch_input_shape"):
        layers.LSTM(4, stateful=True)(tf.keras.Input((3, 2)))


@pytest.mark.parametrize("kind", [layers.LSTM, layers.GRU, layers.SimpleRNN])
def test_dropout_inside_a_recurrent_layer(session, kind):
    x = np.random.RandomState(1).uniform(-1, 1, (3, 5, 4)).astype(np.float32)
    plain = tf.keras.Sequential([kind(3, input_shape=(5, 4))])
    drops = tf.keras.Sequential([kind(3, dropout=0.5, recurrent_dropout=0.5, input_shape=(5, 4))])
    drops.set_weights(plain.get_weights())
    np.testing.assert_allclose(drops.predict(x), plain.predict(x), rtol=1e-5, atol=1e-6)
    phase = tf.keras.backend.learning_phase()
    given = {drops.input: x, phase: True}
    once, again = session.run(drops.output, given), session.run(drops.output, given)
    assert not np.allclose(once, again)
    # Everything dropped: what is left is what zeros give.
    none = tf.keras.Sequential([kind(3, dropout=1.0 - 1e-7, input_shape=(5, 4))])
    none.set_weights(plain.get_weights())
    found = session.run(none.output, {none.input: x, phase: True})
    np.testing.assert_allclose(found, plain.predict(np.zeros_like(x)), rtol=1e-4, atol=1e-5)


def test_the_steps_of_fit_and_of_predict_differ_in_their_phase(session):
    seen = []

    def watch(x):
        training = tf.keras.backend.learning_phase()
        return tf.keras.backend.in_train_phase(x * 0.0, x, training)

    model = tf.keras.Sequential([layers.Lambda(watch, input_shape=(4,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    model.layers[1].set_weights([np.ones((4, 1)), np.zeros(1)])
    np.testing.assert_allclose(model.predict(X), Y, rtol=1e-5)
    np.testing.assert_allclose(model.evaluate(X, Y, verbose=0), 0.0, atol=1e-6)
    loss = model.train_on_batch(X, Y)
    np.testing.assert_allclose(loss, np.mean(Y**2), rtol=1e-5)
    assert not seen


def test_threads_of_generators_end(session):
    before = set(threading.enumerate())
    model = linear()

    def endless():
        while True:
            yield X, Y

    model.fit_generator(endless(), steps_per_epoch=3, epochs=2, verbose=0, workers=2)
    model.predict_generator(((X,) for _ in range(3)), steps=2)
    assert set(threading.enumerate()) <= before


def test_an_error_in_a_generator_is_the_loops(session):
    def broken():
        yield X, Y
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        linear().fit_generator(broken(), steps_per_epoch=3, verbose=0)


def test_a_generator_that_ends_early_says_so(session, caplog):
    history = linear().fit_generator(iter([(X, Y)] * 3), steps_per_epoch=2, epochs=5, verbose=0)
    assert history.epoch == [0, 1]
    assert "ran out of data" in caplog.text


def test_a_shuffled_epoch_has_every_example_once(session):
    seen = []
    model = linear()
    x = np.arange(10, dtype=np.float32).reshape(10, 1) * np.ones((1, 4), np.float32)
    step = model._compiled.step

    def watched(mode):
        run = step(mode)
        return lambda values: (seen.append(values[0][:, 0]), run(values))[1]

    model._compiled.step = watched
    for shuffle in (True, "batch"):
        seen.clear()
        model.fit(x, np.zeros((10, 1)), batch_size=3, verbose=0, shuffle=shuffle)
        assert sorted(np.concatenate(seen).tolist()) == list(range(10))
        assert [len(batch) for batch in seen] == [3, 3, 3, 1]


def test_the_session_of_the_program_is_used(session):
    model = linear(kernel_initializer="ones")
    assert tf.keras.backend.get_session() is session
    np.testing.assert_allclose(session.run(model.output, {model.input: X}), Y, rtol=1e-5)


def test_a_session_for_each_graph():
    found = []
    for _ in range(2):
        with tf.Graph().as_default() as graph:
            found.append(linear().predict(X))
            assert tf.keras.backend.get_session().graph is graph


def unbuilt():
    return tf.keras.Sequential([layers.Dense(1)])


def plain():
    return tf.keras.Sequential([layers.Dense(1, input_shape=(4,))])


def pairs():
    return tf.data.Dataset.from_tensors((X, Y)).make_one_shot_iterator()


def between(start, end):
    return tf.keras.Model(start, layers.Dense(1)(end))


NOTHING = '{"class_name": "Nothing", "config": {}}'
MISTAKES = {
    "not compiled": (lambda: plain().fit(X, Y), RuntimeError, "compile your model"),
    "shape of x": (lambda: linear().fit(X[:, :3], Y), ValueError, "expected dense"),
    "number of examples": (lambda: linear().fit(X, Y[:5]), ValueError, "12 input samples and 5"),
    "shape of y": (
        lambda: linear().fit(X, np.ones((12, 2))),
        ValueError,
        "same shape as the output",
    ),
    "no y": (lambda: linear().fit(X), ValueError, "needs targets"),
    "several x": (lambda: linear().fit([X, X], Y), ValueError, "Expected to see 1 array"),
    "unknown loss": (
        lambda: plain().compile("sgd", "msee"),
        ValueError,
        "Unknown loss function: msee",
    ),
    "unknown optimizer": (
        lambda: tf.keras.optimizers.get("adamm"),
        ValueError,
        "Unknown optimizer",
    ),
    "no loss": (lambda: plain().compile("sgd"), ValueError, "no loss to optimize"),
    "classes": (
        lambda: linear().fit(X, Y > 0, class_weight={0: 1.0}, verbose=0),
        ValueError,
        "must contain all classes",
    ),
    "weights": (
        lambda: linear().fit(X, Y, sample_weight=np.ones((12, 1))),
        ValueError,
        "sample_weight_mode",
    ),
    "eager": (
        lambda: linear().compile("sgd", "mse", run_eagerly=True),
        ValueError,
        "leave out run_eagerly",
    ),
    "placeholder as input": (
        lambda: between(tf.placeholder(tf.float32, [None, 4]), tf.keras.Input((4,))),
        ValueError,
        "must come from tf.keras.Input",
    ),
    "disconnected": (
        lambda: between(tf.keras.Input((4,)), tf.keras.Input((4,))),
        ValueError,
        "Graph disconnected",
    ),
    "iterator without steps": (lambda: linear().fit(pairs()), ValueError, "steps_per_epoch"),
    "summary before building": (lambda: unbuilt().summary(), ValueError, "has not yet been built"),
    "saving before building": (
        lambda: unbuilt().save_weights("x"),
        ValueError,
        "has not created its variables",
    ),
    "SavedModel": (
        lambda: linear().save("folder", save_format="tf"),
        NotImplementedError,
        "simple_save",
    ),
    "own layer without config": (
        lambda: tf.keras.Sequential([_Own(3, input_shape=(4,))]).to_json(),
        NotImplementedError,
        "define get_config",
    ),
    "unknown class": (
        lambda: tf.keras.models.model_from_json(NOTHING),
        ValueError,
        "custom_objects",
    ),
}


class _Own(layers.Layer):
    def __init__(self, size, **kwargs):
        super().__init__(**kwargs)
        self.size = size


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_explained(session, name):
    make, kind, message = MISTAKES[name]
    with pytest.raises(kind, match=message):
        make()


def test_a_bar_in_a_terminal(monkeypatch, capsys):
    import sys

    bar = tf.keras.utils.Progbar(20, interval=0.0)
    bar.update(5, [("loss", 1.0)])
    assert capsys.readouterr().out == ""  # not a terminal
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    bar = tf.keras.utils.Progbar(20, interval=0.0, stateful_metrics=["acc"])
    bar.update(5, [("loss", 1.0), ("acc", 0.1)])
    bar.update(20, [("loss", 3.0), ("acc", 0.0005)])
    lines = capsys.readouterr().out.split("\r")[1:]
    assert lines[0].startswith(" 5/20 [======>.......................] - ETA: ")
    assert lines[0].rstrip("\b").endswith(" - loss: 1.0000 - acc: 0.1000")
    assert lines[1].startswith("20/20 [==============================] - 0s ")
    assert lines[1].rstrip().endswith("/step - loss: 2.5000 - acc: 5.0000e-04")


def test_event_files(session, tmp_path):
    model = linear()
    watch = tf.keras.callbacks.TensorBoard(str(tmp_path), histogram_freq=1, update_freq="batch")
    history = model.fit(X, Y, batch_size=4, epochs=2, verbose=0, callbacks=[watch])
    (path,) = tmp_path.iterdir()
    values = [
        (event.step, value.tag, value.simple_value, value.WhichOneof("value"))
        for event in tf.train.summary_iterator(str(path))
        for value in event.summary.value
    ]
    losses = [value for _, tag, value, _ in values if tag == "epoch_loss"]
    np.testing.assert_allclose(losses, history.history["loss"], rtol=1e-6)
    assert sum(tag == "batch_loss" for _, tag, _, _ in values) == 6
    assert {tag for _, tag, _, kind in values if kind == "histo"} == {
        "dense/kernel_0",
        "dense/bias_0",
    }


def test_custom_objects(session):
    def cube(x):
        return x**3

    with tf.keras.utils.custom_object_scope({"cube": cube}):
        model = tf.keras.Sequential([layers.Dense(2, activation="cube", input_shape=(4,))])
    text = model.to_json()
    assert '"activation": "cube"' in text
    with pytest.raises(ValueError, match="cube"):
        tf.keras.models.model_from_json(text)
    other = tf.keras.models.model_from_json(text, custom_objects={"cube": cube})
    other.set_weights(model.get_weights())
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert not tf.keras.utils.get_custom_objects()


def test_a_function_without_a_name_is_kept_by_its_code(session):
    factor = 3.0
    model = tf.keras.Sequential([layers.Lambda(lambda x: x * factor, input_shape=(4,))])
    other = tf.keras.models.model_from_json(model.to_json())
    np.testing.assert_allclose(other.predict(X), X * 3, rtol=1e-6)


def test_weights_of_a_model_that_is_not_built_yet(session, tmp_path):
    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.layer = layers.Dense(2)

        def call(self, x):
            return self.layer(x)

    first, second = Net(), Net()
    expected = first.predict(X)
    first.save_weights(str(tmp_path / "net"))
    second.load_weights(str(tmp_path / "net"))
    np.testing.assert_array_equal(second.predict(X), expected)


def test_a_checkpoint_of_another_model(session, tmp_path):
    linear().save_weights(str(tmp_path / "linear"))

    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.something = layers.Dense(2)

        def call(self, x):
            return self.something(x)

    net = Net()
    net.predict(X)
    with pytest.raises(AssertionError, match="something/kernel"):
        net.load_weights(str(tmp_path / "linear"))


def test_hdf5_needs_h5py(session, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match="pip install h5py"):
        linear().save(str(tmp_path / "model.h5"))
