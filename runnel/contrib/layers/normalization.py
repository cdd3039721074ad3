"""Normalisation over batches, samples, groups of channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.contrib.framework.arg_scope import add_arg_scope
from runnel.contrib.framework.variables import model_variable
from runnel.contrib.layers.scoping import (
    add_variable_to_collections,
    as_input,
    channels,
    finished,
    layer_scope,
)
from runnel.control_flow.smart_cond import smart_cond, smart_constant_value
from runnel.graph.collections import GraphKeys
from runnel.graph.dtypes import bfloat16, float16, float32
from runnel.graph.graph import control_dependencies, get_default_graph
from runnel.ops.array_shape import reshape, shape
from runnel.ops.batch_norm import batch_normalization
from runnel.ops.casting import cast
from runnel.ops.control import identity
from runnel.ops.fill import ones, zeros
from runnel.ops.fused_batch_norm import fused_batch_norm
from runnel.ops.moments import moments, weighted_moments
from runnel.train.moving_averages import assign_moving_average
from runnel.variables.initializers import Ones, Zeros


class _Parameters:
    """Makes the variables of a normalisation, as the arguments of its function say."""

    def __init__(
        self,
        dims: Any,
        dtype: Any,
        initializers: dict[str, Any] | None,
        collections: Any,
        trainable: bool,
        regularizers: dict[str, Any] | None = None,
    ) -> None:
        self._dims = dims
        self._dtype = float32 if dtype in (float16, bfloat16) else dtype
        self._initializers = initializers or {}
        self._collections = collections
        self._trainable = trainable
        self._regularizers = regularizers or {}

    def make(self, name: str, default: Any, trainable: bool = True) -> Any:
        made = model_variable(
            name,
            shape=self._dims,
            dtype=self._dtype,
            initializer=self._initializers.get(name, default),
            regularizer=self._regularizers.get(name),
            trainable=trainable and self._trainable,
        )
        add_variable_to_collections(made, self._collections, name)
        return made


@add_arg_scope
def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Any = None,
    param_initializers: Any = None,
    param_regularizers: Any = None,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    batch_weights: Any = None,
    fused: bool | None = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_decay: float = 0.99,
    adjustment: Any = None,
) -> Any:
    """Gives each channel the mean ``beta`` and the deviation ``gamma``, over a batch in training.

    Moving averages serve where it is not training. The operations that update them are in
    ``updates_collections``, to be run with the training step; with None they run with the layer.

    Example:
        >>> tf.contrib.layers.batch_norm(net, is_training=training, updates_collections=None)
    """
    if renorm or adjustment is not None:
        raise NotImplementedError("tf.contrib.layers.batch_norm has no renorm and adjustment")
    given = as_input(inputs)
    rank = len(given.shape)
    first = channels(data_format) == "channels_first" and rank > 2
    depth = given.shape[1 if first else rank - 1].value
    if depth is None:
        raise ValueError(f"The number of channels must be known, but the inputs are {given.shape}")
    # TensorFlow takes the fused operation where it can: its variance has Bessel's correction.
    use_fused = (fused is None or fused) and batch_weights is None and rank in (2, 4)
    with layer_scope(scope, "BatchNorm", given, reuse) as opened:
        parameters = _Parameters(
            *([depth], given.dtype.base_dtype, param_initializers, variables_collections),
            *(trainable, param_regularizers),
        )
        kind = parameters._dtype
        beta = gamma = None
        # TensorFlow makes them in this order, which shows in lists of variables, where it takes
        # tf.layers.BatchNormalization, and in the other order elsewhere.
        of_core_layer = (
            batch_weights is None
            and updates_collections == GraphKeys.UPDATE_OPS
            and not zero_debias_moving_mean
            and not (rank == 2 and use_fused)
        )
        if scale and of_core_layer:
            gamma = parameters.make("gamma", Ones())
        if center:
            beta = parameters.make("beta", Zeros())
        if scale and gamma is None:
            gamma = parameters.make("gamma", Ones())
        mean_kept = parameters.make("moving_mean", Zeros(), trainable=False)
        variance_kept = parameters.make("moving_variance", Ones(), trainable=False)

        if use_fused:
            image = reshape(given, [-1, 1, 1, depth]) if rank == 2 else given
            factor = ones([depth], kind) if gamma is None else gamma
            offset = zeros([depth], kind) if beta is None else beta
            form = "NCHW" if first else "NHWC"

            def by_batch() -> Any:
                return fused_batch_norm(image, factor, offset, epsilon=epsilon, data_format=form)

            def by_average() -> Any:
                return fused_batch_norm(
                    *(image, factor, offset, mean_kept, variance_kept),
                    epsilon=epsilon,
                    data_format=form,
                    is_training=False,
                )

            outputs, mean, variance = smart_cond(is_training, by_batch, by_average)
            outputs = reshape(outputs, shape(given)) if rank == 2 else outputs
        else:
            axes = [0, *range(2, rank)] if first else list(range(rank - 1))
            wide = [1, depth, *([1] * (rank - 2))] if first else [depth]

            def of_batch() -> Any:
                if batch_weights is None:
                    return moments(given, axes)
                weights = cast(batch_weights, given.dtype.base_dtype)
                per_sample = reshape(weights, [-1, *([1] * (rank - 1))])
                return weighted_moments(given, axes, per_sample)

            mean, variance = smart_cond(
                is_training, of_batch, lambda: (identity(mean_kept), identity(variance_kept))
            )
            mean_of, variance_of, beta_of, gamma_of = (
                None if value is None else reshape(cast(value, given.dtype.base_dtype), wide)
                for value in (mean, variance, beta, gamma)
            )
            outputs = batch_normalization(given, mean_of, variance_of, beta_of, gamma_of, epsilon)
        outputs.set_shape(given.shape)

        def updates() -> list[Any]:
            return [
                assign_moving_average(kept, cast(value, kind), decay, zero_debias=debias)
                for kept, value, debias in (
                    (mean_kept, mean, zero_debias_moving_mean),
                    (variance_kept, variance, False),
                )
            ]

        if smart_constant_value(is_training) is not False:
            if updates_collections is None:
                outputs = smart_cond(
                    is_training, lambda: _after(updates(), outputs), lambda: outputs
                )
            else:
                kept = smart_cond(
                    is_training, updates, lambda: [identity(mean_kept), identity(variance_kept)]
                )
                names = updates_collections
                for collection in [names] if isinstance(names, str) else names:
                    for update in kept:
                        get_default_graph().add_to_collection(collection, update)
        return finished(outputs, opened, activation_fn, outputs_collections)


def _after(first: list[Any], value: Any) -> Any:
    with control_dependencies(first):
        return identity(value)


@add_arg_scope
def layer_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    activation_fn: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: Any = None,
) -> Any:
    """Normalises each sample over its axes from ``begin_norm_axis`` on (Ba et al.)."""
    given = as_input(inputs)
    rank = len(given.shape)
    begin = begin_norm_axis % rank
    if begin_params_axis >= rank or begin_norm_axis >= rank:
        raise ValueError(
            f"begin_params_axis ({begin_params_axis}) and begin_norm_axis ({begin_norm_axis}) must "
            f"be less than the rank of the inputs ({rank})"
        )
    params = given.shape[begin_params_axis % rank :]
    if not params.is_fully_defined():
        raise ValueError(f"Inputs: shape {given.shape} is not fully known from begin_params_axis")
    with layer_scope(scope, "LayerNorm", given, reuse) as opened:
        made = _Parameters(params, given.dtype.base_dtype, None, variables_collections, trainable)
        beta = made.make("beta", Zeros()) if center else None
        gamma = made.make("gamma", Ones()) if scale else None
        mean, variance = moments(given, list(range(begin, rank)), keepdims=True)
        in_type = _caster(given)
        # TensorFlow's: half precision cannot represent less.
        epsilon = 1e-3 if given.dtype.base_dtype == float16 else 1e-12
        outputs = batch_normalization(given, mean, variance, in_type(beta), in_type(gamma), epsilon)
        outputs.set_shape(given.shape)
        return finished(outputs, opened, activation_fn, outputs_collections)


def _caster(inputs: Any) -> Callable[[Any], Any]:
    """A function that gives parameters the type of the inputs."""
    kind = inputs.dtype.base_dtype
    return lambda value: None if value is None else cast(value, kind)


@add_arg_scope
def instance_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Any:
    """Normalises each channel of each sample over its space (Ulyanov et al.)."""
    given = as_input(inputs)
    rank = len(given.shape)
    axis = 1 if channels(data_format) == "channels_first" else rank - 1
    depth = given.shape[axis].value
    if depth is None:
        raise ValueError(f"The number of channels must be known, but the inputs are {given.shape}")
    with layer_scope(scope, "InstanceNorm", given, reuse) as opened:
        made = _Parameters(
            *([depth], given.dtype.base_dtype, param_initializers, variables_collections),
            trainable,
        )
        wide = [1] * rank
        wide[axis] = depth
        beta = reshape(made.make("beta", Zeros()), wide) if center else None
        gamma = reshape(made.make("gamma", Ones()), wide) if scale else None
        others = [i for i in range(1, rank) if i != axis]
        mean, variance = moments(given, others, keepdims=True)
        in_type = _caster(given)
        outputs = batch_normalization(given, mean, variance, in_type(beta), in_type(gamma), epsilon)
        outputs.set_shape(given.shape)
        return finished(outputs, opened, activation_fn, outputs_collections)


@add_arg_scope
def group_norm(
    inputs: Any,
    groups: int = 32,
    channels_axis: int = -1,
    reduction_axes: Any = (-3, -2),
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    mean_close_to_zero: bool = False,
) -> Any:
    """Normalises groups of channels of each sample over its space (Wu and He)."""
    given = as_input(inputs)
    rank = len(given.shape)
    axis = channels_axis % rank
    depth = given.shape[axis].value
    if depth is None or depth % groups:
        raise ValueError(f"{groups} groups do not divide the {depth} channels of {given.shape}")
    # The channels become two axes: groups, and the channels of each.
    sizes = shape(given)
    cut = [sizes[i] for i in range(axis)] + [groups, depth // groups]
    cut += [sizes[i] for i in range(axis + 1, rank)]
    space = [i % rank for i in reduction_axes]
    reduced = sorted([i + (i > axis) for i in space] + [axis + 1])
    with layer_scope(scope, "GroupNorm", given, reuse) as opened:
        made = _Parameters(
            *([depth], given.dtype.base_dtype, param_initializers, variables_collections),
            trainable,
        )
        wide = [1] * (rank + 1)
        wide[axis : axis + 2] = [groups, depth // groups]
        beta = reshape(made.make("beta", Zeros()), wide) if center else None
        gamma = reshape(made.make("gamma", Ones()), wide) if scale else None
        grouped = reshape(given, cut)
        mean, variance = moments(grouped, reduced, keepdims=True)
        in_type = _caster(given)
        outputs = batch_normalization(
            grouped, mean, variance, in_type(beta), in_type(gamma), epsilon
        )
        outputs = reshape(outputs, sizes)
        outputs.set_shape(given.shape)
        return finished(outputs, opened, activation_fn, outputs_collections)
