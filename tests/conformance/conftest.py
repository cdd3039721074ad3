"""What TensorFlow must be told before it loads.

Its recurrent cells and layers are in tf-keras. Gradients of dilated convolutions exist only in its
oneDNN kernels, which it leaves off by itself on some processors.
"""

import os
from importlib.util import find_spec

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

# Nothing here can be collected without TensorFlow.
collect_ignore_glob = [] if find_spec("tensorflow") else ["test_*.py"]
