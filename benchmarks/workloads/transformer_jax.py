"""The transformer encoder as a JAX programmer writes it by hand: donated parameters, Adam."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.models.on_jax import cross_entropy
from benchmarks.workload import Workload
from benchmarks.workloads.transformer import (
    BETA_1,
    BETA_2,
    EPSILON,
    NORM_EPSILON,
    RATE,
    Sizes,
    repeated,
)

Arrays = dict[str, jax.Array]


def encoder_loss(
    sizes: Sizes, precision: str, parameters: Arrays, tokens: jax.Array, labels: jax.Array
) -> jax.Array:
    """The mean cross-entropy of the labels; products in the precision, norms in float32."""
    narrow = jnp.bfloat16 if precision == "bf16" else jnp.float32

    def dense(value: jax.Array, name: str) -> jax.Array:
        weights = parameters[f"{name}/weights"].astype(narrow)
        return value.astype(narrow) @ weights + parameters[f"{name}/bias"].astype(narrow)

    def norm(value: jax.Array, name: str) -> jax.Array:
        wide = value.astype(jnp.float32)
        mean = wide.mean(-1, keepdims=True)
        variance = jnp.square(wide - mean).mean(-1, keepdims=True)
        scaled = (wide - mean) * jax.lax.rsqrt(variance + NORM_EPSILON)
        return scaled * parameters[f"{name}/scale"] + parameters[f"{name}/offset"]

    def heads(value: jax.Array) -> jax.Array:
        return value.reshape(sizes.batch, sizes.length, sizes.heads, sizes.head_units)

    value = (parameters["tokens"][tokens] + parameters["positions"]).astype(narrow)
    for layer in range(sizes.layers):
        inputs = norm(value, f"{layer}/before_attention")
        query, key, seen = (
            heads(dense(inputs, f"{layer}/{part}")) for part in ("query", "key", "value")
        )
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) * sizes.head_units**-0.5
        weights = jax.nn.softmax(scores.astype(jnp.float32)).astype(narrow)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, seen)
        mixed = mixed.reshape(sizes.batch, sizes.length, sizes.units)
        value = value + dense(mixed, f"{layer}/output")
        inner = jax.nn.relu(dense(norm(value, f"{layer}/before_inner"), f"{layer}/inner"))
        value = value + dense(inner, f"{layer}/outer")
    logits = dense(norm(value, "last"), "logits")
    return cross_entropy(logits.reshape(-1, sizes.vocabulary), labels.reshape(-1))


def adam(loss: Any, state: Any, *data: jax.Array) -> Any:
    """One step of Adam."""
    parameters, first, second, count = state
    value, gradients = jax.value_and_grad(loss)(parameters, *data)
    count = count + 1
    rate = RATE * jnp.sqrt(1 - BETA_2**count) / (1 - BETA_1**count)
    first = jax.tree.map(lambda m, g: BETA_1 * m + (1 - BETA_1) * g, first, gradients)
    second = jax.tree.map(lambda v, g: BETA_2 * v + (1 - BETA_2) * g * g, second, gradients)
    parameters = jax.tree.map(
        lambda p, m, v: p - rate * m / (jnp.sqrt(v) + EPSILON), parameters, first, second
    )
    return (parameters, first, second, count), value


def training_step(precision: str, fetches: bool, **sizes: int) -> Workload:
    """Training steps on one batch that lies where the parameters lie."""
    encoder = Sizes(**sizes)
    parameters = jax.device_put(encoder.parameters())
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    state = (parameters, zeros, jax.tree.map(jnp.zeros_like, zeros), jnp.zeros([]))
    data = [jax.device_put(array) for array in encoder.data()]
    compiled = jax.jit(partial(adam, partial(encoder_loss, encoder, precision)), donate_argnums=0)

    def step() -> Any:
        nonlocal state
        state, value = compiled(state, *data)
        return value

    return repeated(step, float, fetches)
