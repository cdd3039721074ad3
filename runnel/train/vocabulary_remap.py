"""Rows of a saved matrix, each for a word, put where a new vocabulary has the words."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from runnel.gfile import open_binary
from runnel.graph.dtypes import string
from runnel.graph.graph import get_default_graph
from runnel.ops.checkpoints import restore_v2_op
from runnel.ops.constants import constant
from runnel.ops.gather import gather
from runnel.ops.selection import where
from runnel.ops.slicing import slice as slice_of
from runnel.variables.initializers import Zeros
from runnel.variables.variable import Variable


class VocabInfo(NamedTuple):
    """The vocabularies of a variable, before and now, for ``tf.train.warm_start``.

    Both are files of one word a line, of which the first ``*_vocab_size`` are used (-1: all of the
    old one). Words that are new, and the ``num_oov_buckets`` rows behind them, begin as
    ``backup_initializer`` says, or with zeros. ``axis`` 1 is for a matrix with a column a word.

    Example:
        >>> info = tf.train.VocabInfo("new.txt", 5_000, 1, "old.txt", 3_000)
        >>> tf.train.warm_start("/tmp/model", ".*embedding", {"embedding": info})
    """

    new_vocab: Any
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: Any
    old_vocab_size: int = -1
    backup_initializer: Any = None
    axis: int = 0


def _words(path: Any, count: int) -> list[bytes]:
    name = os.fsdecode(os.fspath(path))
    with open_binary(name) as file:
        found = file.read().splitlines()
    if count > len(found):
        raise ValueError(f"The vocabulary {name} has {len(found)} words, fewer than {count}")
    return found if count < 0 else found[:count]


def _places(info: VocabInfo) -> np.ndarray:
    """For each row of the new matrix its row in the old one; -1 where there is none."""
    old = {word: place for place, word in enumerate(_words(info.old_vocab, info.old_vocab_size))}
    new = _words(info.new_vocab, info.new_vocab_size)
    found = [old.get(word, -1) for word in new] + [-1] * info.num_oov_buckets
    return np.array(found, np.int64)


def initialize_remapped(
    parts: list[Variable], name: str, path: str, reader: Any, info: VocabInfo
) -> None:
    """Has the variable of ``parts`` begin with the rows of the tensor ``name``, moved."""
    if info.axis not in (0, 1):
        raise ValueError(f"The axis of a vocabulary is 0 or 1, not {info.axis}")
    dtype, stored = reader.type_and_shape(name)
    whole = parts[0]._get_save_slice_info()
    wanted: Any = list(whole.full_shape) if whole is not None else parts[0].shape.as_list()
    places = _places(info)
    expected = list(stored)
    expected[info.axis] = len(places)
    if wanted != expected:
        raise ValueError(
            f"{parts[0].name} has the shape {wanted}; with {len(places)} words and buckets on axis "
            f"{info.axis} and what {path} has of {name!r}, {list(stored)}, it would be {expected}"
        )
    if places.max(initial=-1) >= stored[info.axis]:
        raise ValueError(
            f"{name!r} in {path} has {stored[info.axis]} rows on axis {info.axis}, fewer than the "
            f"old vocabulary {info.old_vocab} has words"
        )
    there = (places >= 0).reshape([-1 if n == info.axis else 1 for n in range(len(stored))])
    graph = get_default_graph()
    with graph.control_dependencies(None):
        [old] = restore_v2_op(
            constant(path, string, name="remapped_initializer/prefix"),
            constant([name], string, name="remapped_initializer/tensor_names"),
            constant([""], string, name="remapped_initializer/shape_and_slices"),
            dtypes=[dtype],
            name="remapped_initializer",
        )
        old.set_shape(stored)
        moved = gather(old, np.maximum(places, 0), axis=info.axis)
        backup = (info.backup_initializer or Zeros())(wanted, dtype=dtype)
        value = where(np.broadcast_to(there, wanted), moved, backup)
        for part in parts:
            slices = part._get_save_slice_info()
            own = value
            if slices is not None:
                own = slice_of(value, list(slices.var_offset), list(slices.var_shape))
            with graph.colocate_with(part.op):
                done = part.assign(own, read_value=False)
            part._initializer_op = getattr(done, "op", done)
            part._initial_value = own
