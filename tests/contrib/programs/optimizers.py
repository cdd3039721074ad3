"""Training with the optimizers of ``tf.contrib.opt``."""

from tests.contrib.programs.frame import values


def _train(tf, run, make, sparse=True, resource=False):
    """A few steps on a dense loss and, with ``sparse``, on rows of a table, some of them twice."""
    with tf.variable_scope("", use_resource=resource):
        kernel = tf.get_variable("kernel", [4, 3])
        bias = tf.get_variable("bias", [3])
        table = tf.get_variable("table", [6, 4])
    rows = tf.gather(table, [1, 4, 1, 2]) if sparse else table[1:5]
    error = tf.matmul(values(1, 4, 4) + rows, kernel) + bias - values(2, 4, 3)
    step = tf.train.get_or_create_global_step()
    opt = make(tf)
    pairs = opt.compute_gradients(tf.reduce_sum(tf.square(error)))
    # TensorFlow itself does not say whether weights decay before or after a gradient reads them.
    with tf.control_dependencies([getattr(grad, "values", grad) for grad, _ in pairs]):
        train = opt.apply_gradients(pairs, global_step=step)
    return run([kernel, bias, table, step], train=train)


def adamax(tf, run):
    return _train(tf, run, lambda tf: tf.contrib.opt.AdaMaxOptimizer(0.1))


def adamax_of_resources(tf, run):
    return _train(tf, run, lambda tf: tf.contrib.opt.AdaMaxOptimizer(0.1), resource=True)


def nadam(tf, run):
    return _train(tf, run, lambda tf: tf.contrib.opt.NadamOptimizer(0.1, beta1=0.8))


def nadam_of_resources(tf, run):
    return _train(tf, run, lambda tf: tf.contrib.opt.NadamOptimizer(0.1), resource=True)


def add_sign(tf, run):
    return _train(tf, run, lambda tf: tf.contrib.opt.AddSignOptimizer(0.02, alpha=1.5))


def add_sign_with_decay(tf, run):
    def decay(step):
        return tf.maximum(0.0, 1.0 - tf.cast(step, tf.float32) / 4.0)

    return _train(
        tf, run, lambda tf: tf.contrib.opt.AddSignOptimizer(0.02, beta=0.5, sign_decay_fn=decay)
    )


def power_sign(tf, run):
    return _train(tf, run, lambda tf: tf.contrib.opt.PowerSignOptimizer(0.01, base=2.0))


def lars(tf, run):
    return _train(
        tf,
        run,
        lambda tf: tf.contrib.opt.LARSOptimizer(0.5, eeta=0.1, skip_list=["bias"]),
    )


def lars_with_nesterov(tf, run):
    return _train(
        tf,
        run,
        lambda tf: tf.contrib.opt.LARSOptimizer(
            0.5, momentum=0.7, weight_decay=0.01, eeta=0.1, epsilon=0.1, use_nesterov=True
        ),
        resource=True,
    )


def adam_w(tf, run):
    return _train(
        tf,
        run,
        lambda tf: tf.contrib.opt.AdamWOptimizer(weight_decay=0.1, learning_rate=0.05),
        resource=True,
    )


def momentum_w(tf, run):
    return _train(
        tf,
        run,
        lambda tf: tf.contrib.opt.MomentumWOptimizer(0.1, 0.05, 0.9, use_nesterov=True),
    )


def any_optimizer_with_weight_decay(tf, run):
    def make(tf):
        base = tf.train.AdagradOptimizer
        extended = tf.contrib.opt.extend_with_decoupled_weight_decay(base)
        return extended(weight_decay=0.1, learning_rate=0.2)

    return _train(tf, run, make)


def weight_decay_of_some(tf, run):
    tf.get_variable_scope().set_use_resource(True)
    a, b = tf.get_variable("a", [3]), tf.get_variable("b", [3])
    opt = tf.contrib.opt.MomentumWOptimizer(0.1, 0.05, 0.9)
    pairs = opt.compute_gradients(tf.reduce_sum(tf.square(a * b - 1.0)))
    with tf.control_dependencies([grad for grad, _ in pairs]):
        train = opt.apply_gradients(pairs, decay_var_list=[a])
    return run([a, b], train=train)


def moving_average(tf, run):
    def make(tf):
        return tf.contrib.opt.MovingAverageOptimizer(tf.train.MomentumOptimizer(0.05, 0.9), 0.8)

    return _train(tf, run, make)


def moving_average_with_count(tf, run):
    tf.get_variable_scope().set_use_resource(True)
    w = tf.get_variable("w", [3], initializer=tf.constant_initializer(0.3))
    step = tf.train.get_or_create_global_step()
    opt = tf.contrib.opt.MovingAverageOptimizer(
        tf.train.GradientDescentOptimizer(0.1), 0.99, num_updates=step
    )
    train = opt.minimize(tf.reduce_sum(tf.square(w - 1.0)), step)
    saver = opt.swapping_saver()
    (average,) = [v for v in tf.global_variables() if "Average" in v.op.name]
    assert isinstance(saver, tf.train.Saver)
    return run([w, average], train=train)


def variable_clipping(tf, run):
    kernel = tf.get_variable("kernel", [4, 3])
    table = tf.get_variable("table", [6, 4])
    rows = tf.gather(table, [1, 4, 2])
    loss = tf.reduce_sum(tf.square(tf.matmul(rows, kernel) - 2.0))
    opt = tf.contrib.opt.VariableClippingOptimizer(
        tf.train.GradientDescentOptimizer(0.1), {kernel: [0], table: [1]}, 0.6
    )
    return run([kernel, table], train=opt.minimize(loss))


def multitask(tf, run):
    a, b = tf.get_variable("a", [3]), tf.get_variable("b", [3])
    step = tf.train.get_or_create_global_step()
    present = tf.cast(tf.equal(step % 2, 0), tf.float32)
    loss = tf.reduce_sum(tf.square(a - 3.0)) + present * tf.reduce_sum(tf.square(b - 2.0))
    opt = tf.contrib.opt.MultitaskOptimizerWrapper(tf.train.MomentumOptimizer(0.1, 0.9))
    pairs, norm = tf.contrib.opt.clip_gradients_by_global_norm(opt.compute_gradients(loss), 4.0)
    train = opt.apply_gradients(pairs, global_step=step)
    return run([a, b, norm], train=train, steps=4)
