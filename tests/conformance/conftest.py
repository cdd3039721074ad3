"""TensorFlow's recurrent cells and layers are in tf-keras, which must be chosen before it loads."""

import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
