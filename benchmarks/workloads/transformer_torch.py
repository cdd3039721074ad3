"""The transformer encoder in PyTorch: fused attention and Adam, `autocast`, `torch.compile`."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

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


def encoder_loss(
    sizes: Sizes, parameters: dict[str, torch.Tensor], tokens: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """The mean cross-entropy of the labels."""

    def dense(value: torch.Tensor, name: str) -> torch.Tensor:
        return functional.linear(value, parameters[f"{name}/weights"].T, parameters[f"{name}/bias"])

    def norm(value: torch.Tensor, name: str) -> torch.Tensor:
        scale, offset = parameters[f"{name}/scale"], parameters[f"{name}/offset"]
        return functional.layer_norm(value, (sizes.units,), scale, offset, NORM_EPSILON)

    def heads(value: torch.Tensor) -> torch.Tensor:
        apart = value.view(sizes.batch, sizes.length, sizes.heads, sizes.head_units)
        return apart.transpose(1, 2)

    value = functional.embedding(tokens, parameters["tokens"]) + parameters["positions"]
    for layer in range(sizes.layers):
        inputs = norm(value, f"{layer}/before_attention")
        query, key, seen = (
            heads(dense(inputs, f"{layer}/{part}")) for part in ("query", "key", "value")
        )
        mixed = functional.scaled_dot_product_attention(query, key, seen).transpose(1, 2)
        value = value + dense(mixed.reshape(inputs.shape), f"{layer}/output")
        inner = functional.relu(dense(norm(value, f"{layer}/before_inner"), f"{layer}/inner"))
        value = value + dense(inner, f"{layer}/outer")
    logits = dense(norm(value, "last"), "logits")
    return functional.cross_entropy(logits.view(-1, sizes.vocabulary).float(), labels.view(-1))


def training_step(precision: str, fetches: bool, compiled: bool = False, **sizes: int) -> Workload:
    """Training steps on one batch that lies where the parameters lie."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    encoder = Sizes(**sizes)
    parameters = {
        name: torch.from_numpy(value).to(device).requires_grad_()
        for name, value in encoder.parameters().items()
    }
    tokens, labels = (torch.from_numpy(array).to(device).long() for array in encoder.data())
    optimizer = torch.optim.Adam(
        parameters.values(), RATE, (BETA_1, BETA_2), EPSILON, fused=device == "cuda"
    )

    def loss_of() -> torch.Tensor:
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bf16"):
            return encoder_loss(encoder, parameters, tokens, labels)

    forward: Any = torch.compile(loss_of) if compiled else loss_of

    def step() -> torch.Tensor:
        loss = forward()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return repeated(step, lambda loss: loss.item(), fetches)
