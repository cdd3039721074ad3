"""Bijectors whose shift and scale a network computes: autoregressive flows and RealNVP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.control_flow.loop import while_loop
from runnel.distributions.bijectors.bijector import Bijector
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.layers.fully_connected import Dense, dense
from runnel.ops.activations import relu
from runnel.ops.array_shape import expand_dims, reshape, shape
from runnel.ops.clipping import clip_by_value
from runnel.ops.control import stop_gradient
from runnel.ops.elementwise import exp
from runnel.ops.fill import zeros, zeros_like
from runnel.ops.joining import concat
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.splitting import split, unstack
from runnel.variables.initializers import GlorotNormal
from runnel.variables.template import make_template

ShiftAndLogScale = tuple[Tensor | None, Tensor | None]


def _moved(x: Tensor, found: ShiftAndLogScale) -> Tensor:
    shift, log_scale = found
    y = x if log_scale is None else x * exp(log_scale)
    return y if shift is None else y + shift


def _moved_back(y: Tensor, found: ShiftAndLogScale) -> Tensor:
    shift, log_scale = found
    x = y if shift is None else y - shift
    return x if log_scale is None else x * exp(-log_scale)


class MaskedAutoregressiveFlow(Bijector):
    """Shifts and scales each element by what a network makes of those before it.

    ``shift_and_log_scale_fn(y)`` returns both, either of them None; element ``i`` of them may
    depend only on ``y[..., :i]``. The inverse is one call of it, ``forward`` one for each element.

    Example:
        >>> flow = tfb.MaskedAutoregressiveFlow(
        ...     tfb.masked_autoregressive_default_template(hidden_layers=[64, 64])
        ... )
        >>> density = tfd.TransformedDistribution(
        ...     tfd.Normal(0.0, 1.0), bijector=flow, event_shape=[dims]
        ... )
    """

    def __init__(
        self,
        shift_and_log_scale_fn: Callable[..., ShiftAndLogScale],
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        unroll_loop: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            is_constant_jacobian=is_constant_jacobian,
            validate_args=validate_args,
            forward_min_event_ndims=1,
            name=name or "masked_autoregressive_flow",
        )
        self._shift_and_log_scale = shift_and_log_scale_fn
        self._unroll = unroll_loop

    def _forward(self, x: Tensor, **condition: Any) -> Tensor:
        def once(y: Tensor) -> Tensor:
            return _moved(x, self._shift_and_log_scale(y, **condition))

        start = zeros_like(x)
        if self._unroll:
            size = x.shape[-1].value
            if size is None:
                raise ValueError("The final dimension of `x` must be known to unroll the loop.")
            for _ in range(size):
                start = once(start)
            return start
        size = shape(x)[-1]
        # Outside the loop, so that the network's variables are made outside it.
        first = once(start)
        _, found = while_loop(
            lambda i, _: i < size, lambda i, y: (i + 1, once(y)), (1, first), back_prop=True
        )
        found.set_shape(x.shape)
        return found

    def _inverse(self, y: Tensor, **condition: Any) -> Tensor:
        return _moved_back(y, self._shift_and_log_scale(y, **condition))

    def _inverse_log_det_jacobian(self, y: Tensor, **condition: Any) -> Any:
        _, log_scale = self._shift_and_log_scale(y, **condition)
        if log_scale is None:
            return zeros([], y.dtype.base_dtype)
        return -reduce_sum(log_scale, -1)


def _mask(blocks: int, inputs: int, outputs: int, exclusive: bool) -> np.ndarray:
    """Which input each output sees: those of earlier blocks and, if not exclusive, of its own."""
    of_input = np.minimum(np.arange(inputs) // (inputs // blocks), blocks)
    of_output = np.arange(outputs) // (outputs // blocks)
    seen = of_input[:, None] < of_output if exclusive else of_input[:, None] <= of_output
    # Inputs that no block holds are seen by nobody.
    return seen & (of_input < blocks)[:, None]


def masked_dense(
    inputs: Any,
    units: int,
    num_blocks: int | None = None,
    exclusive: bool = False,
    kernel_initializer: Any = None,
    reuse: Any = None,
    name: str | None = None,
    **kwargs: Any,
) -> Tensor:
    """A dense layer whose outputs see only the inputs of their block and those before it.

    Outputs and inputs are cut into ``num_blocks`` blocks. With ``exclusive`` an output does not
    see its own block. (Germain et al., *MADE*, 2015.)
    """
    size = inputs.shape[-1].value
    if size is None:
        raise NotImplementedError("Rightmost dimension must be known prior to graph execution.")
    blocks = size if num_blocks is None else num_blocks
    if blocks < 1 or blocks > size or blocks > units:
        raise ValueError(f"{blocks} blocks do not fit {size} inputs and {units} outputs")
    mask = _mask(blocks, size, units, exclusive)
    begin = GlorotNormal() if kernel_initializer is None else kernel_initializer

    def masked(dims: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return begin(dims, dtype, partition_info) * mask.astype(dtype.as_numpy_dtype)

    with name_scope(name, "masked_dense", [inputs, units, blocks]):
        layer = Dense(
            units,
            kernel_initializer=masked,
            kernel_constraint=lambda kernel: kernel * mask.astype(kernel.dtype.as_numpy_dtype),
            name=name,
            dtype=inputs.dtype.base_dtype,
            _scope=name,
            _reuse=reuse,
            **kwargs,
        )
        return layer.apply(inputs)


def _bounded(x: Tensor, low: float, high: float) -> Tensor:
    """``x`` within bounds, with the gradient of ``x``."""
    return x + stop_gradient(clip_by_value(x, low, high) - x)


def masked_autoregressive_default_template(
    hidden_layers: Sequence[int],
    shift_only: bool = False,
    activation: Any = relu,
    log_scale_min_clip: float = -5.0,
    log_scale_max_clip: float = 3.0,
    log_scale_clip_gradient: bool = False,
    name: str | None = None,
    **kwargs: Any,
) -> Callable[..., ShiftAndLogScale]:
    """A network of masked layers for :class:`MaskedAutoregressiveFlow`."""
    name = name or "masked_autoregressive_default_template"

    def network(x: Tensor) -> ShiftAndLogScale:
        size = x.shape[-1].value
        if size is None:
            raise NotImplementedError("Rightmost dimension must be known prior to graph execution.")
        whole = shape(x)
        wanted = x.shape
        net = reshape(x, [1, -1]) if x.shape.rank == 1 else x
        for number, units in enumerate(hidden_layers):
            net = masked_dense(net, units, size, number == 0, activation=activation, **kwargs)
        outputs = (1 if shift_only else 2) * size
        net = masked_dense(net, outputs, size, not hidden_layers, **kwargs)
        if shift_only:
            shift = reshape(net, whole)
            shift.set_shape(wanted)
            return shift, None
        shift, log_scale = unstack(reshape(net, concat([whole, [2]], 0)), num=2, axis=-1)
        clip = clip_by_value if log_scale_clip_gradient else _bounded
        log_scale = clip(log_scale, log_scale_min_clip, log_scale_max_clip)
        shift.set_shape(wanted)
        log_scale.set_shape(wanted)
        return shift, log_scale

    return make_template(name, network)


class RealNVP(Bijector):
    """Shifts and scales the elements behind ``num_masked`` by what a network makes of those.

    ``shift_and_log_scale_fn(first, count)`` returns both for the other ``count`` elements. Put a
    :class:`Permute` between two of them. (Dinh et al., *Density estimation using Real NVP*, 2016.)
    """

    def __init__(
        self,
        num_masked: int,
        shift_and_log_scale_fn: Callable[..., ShiftAndLogScale],
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        if num_masked <= 0:
            raise ValueError("num_masked must be a positive integer.")
        super().__init__(
            is_constant_jacobian=is_constant_jacobian,
            validate_args=validate_args,
            forward_min_event_ndims=1,
            name=name or "real_nvp",
        )
        self._masked = num_masked
        self._shift_and_log_scale = shift_and_log_scale_fn

    def _network(self, whole: Tensor, **condition: Any) -> tuple[Tensor, Tensor, ShiftAndLogScale]:
        size = whole.shape[-1].value
        if size is None:
            raise NotImplementedError("Rightmost dimension must be known prior to graph execution.")
        if self._masked >= size:
            raise ValueError("Number of masked units must be smaller than the event size.")
        first, rest = whole[..., : self._masked], whole[..., self._masked :]
        found = self._shift_and_log_scale(first, size - self._masked, **condition)
        return first, rest, found

    def _forward(self, x: Tensor, **condition: Any) -> Tensor:
        first, rest, found = self._network(x, **condition)
        return concat([first, _moved(rest, found)], -1)

    def _inverse(self, y: Tensor, **condition: Any) -> Tensor:
        first, rest, found = self._network(y, **condition)
        return concat([first, _moved_back(rest, found)], -1)

    def _inverse_log_det_jacobian(self, y: Tensor, **condition: Any) -> Any:
        return -self._forward_log_det_jacobian(y, **condition)

    def _forward_log_det_jacobian(self, x: Tensor, **condition: Any) -> Any:
        _, log_scale = self._network(x, **condition)[2]
        if log_scale is None:
            return zeros([], x.dtype.base_dtype)
        return reduce_sum(log_scale, -1)


def real_nvp_default_template(
    hidden_layers: Sequence[int],
    shift_only: bool = False,
    activation: Any = relu,
    name: str | None = None,
    *args: Any,
    **kwargs: Any,
) -> Callable[..., ShiftAndLogScale]:
    """A network of dense layers for :class:`RealNVP`.

    As in TensorFlow, ``name`` does not reach the names of its variables.
    """

    def network(x: Tensor, output_units: int) -> ShiftAndLogScale:
        single = x.shape.rank == 1
        net = expand_dims(x, 0) if single else x
        for units in hidden_layers:
            net = dense(net, units, activation, *args, **kwargs)
        net = dense(net, (1 if shift_only else 2) * output_units, None, *args, **kwargs)
        net = net[0] if single else net
        if shift_only:
            return net, None
        shift, log_scale = split(net, 2, axis=-1)
        return shift, log_scale

    return make_template("real_nvp_default_template", network)
