"""Layers of Keras without windows or time: dense, embedding, activations, noise, merging."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from inspect import signature
from math import prod
from typing import Any

from runnel import layers as of_graphs
from runnel.control_flow.smart_cond import smart_cond
from runnel.graph.dtypes import bool_ as boolean
from runnel.graph.dtypes import int32, int64
from runnel.graph.shapes import as_dims
from runnel.keras import activations, regularizers
from runnel.keras.activations import elu, relu, softmax
from runnel.keras.layer import Layer
from runnel.keras.layer_arguments import described_function, restored_function
from runnel.keras.learning_phase import resolved
from runnel.ops.activations import leaky_relu
from runnel.ops.arithmetic import add as added
from runnel.ops.arithmetic import maximum as larger
from runnel.ops.arithmetic import minimum as smaller
from runnel.ops.arithmetic import multiply as multiplied
from runnel.ops.arithmetic import subtract as subtracted
from runnel.ops.array_shape import expand_dims, reshape, shape, squeeze
from runnel.ops.batch_norm import batch_normalization
from runnel.ops.casting import cast
from runnel.ops.comparison import greater, logical_and, not_equal
from runnel.ops.control import identity
from runnel.ops.division import truediv
from runnel.ops.elementwise import negative
from runnel.ops.embedding import embedding_lookup
from runnel.ops.fill import ones_like
from runnel.ops.joining import concat
from runnel.ops.l2 import l2_normalize
from runnel.ops.matmul import matmul
from runnel.ops.moments import moments
from runnel.ops.padding import tile
from runnel.ops.reduce_functions import reduce_all, reduce_any, reduce_sum
from runnel.ops.sampling.random import random_normal
from runnel.ops.transposition import transpose


class Dense(of_graphs.Dense, Layer):
    """``activation(inputs @ kernel + bias)``, over the last axis of the inputs."""


class Flatten(of_graphs.Flatten, Layer):
    """Everything but the batch in one dimension."""

    supports_masking = True


class BatchNormalization(of_graphs.BatchNormalization, Layer):
    """Gives each channel the mean ``beta`` and the deviation ``gamma``, over a batch in training.

    The operations that move the averages are in :attr:`updates`: run them with the training step.
    """

    supports_masking = True

    def call(self, inputs: Any, training: Any = None, **kwargs: Any) -> Any:
        return super().call(inputs, training=resolved(training), **kwargs)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another layer like this one."""
        config = super().get_config()
        return {**config, "axis": list(self._axes)} if self.built else config


