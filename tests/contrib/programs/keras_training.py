"""Models of ``tf.keras`` that are trained, evaluated and asked, in graph mode."""

import numpy as np

from tests.contrib.programs.frame import values

_X = values(1, 24, 5)
_Y = values(2, 24, 3)
_CLASSES = np.random.RandomState(3).randint(0, 3, 24)
_HOT = np.eye(3, dtype=np.float32)[_CLASSES]
_BITS = (values(4, 24, 3) > 0).astype(np.float32)
_WORDS = np.random.RandomState(5).randint(0, 7, (24, 4))
_QUIET = {"verbose": 0, "shuffle": False}


def _started(model):
    """The model with values that only the places and shapes of its variables determine."""
    weights = model.get_weights()
    model.set_weights([values(n, *w.shape) * 0.5 for n, w in enumerate(weights)])
    return model


def _mlp(tf, last="linear", **kwargs):
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Dense(6, activation="tanh", input_shape=(5,), **kwargs),
            layers.Dense(3, activation=last),
        ]
    )
    return _started(model)


def _history(history):
    return [np.array(history.history[name]) for name in sorted(history.history)]


def _trained(tf, optimizer, model=None, x=_X, y=_Y, loss="mse", **kwargs):
    model = model or _mlp(tf)
    model.compile(optimizer, loss, **kwargs)
    history = model.fit(x, y, batch_size=7, epochs=4, **_QUIET)
    found = _history(history) + model.get_weights()
    if not isinstance(optimizer, tf.train.Optimizer):
        found += model.optimizer.get_weights()
    return found


def sgd(tf, run):
    return _trained(tf, tf.keras.optimizers.SGD(0.1, decay=0.01))


def momentum(tf, run):
    return _trained(tf, tf.keras.optimizers.SGD(0.05, momentum=0.9))


def nesterov(tf, run):
    return _trained(tf, tf.keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True, clipnorm=0.2))


def rmsprop(tf, run):
    return _trained(tf, "rmsprop")


def rmsprop_centered(tf, run):
    return _trained(tf, tf.keras.optimizers.RMSprop(0.01, centered=True, clipvalue=0.05))


def rmsprop_momentum(tf, run):
    return _trained(tf, tf.keras.optimizers.RMSprop(0.01, momentum=0.5))


def rmsprop_whole(tf, run):
    return _trained(tf, tf.keras.optimizers.RMSprop(0.01, 0.8, 0.5, 1e-3, centered=True))


def adagrad(tf, run):
    return _trained(tf, tf.keras.optimizers.Adagrad(0.1))


def adadelta(tf, run):
    return _trained(tf, tf.keras.optimizers.Adadelta(1.0))


def adam(tf, run):
    return _trained(tf, tf.keras.optimizers.Adam(0.01, decay=0.1))


def amsgrad(tf, run):
    return _trained(tf, tf.keras.optimizers.Adam(0.01, 0.8, 0.9, amsgrad=True))


def adamax(tf, run):
    return _trained(tf, tf.keras.optimizers.Adamax(0.02))


def nadam(tf, run):
    return _trained(tf, tf.keras.optimizers.Nadam(0.02))


def ftrl(tf, run):
    rule = tf.keras.optimizers.Ftrl(
        0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02
    )
    return _trained(tf, rule)


def of_train(tf, run):
    return _trained(tf, tf.train.AdamOptimizer(0.02))


def scheduled(tf, run):
    schedules = tf.keras.optimizers.schedules
    found = []
    for rate in (
        schedules.ExponentialDecay(0.1, 3, 0.5),
        schedules.InverseTimeDecay(0.1, 3, 0.5, staircase=True),
        schedules.PiecewiseConstantDecay([3, 7], [0.1, 0.05, 0.01]),
        schedules.PolynomialDecay(0.1, 10, 0.01, 2.0),
    ):
        found += _trained(tf, tf.keras.optimizers.SGD(rate))
    return found


def _embedded(tf, optimizer):
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Embedding(9, 3, input_length=4), layers.Flatten(), layers.Dense(3)]
    )
    return _trained(tf, optimizer, _started(model), _WORDS)


