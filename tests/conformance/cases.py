"""Inputs and the form of a case for tables of side-by-side comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
Y = np.random.default_rng(1).normal(size=(2, 3, 4)).astype(np.float32)
V = np.random.default_rng(2).normal(size=(5,)).astype(np.float32)
MATRIX = np.random.default_rng(4).normal(size=(2, 3, 5)).astype(np.float32)
IMAGE = np.random.default_rng(3).normal(size=(2, 4, 6, 8)).astype(np.float32)


def case(label: str, build: Any, *arrays: Any, **options: Any) -> Any:
    """A named comparison: ``build(tf, *placeholders)`` and the arrays to feed."""
    return pytest.param(build, arrays, options, id=label)
