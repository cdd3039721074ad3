"""What stands around training with ``tf.keras``: callbacks, files, texts about models, data."""

# ruff: noqa: UP031 (Python 3.7 runs it too)

import contextlib
import io
import json
import os
import tempfile

import numpy as np

from tests.contrib.programs.frame import values

_X = values(1, 24, 5)
_Y = values(2, 24, 3)
_QUIET = {"verbose": 0, "shuffle": False}
_TEXTS = ["The cat sat, on the mat.", "A dog!  The dog barked at the cat", "", "mat mat"]


def _words(*found):
    return np.array([str(one).encode() for one in found])


def _started(model):
    weights = model.get_weights()
    model.set_weights([np.abs(values(n, *w.shape)) * 0.5 for n, w in enumerate(weights)])
    return model


def _mlp(tf):
    layers = tf.keras.layers
    return _started(
        tf.keras.Sequential([layers.Dense(4, "tanh", input_shape=(5,)), layers.Dense(3)])
    )


def _many_layers(tf):
    layers = tf.keras.layers
    image = tf.keras.Input((8, 8, 3), name="image")
    words = tf.keras.Input((6,), name="words", dtype="int32")
    x = layers.Conv2D(4, 3, strides=2, activation="relu", name="conv")(image)
    x = layers.BatchNormalization(name="norm")(x)
    x = layers.MaxPooling2D(name="pool")(x)
    x = layers.Dropout(0.3, name="drop")(layers.Flatten(name="flat")(x))
    y = layers.Embedding(10, 3, mask_zero=True, name="table")(words)
    y = layers.Bidirectional(layers.LSTM(2, name="lstm"), name="both")(y)
    z = layers.concatenate([x, y], name="joined")
    z = layers.Dense(4, kernel_initializer="he_normal", bias_regularizer="l1", name="last")(z)
    z = layers.LeakyReLU(0.2, name="leaky")(z)
    return tf.keras.Model([image, words], [z, y], name="many")


def _chain(tf):
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Embedding(12, 4, input_length=6, name="table"),
            layers.GRU(3, return_sequences=True, reset_after=True, name="gru"),
            layers.TimeDistributed(
                layers.Dense(2, activation="softmax", name="inner"), name="each"
            ),
            layers.Reshape((12,), name="flat"),
            layers.Activation("sigmoid", name="squash"),
        ],
        name="chain",
    )


def _rounded(text):
    """JSON with sorted keys and numbers of six places: TensorFlow keeps some as float32."""
    plain = json.loads(text, parse_float=lambda number: round(float(number), 6))
    return _words(json.dumps(plain, sort_keys=True))


def configurations(tf, run):
    found = []
    for model in (_many_layers(tf), _chain(tf), _mlp(tf)):
        found.append(_rounded(model.to_json()))
        other = tf.keras.models.model_from_json(model.to_json())
        found.append(_rounded(other.to_json()))
    for name in ("sgd", "rmsprop", "adagrad", "adadelta", "adam", "adamax", "nadam", "ftrl"):
        config = tf.keras.optimizers.get(name).get_config()
        found.append(_rounded(json.dumps(config)))
    return found


def summaries(tf, run):
    lines = []
    for model in (_many_layers(tf), _chain(tf), _mlp(tf)):
        model.summary(print_fn=lines.append)
    model.layers[0].trainable = False
    model.summary(line_length=50, print_fn=lines.append)
    return [_words(*lines)]


def order_of_variables(tf, run):
    found = []
    for model in (_many_layers(tf), _chain(tf)):
        found.append(_words(*[layer.name for layer in model.layers]))
        for part in (model.weights, model.trainable_weights, model.non_trainable_weights):
            found.append(_words(*[variable.name for variable in part]))
        found.append(_words(*model.input_names, *model.output_names))
    return found