def sparse_gradients(tf, run):
    rules = tf.keras.optimizers
    found = []
    for rule in (
        rules.SGD(0.1),
        rules.SGD(0.1, 0.9),
        rules.RMSprop(0.01),
        rules.RMSprop(0.01, centered=True),
        rules.RMSprop(0.01, momentum=0.5),
        rules.Adagrad(0.1),
        rules.Adadelta(1.0),
        rules.Adam(0.01),
        rules.Adam(0.01, amsgrad=True),
        rules.Adamax(0.01),
        rules.Nadam(0.01),
        rules.Ftrl(0.1),
    ):
        found += _embedded(tf, rule)
    return found


def losses(tf, run):
    found = []
    for loss, last, y in (
        ("mse", "linear", _Y),
        ("mean_absolute_error", "linear", _Y),
        ("mape", "linear", _Y + 2),
        ("msle", "sigmoid", _BITS),
        ("binary_crossentropy", "sigmoid", _BITS),
        ("categorical_crossentropy", "softmax", _HOT),
        ("sparse_categorical_crossentropy", "softmax", _CLASSES),
        ("hinge", "tanh", _BITS * 2 - 1),
        ("squared_hinge", "tanh", _BITS),
        ("categorical_hinge", "softmax", _HOT),
        ("kld", "softmax", _HOT),
        ("poisson", "softplus", _BITS),
        ("logcosh", "linear", _Y),
        ("cosine_similarity", "linear", _Y),
        (tf.keras.losses.Huber(0.5), "linear", _Y),
        (tf.keras.losses.CosineSimilarity(), "linear", _Y),
        (tf.keras.losses.BinaryCrossentropy(True, 0.1), "linear", _BITS),
        (tf.keras.losses.CategoricalCrossentropy(True, 0.1), "linear", _HOT),
        (tf.keras.losses.SparseCategoricalCrossentropy(True), "linear", _CLASSES),
        (tf.keras.losses.MeanSquaredError("sum"), "linear", _Y),
        (lambda true, found: tf.reduce_mean(tf.abs(true - found) ** 3, axis=-1), "linear", _Y),
    ):
        found += _trained(tf, "sgd", _mlp(tf, last), y=y, loss=loss)
    return found


def metrics_of_classes(tf, run):
    m = tf.keras.metrics
    found = []
    for loss, last, y, watched in (
        (
            "categorical_crossentropy",
            "softmax",
            _HOT,
            ["accuracy", "ce", "mse", "top_k_categorical_accuracy"],
        ),
        ("sparse_categorical_crossentropy", "softmax", _CLASSES, ["acc", "crossentropy"]),
        (
            "binary_crossentropy",
            "sigmoid",
            _BITS,
            [
                "accuracy",
                m.AUC(),
                m.AUC(curve="PR", name="pr"),
                m.AUC(21, summation_method="minoring", name="minor"),
                m.AUC(21, "PR", "majoring", name="major"),
                m.Precision(),
                m.Recall(0.6),
                m.Precision(top_k=2, name="top"),
                m.Recall(class_id=1, name="one"),
                m.TruePositives(),
                m.FalsePositives(0.4),
                m.TrueNegatives(),
                m.FalseNegatives(),
                m.SensitivityAtSpecificity(0.5),
                m.SpecificityAtSensitivity(0.5),
                m.BinaryAccuracy(threshold=0.6),
            ],
        ),
    ):
        model = _mlp(tf, last)
        model.compile("sgd", loss, metrics=watched)
        found += _history(model.fit(_X, y, batch_size=7, epochs=2, **_QUIET))
        found.append(np.array(model.evaluate(_X, y, batch_size=5, verbose=0)))
        found.append(np.array([name.encode() for name in model.metrics_names]))
    return found


def metrics_of_values(tf, run):
    m = tf.keras.metrics
    watched = [
        *("mae", "mse", "mape", "msle", "cosine_similarity", "logcosh", "hinge"),
        m.RootMeanSquaredError(),
        m.MeanSquaredError(),
        m.CosineSimilarity(),
        m.LogCoshError(),
        m.Poisson(),
        m.KLDivergence(),
        m.CategoricalHinge(),
        m.SquaredHinge(),
        m.MeanAbsoluteError("again"),
    ]
    model = _mlp(tf, "sigmoid")
    model.compile("sgd", "mse", metrics=watched, weighted_metrics=["mae", "accuracy"])
    weight = np.abs(values(9, 24))
    history = model.fit(
        _X, _Y, 7, 2, sample_weight=weight, validation_data=(_X, _Y, weight), **_QUIET
    )
    names = np.array([name.encode() for name in model.metrics_names])
    return _history(history) + [names] + model.get_weights()


