"""Looking into checkpoints, and variables that begin as one says."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from runnel.checkpoint.reading import open_checkpoint
from runnel.checkpoint.saveable_object import SaveableObject
from runnel.graph.collections import GraphKeys
from runnel.graph.dtypes import DType, string
from runnel.graph.graph import get_default_graph
from runnel.ops.checkpoints import restore_v2_op
from runnel.ops.constants import constant
from runnel.train.checkpoint_state import latest_checkpoint
from runnel.train.saveable import all_saveables
from runnel.train.vocabulary_remap import initialize_remapped
from runnel.variables.partitioned_variable import PartitionedVariable
from runnel.variables.variable import Variable
from runnel.variables.variable_store import default_variable_store


class CheckpointReader:
    """What is in a checkpoint.

    Example:
        >>> reader = tf.train.load_checkpoint("/tmp/model")
        >>> reader.get_variable_to_shape_map()
        {'w': [784, 10]}
        >>> reader.get_tensor("w")
    """

    def __init__(self, filepattern: str) -> None:
        self._reader = open_checkpoint(filepattern)

    def has_tensor(self, tensor_str: str) -> bool:
        """True for the name of a tensor in it."""
        return self._reader.has(tensor_str)

    def get_tensor(self, tensor_str: str) -> np.ndarray:
        """The value of a tensor."""
        found = self._reader.tensor(tensor_str)
        return found if found.ndim else found[()]

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shapes by name."""
        names = self._reader.names()
        return {name: list(self._reader.type_and_shape(name)[1]) for name in names}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """The types by name."""
        return {name: self._reader.type_and_shape(name)[0] for name in self._reader.names()}

    def debug_string(self) -> bytes:
        """A line for each tensor: name, type, shape."""
        from tensorboard.compat.proto.types_pb2 import DataType

        lines = []
        for name in self._reader.names():
            dtype, shape = self._reader.type_and_shape(name)
            kind = DataType.Name(dtype.as_datatype_enum)
            lines.append(f"{name} ({kind}) [{','.join(map(str, shape))}]\n")
        return "".join(lines).encode()


def _checkpoint_of(ckpt_dir_or_file: Any) -> str:
    path = os.fsdecode(os.fspath(ckpt_dir_or_file))
    if os.path.isdir(path):
        latest = latest_checkpoint(path)
        if latest is None:
            raise ValueError(f"Couldn't find 'checkpoint' file or checkpoints in the folder {path}")
        return latest
    return path


def NewCheckpointReader(filepattern: Any) -> CheckpointReader:  # noqa: N802 (TensorFlow's name)
    """What reads the checkpoint ``filepattern``."""
    return CheckpointReader(os.fsdecode(os.fspath(filepattern)))


def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """What reads a checkpoint, or the latest of a folder."""
    return CheckpointReader(_checkpoint_of(ckpt_dir_or_file))


def load_variable(ckpt_dir_or_file: Any, name: str) -> np.ndarray:
    """The value of one tensor of a checkpoint; ``name`` may end with ``:0``."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """Names and shapes of all tensors in a checkpoint, sorted."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


# Variables that begin as a checkpoint says ------------------------------------------------------


def init_from_checkpoint(ckpt_dir_or_file: Any, assignment_map: Any) -> None:
    """Has variables be initialised from a checkpoint.

    ``assignment_map`` maps names in the checkpoint to variables, lists of parts of one, or names of
    variables here; a name that ends with ``/`` is a scope, in both. Their initializers are
    replaced: nothing is read before they run.

    Example:
        >>> tf.train.init_from_checkpoint("/tmp/model", {"old_scope/": "new_scope/", "w": w})
    """
    path = _checkpoint_of(ckpt_dir_or_file)
    reader = open_checkpoint(path)
    names = reader.names()
    items = assignment_map.items() if isinstance(assignment_map, Mapping) else assignment_map
    for source, target in items:
        for name, variable in _matches(source, target, names, path):
            _initialize(variable, name, path, reader)


def _all_variables() -> dict[str, Any]:
    """The variables that ``get_variable`` has made, parts of one together."""
    return dict(default_variable_store().by_name())