class LayerNormalization(Layer):
    """Gives each example the mean ``beta`` and the deviation ``gamma``, along ``axis``."""

    supports_masking = True

    def __init__(
        self,
        axis: Any = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.axis = [axis] if isinstance(axis, int) else list(axis)
        self.epsilon, self.center, self.scale = epsilon, center, scale
        self._beta = beta_initializer, beta_regularizer, beta_constraint
        self._gamma = gamma_initializer, gamma_regularizer, gamma_constraint

    def build(self, input_shape: Any) -> None:
        dims = as_dims(input_shape) or ()
        self._axes = sorted(axis % len(dims) for axis in self.axis)
        sizes = [dims[axis] for axis in self._axes]
        self._aligned = [d if i in self._axes else 1 for i, d in enumerate(dims)]
        wanted = (("gamma", self.scale, self._gamma), ("beta", self.center, self._beta))
        for name, used, (initializer, regularizer, constraint) in wanted:
            variable = None
            if used:
                variable = self.add_weight(
                    name,
                    sizes,
                    initializer=initializer,
                    regularizer=regularizer,
                    constraint=constraint,
                )
            setattr(self, name, variable)
        super().build(input_shape)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        mean, variance = moments(inputs, self._axes, keep_dims=True)
        beta: Any = getattr(self, "beta")  # noqa: B009 (made in a loop)
        gamma: Any = getattr(self, "gamma")  # noqa: B009
        offset = None if beta is None else reshape(beta, self._aligned)
        factor = None if gamma is None else reshape(gamma, self._aligned)
        return batch_normalization(inputs, mean, variance, offset, factor, self.epsilon)


class Dropout(of_graphs.Dropout, Layer):
    """In training, sets elements to 0 with the probability ``rate`` and scales up the others."""

    supports_masking = True

    def call(self, inputs: Any, training: Any = None, **kwargs: Any) -> Any:
        return super().call(inputs, training=resolved(training), **kwargs)


class SpatialDropout1D(Dropout):
    """Dropout of whole channels of sequences."""

    def _noise(self, inputs: Any) -> Any:
        given = shape(inputs)
        return [given[0], *[1] * (len(inputs.dims) - 2), given[len(inputs.dims) - 1]]


class SpatialDropout2D(SpatialDropout1D):
    """Dropout of whole channels of images."""


class SpatialDropout3D(SpatialDropout1D):
    """Dropout of whole channels of volumes."""


class GaussianNoise(Layer):
    """In training, adds normal noise of the deviation ``stddev``."""

    supports_masking = True

    def __init__(self, stddev: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stddev = stddev

    def call(self, inputs: Any, training: Any = None, **kwargs: Any) -> Any:
        return smart_cond(
            resolved(training),
            lambda: added(inputs, random_normal(shape(inputs), 0.0, self.stddev, inputs.dtype)),
            lambda: identity(inputs),
        )


class GaussianDropout(Layer):
    """In training, multiplies by normal noise around 1, as strong as dropout of ``rate``."""

    supports_masking = True

    def __init__(self, rate: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stddev = (rate / (1.0 - rate)) ** 0.5

    def call(self, inputs: Any, training: Any = None, **kwargs: Any) -> Any:
        return smart_cond(
            resolved(training),
            lambda: multiplied(
                inputs, random_normal(shape(inputs), 1.0, self.stddev, inputs.dtype)
            ),
            lambda: identity(inputs),
        )


class Embedding(Layer):
    """A row of a trained table for each number below ``input_dim``.

    Example:
        >>> tf.keras.layers.Embedding(100, 8)(tf.constant([[1, 2, 3]])).shape
        TensorShape([Dimension(1), Dimension(3), Dimension(8)])
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        activity_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        input_length: Any = None,
        **kwargs: Any,
    ) -> None:
        if not {"input_shape", "batch_input_shape", "batch_size"} & set(kwargs):
            lengths = input_length if isinstance(input_length, list | tuple) else [input_length]
            kwargs["input_shape"] = tuple(lengths)
        kwargs.setdefault("dtype", "float32")
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.input_dim, self.output_dim = int(input_dim), int(output_dim)
        self.mask_zero = self.supports_masking = mask_zero
        self._table = embeddings_initializer, embeddings_regularizer, embeddings_constraint

    def build(self, input_shape: Any) -> None:
        initializer, regularizer, constraint = self._table
        self.embeddings = self.add_weight(
            "embeddings",
            [self.input_dim, self.output_dim],
            initializer=initializer,
            regularizer=regularizer,
            constraint=constraint,
        )
        super().build(input_shape)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        wanted = inputs if inputs.dtype in (int32, int64) else cast(inputs, int32)
        return embedding_lookup(self.embeddings, wanted)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """With ``mask_zero``, True where the number is not 0."""
        return not_equal(inputs, 0) if self.mask_zero else None


class Masking(Layer):
    """Steps of sequences whose values all are ``mask_value`` count no more in later layers."""

    supports_masking = True

    def __init__(self, mask_value: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mask_value = mask_value

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """True where a step has another value."""
        return reduce_any(not_equal(inputs, self.mask_value), axis=-1)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        kept = reduce_any(not_equal(inputs, self.mask_value), axis=-1, keepdims=True)
        return multiplied(inputs, cast(kept, inputs.dtype))


class ActivityRegularization(Layer):
    """The inputs themselves, whose size is added to the losses."""

    supports_masking = True

    def __init__(self, l1: float = 0.0, l2: float = 0.0, **kwargs: Any) -> None:
        super().__init__(activity_regularizer=regularizers.L1L2(l1, l2), **kwargs)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return inputs


# Functions as layers --------------------------------------------------------------------------


class Lambda(Layer):
    """A function of a tensor."""

    def __init__(
        self,
        function: Callable[..., Any],
        output_shape: Any = None,
        mask: Any = None,
        arguments: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.function, self.arguments = function, dict(arguments or {})
        self.supports_masking, self.mask = mask is not None, mask

    def call(self, inputs: Any, mask: Any = None, training: Any = None) -> Any:
        arguments = dict(self.arguments)
        wanted = signature(self.function).parameters
        if "mask" in wanted:
            arguments["mask"] = mask
        if "training" in wanted and "training" not in arguments:
            arguments["training"] = training
        return self.function(inputs, **arguments)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """What the program gave as ``mask``, or what that makes of the inputs' mask."""
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def get_config(self) -> dict[str, Any]:
        """The function by its name; one without a name, by its code."""
        described, kind = described_function(self.function)
        config = {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": self._dtype and self._dtype.name,
        }
        if self._batch_input_shape is not None:
            config["batch_input_shape"] = list(self._batch_input_shape)
        return {
            **config,
            "function": described,
            "function_type": kind,
            "module": getattr(self.function, "__module__", None),
            "output_shape": None,
            "output_shape_type": "raw",
            "output_shape_module": None,
            "arguments": dict(self.arguments),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """The layer of a configuration, whose named functions are custom objects."""
        given = dict(config)
        kind = given.pop("function_type", "function")
        for unused in ("module", "output_shape", "output_shape_type", "output_shape_module"):
            given.pop(unused, None)
        given["function"] = restored_function(given["function"], kind)
        return cls(**given)


class Activation(Layer):
    """An activation, given by name or as a function."""

    supports_masking = True

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.activation = activations.get(activation)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return self.activation(inputs)


class ReLU(Layer):
    """The positive part, up to ``max_value``."""

    supports_masking = True

    def __init__(
        self,
        max_value: float | None = None,
        negative_slope: float = 0,
        threshold: float = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._arguments = negative_slope, max_value, threshold

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return relu(inputs, *self._arguments)


class LeakyReLU(Layer):
    """``x`` where it is positive, else ``alpha`` times ``x``."""

    supports_masking = True

    def __init__(self, alpha: float = 0.3, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return leaky_relu(inputs, self.alpha)


class ELU(Layer):
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``."""

    supports_masking = True

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return elu(inputs, self.alpha)


class ThresholdedReLU(Layer):
    """``x`` where it is above ``theta``, else 0."""

    supports_masking = True

    def __init__(self, theta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.theta = theta

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return multiplied(inputs, cast(greater(inputs, self.theta), inputs.dtype))


class Softmax(Layer):
    """Exponentials that add up to 1 along ``axis``."""

    supports_masking = True

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return softmax(inputs, axis=self.axis)


class PReLU(Layer):
    """A leaky rectifier that learns its slope for every element (shared along ``shared_axes``)."""

    supports_masking = True

    def __init__(
        self,
        alpha_initializer: Any = "zeros",
        alpha_regularizer: Any = None,
        alpha_constraint: Any = None,
        shared_axes: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._slope = alpha_initializer, alpha_regularizer, alpha_constraint
        self.shared_axes = [shared_axes] if isinstance(shared_axes, int) else shared_axes or ()

    def build(self, input_shape: Any) -> None:
        dims = list(as_dims(input_shape) or ())[1:]
        for axis in self.shared_axes:
            dims[axis - 1] = 1
        initializer, regularizer, constraint = self._slope
        self.alpha = self.add_weight(
            "alpha", dims, initializer=initializer, regularizer=regularizer, constraint=constraint
        )
        super().build(input_shape)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        below = multiplied(negative(self.alpha), relu(negative(inputs)))
        return added(relu(inputs), below)


# Shapes ---------------------------------------------------------------------------------------


class Reshape(Layer):
    """The elements of each example in another shape."""

    def __init__(self, target_shape: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_shape = tuple(target_shape)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        wanted = list(self.target_shape)
        own = inputs.dims[1:]
        if -1 in wanted and None not in own:
            others = prod(d for d in wanted if d != -1)
            wanted[wanted.index(-1)] = prod(own) // others
        return reshape(inputs, [shape(inputs)[0], *wanted])


class Permute(Layer):
    """The dimensions of each example, counted from 1, in another order."""

    def __init__(self, dims: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dims = tuple(dims)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return transpose(inputs, [0, *self.dims])


class RepeatVector(Layer):
    """Each example ``n`` times, along a new axis after the batch."""

    def __init__(self, n: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.n = n

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return tile(expand_dims(inputs, 1), [1, self.n, 1])


# Merging --------------------------------------------------------------------------------------


class Add(Layer):
    """The sum of several tensors."""

    merged: Any = staticmethod(added)
    supports_masking = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(inputs, list | tuple) or len(inputs) < 2:
            raise ValueError(f"The layer {self.name!r} merges a list of two or more tensors")
        return reduce(self.merged, inputs)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """True where all inputs that have masks count."""
        masks = [m for m in mask or () if m is not None]
        return reduce(logical_and, masks) if masks else None


class Multiply(Add):
    """The product of several tensors."""

    merged = staticmethod(multiplied)


class Subtract(Add):
    """The first of two tensors less the second."""

    merged = staticmethod(subtracted)


class Maximum(Add):
    """The largest of several tensors."""

    merged = staticmethod(larger)


class Minimum(Add):
    """The smallest of several tensors."""

    merged = staticmethod(smaller)


class Average(Add):
    """The mean of several tensors."""

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return truediv(super().call(inputs), float(len(inputs)))


class Concatenate(Layer):
    """Several tensors one after the other, along ``axis``."""

    supports_masking = True

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return concat(inputs, self.axis)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The masks of the inputs, one after the other."""
        masks = mask or ()
        if all(m is None for m in masks):
            return None
        whole = []
        for x, m in zip(inputs, masks, strict=True):
            if m is None:
                whole.append(cast(ones_like(x), boolean))
            else:
                rank = len(x.dims) - len(m.dims)
                wide = reshape(m, [*_sizes(m), *[1] * rank])
                whole.append(logical_and(wide, cast(ones_like(x), boolean)))
        return reduce_all(concat(whole, self.axis), axis=-1)


def _sizes(tensor: Any) -> list[Any]:
    """The dimensions, at run time where they are not known before."""
    given = shape(tensor)
    return [given[i] if d is None else d for i, d in enumerate(tensor.dims)]


class Dot(Layer):
    """The products of two tensors, summed along ``axes``."""

    def __init__(self, axes: Any, normalize: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axes, self.normalize = axes, normalize

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        a, b = inputs
        pair = [self.axes] * 2 if isinstance(self.axes, int) else self.axes
        axes = [axis % len(x.dims) for axis, x in zip(pair, (a, b), strict=True)]
        if self.normalize:
            a, b = l2_normalize(a, axes[0]), l2_normalize(b, axes[1])
        if len(a.dims) == len(b.dims) == 2:
            return reduce_sum(multiplied(a, b), axis=1, keepdims=True)
        a = expand_dims(a, 1) if len(a.dims) == 2 else a
        first = axes[0] + (1 if len(inputs[0].dims) == 2 else 0)
        second = b if len(b.dims) == 3 else expand_dims(b, 2)
        outputs = matmul(
            a, second, transpose_a=first == 1, transpose_b=len(b.dims) == 3 and axes[1] == 2
        )
        if len(inputs[0].dims) == 2:
            return squeeze(outputs, [1])
        return squeeze(outputs, [2]) if len(b.dims) == 2 else outputs


def _merging(layer: type[Layer]) -> Callable[..., Any]:
    def merge(inputs: Any, **kwargs: Any) -> Any:
        return layer(**kwargs)(inputs)

    merge.__name__ = layer.__name__.lower()
    merge.__doc__ = f"A :class:`{layer.__name__}` layer, made and applied at once."
    return merge


add, multiply, subtract, average = map(_merging, (Add, Multiply, Subtract, Average))
maximum, minimum = map(_merging, (Maximum, Minimum))


def concatenate(inputs: Any, axis: int = -1, **kwargs: Any) -> Any:
    """A :class:`Concatenate` layer, made and applied at once."""
    return Concatenate(axis=axis, **kwargs)(inputs)


def dot(inputs: Any, axes: Any, normalize: bool = False, **kwargs: Any) -> Any:
    """A :class:`Dot` layer, made and applied at once."""
    return Dot(axes=axes, normalize=normalize, **kwargs)(inputs)
