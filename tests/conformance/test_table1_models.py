"""The benchmarks' models compute the same in every framework: losses and all gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel
from benchmarks.models import on_graphs
from benchmarks.models.architectures import (
    ARCHITECTURES,
    Architecture,
    Conv,
    Dense,
    initial_parameters,
    synthetic_batch,
)
from tests.both_tiers import INTERPRETED, session

SIDES = {"alexnet": 67, "overfeat": 87, "vgg_a": 32, "googlenet": 32, "resnet50": 64}
BATCH = 4

Gradients = tuple[float, dict[str, np.ndarray]]


def _slim(layers: Any) -> Any:
    """The same layers with an eighth of the channels."""
    slim: list[Any] = []
    for layer in layers:
        if isinstance(layer, Conv | Dense):
            size = "filters" if isinstance(layer, Conv) else "units"
            count = getattr(layer, size)
            fewer = count if count == 1000 else max(4, count // 8)
            slim.append(type(layer)(**{**_fields(layer), size: fewer}))
        elif hasattr(layer, "paths"):
            slim.append(type(layer)(tuple(_slim(path) for path in layer.paths)))
        elif hasattr(layer, "path"):
            slim.append(type(layer)(_slim(layer.path), _slim(layer.shortcut)))
        else:
            slim.append(layer)
    return tuple(slim)


def _fields(layer: Any) -> dict[str, Any]:
    return {name: getattr(layer, name) for name in layer.__dataclass_fields__}


def _small(model: str) -> Architecture:
    full = ARCHITECTURES[model]
    return Architecture(full.title, SIDES[model], _slim(full.layers))


def _on_graphs(tf: Any, architecture: Architecture, open_session: Any) -> Gradients:
    images, labels = synthetic_batch(architecture, BATCH)
    with tf.Graph().as_default():
        parameters = initial_parameters(architecture)
        variables = {name: tf.Variable(value) for name, value in parameters.items()}
        loss = on_graphs.loss_of(tf, architecture, variables, tf.constant(images), labels)
        gradients = dict(zip(variables, tf.gradients(loss, list(variables.values())), strict=True))
        with open_session() as sess:
            sess.run(tf.global_variables_initializer())
            return sess.run((loss, gradients))


def _on_torch(architecture: Architecture) -> tuple[float, Any]:
    torch = pytest.importorskip("torch")
    from benchmarks.models.on_torch import Network

    network = Network(architecture)
    network.fill(initial_parameters(architecture))
    images, labels = map(torch.from_numpy, synthetic_batch(architecture, BATCH))
    logits = network(images.permute(0, 3, 1, 2))
    loss = torch.nn.functional.cross_entropy(logits, labels.long())
    loss.backward()
    return loss.item(), network.named()


def _on_jax(architecture: Architecture) -> Gradients:
    import jax

    from benchmarks.models import on_jax

    def loss(parameters: Any) -> Any:
        images, labels = synthetic_batch(architecture, BATCH)
        return on_jax.loss_of(architecture, "float32", parameters, images, labels)

    value, gradients = jax.value_and_grad(loss)(initial_parameters(architecture))
    return float(value), {name: np.asarray(gradient) for name, gradient in gradients.items()}


def _assert_near(ours: np.ndarray, theirs: np.ndarray, name: str, tolerance: float) -> None:
    error = np.linalg.norm(ours - theirs) / max(np.linalg.norm(theirs), 1e-8)
    assert error <= tolerance, f"{name}: {error:.2g}"


@pytest.mark.parametrize("model", SIDES)
def test_losses_and_gradients_agree(model):
    tensorflow = pytest.importorskip("tensorflow.compat.v1")
    tensorflow.disable_v2_behavior()
    architecture = _small(model)
    loss, gradients = _on_graphs(runnel, architecture, lambda: session(INTERPRETED))
    # Statistics of few elements magnify differences of rounding.
    tolerance = 5e-2 if model == "resnet50" else 1e-3
    peers = [_on_graphs(tensorflow, architecture, tensorflow.Session)]
    if model == "vgg_a":  # the others take JAX long to compile
        peers.append(_on_jax(architecture))
    for peer in peers:
        assert loss == pytest.approx(peer[0], rel=1e-3)
        for name, gradient in gradients.items():
            _assert_near(gradient, peer[1][name], name, tolerance)
    torch_loss, parameters = _on_torch(architecture)
    assert loss == pytest.approx(torch_loss, rel=1e-3)
    for name, (parameter, arrange) in parameters.items():
        _assert_near(arrange(gradients[name]), parameter.grad.numpy(), name, tolerance)