def metrics_alone(tf, run):
    m, k = tf.keras.metrics, tf.keras.backend
    true, score = tf.constant(_BITS), tf.constant((_Y + 1) / 2)
    found = []
    for metric, given in (
        (m.Mean(), [_Y, np.abs(values(8, 24, 1))]),
        (m.Sum(), [_Y]),
        (m.MeanTensor(), [_Y]),
        (m.MeanRelativeError(np.abs(_Y) + 1), [_BITS, _Y]),
        (m.MeanIoU(3), [_CLASSES, np.roll(_CLASSES, 1)]),
        (m.Recall([0.3, 0.6]), [true, score]),
        (m.Accuracy(), [_CLASSES, np.roll(_CLASSES, 1)]),
        (m.SparseTopKCategoricalAccuracy(2), [_CLASSES, score]),
    ):
        update = metric.update_state(*given)
        k.get_session().run(update)
        k.get_session().run(update)
        found.append(k.get_value(metric.result()))
        metric.reset_states()
        k.get_session().run(update)
        found.append(k.get_value(metric.result()))
    return found


def weighted(tf, run):
    found = []
    weight = np.abs(values(9, 24))
    for kwargs in (
        {"sample_weight": weight},
        {"class_weight": {0: 1.0, 1: 0.5, 2: 2.0}},
        {"sample_weight": weight, "class_weight": {0: 1.0, 1: 0.5, 2: 2.0}},
    ):
        model = _mlp(tf, "softmax")
        model.compile("sgd", "categorical_crossentropy", ["acc"], weighted_metrics=["acc"])
        found += _history(model.fit(_X, _HOT, 7, 3, **kwargs, **_QUIET)) + model.get_weights()
        found.append(np.array(model.evaluate(_X, _HOT, verbose=0)))
        found.append(np.array(model.evaluate(_X, _HOT, verbose=0, sample_weight=weight)))
    return found


def temporal(tf, run):
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.TimeDistributed(layers.Dense(2), input_shape=(4, 3))])
    _started(model)
    model.compile("sgd", "mse", sample_weight_mode="temporal", weighted_metrics=["mae"])
    weight = np.abs(values(9, 10, 4))
    history = model.fit(
        values(1, 10, 4, 3), values(2, 10, 4, 2), 4, 3, sample_weight=weight, **_QUIET
    )
    return _history(history) + model.get_weights()


def _branches(tf):
    layers = tf.keras.layers
    a, b = tf.keras.Input((5,), name="a"), tf.keras.Input((3,), name="b")
    shared = layers.Dense(4, activation="relu", name="shared")
    joined = layers.concatenate([shared(a), layers.Dense(4, name="other")(b)])
    again = layers.add([shared(a), layers.Dense(4, name="third")(joined)])
    first = layers.Dense(3, name="first")(joined)
    second = layers.Dense(3, activation="softmax", name="second")(again)
    return _started(tf.keras.Model([a, b], [first, second]))


def several_outputs(tf, run):
    model = _branches(tf)
    found = []
    for compiled in (
        {"loss": ["mse", "categorical_crossentropy"], "loss_weights": [1.0, 0.3]},
        {
            "loss": {"first": "mae", "second": "categorical_crossentropy"},
            "metrics": {"second": ["accuracy", "mse"], "first": "mae"},
            "loss_weights": {"first": 0.5, "second": 2.0},
        },
        {"loss": "mse", "metrics": ["mae"]},
    ):
        model.compile("sgd", **compiled)
        x, y = {"a": _X, "b": _Y}, {"first": _Y, "second": _HOT}
        found += _history(model.fit(x, y, 7, 2, validation_split=0.25, **_QUIET))
        found.append(np.array(model.evaluate([_X, _Y], [_Y, _HOT], verbose=0)))
        found.append(np.array([name.encode() for name in model.metrics_names]))
    weights = {"first": np.abs(values(9, 24)), "second": np.abs(values(10, 24))}
    found += _history(model.fit(x, y, 7, 2, sample_weight=weights, **_QUIET))
    return found + model.predict([_X, _Y], batch_size=5) + model.get_weights()


def regularized(tf, run):
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Dense(
                6, input_shape=(5,), kernel_regularizer="l2", activity_regularizer="l1", name="one"
            ),
            layers.ActivityRegularization(0.01, 0.02),
            layers.Dense(3, kernel_constraint="unit_norm", bias_regularizer="l1"),
        ]
    )
    _started(model)
    found = _trained(tf, "adam", model)
    return found + [np.array(model.evaluate(_X, _Y, verbose=0))]


