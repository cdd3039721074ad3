"""A large matrix product: the rate that a machine reaches at best, measured in the same run."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from benchmarks.workload import Workload


def matrix_product(precision: str, side: int) -> Workload:
    """Square products of random matrices, one after another."""
    dtype = jnp.bfloat16 if precision == "bf16" else jnp.float32
    a, b = (jax.random.normal(jax.random.key(seed), (side, side), dtype) for seed in (0, 1))
    multiply = jax.jit(jnp.matmul)

    def run(iterations: int) -> None:
        product = a
        for _ in range(iterations):
            product = multiply(a, b)
        product.block_until_ready()

    return Workload(run)
