"""The distributions and bijectors of ``tf.contrib.distributions``: samples, densities, moments."""

import numpy as np

from tests.contrib.programs.frame import values

POSITIVE = np.abs(values(3, 2, 3)) + 0.2


def _asked(tf, run, found, at, *methods, **how):
    """Densities with their gradients, what else is asked, and a sample of a seed."""
    density = found.log_prob(at)
    fetches = [density] + [getattr(found, method)() for method in methods]
    if how.get("sampled", True):
        fetches.append(found.sample(4, seed=7))
    if how.get("differentiated", True):
        fetches.append(tf.gradients(density, at)[0])
    fetches += [tf.constant(found.batch_shape.as_list(), tf.int32), found.batch_shape_tensor()]
    fetches += [tf.constant(found.event_shape.as_list(), tf.int32), found.event_shape_tensor()]
    return run(fetches)


def _scalars(tf, name, *parameters):
    kind = getattr(tf.contrib.distributions, name)
    return kind(*[tf.constant(np.float32(parameter)) for parameter in parameters])


def student_t(tf, run):
    found = _scalars(tf, "StudentT", [2.5, 3.0, 7.0], 0.5, [1.0, 2.0, 0.5])
    return _asked(
        tf, run, found, tf.constant(values(1, 2, 3)), "mean", "variance", "entropy", "mode"
    )


def logistic(tf, run):
    found = _scalars(tf, "Logistic", [0.5, 3.0, 7.0], 0.5)
    at = tf.constant(values(1, 2, 3))
    more = [found.cdf(at), found.log_cdf(at), found.log_survival_function(at)]
    return _asked(tf, run, found, at, "mean", "variance", "entropy", "mode") + run(more)


def cauchy(tf, run):
    return _asked(
        tf, run, _scalars(tf, "Cauchy", 0.5, [1.0, 2.0, 3.0]), tf.constant(POSITIVE), "entropy"
    )


def half_normal(tf, run):
    found = _scalars(tf, "HalfNormal", [1.0, 2.0, 3.0])
    return _asked(tf, run, found, tf.constant(POSITIVE), "mean", "variance", "entropy", "mode")


def chi2(tf, run):
    found = _scalars(tf, "Chi2", [3.0, 4.0, 5.0])
    return _asked(tf, run, found, tf.constant(POSITIVE), "mean", "variance", "entropy")


def inverse_gamma(tf, run):
    found = _scalars(tf, "InverseGamma", [3.0, 4.0, 5.0], [1.0, 2.0, 0.5])
    return _asked(tf, run, found, tf.constant(POSITIVE), "mean", "variance", "entropy", "mode")


def poisson(tf, run):
    found = tf.contrib.distributions.Poisson(log_rate=tf.constant([0.1, 1.0, 2.0]))
    return _asked(tf, run, found, tf.constant([0.0, 1.0, 7.0]), "mean", "variance", "mode")


def geometric(tf, run):
    found = tf.contrib.distributions.Geometric(probs=tf.constant([0.1, 0.5, 0.7]))
    return _asked(
        tf,
        run,
        found,
        tf.constant([0.0, 1.0, 7.0]),
        "mean",
        "variance",
        "entropy",
        differentiated=False,
    )


def negative_binomial(tf, run):
    found = tf.contrib.distributions.NegativeBinomial(3.0, logits=tf.constant([0.1, 0.5, -0.7]))
    return _asked(tf, run, found, tf.constant([0.0, 1.0, 7.0]), "mean", "variance")


def binomial(tf, run):
    found = tf.contrib.distributions.Binomial(9.0, probs=tf.constant([0.1, 0.5, 0.7]))
    return _asked(
        tf, run, found, tf.constant([1.0, 2.0, 7.0]), "mean", "variance", "mode", sampled=False
    )


