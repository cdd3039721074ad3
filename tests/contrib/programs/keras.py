"""``tf.keras``'s layers, losses and backend as programs that build graphs use them."""

import numpy as np

from tests.contrib.programs.frame import values

# ruff: noqa: N806 (K is what programs call it)

_IMAGES = values(1, 2, 8, 8, 3)
_ROWS = values(2, 2, 6, 4)
_VECTORS = values(3, 3, 5)
_LABELS = np.array([4, 0, 2])


def _applied(tf, run, layers, x):
    x = tf.constant(x)
    found = []
    for layer in layers:
        y = layer(x)
        found += [y, *layer.losses, tf.gradients(y, x)[0]]
    return run(found)


def convolutions(tf, run):
    L = tf.keras.layers
    layers = [
        L.Conv2D(4, (3, 2), strides=2, padding="same", activation="elu", kernel_regularizer="l2"),
        L.Conv2D(2, 3, dilation_rate=2, kernel_initializer="he_normal", use_bias=False),
        L.SeparableConv2D(4, 3, depth_multiplier=2),
        L.DepthwiseConv2D(3, depth_multiplier=2, activation="relu"),
        L.Conv2DTranspose(3, 3, strides=2, padding="same"),
    ]
    return _applied(tf, run, layers, _IMAGES)


def windows(tf, run):
    L = tf.keras.layers
    layers = [
        L.MaxPool2D(),
        L.AveragePooling2D(3, 2, "same"),
        L.GlobalAveragePooling2D(),
        L.GlobalMaxPool2D(),
        L.UpSampling2D(3),
        L.UpSampling2D((2, 1), interpolation="bilinear"),
        L.ZeroPadding2D(((1, 2), (0, 1))),
        L.Cropping2D(((1, 0), (2, 1))),
        L.Flatten(),
        L.BatchNormalization(),
    ]
    return _applied(tf, run, layers, _IMAGES)


def sequences(tf, run):
    L = tf.keras.layers
    layers = [
        L.Conv1D(3, 2, padding="same"),
        L.MaxPooling1D(2),
        L.GlobalAveragePooling1D(),
        L.UpSampling1D(2),
        L.ZeroPadding1D(2),
        L.Cropping1D((1, 2)),
        L.LayerNormalization(),
        L.LayerNormalization(axis=[1, 2], epsilon=0.1),
        L.Reshape((3, -1)),
        L.Permute((2, 1)),
        L.Softmax(axis=1),
        L.Dense(3),
        L.TimeDistributed(L.Dense(2)),
    ]
    return _applied(tf, run, layers, _ROWS)


def recurrent(tf, run):
    L = tf.keras.layers
    layers = [
        L.LSTM(3),
        L.LSTM(3, return_sequences=True, unit_forget_bias=False, bias_initializer="ones"),
        L.GRU(3, go_backwards=True),
        L.GRU(3, reset_after=True, recurrent_activation="sigmoid", return_sequences=True),
        L.SimpleRNN(3, activation="relu"),
        L.Bidirectional(L.LSTM(2, return_sequences=True)),
        L.Bidirectional(L.GRU(2), merge_mode="ave"),
        L.RNN([L.LSTMCell(2), L.GRUCell(3)]),
    ]
    return _applied(tf, run, layers, _ROWS)


def states(tf, run):
    L = tf.keras.layers
    x = tf.constant(_ROWS)
    first = [tf.constant(values(7, 2, 3)), tf.constant(values(8, 2, 3))]
    outputs = L.LSTM(3, return_state=True, return_sequences=True)(x, initial_state=first)
    return run([*outputs, *tf.gradients(outputs[0], first)])


def activations(tf, run):
    L = tf.keras.layers
    layers = [
        L.PReLU(),
        L.LeakyReLU(),
        L.ELU(0.5),
        L.ThresholdedReLU(0.3),
        L.ReLU(0.6, 0.1, 0.2),
        L.ReLU(0.6),
        L.Activation("hard_sigmoid"),
        L.Activation(tf.nn.tanh),
        L.Lambda(lambda x, a=1: x * a, arguments={"a": 3.0}),
        L.RepeatVector(3),
        L.Dropout(0.5),
        L.GaussianNoise(1.0),
        L.Dense(
            4,
            activation="relu",
            bias_initializer="ones",
            kernel_regularizer=tf.keras.regularizers.l1_l2(0.1, 0.2),
            activity_regularizer=tf.keras.regularizers.l1(0.01),
        ),
    ]
    return _applied(tf, run, layers, _VECTORS)


