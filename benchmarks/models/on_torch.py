"""The models in PyTorch: channels last, cuDNN's benchmark mode, fused SGD, `autocast` for bfloat16.

Eager, or through `torch.compile`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy
import torch
from torch import nn
from torch.nn import functional

from benchmarks.models.architectures import (
    ARCHITECTURES,
    Architecture,
    Conv,
    Dense,
    MaxPool,
    Recurrence,
    apply,
    initial_parameters,
    survey,
    synthetic_batch,
)
from benchmarks.models.on_graphs import CHECKED_STEPS, RATE
from benchmarks.workload import Workload


class Network(nn.Module):
    """An architecture with parameters as PyTorch lays them out."""

    def __init__(self, architecture: Architecture, image_size: int | None = None) -> None:
        super().__init__()
        self._layers = architecture.layers
        self._parts = nn.ModuleDict()
        found = survey(architecture, image_size)
        self._flattened = found.flattened
        for name, shape in found.shapes.items():
            layer, _, kind = name.partition("/")
            if kind == "filter":
                size, _, inputs, filters = shape
                conv = _find(architecture.layers, layer)
                assert isinstance(conv, Conv)
                self._parts[layer] = nn.Conv2d(
                    inputs, filters, size, conv.stride, conv.padding, bias=not conv.normalized
                )
                if conv.normalized:
                    self._parts[f"{layer}_norm"] = nn.BatchNorm2d(
                        filters, eps=1e-3, track_running_stats=False
                    )
            elif kind == "weights":
                self._parts[layer] = nn.Linear(*shape)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The logits."""
        value: torch.Tensor = apply(self, self._layers, images)
        return value

    def conv(self, value: torch.Tensor, layer: Conv) -> torch.Tensor:
        """`nn.Conv2d`, perhaps with `nn.BatchNorm2d`."""
        value = self._parts[layer.name](value)
        if layer.normalized:
            value = self._parts[f"{layer.name}_norm"](value)
        return functional.relu(value) if layer.relu else value

    def max_pool(self, value: torch.Tensor, layer: MaxPool) -> torch.Tensor:
        """`max_pool2d`; over even sides, TensorFlow's "SAME" is a ceiling."""
        if layer.same and layer.stride == 1:
            return functional.max_pool2d(value, layer.size, 1, layer.size // 2)
        if not layer.same:
            return functional.max_pool2d(value, layer.size, layer.stride)
        side = value.shape[-1]
        reach = (-(-side // layer.stride) - 1) * layer.stride + layer.size - side
        if reach <= 1:
            return functional.max_pool2d(value, layer.size, layer.stride, ceil_mode=True)
        low = reach // 2
        value = functional.pad(value, (low, reach - low, low, reach - low), value=-math.inf)
        return functional.max_pool2d(value, layer.size, layer.stride)

    def global_average(self, value: torch.Tensor) -> torch.Tensor:
        """The mean over the positions."""
        return value.mean((2, 3))

    def dense(self, value: torch.Tensor, layer: Dense) -> torch.Tensor:
        """`nn.Linear`, over flattened images."""
        value = self._parts[layer.name](torch.flatten(value, 1))
        return functional.relu(value) if layer.relu else value

    def concatenate(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        """The channels side by side."""
        return torch.cat(list(values), 1)

    def add_and_rectify(self, value: torch.Tensor, shortcut: torch.Tensor) -> torch.Tensor:
        """The rectified sum."""
        return functional.relu(value + shortcut)

    def named(self) -> dict[str, tuple[torch.Tensor, Callable[[numpy.ndarray], numpy.ndarray]]]:
        """Each parameter by its name, with the change of layout from the common one."""
        found: dict[str, tuple[torch.Tensor, Callable[[numpy.ndarray], numpy.ndarray]]] = {}
        for name, part in self._parts.items():
            if isinstance(part, nn.Conv2d):
                found[f"{name}/filter"] = (part.weight, lambda a: a.transpose(3, 2, 0, 1))
                if part.bias is not None:
                    found[f"{name}/bias"] = (part.bias, lambda a: a)
            elif isinstance(part, nn.BatchNorm2d):
                name = name.removesuffix("_norm")
                found[f"{name}/scale"] = (part.weight, lambda a: a)
                found[f"{name}/offset"] = (part.bias, lambda a: a)
            else:
                found[f"{name}/weights"] = (part.weight, _dense_layout(self._flattened[name]))
                found[f"{name}/bias"] = (part.bias, lambda a: a)
        return found

    def fill(self, parameters: dict[str, numpy.ndarray]) -> None:
        """Set the parameters."""
        with torch.no_grad():
            for name, (parameter, arrange) in self.named().items():
                array = numpy.ascontiguousarray(arrange(parameters[name]))
                parameter.copy_(torch.from_numpy(array))


def _dense_layout(flattened: tuple[int, ...]) -> Callable[[numpy.ndarray], numpy.ndarray]:
    """(inputs, units) to (units, inputs); flattened images have their channels first here."""
    if len(flattened) == 1:
        return lambda a: a.T
    return lambda a: a.reshape(*flattened, -1).transpose(3, 2, 0, 1).reshape(a.shape[1], -1)


def _find(layers: Any, name: str) -> Any:
    for layer in layers:
        inner = getattr(layer, "paths", None) or (
            (layer.path, layer.shortcut) if hasattr(layer, "path") else ()
        )
        for path in inner:
            if (found := _find(path, name)) is not None:
                return found
        if getattr(layer, "name", None) == name:
            return layer
    return None


class LastOutput(nn.Module):
    """`nn.LSTM` and a linear layer on its last output."""

    def __init__(self, recurrence: Recurrence) -> None:
        super().__init__()
        units = recurrence.units
        self.lstm = nn.LSTM(units, units)
        self.linear = nn.Linear(units, recurrence.classes, bias=False)
        found = {name: torch.from_numpy(v) for name, v in recurrence.parameters().items()}
        with torch.no_grad():
            self.lstm.weight_ih_l0.copy_(found["kernel"][:units].T)
            self.lstm.weight_hh_l0.copy_(found["kernel"][units:].T)
            self.lstm.bias_ih_l0.copy_(found["bias"])
            self.lstm.bias_hh_l0.zero_()
            self.linear.weight.copy_(found["weights"].T)
        self.lstm.bias_hh_l0.requires_grad_(False)  # the second bias that the others do not have

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """The logits."""
        outputs, _ = self.lstm(inputs)
        logits: torch.Tensor = self.linear(outputs[-1])
        return logits


def lstm_step(
    compiled: bool = False, precision: str = "float32", fetches: bool = False, **sizes: int
) -> Workload:
    """Training steps of an LSTM."""
    recurrence = Recurrence(**sizes)
    inputs, labels = (torch.from_numpy(array) for array in recurrence.data())
    network, data = LastOutput(recurrence), (inputs, labels.long())
    return measured(network, data, precision, compiled, fetches=fetches)


def training_step(
    model: str,
    batch: int,
    precision: str = "float32",
    image_size: int | None = None,
    compiled: bool = False,
    momentum: float = 0.0,
    fetches: bool = False,
) -> Workload:
    """Training steps on one synthetic batch that lies where the parameters lie."""
    architecture = ARCHITECTURES[model]
    network = Network(architecture, image_size)
    network.fill(initial_parameters(architecture, image_size))
    images, labels = (
        torch.from_numpy(array) for array in synthetic_batch(architecture, batch, image_size)
    )
    images = images.permute(0, 3, 1, 2)  # NHWC in memory is PyTorch's "channels last"
    return measured(network, (images, labels.long()), precision, compiled, momentum, fetches)


def measured(
    network: nn.Module,
    data: tuple[torch.Tensor, torch.Tensor],
    precision: str,
    compiled: bool,
    momentum: float = 0.0,
    fetches: bool = False,
) -> Workload:
    """The workload that trains a classifier; a step may bring its loss back."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cuda.matmul.allow_tf32 = True
    network = network.to(device, memory_format=torch.channels_last)
    inputs, labels = (tensor.to(device) for tensor in data)
    if inputs.ndim == 4:
        inputs = inputs.contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(
        [p for p in network.parameters() if p.requires_grad], RATE, momentum, fused=True
    )

    def loss_of(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device, torch.bfloat16) if precision == "bf16" else nullcontext():
            logits = network(inputs)
            return functional.cross_entropy(logits, labels)

    forward = torch.compile(loss_of) if compiled else loss_of

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = forward(inputs, labels)
        loss.backward()
        optimizer.step()
        return loss

    losses = [step().item() for _ in range(CHECKED_STEPS)]

    def run(iterations: int) -> None:
        loss = torch.zeros([])
        for _ in range(iterations):
            loss = step()
            if fetches:
                loss.item()
        loss.item()

    return Workload(run, facts=lambda: {"losses": losses})