def multinomial(tf, run):
    found = tf.contrib.distributions.Multinomial(
        tf.constant([6.0, 3.0]), logits=tf.constant(values(2, 2, 3))
    )
    at = tf.constant([[1.0, 2.0, 3.0], [0.0, 3.0, 0.0]])
    sums = run(tf.reduce_sum(found.sample(50, seed=3), -1))
    return [sums] + _asked(tf, run, found, at, "mean", sampled=False)


def deterministic(tf, run):
    tfd = tf.contrib.distributions
    found = tfd.VectorDeterministic(tf.constant([[1.0, 2.0], [3.0, 4.0]]), atol=0.1)
    at = tf.constant([[1.05, 2.0], [3.0, 4.5]])
    return _asked(tf, run, found, at, "mean", "variance", differentiated=False)


def mixture_of_a_family(tf, run):
    tfd = tf.contrib.distributions
    found = tfd.MixtureSameFamily(
        tfd.Categorical(logits=tf.constant(values(1, 2, 3))),
        tfd.MultivariateNormalDiag(
            tf.constant(values(2, 2, 3, 4)), tf.constant([0.5, 1.0, 2.0, 1.5])
        ),
    )
    return _asked(tf, run, found, tf.constant(values(3, 5, 2, 4)), "mean", sampled=False)


def mixture(tf, run):
    tfd = tf.contrib.distributions
    found = tfd.Mixture(
        tfd.Categorical(probs=tf.constant([[0.2, 0.8], [0.5, 0.5]])),
        [tfd.Normal(tf.constant([0.0, 1.0]), 1.0), tfd.Normal(tf.constant([5.0, -1.0]), 0.5)],
    )
    at = tf.constant(values(3, 3, 2))
    more = run([found.cdf(at), found.entropy_lower_bound()])
    return more + _asked(tf, run, found, at, "mean", "stddev", sampled=False)


def relaxed_classes(tf, run):
    found = tf.contrib.distributions.RelaxedOneHotCategorical(
        0.7, logits=tf.constant(values(1, 2, 3))
    )
    at = tf.nn.softmax(tf.constant(values(2, 2, 3)))
    inner = tf.contrib.distributions.ExpRelaxedOneHotCategorical(
        0.5, probs=tf.constant([[0.2, 0.8], [0.5, 0.5]])
    )
    whole = _asked(tf, run, found, at)
    return whole + _asked(tf, run, inner, tf.constant([[-0.1, -2.0], [-0.7, -0.7]]))


def relaxed_bernoulli(tf, run):
    found = tf.contrib.distributions.RelaxedBernoulli(0.7, logits=tf.constant(values(1, 2, 3)))
    return _asked(tf, run, found, tf.constant(POSITIVE / 2.0))


def triangular_normal(tf, run):
    tfd = tf.contrib.distributions
    scale = tfd.matrix_diag_transform(
        tfd.fill_triangular(tf.constant(values(1, 2, 6))), tf.nn.softplus
    )
    found = tfd.MultivariateNormalTriL(tf.constant(values(2, 3)), scale)
    other = tfd.MultivariateNormalDiag(tf.constant(values(3, 3)), tf.constant([1.0, 2.0, 0.5]))
    more = [tfd.kl_divergence(found, other), tfd.kl_divergence(other, found), found.covariance()]
    asked = ("mean", "variance", "entropy", "mode")
    return run(more) + _asked(tf, run, found, tf.constant(values(4, 5, 2, 3)), *asked)


def full_covariance(tf, run):
    found = tf.contrib.distributions.MultivariateNormalFullCovariance(
        tf.constant([1.0, 2.0]), tf.constant([[2.0, 0.3], [0.3, 1.0]])
    )
    return _asked(tf, run, found, tf.constant(values(4, 5, 2)), "variance", "entropy")


def low_rank_normal(tf, run):
    found = tf.contrib.distributions.MultivariateNormalDiagPlusLowRank(
        loc=tf.constant(values(1, 3)),
        scale_diag=tf.constant([1.0, 2.0, 1.5]),
        scale_perturb_factor=tf.constant(values(2, 3, 1)),
    )
    return _asked(tf, run, found, tf.constant(values(4, 5, 3)), "variance", "entropy")


