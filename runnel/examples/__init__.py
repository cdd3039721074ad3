"""``tensorflow.examples``: the data that TensorFlow's tutorials import."""
