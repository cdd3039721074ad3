"""Layers that behave differently in training: dropout and batch normalisation; and flattening."""

from __future__ import annotations

from math import prod
from typing import Any

from runnel.control_flow.smart_cond import smart_cond
from runnel.graph.dtypes import bfloat16, float16, float32
from runnel.graph.shapes import TensorShape, as_dims
from runnel.layers.base import Layer
from runnel.layers.by_name import as_initializer
from runnel.layers.input_spec import InputSpec
from runnel.ops.array_shape import reshape, shape
from runnel.ops.assign import assign_sub
from runnel.ops.batch_norm import batch_normalization as normalized
from runnel.ops.casting import cast
from runnel.ops.control import identity
from runnel.ops.fill import ones, zeros
from runnel.ops.fused_batch_norm import fused_batch_norm
from runnel.ops.moments import moments
from runnel.ops.sampling.dropout import dropout as dropped
from runnel.ops.transposition import transpose
from runnel.variables.initializers import Ones, Zeros


class Dropout(Layer):
    """In training, sets elements to 0 with the probability ``rate`` and scales up the others."""

    def __init__(
        self,
        rate: Any = 0.5,
        noise_shape: Any = None,
        seed: int | None = None,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.rate = rate
        self.noise_shape = noise_shape
        self.seed = seed

    def _noise(self, inputs: Any) -> Any:
        if self.noise_shape is None or hasattr(self.noise_shape, "graph"):
            return self.noise_shape
        given = shape(inputs)
        return [given[i] if n is None else n for i, n in enumerate(self.noise_shape)]

    def call(self, inputs: Any, training: Any = False, **kwargs: Any) -> Any:
        return smart_cond(
            training,
            lambda: dropped(
                inputs, noise_shape=self._noise(inputs), seed=self.seed, rate=self.rate
            ),
            lambda: identity(inputs),
        )

    def compute_output_shape(self, input_shape: Any) -> Any:
        return TensorShape(input_shape)


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: Any = None,
) -> Any:
    """A :class:`Dropout` layer that is made and applied at once.

    Example:
        >>> tf.layers.dropout(hidden, 0.4, training=is_training)
    """
    return Dropout(rate, noise_shape, seed, name=name)(inputs, training=training)