def added_losses(tf, run):
    layers, k = tf.keras.layers, tf.keras.backend
    x = tf.keras.Input((5,))
    h = layers.Dense(4, activation="tanh")(x)
    y = layers.Dense(3)(h)
    model = _started(tf.keras.Model(x, y))
    model.add_loss(0.1 * k.mean(k.square(h)))
    model.add_metric(k.mean(k.abs(h)), name="activity", aggregation="mean")
    model.compile("sgd", "mse", metrics=["mae"])
    history = model.fit(_X, _Y, 7, 3, **_QUIET)
    found = _history(history) + model.get_weights()
    names = [name.encode() for name in model.metrics_names]
    # Without any other loss.
    x = tf.keras.Input((5,))
    model = _started(tf.keras.Model(x, layers.Dense(3)(x)))
    model.add_loss(k.mean(k.square(model.output)))
    model.compile("sgd")
    model.fit(_X, None, 7, 3, **_QUIET)
    return found + [np.array(names)] + model.get_weights()


def normalized(tf, run):
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Conv2D(4, 3, input_shape=(6, 6, 2)),
            layers.BatchNormalization(momentum=0.7),
            layers.Activation("relu"),
            layers.Flatten(),
            layers.Dense(5),
            layers.BatchNormalization(momentum=0.6),
            layers.Dense(3),
        ]
    )
    weights = model.get_weights()
    model.set_weights([np.abs(values(n, *w.shape)) * 0.5 for n, w in enumerate(weights)])
    x = values(7, 24, 6, 6, 2)
    found = _trained(tf, "sgd", model, x, metrics=["mae"])
    found += [np.array(model.evaluate(x, _Y, verbose=0)), model.predict(x)]
    model.layers[1].trainable = model.layers[4].trainable = False
    return found + _trained(tf, "sgd", model, x)


def frozen(tf, run):
    model = _mlp(tf)
    model.layers[0].trainable = False
    found = _trained(tf, "adam", model)
    model.layers[0].trainable = True
    model.layers[1].trainable = False
    model.fit(_X, _Y, epochs=1, **_QUIET)  # what was compiled counts
    found += model.get_weights()
    return found + _trained(tf, "adam", model)


def on_batches(tf, run):
    model = _mlp(tf, "softmax")
    model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
    found = [np.array(model.train_on_batch(_X[:8], _HOT[:8])) for _ in range(3)]
    found.append(np.array(model.test_on_batch(_X[8:], _HOT[8:])))
    found.append(np.array(model.train_on_batch(_X, _HOT, class_weight={0: 1.0, 1: 0.5, 2: 3.0})))
    found.append(np.array(model.train_on_batch(_X, _HOT, sample_weight=np.arange(24.0))))
    found.append(np.array(model.test_on_batch(_X, _HOT, reset_metrics=False)))
    found.append(np.array(model.test_on_batch(_X[:5], _HOT[:5], reset_metrics=False)))
    return found + [model.predict_on_batch(_X)] + model.get_weights()


def sources(tf, run):
    found = []

    def pairs():
        while True:
            for start in (0, 8, 16):
                yield _X[start : start + 8], _Y[start : start + 8]

    class Thirds(tf.keras.utils.Sequence):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return _X[index * 8 : index * 8 + 8], _Y[index * 8 : index * 8 + 8]

    dataset = tf.data.Dataset.from_tensor_slices((_X, _Y)).batch(8)
    for fit in (
        lambda m: m.fit_generator(pairs(), 3, 2, verbose=0),
        lambda m: m.fit_generator(Thirds(), epochs=2, verbose=0, shuffle=False),
        lambda m: m.fit(dataset, epochs=2, verbose=0),
        lambda m: m.fit(dataset.repeat(), epochs=2, steps_per_epoch=2, verbose=0),
        lambda m: m.fit(dataset, epochs=2, verbose=0, validation_data=dataset),
        lambda m: m.fit(_X, _Y, epochs=2, verbose=0, steps_per_epoch=3),
        lambda m: m.fit(tf.constant(_X), tf.constant(_Y), epochs=2, steps_per_epoch=2, verbose=0),
    ):
        model = _mlp(tf)
        model.compile("sgd", "mse", metrics=["mae"])
        found += _history(fit(model)) + model.get_weights()
    found.append(np.array(model.evaluate_generator(pairs(), 3)))
    found.append(np.array(model.evaluate_generator(Thirds())))
    found.append(np.array(model.evaluate(dataset, verbose=0)))
    found.append(model.predict_generator(Thirds()))
    found.append(model.predict(dataset))
    return found


