"""``tf.test``: testing models."""

from __future__ import annotations

import sys
import unittest
from typing import Any
from unittest import mock

from runnel.autodiff.gradient_checker import compute_gradient, compute_gradient_error
from runnel.runtime.devices.devices import list_devices
from runnel.testing.test_case import TestCase


def main(argv: list[str] | None = None) -> None:
    """Runs the tests of the calling script."""
    unittest.main(module="__main__", argv=argv or sys.argv)


def gpu_device_name() -> str:
    """The name of a GPU, or the empty string."""
    return next((d.name for d in list_devices() if d.device_type == "GPU"), "")


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """True when a step can run on a GPU."""
    return bool(gpu_device_name())


def is_built_with_cuda() -> bool:
    """True when XLA's CUDA backend is present."""
    return is_gpu_available()


def get_temp_dir() -> str:
    """A directory for the files of a test program."""
    import tempfile

    return tempfile.mkdtemp(prefix="runnel_test_")


def assert_equal_graph_def(actual: Any, expected: Any) -> None:
    """Two GraphDefs have the same nodes, in whatever order."""
    left, right = ({node.name: node for node in graph.node} for graph in (actual, expected))
    for name in left.keys() ^ right.keys():
        raise AssertionError(f"Node {name!r} is in only one of the graphs")
    for name, node in left.items():
        if node != right[name]:
            raise AssertionError(f"Node {name!r} differs:\n{node}\nagainst:\n{right[name]}")


__all__ = [
    "TestCase",
    "assert_equal_graph_def",
    "compute_gradient",
    "compute_gradient_error",
    "get_temp_dir",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_gpu_available",
    "main",
    "mock",
]


def __dir__() -> list[str]:
    return __all__