def _matches(source: str, target: Any, names: list[str], path: str) -> list[tuple[str, Any]]:
    if not isinstance(target, str):
        if source not in names:
            raise ValueError(f"Tensor {source} is not found in {path} checkpoint")
        return [(source, target)]
    here = _all_variables()
    if not target.endswith("/"):
        if target not in here:
            raise ValueError(f"There is no variable {target!r}; get_variable must have made it")
        return _matches(source, here[target], names, path)
    if not source.endswith("/"):
        raise ValueError(f"The scope {target!r} needs a scope of the checkpoint, not {source!r}")
    prefix, inside = source.removeprefix("/"), target.removesuffix("/")
    found = []
    for name, variable in here.items():
        if name == inside or not inside or name.startswith(f"{inside}/"):
            own = prefix + (name[len(inside) + 1 :] if inside else name)
            if own not in names:
                raise ValueError(
                    f"Tensor {own} (of the variable {name!r}) is not found in {path} checkpoint"
                )
            found.append((own, variable))
    if not found:
        raise ValueError(f"There are no variables in the scope {target!r}")
    return found


def _initialize(variable: Any, name: str, path: str, reader: Any) -> None:
    parts = list(variable) if isinstance(variable, PartitionedVariable | list) else [variable]
    _, shape = reader.type_and_shape(name)
    whole = parts[0]._get_save_slice_info()
    wanted = list(whole.full_shape) if whole is not None else parts[0].shape.as_list()
    if wanted != list(shape):
        raise ValueError(
            f"Shape of variable {parts[0].name} ({wanted}) doesn't match with shape of tensor "
            f"{name} ({list(shape)}) from checkpoint reader."
        )
    for part in parts:
        [saveable] = all_saveables({name: [part] if whole is not None else part})
        _set_initializer(part, saveable, path)


def _set_initializer(variable: Variable, saveable: SaveableObject, path: str) -> None:
    graph = get_default_graph()
    [spec] = saveable.specs
    with graph.control_dependencies(None), graph.colocate_with(variable.op):
        [value] = restore_v2_op(
            constant(path, string, name="checkpoint_initializer/prefix"),
            constant([spec.name], string, name="checkpoint_initializer/tensor_names"),
            constant([spec.slice_spec], string, name="checkpoint_initializer/shape_and_slices"),
            dtypes=[spec.dtype],
            name="checkpoint_initializer",
        )
        value.set_shape(variable.shape)
        done = saveable.restore([value], None)
    variable._initializer_op = getattr(done, "op", done)
    variable._initial_value = value


def warm_start(
    ckpt_to_initialize_from: Any,
    vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: Mapping[str, Any] | None = None,
    var_name_to_prev_var_name: Mapping[str, str] | None = None,
) -> None:
    """Has the trainable variables whose names match be initialised from a checkpoint.

    ``vars_to_warm_start`` is a regular expression, a list of them or of variables, or None for none
    but those that are named elsewhere. ``var_name_to_prev_var_name`` tells names that were others,
    ``var_name_to_vocab_info`` whose rows are for words that may stand elsewhere: a ``VocabInfo``.
    """
    vocabularies = dict(var_name_to_vocab_info or {})
    graph = get_default_graph()
    earlier = dict(var_name_to_prev_var_name or {})
    chosen: list[Variable] = []
    patterns = [vars_to_warm_start] if isinstance(vars_to_warm_start, str) else vars_to_warm_start
    for pattern in patterns or ():
        if isinstance(pattern, Variable):
            chosen.append(pattern)
            continue
        candidates = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
        if not isinstance(vars_to_warm_start, str):
            candidates = graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        chosen += [v for v in candidates if re.match(pattern, v.op.name)]
    path = _checkpoint_of(ckpt_to_initialize_from)
    reader = open_checkpoint(path)
    groups: dict[str, list[Variable]] = {}
    for variable in dict.fromkeys(chosen):
        part = variable._get_save_slice_info()
        groups.setdefault(part.full_name if part is not None else variable.op.name, []).append(
            variable
        )
    for name, parts in groups.items():
        source = earlier.pop(name, name)
        if not reader.has(source):
            raise ValueError(f"Tensor {source} (for {name!r}) is not found in {path} checkpoint")
        info = vocabularies.pop(name, None)
        if info is None:
            _initialize(parts if len(parts) > 1 else parts[0], source, path, reader)
        else:
            initialize_remapped(parts, source, path, reader, info)
    if vocabularies:
        raise ValueError(f"No variable that is warm-started is called {', '.join(vocabularies)}")
    if earlier:
        raise ValueError(f"No variable that is warm-started is called {', '.join(earlier)}")