def merging(tf, run):
    L = tf.keras.layers
    a = tf.constant(_VECTORS)
    b, c, s = a * 2.0, a + 1.0, tf.constant(_ROWS)
    return run(
        [
            L.add([a, b, c]),
            L.multiply([b, c]),
            L.subtract([b, c]),
            L.average([a, b, c]),
            L.maximum([b, c]),
            L.minimum([b, c]),
            L.concatenate([b, c]),
            L.dot([b, c], 1),
            L.Dot((2, 2))([s, s]),
            L.Dot(1)([s, s]),
            L.Dot((1, 2), normalize=True)([a[:2, :4], s]),
            L.Embedding(10, 3)(tf.constant([[1, 2], [3, 9]])),
        ]
    )


def backend(tf, run):
    K = tf.keras.backend
    v, s = tf.constant(_VECTORS), tf.constant(_ROWS)
    return run(
        [
            K.dot(s, tf.constant(values(4, 4, 2))),
            K.batch_dot(s, tf.constant(values(5, 2, 4, 3))),
            K.var(v, 1),
            K.std(v),
            K.sqrt(v),
            K.clip(v, -0.5, 0.5),
            K.mean(v > 0),
            K.batch_flatten(s),
            K.repeat(v, 2),
            K.repeat_elements(v, 2, 1),
            K.one_hot(tf.constant([1, 2]), 4),
            K.l2_normalize(v, 1),
            K.permute_dimensions(s, (1, 0, 2)),
            K.switch(v > 0, v, -v),
            K.in_train_phase(v, -v),
            K.argmax(v),
            K.reverse(v, 1),
            K.relu(v, 0.1, 0.6),
        ]
    )


def losses(tf, run):
    kl = tf.keras.losses
    v, labels = tf.constant(_VECTORS), tf.constant(_LABELS)
    hot = tf.one_hot(labels, 5)
    p, s = tf.nn.softmax(v), tf.sigmoid(v)
    return run(
        [
            kl.mean_squared_error(hot, v),
            kl.mae(hot, v),
            kl.mape(hot + 1, v),
            kl.msle(hot, s),
            kl.hinge(hot, v),
            kl.squared_hinge(v, v),
            kl.categorical_hinge(hot, v),
            kl.logcosh(hot, v),
            kl.kld(hot, p),
            kl.poisson(hot, s),
            kl.cosine_similarity(hot, v),
            kl.binary_crossentropy(hot, s),
            kl.binary_crossentropy(hot, s + 0.0, label_smoothing=0.1),
            kl.binary_crossentropy(hot, v, from_logits=True),
            kl.categorical_crossentropy(hot, p),
            kl.categorical_crossentropy(hot, p * 2.0),
            kl.categorical_crossentropy(hot, v, from_logits=True),
            kl.sparse_categorical_crossentropy(labels, p),
            kl.sparse_categorical_crossentropy(labels, p + 0.0),
            kl.sparse_categorical_crossentropy(labels, v, from_logits=True),
        ]
    )


def models(tf, run):
    L = tf.keras.layers

    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.first = L.Dense(4, activation=tf.nn.relu)
            self.blocks = [L.Dense(4), L.Dense(2)]
            self.drop = L.Dropout(0.5)

        def call(self, x, training=False):
            x = self.drop(self.first(x), training=training)
            for layer in self.blocks:
                x = layer(x)
            return x

    class Scale(L.Layer):
        def __init__(self, n, **kwargs):
            self.n = n
            super().__init__(**kwargs)

        def build(self, input_shape):
            shape = (input_shape[1], self.n)
            self.k = self.add_weight(name="k", shape=shape, initializer="uniform", trainable=True)
            self.m = self.add_weight("m", [self.n], initializer="ones", trainable=False)
            super().build(input_shape)

        def call(self, x):
            return tf.keras.backend.dot(x, self.k) * self.m

    x = tf.constant(_VECTORS)
    with tf.variable_scope("outer"):
        net = Net()
        found = [net(x), net(x * 2.0)]
        stack = tf.keras.Sequential([L.Dense(3, activation="tanh"), Scale(2, name="sc")])
        found.append(stack(x))
        with tf.variable_scope("inner", reuse=tf.AUTO_REUSE):
            found += [Scale(4)(x), Scale(4)(x)]
    assert not tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    return run(found)


def training(tf, run):
    L, K = tf.keras.layers, tf.keras.backend
    layer, norm = L.Dense(5, kernel_constraint="unit_norm"), L.BatchNormalization(momentum=0.5)
    x = tf.constant(_VECTORS)
    y = norm(layer(x), training=K.learning_phase())
    loss = tf.reduce_mean(tf.square(y - values(9, 3, 5)))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    train = tf.group(step, *norm.updates)
    found = [layer.kernel.read_value(), norm.moving_mean.read_value()]
    return run(found, {K.learning_phase(): True}, train)
