"""What people test their models with; ``tf.test`` exports it."""