def transformed_events(tf, run):
    tfd = tf.contrib.distributions
    found = tfd.TransformedDistribution(
        tfd.Normal(tf.constant([0.5, -1.0]), 1.5), tfd.bijectors.Exp(), event_shape=[3]
    )
    more = tfd.TransformedDistribution(
        tfd.Normal(0.0, 1.0),
        tfd.bijectors.Affine(tf.constant([1.0, 2.0, 3.0]), scale_diag=tf.constant([1.0, 2.0, 3.0])),
        batch_shape=[2],
        event_shape=[3],
    )
    first = _asked(tf, run, found, tf.constant(POSITIVE))
    return first + _asked(tf, run, more, tf.constant(values(1, 2, 3)), "entropy")


def quantized(tf, run):
    tfd = tf.contrib.distributions
    base = tfd.TransformedDistribution(
        tfd.Logistic(tf.constant([[100.0], [3.0]]), 5.0), tfd.bijectors.AffineScalar(shift=-0.5)
    )
    found = tfd.QuantizedDistribution(base, low=0.0, high=255.0)
    at = tf.constant([0.0, 100.0, 255.0])
    return _asked(tf, run, found, at, differentiated=False) + run([found.cdf(at)])


def _bijected(tf, run, bijector, at, ranks):
    """Forwards and, with another tensor for the result, back; with the volumes."""
    y = bijector.forward(at)
    again = tf.identity(y)
    fetches = [y, bijector.inverse(again)]
    fetches.append(bijector.forward_log_det_jacobian(at, event_ndims=ranks[0]))
    fetches.append(bijector.inverse_log_det_jacobian(again, event_ndims=ranks[1]))
    inner = at.shape[at.shape.ndims - ranks[0] :]
    fetches.append(tf.constant(bijector.forward_event_shape(inner).as_list(), tf.int32))
    outer = y.shape[y.shape.ndims - ranks[1] :]
    fetches.append(tf.constant(bijector.inverse_event_shape(outer).as_list(), tf.int32))
    return run(fetches + [tf.reduce_sum(tf.gradients(y, at)[0])])


def bijectors_of_numbers(tf, run):
    tfb = tf.contrib.distributions.bijectors
    at = tf.constant(POSITIVE / 2.0)
    found = []
    for bijector in (
        tfb.Identity(),
        tfb.Exp(),
        tfb.PowerTransform(0.5),
        tfb.AffineScalar(tf.constant(1.0), tf.constant(-2.0)),
        tfb.Sigmoid(),
        tfb.Softplus(),
        tfb.Softplus(tf.constant(2.0)),
        tfb.Softsign(),
        tfb.Square(),
        tfb.Gumbel(tf.constant(0.5), tf.constant(2.0)),
        tfb.Kumaraswamy(tf.constant(2.0), tf.constant(1.5)),
        tfb.SinhArcsinh(tf.constant(0.5), tf.constant(1.5)),
        tfb.Invert(tfb.Sigmoid()),
        tfb.Chain([tfb.Exp(), tfb.AffineScalar(scale=tf.constant(0.5))]),
        tfb.Inline(
            forward_fn=tf.tanh,
            inverse_fn=tf.atanh,
            forward_log_det_jacobian_fn=lambda x: tf.log(1.0 - tf.tanh(x) ** 2),
            forward_min_event_ndims=0,
        ),
    ):
        found += _bijected(tf, run, bijector, at, (0, 0)) + _bijected(tf, run, bijector, at, (1, 1))
    return found


