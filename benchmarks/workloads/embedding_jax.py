"""The embedding as a JAX programmer updates it by hand: a scatter into a donated table."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.workload import Workload
from benchmarks.workloads.embedding import INITIAL_ACCUMULATOR, RATE, Sizes
from benchmarks.workloads.transformer import repeated


def loss_of(looked_up: jax.Array, weights: jax.Array) -> jax.Array:
    """The weighted sum of squares."""
    return jnp.sum(jnp.square(looked_up) * weights) / weights.shape[0]


def descend(state: Any, rows: jax.Array, weights: jax.Array) -> Any:
    """Gradient descent over the rows that were looked up."""
    (table,) = state
    gradients = jax.grad(loss_of)(table[rows], weights)
    return (table.at[rows].add(-RATE * gradients),)


def adagrad(state: Any, rows: jax.Array, weights: jax.Array) -> Any:
    """Adagrad over them: rows with the same index are first given their total."""
    table, accumulator = state
    gradients = jax.grad(loss_of)(table[rows], weights)
    unique, place = jnp.unique(rows, return_inverse=True, size=rows.size, fill_value=table.shape[0])
    totals = jnp.zeros_like(gradients).at[place].add(gradients)
    accumulator = accumulator.at[unique].add(jnp.square(totals), mode="drop")
    steps = RATE * totals * jax.lax.rsqrt(accumulator.at[unique].get(mode="clip"))
    return table.at[unique].add(-steps, mode="drop"), accumulator


def training_step(optimizer: str, **sizes: int) -> Workload:
    """Steps over rows that lie where the table lies."""
    described = Sizes(**sizes)
    rows, weights = (jax.device_put(array) for array in described.data())
    table = jax.device_put(described.table())
    state: tuple[jax.Array, ...] = (table,)
    if optimizer == "adagrad":
        state = (table, jnp.full_like(table, INITIAL_ACCUMULATOR))
    update = jax.jit(adagrad if optimizer == "adagrad" else descend, donate_argnums=0)
    loss = jax.jit(lambda state: loss_of(state[0][rows], weights))

    def step() -> None:
        nonlocal state
        state = update(state, rows, weights)

    return repeated(step, lambda _: float(loss(state)), fetches=False)
