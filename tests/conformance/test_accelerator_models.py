"""The models of the accelerator's benchmark compute the same in every framework."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.accelerator_steps import TINY
from benchmarks.workloads import embedding, embedding_jax, transformer, transformer_jax

CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "transformer": (
        transformer.training_step,
        transformer_jax.training_step,
        {"precision": "tf32", "fetches": True, **TINY["transformer"]},
    ),
    "gradient descent": (
        embedding.training_step,
        embedding_jax.training_step,
        {"optimizer": "descent", **TINY["embedding"]},
    ),
    "Adagrad": (
        embedding.training_step,
        embedding_jax.training_step,
        {"optimizer": "adagrad", **TINY["embedding"]},
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_losses_agree(what: str) -> None:
    on_graphs, on_jax, arguments = CASES[what]
    losses = {
        "runnel": on_graphs(frontend="runnel", **arguments),
        "tensorflow": on_graphs(frontend="tensorflow", **arguments),
        "jax": on_jax(**arguments),
    }
    found = {name: workload.facts()["losses"] for name, workload in losses.items()}
    np.testing.assert_allclose(found["runnel"], found["tensorflow"], rtol=1e-5)
    np.testing.assert_allclose(found["runnel"], found["jax"], rtol=1e-5)