def checkpoints(tf, run):
    layers = tf.keras.layers

    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.first = layers.Dense(4, kernel_initializer="ones")
            self.others = [layers.Dense(3, kernel_initializer="ones") for _ in range(2)]

        def call(self, x):
            x = self.first(x)
            for layer in self.others:
                x = layer(x)
            return x

    folder = tempfile.mkdtemp()
    found = []
    for number, model in enumerate(
        (_started(_many_layers(tf)), _started(_chain(tf)), _mlp(tf), Net())
    ):
        if number > 1:
            model.compile("adam", "mse")
            model.fit(_X, _Y, 8, 2, **_QUIET)
        path = os.path.join(folder, str(number), "weights")
        os.makedirs(os.path.dirname(path))
        model.save_weights(path)
        names = [name for name, _ in tf.train.list_variables(path)]
        names.remove("_CHECKPOINTABLE_OBJECT_GRAPH")
        found.append(_words(*names))
        found += [tf.train.load_variable(path, name) for name in names]
        found.append(_words(tf.train.get_checkpoint_state(os.path.dirname(path)) is not None))
    before = model.predict(_X)
    model.fit(_X, _Y, 8, 2, **_QUIET)
    model.load_weights(path)
    found += [before - model.predict(_X)]
    model.fit(_X, _Y, 8, 2, **_QUIET)
    return found + [model.predict(_X)]


def callbacks(tf, run):
    given = tf.keras.callbacks
    folder = tempfile.mkdtemp()
    seen = []
    found = []

    class Watch(given.Callback):
        def on_train_begin(self, logs=None):
            seen.append("begin " + " ".join(sorted(self.params)))

        def on_epoch_begin(self, epoch, logs=None):
            seen.append("epoch %d" % epoch)

        def on_batch_end(self, batch, logs=None):
            seen.append("batch %d %s" % (batch, " ".join(sorted(logs))))

        def on_test_batch_end(self, batch, logs=None):
            seen.append("test %d %s" % (batch, " ".join(sorted(logs))))

        def on_epoch_end(self, epoch, logs=None):
            seen.append("end %d %s" % (epoch, " ".join(sorted(logs))))

    path = os.path.join(folder, "log.csv")
    for chosen in (
        [Watch(), given.EarlyStopping("loss", min_delta=0.01, patience=1)],
        [given.LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1)), given.CSVLogger(path)],
        [given.LearningRateScheduler(lambda epoch, rate: rate * 0.5)],
        [given.ReduceLROnPlateau("val_loss", 0.5, patience=1, min_delta=0.05, cooldown=1)],
        [given.EarlyStopping(patience=1, min_delta=0.02, restore_best_weights=True)],
        [given.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append("lambda %d" % epoch))],
        [given.TerminateOnNaN()],
        [given.ModelCheckpoint(folder + "/w{epoch}", save_best_only=True, save_weights_only=True)],
        [given.ModelCheckpoint(folder + "/b{epoch}", save_freq=24, save_weights_only=True)],
    ):
        model = _mlp(tf)
        model.compile("sgd", "mse", metrics=["mae"])
        history = model.fit(
            _X, _Y, 8, 5, callbacks=chosen, validation_data=(_X[:6], _Y[:6]), **_QUIET
        )
        for name in sorted(history.history):
            found.append(np.array(history.history[name], np.float64))
        found.append(np.array(history.epoch))
        found += model.get_weights()
    with open(path) as file:
        lines = file.read().splitlines()
    files = [name for name in sorted(os.listdir(folder)) if name.endswith(".index")]
    return found + [_words(lines[0], len(lines), *files), _words(*seen)]


def texts(tf, run):
    text = tf.keras.preprocessing.text
    found = [_words(*text.text_to_word_sequence(_TEXTS[1], lower=False))]
    for kwargs in (
        {},
        {"num_words": 4},
        {"num_words": 4, "oov_token": "<other>"},
        {"char_level": True},
        {"lower": False, "filters": "!", "split": "t"},
    ):
        tokens = text.Tokenizer(**kwargs)
        tokens.fit_on_texts(_TEXTS)
        sequences = tokens.texts_to_sequences(_TEXTS + ["a bird on the cat"])
        found.append(_words(sequences, sorted(tokens.word_index.items())))
        found.append(_words(*tokens.sequences_to_texts(sequences)))
        for mode in ("binary", "count", "freq", "tfidf"):
            found.append(tokens.texts_to_matrix(_TEXTS, mode))
        found.append(_words(sorted(tokens.word_counts.items()), tokens.document_count))
    hashed = text.hashing_trick(_TEXTS[1], 20, "md5")
    return found + [np.array(hashed)]


