"""Functions of ``tf.contrib`` without variables: images, differential equations, sparsemax."""

import numpy as np

from tests.contrib.programs.frame import values

_IMAGES = values(1, 2, 5, 6, 3)
_BYTES = np.random.RandomState(2).randint(0, 256, (2, 5, 6, 3)).astype(np.uint8)
_TRANSFORM = [0.9, -0.3, 1.1, 0.35, 0.8, -0.4, 0.01, -0.02]


def _with_gradient(tf, run, x, found):
    return run([found, tf.gradients(tf.reduce_sum(found * found), x)[0]])


def rotated(tf, run):
    image = tf.contrib.image
    return run(
        [
            image.rotate(_IMAGES, [0.3, -1.2], "BILINEAR"),
            image.rotate(_BYTES, 0.7),
            image.rotate(_BYTES[0, :, :, 0], np.pi / 2),
        ]
    )


def transformed(tf, run):
    image = tf.contrib.image
    return run(
        [
            image.transform(_IMAGES, _TRANSFORM, interpolation="bilinear"),
            image.transform(_BYTES, [_TRANSFORM, [1, 0, -2, 0, 1, 1, 0, 0]], "BILINEAR", [3, 8]),
            image.transform(_BYTES[0].astype(np.int64), _TRANSFORM, output_shape=[7, 2]),
        ]
    )


def translated(tf, run):
    image = tf.contrib.image
    moves = [[1.5, -1.0], [-2.0, 0.5]]
    return run([image.translate(_IMAGES, moves, "BILINEAR"), image.translate(_BYTES, [1, 2])])


def composed(tf, run):
    image = tf.contrib.image
    turns = image.angles_to_projective_transforms([0.3, 0.5], 5.0, 6.0)
    moves = image.translations_to_projective_transforms([1.0, 2.0])
    both = image.compose_transforms(turns, moves, _TRANSFORM)
    return run([turns, moves, both, image.flat_transforms_to_matrices(both)])


def transformed_with_gradient(tf, run):
    x = tf.constant(_IMAGES)
    return _with_gradient(tf, run, x, tf.contrib.image.transform(x, _TRANSFORM, "BILINEAR"))


def solved(tf, run):
    y0 = tf.constant([1.0, 0.5], tf.float64)
    times = np.linspace(0, 3, 5)

    def pendulum(y, t):
        return tf.stack([y[1], -tf.sin(y[0]) - 0.1 * tf.cast(t, y.dtype)])

    found, info = tf.contrib.integrate.odeint(pendulum, y0, times, full_output=True)
    return run([found, info["integrate_points"], info["num_func_evals"]])


def solved_in_single_precision(tf, run):
    found = tf.contrib.integrate.odeint(
        lambda y, t: -y * tf.cast(t, tf.float32),
        [[1.0, 2.0]],
        [0.0, 0.5, 2.0],
        rtol=1e-4,
        atol=1e-5,
        method="dopri5",
        options={"first_step": 0.1, "safety": 0.8},
    )
    return run([found])


def solved_with_gradient(tf, run):
    y0 = tf.constant([1.0, 0.5], tf.float64)
    found = tf.contrib.integrate.odeint_fixed(
        lambda y, t: tf.stack([y[1], -tf.sin(y[0])]), y0, [0.0, 0.5, 1.0]
    )
    return _with_gradient(tf, run, y0, found)


def solved_on_a_grid(tf, run):
    def decay(y, t):
        return -y * tf.cast(t, y.dtype)

    solve = tf.contrib.integrate.odeint_fixed
    times = np.array([0.0, 0.5, 1.5])
    return run(
        [
            solve(decay, [1.0, 2.0], times, np.array([0.1, 0.3])),
            solve(decay, [1.0, 2.0], times, np.array([0.1, 0.3]), method="midpoint"),
        ]
    )


def sparse_probabilities(tf, run):
    logits = tf.constant(3 * values(3, 4, 5))
    labels = tf.one_hot([0, 3, 1, 1], 5)
    found = tf.contrib.sparsemax.sparsemax(logits)
    loss = tf.contrib.sparsemax.sparsemax_loss(logits, found, labels)
    return run([found, loss, tf.gradients(loss, logits)[0]])


_LABELS = [0, 1, 2, 0, 1, 2, 0, 3]


def _metric(tf, run, name, *args, **kwargs):
    x = tf.constant(values(4, 8, 3))
    loss = getattr(tf.contrib.losses.metric_learning, name)
    return _with_gradient(
        tf, run, x, loss(*(x if each is None else each for each in args), **kwargs)
    )


def contrastive(tf, run):
    labels = [0, 1, 1, 0, 0, 1, 0, 1]
    return _metric(tf, run, "contrastive_loss", labels, None, values(5, 8, 3), margin=1.2)


def semihard_triplets(tf, run):
    near = _metric(tf, run, "triplet_semihard_loss", _LABELS, None)
    return near + _metric(tf, run, "triplet_semihard_loss", _LABELS, None, margin=0.1)


def pairs_of_a_batch(tf, run):
    return _metric(tf, run, "npairs_loss", _LABELS, None, values(5, 8, 3), reg_lambda=0.1)


def lifted_structures(tf, run):
    return _metric(tf, run, "lifted_struct_loss", _LABELS, None, margin=0.7)


def independent(tf, run):
    tfd = tf.contrib.distributions
    x = tf.constant(values(6, 4, 3, 2))
    flags = tf.constant((values(7, 4, 3, 2) > 0).astype(np.float32))
    one = tfd.Independent(tfd.Bernoulli(logits=x), 2)
    most = tfd.Independent(tfd.Normal(x, 0.7))
    near = tfd.Independent(tfd.Normal(0.5 * x, 1.3))
    found = [one.log_prob(flags), one.mean(), most.log_prob(x * 0.3), most.entropy()]
    found += [tfd.kl_divergence(most, near), most.stddev(), most.batch_shape_tensor()]
    loss = tf.reduce_sum(one.log_prob(flags)) + tf.reduce_sum(tfd.kl_divergence(most, near))
    return run([*found, near.event_shape_tensor(), tf.gradients(loss, x)[0]])


def in_plane(tf, run):
    slim, x = tf.contrib.slim, tf.constant(_IMAGES)
    with slim.arg_scope([slim.conv2d_in_plane], weights_regularizer=slim.l2_regularizer(0.1)):
        plain = slim.conv2d_in_plane(x, 3, scope="plain")
        blurred = slim.conv2d_in_plane(x, [2, 3], stride=2, padding="VALID", activation_fn=None)
    found = tf.reduce_sum(plain * plain) + tf.reduce_sum(blurred * blurred)
    losses = tf.losses.get_regularization_losses()
    return run([plain, blurred, tf.gradients(found, x)[0], *losses])
