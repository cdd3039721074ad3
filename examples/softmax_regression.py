"""Softmax regression, the program of every introduction to TensorFlow 1.

    python examples/softmax_regression.py [FOLDER]

FOLDER has the IDX files of MNIST or Fashion-MNIST. Without one, the digits that ship with runnel
stand in for MNIST, enlarged from 8 x 8 to 28 x 28 pixels.
"""

import sys

import runnel as tf
from runnel import datasets

if len(sys.argv) > 1:
    mnist = datasets.mnist.read_data_sets(sys.argv[1], one_hot=True, seed=0)
else:
    mnist = datasets.digits.read_data_sets(image_size=28, one_hot=True, seed=0)

x = tf.placeholder("float", shape=[None, 784])
W = tf.Variable(tf.zeros([784,10]))
b = tf.Variable(tf.zeros([10]))
y = tf.nn.softmax(tf.matmul(x, W) + b)
y_ = tf.placeholder(tf.float32, [None, 10])
cross_entropy = -tf.reduce_sum(y_ * tf.log(y))
train_op = tf.train.GradientDescentOptimizer(0.01).minimize(cross_entropy)
init = tf.initialize_all_variables()
sess = tf.Session()
sess.run(init)
for i in range(1000):
    batch_xs, batch_ys = mnist.train.next_batch(100)
    sess.run(train_op, feed_dict={x: batch_xs, y_: batch_ys})

correct = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
test = {x: mnist.test.images, y_: mnist.test.labels}
print(f"test accuracy: {sess.run(accuracy, feed_dict=test):.4f}")
