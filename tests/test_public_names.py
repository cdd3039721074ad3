"""The names that users see: which there are, what completion offers, what an error proposes."""

from __future__ import annotations

import subprocess
import sys
import traceback
from types import ModuleType

import pytest

import runnel as tf
from tools import list_names

NAMESPACES = [
    "bitwise",
    "collectives",
    "compat",
    "config",
    "config.experimental",
    "contrib.cluster_resolver",
    "contrib.crf",
    "contrib.cudnn_rnn",
    "contrib.data",
    "contrib.distributions",
    "contrib.distributions.bijectors",
    "contrib.framework",
    "contrib.framework.nest",
    "contrib.image",
    "contrib.integrate",
    "contrib.layers",
    "contrib.layers.utils",
    "contrib.learn",
    "contrib.learn.datasets",
    "contrib.learn.datasets.base",
    "contrib.learn.learn_runner",
    "contrib.learn.models",
    "contrib.learn.monitors",
    "contrib.learn.preprocessing",
    "contrib.learn.utils",
    "contrib.learn.utils.input_fn_utils",
    "contrib.learn.utils.saved_model_export_utils",
    "contrib.legacy_seq2seq",
    "contrib.losses",
    "contrib.losses.metric_learning",
    "contrib.metrics",
    "contrib.nn",
    "contrib.opt",
    "contrib.predictor",
    "contrib.resampler",
    "contrib.rnn",
    "contrib.seq2seq",
    "contrib.signal",
    "contrib.slim",
    "contrib.slim.data_provider",
    "contrib.slim.dataset",
    "contrib.slim.dataset_data_provider",
    "contrib.slim.evaluation",
    "contrib.slim.learning",
    "contrib.slim.model_analyzer",
    "contrib.slim.nets",
    "contrib.slim.nets.alexnet",
    "contrib.slim.nets.inception",
    "contrib.slim.nets.inception_v1",
    "contrib.slim.nets.inception_v2",
    "contrib.slim.nets.inception_v3",
    "contrib.slim.nets.overfeat",
    "contrib.slim.nets.resnet_utils",
    "contrib.slim.nets.resnet_v1",
    "contrib.slim.nets.resnet_v2",
    "contrib.slim.nets.vgg",
    "contrib.slim.parallel_reader",
    "contrib.slim.prefetch_queue",
    "contrib.slim.queues",
    "contrib.slim.tfexample_decoder",
    "contrib.sparsemax",
    "contrib.stateless",
    "contrib.tensorboard",
    "contrib.tensorboard.plugins",
    "contrib.tensorboard.plugins.projector",
    "contrib.tpu",
    "contrib.training",
    "contrib.util",
    "data",
    "data.experimental",
    "datasets",
    "debug",
    "debugging",
    "distribute",
    "distribute.cluster_resolver",
    "distributions",
    "dtypes",
    "errors",
    "estimator",
    "estimator.export",
    "estimator.inputs",
    "estimator.tpu",
    "feature_column",
    "graph_util",
    "image",
    "io.gfile",
    "initializers",
    "io",
    "launch",
    "keras",
    "keras.activations",
    "keras.backend",
    "keras.callbacks",
    "keras.constraints",
    "keras.initializers",
    "keras.layers",
    "keras.losses",
    "keras.metrics",
    "keras.models",
    "keras.optimizers",
    "keras.optimizers.schedules",
    "keras.preprocessing",
    "keras.preprocessing.sequence",
    "keras.preprocessing.text",
    "keras.regularizers",
    "keras.utils",
    "layers",
    "linalg",
    "lookup",
    "contrib.lookup",
    "manip",
    "math",
    "nest",
    "nn",
    "nn.rnn_cell",
    "python_io",
    "profiler",
    "queue",
    "resource_loader",
    "saved_model",
    "saved_model.builder",
    "saved_model.constants",
    "saved_model.loader",
    "saved_model.main_op",
    "saved_model.signature_constants",
    "saved_model.signature_def_utils",
    "saved_model.tag_constants",
    "saved_model.utils",
    "ragged",
    "random",
    "sets",
    "signal",
    "sparse",
    "spectral",
    "strings",
    "summary",
    "test",
    "timeline",
    "tpu",
    "train",
    "version",
]


def test_the_page_of_names_is_true():
    """If this fails, run ``python tools/list_names.py``."""
    assert list_names.PAGE.read_text() == list_names.page()


