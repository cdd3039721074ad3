"""The networks of ``slim.nets`` over small images, with small layers where they allow it."""

from importlib import import_module

from tests.contrib.programs.frame import values


def _nets(tf):
    return import_module(("runnel" if tf.__name__ == "runnel" else "tensorflow") + _NETS)


_NETS = ".contrib.slim.nets"


def _trained(tf, run, net, *more):
    """A tensor, and the gradients of some variables."""
    weights = tf.trainable_variables()
    weights = weights[:2] + weights[-3:]
    loss = tf.reduce_mean(tf.square(net))
    grads = [grad for grad in tf.gradients(loss, weights) if grad is not None]
    return run([net] + list(more) + grads + [tf.losses.get_total_loss()])


def _residual(tf, run, module, dilated):
    slim = tf.contrib.slim
    name = module.__name__.rpartition(".")[2]
    block = getattr(module, name + "_block")
    blocks = [block("block1", 2, 2, 2), block("block2", 3, 2, 2), block("block3", 3, 2, 1)]
    images = tf.constant(values(1, 2, 33, 33, 3))
    with slim.arg_scope(module.resnet_arg_scope()):
        if dilated:
            net, ends = getattr(module, name)(
                images, blocks, None, False, global_pool=False, output_stride=8, scope="trunk"
            )
            return _trained(tf, run, net, ends["trunk/block2"])
        net, ends = getattr(module, name)(images, blocks, 4, scope="whole")
    return _trained(tf, run, net, ends["predictions"])


def residual_1(tf, run):
    return _residual(tf, run, _nets(tf).resnet_v1, False)


def residual_1_dilated(tf, run):
    return _residual(tf, run, _nets(tf).resnet_v1, True)


def residual_2(tf, run):
    return _residual(tf, run, _nets(tf).resnet_v2, False)


def residual_2_dilated(tf, run):
    return _residual(tf, run, _nets(tf).resnet_v2, True)


def inception_1_base(tf, run):
    inception = _nets(tf).inception
    with tf.contrib.slim.arg_scope(inception.inception_v1_arg_scope()):
        net, ends = inception.inception_v1_base(tf.constant(values(1, 1, 32, 32, 3)), "Mixed_3b")
    return _trained(tf, run, net[..., :8], ends["MaxPool_2a_3x3"][..., :8])


def inception_2(tf, run):
    inception = _nets(tf).inception
    with tf.contrib.slim.arg_scope(inception.inception_v2_arg_scope()):
        net, ends = inception.inception_v2(
            tf.constant(values(1, 2, 64, 64, 3)), 4, is_training=False, depth_multiplier=0.05
        )
    # The gradients of windows this small are sums that nearly cancel.
    return run([net, ends["Predictions"], tf.losses.get_total_loss()])


def inception_3(tf, run):
    inception = _nets(tf).inception
    with tf.contrib.slim.arg_scope(inception.inception_v3_arg_scope()):
        net, ends = inception.inception_v3(
            tf.constant(values(1, 2, 139, 139, 3)),
            4,
            is_training=False,
            min_depth=4,
            depth_multiplier=0.02,
        )
    return _trained(tf, run, net, ends["AuxLogits"], ends["Predictions"])
