"""The LSTM classifier as a JAX programmer writes it by hand: `lax.scan` over time.

The product of all inputs with their part of the kernel is one product before the scan, so that a
step of the scan has only the product with the state; the parameters are donated, and the batch goes
in as NumPy arrays. `gradient_after_loop` is a form that takes some thought: the scan is
differentiated with respect to what enters its gates, and the gradient of the recurrent weights, of
which JAX's transposition would add up one product a step, becomes one product at the end.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.workload import Workload
from benchmarks.workloads.lstm import INPUTS, RATE, Batch, initial_weights, repeated

Parameters = dict[str, jax.Array]


def initial_parameters() -> Parameters:
    """The kernel in two parts: for the inputs and for the state."""
    weights = initial_weights()
    return {
        "inputs": jnp.asarray(weights.kernel[:INPUTS]),
        "state": jnp.asarray(weights.kernel[INPUTS:]),
        "bias": jnp.asarray(weights.bias),
        "readout": jnp.asarray(weights.readout),
    }


def outputs_of(entering: Any, state_weights: Any) -> Any:
    """The LSTM's outputs, given what the inputs and the bias add to the gates, time first."""
    hidden = state_weights.shape[0]
    zeros = jnp.zeros((entering.shape[1], hidden))

    def step(carry: Any, entered: Any) -> Any:
        c, h = carry
        i, j, f, o = jnp.split(entered + h @ state_weights, 4, axis=1)
        c = c * jax.nn.sigmoid(f + 1.0) + jax.nn.sigmoid(i) * jnp.tanh(j)
        h = jnp.tanh(c) * jax.nn.sigmoid(o)
        return (c, h), h

    return lax.scan(step, (zeros, zeros), entering)[1]


def readout_loss(outputs: Any, readout: Any, labels: Any) -> Any:
    """Mean cross-entropy of the answer."""
    logs = jax.nn.log_softmax(outputs.mean(axis=0) @ readout)
    return -jnp.mean(jnp.take_along_axis(logs, labels[:, None], axis=1))


def plain_gradient(parameters: Parameters, sequences: Any, labels: Any) -> Any:
    """The loss and its gradients, all of it JAX's doing."""

    def loss_of(p: Parameters) -> Any:
        entering = sequences @ p["inputs"] + p["bias"]
        return readout_loss(outputs_of(entering, p["state"]), p["readout"], labels)

    return jax.value_and_grad(loss_of)(parameters)


def gradient_after_loop(parameters: Parameters, sequences: Any, labels: Any) -> Any:
    """The same, with the gradient of the recurrent weights in one product after the scan."""
    p = parameters

    def loss_of(entering: Any, readout: Any) -> Any:
        outputs = outputs_of(entering, p["state"])
        return readout_loss(outputs, readout, labels), outputs

    entering = sequences @ p["inputs"] + p["bias"]
    graded = jax.value_and_grad(loss_of, argnums=(0, 1), has_aux=True)
    (loss, outputs), (gates, readout) = graded(entering, p["readout"])
    gradients = {
        "inputs": jnp.einsum("tbi,tbg->ig", sequences, gates),
        # The state before the first step is zero and adds nothing.
        "state": jnp.einsum("tbh,tbg->hg", outputs[:-1], gates[1:]),
        "bias": gates.sum((0, 1)),
        "readout": readout,
    }
    return loss, gradients


def training_step(after_loop: bool = False) -> Workload:
    """One training step on a batch from NumPy, with the loss brought back."""
    gradient = gradient_after_loop if after_loop else plain_gradient

    def update(parameters: Parameters, sequences: Any, labels: Any) -> Any:
        loss, gradients = gradient(parameters, sequences, labels)
        return jax.tree.map(lambda p, g: p - RATE * g, parameters, gradients), loss

    compiled = jax.jit(update, donate_argnums=0)
    parameters = initial_parameters()

    def step(batch: Batch) -> float:
        nonlocal parameters
        parameters, loss = compiled(parameters, batch.sequences, batch.labels)
        return float(loss)

    return repeated(step)
