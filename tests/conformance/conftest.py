"""What TensorFlow must be told before it loads.

Its recurrent cells and layers are in tf-keras. Gradients of dilated convolutions exist only in its
oneDNN kernels, which it leaves off by itself on some processors.
"""

import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