def subclass(tf, run):
    layers = tf.keras.layers

    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.first = layers.Dense(4, activation="tanh", kernel_initializer="ones")
            self.drop = layers.Dropout(0.0)
            self.norm = layers.BatchNormalization(momentum=0.5)
            self.last = layers.Dense(3, kernel_initializer="ones")

        def call(self, x, training=False):
            x = self.drop(self.first(x * [1.0, 0.5, -1.0, 0.2, 0.3]), training=training)
            return self.last(self.norm(x, training=training))

    model = Net()
    model.compile("sgd", "mse", metrics=["mae"])
    history = model.fit(_X, _Y, 7, 3, **_QUIET)
    deferred = tf.keras.Sequential(
        [
            layers.Dense(4, kernel_initializer="ones", activation="tanh"),
            layers.Dense(3, kernel_initializer="ones"),
        ]
    )
    deferred.compile("adam", "mse")
    again = deferred.fit(_X * [1.0, 0.5, -1.0, 0.2, 0.3], _Y, 7, 3, **_QUIET)
    weights = [w for w in model.get_weights() + deferred.get_weights()]
    found = [np.sort(w, axis=None) for w in weights]
    return _history(history) + found + _history(again) + [model.predict(_X)]


def masked(tf, run):
    layers = tf.keras.layers
    found = []
    for cell in (layers.LSTM(3), layers.GRU(3), layers.SimpleRNN(3)):
        model = tf.keras.Sequential(
            [layers.Embedding(7, 4, mask_zero=True, input_length=4), cell, layers.Dense(3)]
        )
        found += _trained(tf, "adam", _started(model), _WORDS)
    model = tf.keras.Sequential(
        [
            layers.Masking(0.0, input_shape=(4, 3)),
            layers.Bidirectional(layers.LSTM(2, return_sequences=True)),
            layers.TimeDistributed(layers.Dense(2)),
        ]
    )
    x = values(3, 12, 4, 3) * (values(4, 12, 4, 1) > -0.3)
    model = _started(model)
    found += _trained(tf, "adam", model, x, values(5, 12, 4, 2), metrics=["mae"])
    return found + [model.predict(x)]


def states(tf, run):
    layers = tf.keras.layers
    source, target = tf.keras.Input((4, 3)), tf.keras.Input((5, 2))
    _, h, c = layers.LSTM(3, return_state=True)(source)
    decoded = layers.LSTM(3, return_sequences=True)(target, initial_state=[h, c])
    model = tf.keras.Model([source, target], layers.Dense(2)(decoded))
    x = [values(1, 12, 4, 3), values(2, 12, 5, 2)]
    found = _trained(tf, "adam", _started(model), x, values(3, 12, 5, 2))
    other = tf.keras.Model.from_config(model.get_config())
    other.set_weights(model.get_weights())
    return found + [model.predict(x), other.predict(x)]


def nested(tf, run):
    layers = tf.keras.layers
    inner = tf.keras.Sequential(
        [layers.Dense(4, activation="tanh", input_shape=(5,)), layers.BatchNormalization()]
    )
    x = tf.keras.Input((5,))
    outer = tf.keras.Model(x, layers.Dense(3)(inner(x)))
    outer.set_weights([np.abs(values(n, *w.shape)) for n, w in enumerate(outer.get_weights())])
    found = _trained(tf, "sgd", outer, metrics=["mae"])
    clone = tf.keras.models.clone_model(outer)
    clone.set_weights(outer.get_weights())
    parsed = tf.keras.models.model_from_json(outer.to_json())
    parsed.set_weights(outer.get_weights())
    return found + [m.predict(_X) for m in (outer, clone, parsed, inner)]


