"""``tensorflow.python``: TensorFlow's inner modules, as programs import them."""

from runnel.inner_modules import finder as _finder

_finder.install()
