"""TensorFlow's inner modules, as programs import them.

They have no code of their own: each answers with the names that TensorFlow's module of that name
has, from the public namespaces that tables name. So ``from tensorflow.python.framework import ops``
has ``ops.convert_to_tensor``.
"""