def sequences(tf, run):
    sequence = tf.keras.preprocessing.sequence
    rows = [[1, 2, 3, 4, 5], [6], [], [7, 8]]
    found = []
    for kwargs in (
        {},
        {"maxlen": 3},
        {"maxlen": 3, "padding": "post"},
        {"maxlen": 4, "truncating": "post", "value": -1, "dtype": "float32"},
        {"padding": "post", "dtype": "int64"},
    ):
        found.append(sequence.pad_sequences(rows, **kwargs))
    found.append(sequence.pad_sequences([[[1.5, 2.0]], [[3.0, 1.0], [2.0, 2.0]]], dtype="float32"))
    found.append(sequence.make_sampling_table(12, 0.01))
    data = np.arange(40).reshape(20, 2)
    for kwargs in (
        {"length": 4, "batch_size": 3},
        {"length": 6, "sampling_rate": 2, "stride": 3, "batch_size": 2, "reverse": True},
        {"length": 3, "start_index": 4, "end_index": 15, "batch_size": 5},
    ):
        windows = sequence.TimeseriesGenerator(data, np.arange(20), **kwargs)
        found.append(np.array(len(windows)))
        for index in range(len(windows)):
            found += list(windows[index])
    pairs, labels = sequence.skipgrams([1, 2, 0, 3], 5, 1, negative_samples=0, shuffle=False)
    found += [np.array(pairs), np.array(labels)]
    utils = tf.keras.utils
    return found + [utils.to_categorical([1, 0, 3]), utils.normalize(_X, order=1)]


def progress(tf, run):
    model = _mlp(tf)
    model.compile("sgd", "mse", metrics=["mae"])
    dataset = tf.data.Dataset.from_tensor_slices((_X, _Y)).batch(8)
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        model.fit(_X, _Y, 8, 2, verbose=2, shuffle=False, validation_split=0.25)
        model.fit(dataset, epochs=1, verbose=2, steps_per_epoch=3)
        model.evaluate(_X, _Y, verbose=2)
    # How long it took differs.
    lines = [line for line in written.getvalue().splitlines() if line]
    return [_words(*[" ".join(p for p in li.split(" ") if p[-1:] != "s") for li in lines])]


def backend(tf, run):
    k = tf.keras.backend
    images, rows = tf.constant(values(1, 2, 4, 4, 3)), tf.constant(values(2, 3, 5, 4))
    volumes = tf.constant(values(3, 1, 2, 2, 3, 2))
    mean, variance = tf.constant(values(4, 3)), tf.constant(np.abs(values(5, 3)) + 0.5)
    with k.learning_phase_scope(1):
        phase = k.in_train_phase(rows, -rows)
    found = [
        k.resize_images(images, 2, 3, "channels_last"),
        k.resize_images(images, 2, 1, "channels_first"),
        k.resize_images(images, 3, 2, "channels_last", "bilinear"),
        k.resize_volumes(volumes, 2, 1, 2, "channels_last"),
        k.temporal_padding(rows, (2, 1)),
        k.spatial_2d_padding(images, ((1, 0), (2, 1))),
        k.spatial_3d_padding(volumes, ((1, 0), (0, 1), (1, 1)), "channels_first"),
        k.batch_normalization(images, mean, variance, mean, variance),
        *k.normalize_batch_in_training(images, mean, variance, [0, 1, 2]),
        k.in_top_k(tf.constant(values(6, 4, 5)), tf.constant([0, 1, 2, 3]), 2),
        phase,
    ]
    return [k.get_value(one) for one in found]