def bijectors_of_vectors(tf, run):
    tfb = tf.contrib.distributions.bijectors
    at = tf.constant(values(1, 2, 3))
    increasing = tf.cumsum(tf.constant(POSITIVE), axis=-1)
    tril = tf.constant([[1.0, 0.0, 0.0], [2.0, 3.0, 0.0], [0.5, 0.2, 0.7]])
    found = _bijected(tf, run, tfb.Ordered(), increasing, (1, 1))
    for bijector in (
        tfb.Affine(shift=tf.constant([1.0, 2.0, 3.0])),
        tfb.Affine(scale_identity_multiplier=tf.constant(2.0)),
        tfb.Affine(scale_diag=tf.constant([1.0, 2.0, 3.0]), scale_identity_multiplier=1.5),
        tfb.Affine(tf.constant([1.0, 2.0, 3.0]), scale_tril=tril),
        tfb.Affine(
            scale_diag=tf.constant([1.0, 2.0, 3.0]),
            scale_perturb_factor=tf.constant(values(5, 3, 1)),
        ),
        tfb.Permute([2, 0, 1]),
        tfb.SoftmaxCentered(),
        tfb.Chain([tfb.SoftmaxCentered(), tfb.AffineScalar(scale=tf.constant(2.0))]),
    ):
        found += _bijected(tf, run, bijector, at, (1, 1))
    return found + _bijected(
        tf, run, tfb.Reshape([3, 2], [6]), tf.constant(values(1, 4, 6)), (1, 2)
    )


def bijectors_of_matrices(tf, run):
    tfb = tf.contrib.distributions.bijectors
    at = tf.constant(values(1, 2, 6))
    lower = np.tril(values(2, 2, 3, 3)) + 2.0 * np.eye(3, dtype=np.float32)
    found = _bijected(tf, run, tfb.ScaleTriL(), at, (1, 2))
    found += _bijected(tf, run, tfb.FillTriangular(upper=True), at, (1, 2))
    found += _bijected(tf, run, tfb.CholeskyOuterProduct(), tf.constant(lower), (2, 2))
    found += _bijected(tf, run, tfb.MatrixInverseTriL(), tf.constant(lower), (2, 2))
    return found + _bijected(tf, run, tfb.TransformDiagonal(tfb.Exp()), tf.constant(lower), (2, 2))


def _flow(tf, run, bijector, size):
    tfd = tf.contrib.distributions
    found = tfd.TransformedDistribution(tfd.Normal(0.0, 1.0), bijector, event_shape=[size])
    at = tf.constant(values(1, 5, size))
    loss = -tf.reduce_mean(found.log_prob(at))
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    sample = found.sample(3, seed=5)
    cached = found.log_prob(sample)
    return run([sample, cached]) + run([loss], train=train, steps=2)


def autoregressive_flow(tf, run):
    tfb = tf.contrib.distributions.bijectors
    return _flow(
        tf,
        run,
        tfb.MaskedAutoregressiveFlow(tfb.masked_autoregressive_default_template([8, 8])),
        4,
    )


def autoregressive_flow_unrolled(tf, run):
    tfb = tf.contrib.distributions.bijectors
    network = tfb.masked_autoregressive_default_template(
        [6], shift_only=True, activation=tf.tanh, name="shifts"
    )
    return _flow(tf, run, tfb.MaskedAutoregressiveFlow(network, unroll_loop=True), 3)


def inverse_autoregressive_flow(tf, run):
    tfb = tf.contrib.distributions.bijectors
    network = tfb.masked_autoregressive_default_template([8])
    return _flow(tf, run, tfb.Invert(tfb.MaskedAutoregressiveFlow(network)), 4)


def real_nvp(tf, run):
    tfb = tf.contrib.distributions.bijectors
    layers = []
    for i in range(2):
        network = tfb.real_nvp_default_template([8], name="net_" + str(i))
        layers += [tfb.RealNVP(2, network), tfb.Permute([2, 3, 0, 1])]
    return _flow(tf, run, tfb.Chain(layers), 4)


def batch_normalized_flow(tf, run):
    tfb = tf.contrib.distributions.bijectors
    return _flow(tf, run, tfb.Invert(tfb.BatchNormalization(training=False)), 3)