class Flatten(Layer):
    """Each sample as one row."""

    def __init__(self, data_format: str | None = None, name: Any = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.data_format = data_format or "channels_last"
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        dims = as_dims(inputs.shape)
        if self.data_format == "channels_first" and dims is not None and len(dims) > 2:
            order = [0, *range(2, len(dims)), 1]
            inputs = transpose(inputs, order)
            dims = tuple([dims[i] for i in order])
        if dims is not None and len(dims) == 1:
            return reshape(inputs, [-1, 1])
        if dims is None or None in dims[1:]:
            outputs = reshape(inputs, [shape(inputs)[0], -1])
        elif dims[0] is None:
            outputs = reshape(inputs, [-1, prod(dims[1:])])  # type: ignore[arg-type]
        else:
            outputs = reshape(inputs, [dims[0], -1])
        outputs.set_shape(self.compute_output_shape(dims))
        return outputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        dims = as_dims(input_shape)
        if dims is None:
            return TensorShape([None, None])
        rest = dims[1:] or (1,)
        return TensorShape([dims[0], None if None in rest else prod(rest)])  # type: ignore[arg-type]


def flatten(inputs: Any, name: Any = None, data_format: str = "channels_last") -> Any:
    """A :class:`Flatten` layer that is made and applied at once."""
    return Flatten(data_format=data_format, name=name)(inputs)


class BatchNormalization(Layer):
    """Gives each channel the mean ``beta`` and the deviation ``gamma``, over a batch in training.

    Moving averages of means and variances serve where it is not training. The operations that
    update them are in the collection ``tf.GraphKeys.UPDATE_OPS``: run them with the training step.

    Example:
        >>> y = tf.layers.batch_normalization(x, training=is_training)
        >>> with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        ...     train = optimizer.minimize(loss)
    """

    def __init__(
        self,
        axis: Any = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = Zeros,
        gamma_initializer: Any = Ones,
        moving_mean_initializer: Any = Zeros,
        moving_variance_initializer: Any = Ones,
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: Any = None,
        renorm_momentum: float = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: Any = None,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, name=name, **kwargs)
        if renorm or virtual_batch_size is not None or adjustment is not None:
            raise NotImplementedError(
                "BatchNormalization has no renorm, virtual_batch_size and adjustment yet"
            )
        self.axis = axis
        self.momentum = momentum
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        self.beta_initializer = as_initializer(beta_initializer)
        self.gamma_initializer = as_initializer(gamma_initializer)
        self.moving_mean_initializer = as_initializer(moving_mean_initializer)
        self.moving_variance_initializer = as_initializer(moving_variance_initializer)
        self.beta_regularizer = beta_regularizer
        self.gamma_regularizer = gamma_regularizer
        self.beta_constraint = beta_constraint
        self.gamma_constraint = gamma_constraint
        self.fused = fused

    def build(self, input_shape: Any) -> None:
        dims = as_dims(input_shape)
        if dims is None:
            raise ValueError("The rank of the inputs of BatchNormalization must be known")
        rank = len(dims)
        given = [self.axis] if isinstance(self.axis, int) else list(self.axis)
        self._axes = sorted(axis % rank for axis in given)
        if any(not -rank <= axis < rank for axis in given):
            raise ValueError(f"Invalid axis: {self.axis}")
        sizes = [dims[axis] for axis in self._axes]
        if None in sizes:
            raise ValueError(f"Input has undefined `axis` dimension. Input shape: {input_shape}")
        if self.fused is None:
            self.fused = rank == 4 and self._axes in ([1], [3])
        elif self.fused and (rank != 4 or self._axes not in ([1], [3])):
            raise ValueError(
                "Batch normalization with fused=True needs inputs of rank 4, and the axis 1 or 3"
            )
        self.input_spec = InputSpec(ndim=rank, axes={axis: dims[axis] for axis in self._axes})
        dtype = self.dtype or float32
        kind = float32 if dtype in (float16, bfloat16) else dtype
        shape_of = sizes
        if len(sizes) > 1:
            shape_of = [dims[i] if i in self._axes else 1 for i in range(rank)]
        self.gamma = self.beta = None
        if self.scale:
            self.gamma = self.add_weight(
                *("gamma", shape_of, kind, self.gamma_initializer),
                regularizer=self.gamma_regularizer,
                constraint=self.gamma_constraint,
            )
        if self.center:
            self.beta = self.add_weight(
                *("beta", shape_of, kind, self.beta_initializer),
                regularizer=self.beta_regularizer,
                constraint=self.beta_constraint,
            )
        self.moving_mean = self.add_weight(
            *("moving_mean", shape_of, kind, self.moving_mean_initializer), trainable=False
        )
        self.moving_variance = self.add_weight(
            *("moving_variance", shape_of, kind, self.moving_variance_initializer),
            trainable=False,
        )
        super().build(input_shape)

    def call(self, inputs: Any, training: Any = False, **kwargs: Any) -> Any:
        compute = self._fused if self.fused else self._plain
        return compute(inputs, training)

    def _update(self, variable: Any, value: Any, training: Any, inputs: Any) -> None:
        """Moves an average towards ``value``, in training."""
        kept = 1.0 - self.momentum

        def moved() -> Any:
            change = (variable - cast(value, variable.dtype.base_dtype)) * kept
            return assign_sub(variable, change)

        if training is False:
            return
        self.add_update(smart_cond(training, moved, lambda: identity(variable)), inputs)

    def _fused(self, inputs: Any, training: Any) -> Any:
        form = "NHWC" if self._axes == [3] else "NCHW"
        channels = self.moving_mean.shape
        kind = self.moving_mean.dtype.base_dtype
        gamma = self.gamma if self.scale else ones(channels, kind)
        beta = self.beta if self.center else zeros(channels, kind)

        def batch() -> Any:
            return fused_batch_norm(inputs, gamma, beta, epsilon=self.epsilon, data_format=form)

        def moving() -> Any:
            return fused_batch_norm(
                *(inputs, gamma, beta, self.moving_mean, self.moving_variance),
                epsilon=self.epsilon,
                data_format=form,
                is_training=False,
            )

        outputs, mean, variance = smart_cond(training, batch, moving)
        self._update(self.moving_mean, mean, training, inputs)
        self._update(self.moving_variance, variance, training, inputs)
        return outputs

    def _plain(self, inputs: Any, training: Any) -> Any:
        dims = as_dims(inputs.shape)
        assert dims is not None
        rank = len(dims)
        others = [i for i in range(rank) if i not in self._axes]
        many = len(self._axes) > 1
        wide = [dims[i] if i in self._axes else 1 for i in range(rank)]

        def broadcast(value: Any) -> Any:
            if value is None or many or self._axes == [rank - 1]:
                return value
            return reshape(value, wide)

        def batch() -> Any:
            return moments(inputs, others, keepdims=many)

        def moving() -> Any:
            return identity(self.moving_mean), identity(self.moving_variance)

        mean, variance = smart_cond(training, batch, moving)
        self._update(self.moving_mean, mean, training, inputs)
        self._update(self.moving_variance, variance, training, inputs)
        kind = inputs.dtype.base_dtype
        mean, variance, beta, gamma = (
            None if value is None else cast(broadcast(value), kind)
            for value in (mean, variance, self.beta, self.gamma)
        )
        outputs = normalized(inputs, mean, variance, beta, gamma, self.epsilon)
        outputs.set_shape(inputs.shape)
        return outputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        return TensorShape(input_shape)


def batch_normalization(
    inputs: Any,
    axis: Any = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = Zeros,
    gamma_initializer: Any = Ones,
    moving_mean_initializer: Any = Zeros,
    moving_variance_initializer: Any = Ones,
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: Any = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_momentum: float = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: Any = None,
) -> Any:
    """A :class:`BatchNormalization` layer that is made and applied at once."""
    layer = BatchNormalization(
        *(axis, momentum, epsilon, center, scale, beta_initializer, gamma_initializer),
        *(moving_mean_initializer, moving_variance_initializer, beta_regularizer),
        *(gamma_regularizer, beta_constraint, gamma_constraint, renorm, renorm_clipping),
        renorm_momentum=renorm_momentum,
        fused=fused,
        trainable=trainable,
        virtual_batch_size=virtual_batch_size,
        adjustment=adjustment,
        name=name,
        _scope=name,
        _reuse=reuse,
    )
    return layer(inputs, training=training)
