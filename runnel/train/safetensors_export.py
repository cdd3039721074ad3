"""Variables in files that other frameworks read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from runnel.checkpoint.safetensors import SUFFIX, write_safetensors
from runnel.train.saveable import named
from runnel.variables.initialization import global_variables
from runnel.variables.partitioned_variable import PartitionedVariable


def save_safetensors(
    sess: Any, path: Any, var_list: Any = None, metadata: Mapping[str, str] | None = None
) -> str:
    """Writes the values of variables as a ``safetensors`` file; returns its path.

    ``var_list`` is what ``tf.train.Saver`` takes: a list, or a dictionary from names in the file to
    variables; by default all global variables. A variable in parts is written whole.
    ``Saver.restore``, ``tf.train.init_from_checkpoint`` and ``tf.train.load_variable`` read such a
    file like a checkpoint.

    Example:
        >>> tf.train.save_safetensors(sess, "/tmp/model.safetensors")
        >>> saver.restore(sess, "/tmp/model.safetensors")
    """
    path = os.fsdecode(os.fspath(path))
    if not path.endswith(SUFFIX):
        raise ValueError(f"The name of such a file ends with {SUFFIX}: {path!r} does not")
    with sess.graph.as_default():
        wanted = named(global_variables() if var_list is None else var_list)
    parts = {
        name: list(value) if isinstance(value, list | tuple | PartitionedVariable) else [value]
        for name, value in wanted.items()
    }
    values = sess.run(parts)
    tensors = {}
    for name, variables in parts.items():
        dtype = variables[0].dtype.base_dtype
        tensors[name] = dtype, _joined(variables, values[name]).astype(dtype.np_dtype, copy=False)
    write_safetensors(path, tensors, metadata or {})
    return path


def _joined(variables: list[Any], values: list[Any]) -> np.ndarray:
    """The whole of which ``variables`` are parts."""
    info = getattr(variables[0], "_get_save_slice_info", lambda: None)()
    if info is None:
        return np.asarray(values[0])
    whole = np.empty(tuple(info.full_shape), np.asarray(values[0]).dtype)
    for variable, value in zip(variables, values, strict=True):
        part = variable._get_save_slice_info()
        bounds = zip(part.var_offset, part.var_shape, strict=True)
        whole[tuple(slice(begin, begin + size) for begin, size in bounds)] = value
    return whole
