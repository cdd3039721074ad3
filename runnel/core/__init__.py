"""``tensorflow.core``: protocol buffers, in the modules that TensorFlow has for them."""

from runnel.inner_modules import finder as _finder

_finder.install()
