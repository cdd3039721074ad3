"""The modules inside ``tensorflow.python``, each with the namespaces whose names it has."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# Where the names of a module are; the first that has one answers. "" is tf itself.
_ARRAYS = ("", "math", "linalg", "nn")
_TRAINING = ("train", "summary", "")
_MODULES: dict[str, tuple[str, ...]] = {
    "client.device_lib": ("python.local_devices",),
    "client.session": ("",),
    "client.timeline": ("timeline",),
    "debug": ("debug",),
    "estimator": ("estimator",),
    "estimator.inputs": ("estimator.inputs",),
    "feature_column.feature_column": ("feature_column",),
    "feature_column.feature_column_lib": ("feature_column",),
    "framework.constant_op": ("",),
    "framework.dtypes": ("dtypes", ""),
    "framework.errors": ("errors",),
    "framework.errors_impl": ("errors",),
    "framework.function": ("",),
    "framework.graph_io": ("io", "train"),
    "framework.graph_util": ("graph_util",),
    "framework.importer": ("",),
    "framework.meta_graph": ("train",),
    "framework.ops": ("", "errors"),
    "framework.random_seed": ("random", ""),
    "framework.smart_cond": ("contrib.framework",),
    "framework.sparse_tensor": ("",),
    "framework.tensor_shape": ("",),
    "framework.tensor_util": ("python.tensor_values", ""),
    "framework.test_util": ("test",),
    "layers.base": ("layers",),
    "layers.convolutional": ("layers",),
    "layers.core": ("layers",),
    "layers.layers": ("layers",),
    "layers.normalization": ("layers",),
    "layers.pooling": ("layers",),
    "layers.utils": ("contrib.layers.utils",),
    "lib.io.python_io": ("python_io",),
    "lib.io.tf_record": ("python_io",),
    "ops.array_grad": _ARRAYS,
    "ops.array_ops": _ARRAYS,
    "ops.candidate_sampling_ops": ("nn", "random"),
    "ops.check_ops": ("", "debugging"),
    "ops.clip_ops": ("",),
    "ops.control_flow_ops": ("", "train"),
    "ops.confusion_matrix": ("",),
    "ops.ctc_ops": ("nn",),
    "ops.custom_gradient": ("",),
    "ops.data_flow_ops": ("", "queue"),
    "ops.distributions.bernoulli": ("distributions",),
    "ops.distributions.categorical": ("distributions",),
    "ops.distributions.distribution": ("distributions",),
    "ops.distributions.normal": ("distributions",),
    "ops.embedding_ops": ("nn", "contrib.layers"),
    "ops.functional_ops": ("",),
    "ops.gen_audio_ops": ("ops.spectral.audio",),
    "ops.gradients": ("",),
    "ops.gradients_impl": ("",),
    "ops.image_ops": ("image",),
    "ops.image_ops_impl": ("image",),
    "ops.init_ops": ("", "initializers"),
    "ops.io_ops": ("", "io"),
    "ops.linalg_ops": ("", "linalg"),
    "ops.logging_ops": ("", "summary"),
    "ops.lookup_ops": ("lookup", "contrib.lookup", ""),
    "ops.losses.losses": ("losses",),
    "ops.losses.losses_impl": ("losses",),
    "ops.losses.util": ("losses",),
    "ops.math_ops": ("", "math", "linalg"),
    "ops.metrics": ("metrics",),
    "ops.metrics_impl": ("metrics",),
    "ops.nn": ("nn",),
    "ops.nn_impl": ("nn",),
    "ops.nn_ops": ("nn", ""),
    "ops.parsing_ops": ("", "io"),
    "ops.partitioned_variables": ("",),
    "ops.random_ops": ("", "random"),
    "ops.resource_variable_ops": ("", "python.variables"),
    "ops.rnn": ("nn", "contrib.rnn"),
    "ops.rnn_cell": ("nn.rnn_cell", "contrib.rnn"),
    "ops.rnn_cell_impl": ("nn.rnn_cell", "contrib.rnn"),
    "ops.script_ops": ("",),
    "ops.seq2seq": ("contrib.legacy_seq2seq",),
    "ops.sparse_ops": ("", "sparse"),
    "ops.special_math_ops": ("", "math"),
    "ops.standard_ops": _ARRAYS,
    "ops.state_ops": ("",),
    "ops.string_ops": ("", "strings"),
    "ops.summary_ops": ("summary",),
    "ops.template": ("",),
    "ops.tensor_array_ops": ("",),
    "ops.variable_scope": ("",),
    "ops.variables": ("",),
    "platform.app": ("app",),
    "platform.flags": ("flags",),
    "platform.gfile": ("gfile",),
    "platform.test": ("test",),
    "platform.tf_logging": ("logging",),
    "profiler.model_analyzer": ("profiler",),
    "profiler.option_builder": ("profiler",),
    "saved_model.builder": ("saved_model",),
    "saved_model.loader": ("saved_model",),
    "saved_model.main_op": ("saved_model.main_op",),
    "saved_model.signature_constants": ("saved_model.signature_constants",),
    "saved_model.signature_def_utils": ("saved_model.signature_def_utils",),
    "saved_model.tag_constants": ("saved_model.tag_constants",),
    "saved_model.utils": ("saved_model.utils",),
    "summary.summary": ("summary",),
    "training.adam": _TRAINING,
    "training.basic_session_run_hooks": _TRAINING,
    "training.checkpoint_management": _TRAINING,
    "training.checkpoint_utils": _TRAINING,
    "training.coordinator": _TRAINING,
    "training.gradient_descent": _TRAINING,
    "training.input": _TRAINING,
    "training.learning_rate_decay": _TRAINING,
    "training.momentum": _TRAINING,
    "training.monitored_session": _TRAINING,
    "training.moving_averages": ("train.moving_averages", *_TRAINING),
    "training.optimizer": _TRAINING,
    "training.queue_runner": _TRAINING,
    "training.queue_runner_impl": _TRAINING,
    "training.rmsprop": _TRAINING,
    "training.saver": _TRAINING,
    "training.server_lib": _TRAINING,
    "training.session_manager": _TRAINING,
    "training.session_run_hook": _TRAINING,
    "training.slot_creator": _TRAINING,
    "training.summary_io": _TRAINING,
    "training.supervisor": _TRAINING,
    "training.sync_replicas_optimizer": _TRAINING,
    "training.training": _TRAINING,
    "training.training_util": _TRAINING,
    "util.compat": ("compat",),
    "util.nest": ("nest", "python.structures"),
}


def _found(where: str, name: str) -> Any:
    """The value of ``name`` in a namespace; AttributeError where it has none."""
    found: Any = import_module("runnel")
    for part in where.split(".") if where else ():
        try:
            found = getattr(found, part)
        except AttributeError:
            found = import_module(f"{found.__name__}.{part}")
    return getattr(found, name)


def _inside(fullname: str) -> str:
    """The name of a module inside ``runnel.python``, under whatever name runnel is imported."""
    root, _, inside = fullname.partition(".python.")
    package = sys.modules.get(root)
    return inside if getattr(package, "__name__", None) == "runnel" else ""


class InnerModules(MetaPathFinder, Loader):
    """Makes the modules of the table, and the packages that they are in, when they are imported."""

    def __init__(self) -> None:
        parts = [name.split(".") for name in _MODULES]
        self._packages = {".".join(p[:n]) for p in parts for n in range(1, len(p) + 1)}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if _inside(fullname) not in self._packages:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        inside = _inside(module.__name__)
        namespaces = _MODULES.get(inside, ())

        def find(name: str) -> Any:
            if not name.startswith("__"):
                if f"{inside}.{name}" in self._packages:
                    return import_module(f"{module.__name__}.{name}")
                for where in namespaces:
                    try:
                        return _found(where, name)
                    except (AttributeError, ModuleNotFoundError):
                        continue
            raise AttributeError(
                f"runnel has nothing for {name!r} of TensorFlow's inner module "
                f"tensorflow.python.{inside}; docs/tensorflow-names.md lists the public names"
            )

        module.__doc__ = f"TensorFlow's ``python.{inside}``, answered from public names."
        module.__dict__["__getattr__"] = find


def install() -> None:
    """Has Python find the modules."""
    if not any(isinstance(finder, InnerModules) for finder in sys.meta_path):
        sys.meta_path.append(InnerModules())
