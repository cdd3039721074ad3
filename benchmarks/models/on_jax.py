"""The models as a JAX programmer writes them by hand: NHWC, `jax.grad`, donated parameters.

Mixed precision is the usual recipe: parameters in float32, a cast to bfloat16 at their use, the
logits and everything after them in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.models.architectures import (
    ARCHITECTURES,
    Architecture,
    Conv,
    Dense,
    MaxPool,
    Recurrence,
    apply,
    initial_parameters,
    synthetic_batch,
)
from benchmarks.models.on_graphs import CHECKED_STEPS, RATE
from benchmarks.workload import Workload

Arrays = dict[str, jax.Array]


class JaxBackend:
    """Layers made of `jax.lax`."""

    def __init__(self, parameters: Arrays) -> None:
        self._parameters = parameters

    def conv(self, value: jax.Array, layer: Conv) -> jax.Array:
        """`lax.conv_general_dilated` with a bias or batch normalisation."""
        value = lax.conv_general_dilated(
            value,
            self._parameters[f"{layer.name}/filter"],
            (layer.stride, layer.stride),
            [(layer.padding, layer.padding)] * 2,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        if layer.normalized:
            scale, offset = (self._parameters[f"{layer.name}/{s}"] for s in ("scale", "offset"))
            wide = value.astype(jnp.float32)
            mean = wide.mean((0, 1, 2))
            variance = jnp.square(wide).mean((0, 1, 2)) - jnp.square(mean)
            factor = scale * lax.rsqrt(variance + 1e-3)
            value = (wide * factor + (offset - mean * factor)).astype(value.dtype)
        else:
            value = value + self._parameters[f"{layer.name}/bias"]
        return jax.nn.relu(value) if layer.relu else value

    def max_pool(self, value: jax.Array, layer: MaxPool) -> jax.Array:
        """`lax.reduce_window`."""
        return lax.reduce_window(
            value,
            -jnp.inf,
            lax.max,
            (1, layer.size, layer.size, 1),
            (1, layer.stride, layer.stride, 1),
            "SAME" if layer.same else "VALID",
        )

    def global_average(self, value: jax.Array) -> jax.Array:
        """The mean over the positions."""
        return value.mean((1, 2))

    def dense(self, value: jax.Array, layer: Dense) -> jax.Array:
        """A product and a bias, over flattened images."""
        weights, bias = (self._parameters[f"{layer.name}/{s}"] for s in ("weights", "bias"))
        value = value.reshape(value.shape[0], -1) @ weights + bias
        return jax.nn.relu(value) if layer.relu else value

    def concatenate(self, values: Sequence[jax.Array]) -> jax.Array:
        """The channels side by side."""
        return jnp.concatenate(values, 3)

    def add_and_rectify(self, value: jax.Array, shortcut: jax.Array) -> jax.Array:
        """The rectified sum."""
        return jax.nn.relu(value + shortcut)


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """The mean cross-entropy, in float32."""
    logs = jax.nn.log_softmax(logits.astype(jnp.float32))
    return -jnp.mean(jnp.take_along_axis(logs, labels[:, None], axis=1))


def loss_of(
    architecture: Architecture,
    precision: str,
    parameters: Arrays,
    images: jax.Array,
    labels: jax.Array,
) -> jax.Array:
    """The mean cross-entropy of a batch."""
    if precision == "bf16":
        parameters = jax.tree.map(lambda p: p.astype(jnp.bfloat16), parameters)
        images = images.astype(jnp.bfloat16)
    return cross_entropy(apply(JaxBackend(parameters), architecture.layers, images), labels)


def descend(
    loss: Any, momentum: float, state: tuple[Arrays, Arrays], *data: jax.Array
) -> tuple[tuple[Arrays, Arrays], jax.Array]:
    """One step of gradient descent; without momentum nothing is kept beside the parameters."""
    parameters, velocities = state
    value, gradients = jax.value_and_grad(loss)(parameters, *data)
    if momentum:
        velocities = jax.tree.map(lambda v, g: momentum * v + g, velocities, gradients)
        gradients = velocities
    return (jax.tree.map(lambda p, g: p - RATE * g, parameters, gradients), velocities), value


def training_step(
    model: str,
    batch: int,
    precision: str = "float32",
    image_size: int | None = None,
    momentum: float = 0.0,
    fetches: bool = False,
) -> Workload:
    """Training steps on one synthetic batch that lies where the parameters lie."""
    architecture = ARCHITECTURES[model]
    data = synthetic_batch(architecture, batch, image_size)
    parameters = initial_parameters(architecture, image_size)
    loss = partial(loss_of, architecture, precision)
    return measured(loss, parameters, data, momentum, fetches)


def lstm_loss(
    precision: str, parameters: Arrays, inputs: jax.Array, labels: jax.Array
) -> jax.Array:
    """The mean cross-entropy of an LSTM's last output."""
    units = parameters["weights"].shape[0]
    if precision == "bf16":
        parameters = jax.tree.map(lambda p: p.astype(jnp.bfloat16), parameters)
        inputs = inputs.astype(jnp.bfloat16)

    def step(state: tuple[jax.Array, jax.Array], x: jax.Array) -> Any:
        h, c = state
        gates = jnp.concatenate([x, h], 1) @ parameters["kernel"] + parameters["bias"]
        i, f, g, o = jnp.split(gates, 4, 1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zeros = jnp.zeros((inputs.shape[1], units), inputs.dtype)
    (h, _), _ = lax.scan(step, (zeros, zeros), inputs)
    return cross_entropy(h @ parameters["weights"], labels)


def lstm_step(precision: str = "float32", fetches: bool = False, **sizes: int) -> Workload:
    """Training steps of an LSTM."""
    recurrence = Recurrence(**sizes)
    loss = partial(lstm_loss, precision)
    return measured(loss, recurrence.parameters(), recurrence.data(), fetches=fetches)


def measured(
    loss: Any, initial: Any, data: Sequence[Any], momentum: float = 0.0, fetches: bool = False
) -> Workload:
    """The workload that trains to reduce `loss`, which a step may bring back."""
    parameters = jax.device_put(dict(initial))
    state = parameters, jax.tree.map(jnp.zeros_like, parameters) if momentum else {}
    placed = [jax.device_put(array) for array in data]
    step = jax.jit(partial(descend, loss, momentum), donate_argnums=0)
    losses = []
    for _ in range(CHECKED_STEPS):
        state, value = step(state, *placed)
        losses.append(float(value))

    def run(iterations: int) -> None:
        nonlocal state
        value = jnp.zeros([])
        for _ in range(iterations):
            state, value = step(state, *placed)
            if fetches:
                float(value)
        float(value)

    return Workload(run, facts=lambda: {"losses": losses})