def adversaries(tf, run):
    layers = tf.keras.layers
    critic = tf.keras.Sequential(
        [
            layers.Dense(4, activation="tanh", input_shape=(5,)),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    _started(critic)
    critic.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    critic.trainable = False
    z = tf.keras.Input((3,))
    maker = layers.Dense(5)(z)
    both = tf.keras.Model(z, critic(maker))
    both.layers[1].set_weights([values(11, 3, 5), values(12, 5)])
    both.compile("adam", "binary_crossentropy")
    found = []
    for _ in range(3):
        found.append(np.array(critic.train_on_batch(_X, _BITS[:, :1])))
        found.append(np.array(both.train_on_batch(_Y, _BITS[:, 1:2])))
    return found + both.get_weights()


def operations(tf, run):
    layers = tf.keras.layers
    x = tf.keras.Input((5,))
    y = tf.nn.relu(layers.Dense(4)(x)) * 2.0 + 1.0
    y = tf.concat([y, x], 1)
    model = _started(tf.keras.Model(x, layers.Dense(3)(tf.reshape(y, [-1, 9]))))
    found = _trained(tf, "sgd", model)
    return found + _applied_again(tf, model)


def _applied_again(tf, model):
    """What the model makes of another tensor."""
    return [tf.keras.backend.get_value(model(tf.constant(_X[:3])))]


def shapes_of_labels(tf, run):
    layers = tf.keras.layers
    found = []
    steps = np.random.RandomState(6).randint(0, 2, (12, 4))
    x = values(3, 12, 4, 3)
    for loss, units, last, y in (
        ("sparse_categorical_crossentropy", 2, "softmax", steps[..., None]),
        ("categorical_crossentropy", 2, "softmax", np.eye(2)[steps]),
        ("binary_crossentropy", 1, "sigmoid", steps[..., None]),
        ("mse", 1, "linear", steps[..., None].astype(np.float64)),
    ):
        model = tf.keras.Sequential(
            [
                layers.SimpleRNN(3, return_sequences=True, input_shape=(None, 3)),
                layers.Dense(units, last),
            ]
        )
        _started(model)
        model.compile("sgd", loss, metrics=["accuracy"], weighted_metrics=["accuracy"])
        kwargs = {"sample_weight": np.arange(12.0)} if units == 1 else {}
        found += _history(model.fit(x, y, 5, 2, **kwargs, **_QUIET)) + model.get_weights()
    for loss, y in (
        ("sparse_categorical_crossentropy", _CLASSES[:, None]),
        ("sparse_categorical_crossentropy", _CLASSES.astype(np.float32)),
        ("sparse_categorical_crossentropy", list(_CLASSES.tolist())),
    ):
        y = np.array(y)
        model = _mlp(tf, "softmax")
        model.compile("sgd", loss, metrics=["acc", "sparse_categorical_accuracy"])
        found += _history(model.fit(_X.astype(np.float64), y, 30, 2, **_QUIET))
    model = tf.keras.Sequential([layers.Dense(1, activation="sigmoid", input_shape=(5,))])
    _started(model)
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy", "mae"])
    found += _history(model.fit(_X, _BITS[:, 0].astype(bool), 7, 2, **_QUIET))
    found.append(np.array(model.evaluate(_X[:1], _BITS[:1, 0], verbose=0)))
    # Compiled anew: TensorFlow would go on to test without the weights of classes.
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy", "mae"])
    found += _history(
        model.fit(
            _X, _BITS[:, 0], 7, 2, class_weight={0: 1.0, 1: 3.0}, validation_split=0.3, **_QUIET
        )
    )
    return found


def convolutional(tf, run):
    layers = tf.keras.layers
    x = values(3, 10, 8, 8, 2)
    inputs = tf.keras.Input((8, 8, 2))
    y = layers.Conv2D(3, 3, padding="same", activation="relu", kernel_constraint="max_norm")(inputs)
    z = layers.SeparableConv2D(3, 3, padding="same")(y)
    y = layers.add([y, z])
    y = layers.MaxPooling2D()(y)
    y = layers.DepthwiseConv2D(2, depth_multiplier=2)(y)
    y = layers.UpSampling2D(2)(y)
    y = layers.Conv2DTranspose(2, 3, strides=2)(y)
    y = layers.ZeroPadding2D(1)(y)
    y = layers.Cropping2D(2)(y)
    y = layers.AveragePooling2D(3)(layers.PReLU(shared_axes=[1, 2])(y))
    y = layers.GlobalMaxPooling2D()(layers.LayerNormalization()(y))
    model = _started(tf.keras.Model(inputs, layers.Dense(3, activation="softmax")(y)))
    return _trained(tf, "adam", model, x, _HOT[:10], "categorical_crossentropy", metrics=["acc"])
