"""The modules that offer TensorFlow 1's names: runnel, and TensorFlow through `compat.v1`."""

from __future__ import annotations

import importlib
from typing import Any


def load_frontend(name: str) -> Any:
    """Import the frontend that a benchmark program calls `tf`."""
    if name == "tensorflow":
        import tensorflow.compat.v1 as tf

        tf.disable_v2_behavior()
        tf.logging.set_verbosity(tf.logging.ERROR)
        return tf
    return importlib.import_module(name)


def unoptimized_config(tf: Any) -> Any:
    """A `ConfigProto` under which every op of the graph is executed, one by one, as written."""
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
    config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.OFF
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config
