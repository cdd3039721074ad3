"""Layers of ``tf.contrib.layers`` over maps of features, and reversible ones."""

from tests.contrib.programs.frame import values


def _with_gradients(tf, run, outputs, source, **how):
    weights = tf.trainable_variables()
    loss = tf.add_n([tf.reduce_sum(tf.square(output)) for output in outputs])
    grads = [grad for grad in tf.gradients(loss, [source] + weights) if grad is not None]
    return run(list(outputs) + grads)


def maxout(tf, run):
    x = tf.constant(values(1, 2, 4, 3, 6))
    layers = tf.contrib.layers
    return _with_gradients(tf, run, [layers.maxout(x, 2), layers.maxout(x, 2, axis=1)], x)


def spatial_softmax(tf, run):
    x = tf.constant(values(1, 2, 4, 3, 6))
    y = tf.transpose(x, [0, 3, 1, 2])
    layers = tf.contrib.layers
    outputs = [
        layers.spatial_softmax(x),
        layers.spatial_softmax(x, temperature=0.5, name="points", trainable=False),
        layers.spatial_softmax(y, data_format="NCHW", name="others"),
    ]
    return _with_gradients(tf, run, outputs, x)


def sequences_of_images(tf, run):
    x = tf.constant(values(1, 2, 4, 3, 6))
    rows = tf.contrib.layers.images_to_sequence(x)
    back = tf.contrib.layers.sequence_to_images(rows, 4)
    other = tf.contrib.layers.sequence_to_images(rows, 4, output_data_format="channels_first")
    return run([rows, back, other, tf.constant(rows.shape.as_list(), tf.int32)])


def divisive_normalization(tf, run):
    x = tf.constant(values(1, 2, 4, 3, 6))
    layers = tf.contrib.layers
    y = layers.gdn(x, beta_min=0.5, name="down")
    z = layers.gdn(x, inverse=True, gamma_init=0.3, name="up")
    flat = layers.GDN(beta_min=0.5).apply(x[:, 0])
    return _with_gradients(tf, run, [y, z, flat], x)


def scaled_gradient(tf, run):
    x = tf.constant(values(1, 2, 3))
    y = tf.contrib.layers.scale_gradient(tf.tanh(x), tf.constant(0.3))
    return _with_gradients(tf, run, [y], x)


def recomputed(tf, run):
    x = tf.constant(values(1, 2, 4))

    @tf.contrib.layers.recompute_grad
    def block(z):
        z = tf.layers.dense(z, 5, tf.nn.tanh, name="first")
        return tf.layers.dense(z, 4, name="second")

    with tf.variable_scope("blocks", use_resource=True):
        with tf.variable_scope("one"):
            y = block(x)
        with tf.variable_scope("two"):
            y = block(y)
    return _with_gradients(tf, run, [y], x)


def _dense(name):
    def function(tf, x):
        return tf.layers.dense(x, 3, tf.nn.tanh, name=name)

    return function


def reversible(tf, run):
    x = tf.constant(values(1, 2, 6))
    first, second = tf.split(x, 2, axis=1)
    y = tf.contrib.layers.rev_block(
        first,
        second,
        lambda z: _dense("inner")(tf, z),
        lambda z: tf.sin(_dense("other")(tf, z)),
        num_layers=3,
    )
    return _with_gradients(tf, run, y, x)


def reversible_with_side_inputs(tf, run):
    x = tf.constant(values(1, 2, 6))
    first, second = tf.split(x, 2, axis=1)
    weight = tf.constant(values(2, 3))
    block = tf.contrib.layers.RevBlock(
        lambda z, side: _dense("inner")(tf, z) * side[0],
        [lambda z, name=name: _dense(name)(tf, z) for name in ("a", "b")],
        num_layers=2,
        f_side_input=[weight],
    )
    y = block.forward(first, second)
    back = block.backward(*y)
    return _with_gradients(tf, run, y, x) + run(list(back) + tf.gradients(list(y), weight))


def reversible_without_training(tf, run):
    x = tf.constant(values(1, 2, 6))
    first, second = tf.split(x, 2, axis=1)
    y = tf.contrib.layers.rev_block(
        first, second, lambda z: z * 2.0, lambda z: _dense("g")(tf, z), is_training=False
    )
    return _with_gradients(tf, run, y, x)


def dense_image_warp(tf, run):
    image = tf.constant(values(1, 2, 5, 4, 3))
    # Also beyond the edges, and on pixels.
    flow = tf.concat([tf.constant(3.0 * values(2, 1, 5, 4, 2)), tf.ones([1, 5, 4, 2])], 0)
    warped = tf.contrib.image.dense_image_warp(image, flow)
    loss = tf.reduce_sum(warped**2)
    return run([warped] + tf.gradients(loss, [image, flow]))


def dropout_that_keeps_the_variance(tf, run):
    x = tf.constant(3.0 * values(1, 6, 5))
    alpha_dropout = tf.contrib.nn.alpha_dropout
    outputs = [
        alpha_dropout(x, 0.7, seed=3),
        alpha_dropout(x, tf.constant(0.4), noise_shape=[6, 1], seed=4),
        alpha_dropout(x, 1.0),
    ]
    return _with_gradients(tf, run, outputs, x)


def losses_with_flipped_arguments(tf, run):
    nn = tf.contrib.nn
    x = tf.constant(3.0 * values(1, 3, 4))
    labels = tf.nn.softmax(tf.constant(values(2, 3, 4)))
    outputs = [
        nn.deprecated_flipped_softmax_cross_entropy_with_logits(x, tf.stop_gradient(labels)),
        nn.deprecated_flipped_sigmoid_cross_entropy_with_logits(x, labels),
        nn.deprecated_flipped_sparse_softmax_cross_entropy_with_logits(x, [0, 3, 1]),
    ]
    return _with_gradients(tf, run, outputs, x)