def test_the_list_holds_known_names():
    version, names = list_names.recorded()
    assert version.startswith("1.15")
    assert {"tf.Session", "tf.nn.relu", "tf.train.AdamOptimizer", "tf.losses.log_loss"} <= {*names}
    assert list_names.exists("tf.nn.relu")
    assert list_names.exists("tf.train.AdamOptimizer")
    assert not list_names.exists("tf.no_such.thing")


def test_what_is_loaded_late_is_listed_before_it_is_used():
    """In a process of its own: others may have used them. Neither JAX nor protobuf is loaded."""
    code = (
        "import sys, runnel as tf\n"
        "names = dir(tf)\n"
        "for name in ('train', 'test', 'contrib', 'ConfigProto', 'GraphDef', 'nn', 'Session'):\n"
        "    assert name in names, name\n"
        "for name in ('jax', 'google.protobuf', 'runnel.train', 'runnel.contrib'):\n"
        "    assert name not in sys.modules, name\n"
        "assert {'rnn', 'seq2seq', 'staging'} <= set(dir(tf.contrib))\n"
        "assert 'runnel.contrib.rnn' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize(
    "made",
    ["tf.SparseTensor([[0, 1]], [2.0], [1, 2])", "tf.ragged.constant([[2.0]])"],
    ids=["sparse", "ragged"],
)
def test_operators_work_before_anything_else_was_loaded(made):
    """In a process of its own: operators must not come with a module that is loaded late."""
    code = (
        "import runnel as tf\n"
        f"made = {made}\n"
        "found = [made * 3.0, made * tf.constant(3.0), tf.constant(3.0) * made, made / 2.0]\n"
        "values = tf.Session().run([one.values for one in found])\n"
        "assert [value.tolist() for value in values] == [[6.0], [6.0], [6.0], [1.0]], values\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_every_listed_name_is_there():
    for name in dir(tf):
        getattr(tf, name)


def test_internals_are_not_listed():
    public = {*dir(tf)}
    for name in ("passes", "runtime", "graph", "ops", "autodiff", "variables", "native", "queues"):
        assert name not in public
    for name in ("Any", "ModuleType", "annotations", "keep_freed_memory_if_asked"):
        assert name not in public and not hasattr(tf, name)


@pytest.mark.parametrize("path", NAMESPACES)
def test_a_namespace_lists_what_is_for_users(path):
    module: object = tf
    for part in path.split("."):
        module = getattr(module, part)
    listed = dir(module)
    assert listed
    for name in listed:
        value = getattr(module, name)
        shared = path.startswith("contrib.") and isinstance(value, ModuleType)
        is_namespace = (
            f"{path}.{name}" in NAMESPACES
            or path == "datasets"
            or (name in ("experimental", "mock", "optimizer", "threading", "v1", "mnist"))
            or (shared and value.__name__.removeprefix("runnel.") in NAMESPACES)
        )
        assert not isinstance(value, ModuleType) or is_namespace, name
        assert not name.startswith("_") and name not in ("Any", "annotations", "TYPE_CHECKING")


@pytest.mark.parametrize("name", ["losse", "Ani", "runtim", "passe", "grap"])
def test_an_unknown_name_is_not_answered_with_an_internal_one(name):
    with pytest.raises(AttributeError) as caught:
        getattr(tf, name)
    text = "".join(traceback.format_exception(caught.value))
    proposed = text.partition("Did you mean: ")[2].partition("?")[0].strip("'\n")
    assert not proposed or proposed in dir(tf)
    assert proposed not in ("passes", "Any", "runtime", "graph")
    assert "docs/tensorflow-names.md" in text


def test_an_unknown_part_of_contrib_is_answered_with_those_there_are():
    with pytest.raises(AttributeError, match="rnn, seq2seq, signal, slim, "):
        tf.contrib.nothing  # noqa: B018


def test_every_operation_is_found_by_its_type():
    """Also in a process that has only been sent a graph with it."""
    every = (
        "import importlib, pkgutil, runnel.ops\n"
        "for found in pkgutil.walk_packages(runnel.ops.__path__, 'runnel.ops.'):\n"
        "    importlib.import_module(found.name)\n"
        "from runnel.graph.registry import _REGISTRY\n"
        "print(*_REGISTRY)\n"
    )
    run = [sys.executable, "-c"]
    there = subprocess.run([*run, every], check=True, timeout=120, capture_output=True, text=True)
    names = there.stdout.split()
    assert "OptimizeDataset" in names
    code = f"import runnel as tf\nfor name in {names}: tf.get_op_def(name)"
    found = subprocess.run([*run, code], timeout=120, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-500:]
