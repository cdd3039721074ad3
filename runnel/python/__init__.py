"""``tensorflow.python``: TensorFlow's inner modules, as programs import them.

They have no code of their own: each answers with the public names that TensorFlow's module of that
name makes, so ``from runnel.python.framework import ops`` has ``ops.convert_to_tensor``.
"""

from runnel.python import inner_modules as _inner_modules

_inner_modules.install()
