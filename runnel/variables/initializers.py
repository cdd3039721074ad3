"""Initializers: functions of a shape and a type that make the initial value of a variable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import skip_op_ids
from runnel.graph.shapes import as_dims
from runnel.ops.array_shape import reshape
from runnel.ops.constants import constant
from runnel.ops.elementwise import sign
from runnel.ops.fill import fill, ones, zeros
from runnel.ops.qr import qr
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.sampling.random import random_normal, random_uniform, truncated_normal
from runnel.ops.slicing import slice as slice_tensor
from runnel.ops.transposition import matrix_transpose
from runnel.variables.partitioning import PartitionInfo

# A standard normal cut off at two standard deviations has this standard deviation.
_TRUNCATED_STDDEV = 0.87962566103423978


class Initializer:
    """Base class: an initializer is called with a shape and, if it is to override its own, a type.

    ``partition_info`` says which part of a larger variable is being made, if it is one.
    ``from_config(get_config())`` makes an initializer like this one.
    """

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an initializer like this one."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """An initializer made with the arguments of ``get_config``."""
        return cls(**config)


class Zeros(Initializer):
    """Tensors of zeros (of False, or of empty strings)."""

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = as_dtype(dtype)

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        return zeros(shape, self.dtype if dtype is None else dtype)

    def get_config(self) -> dict[str, Any]:
        return {"dtype": self.dtype.name}


class Ones(Initializer):
    """Tensors of ones."""

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = as_dtype(dtype)

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        return ones(shape, self.dtype if dtype is None else dtype)

    def get_config(self) -> dict[str, Any]:
        return {"dtype": self.dtype.name}


class Constant(Initializer):
    """Tensors that hold ``value``: a number, or a list or array with the shape asked for.

    A list with fewer elements is completed with its last one, unless ``verify_shape``. Where the
    shape is a tensor the value must be a number.
    """

    def __init__(
        self, value: Any = 0, dtype: Any = dtypes.float32, verify_shape: bool = False
    ) -> None:
        if not (np.isscalar(value) or isinstance(value, list | tuple | np.ndarray)):
            raise TypeError(
                f"The value of a constant initializer must be a number, list, tuple or array, "
                f"not {value!r} of type {type(value).__name__}"
            )
        self.value = value
        self.dtype = as_dtype(dtype)
        self._verify_shape = verify_shape

    def __call__(
        self,
        shape: Any,
        dtype: Any = None,
        partition_info: PartitionInfo | None = None,
        verify_shape: bool | None = None,
    ) -> Tensor:
        verify = self._verify_shape if verify_shape is None else verify_shape
        wanted = self.dtype if dtype is None else dtype
        if isinstance(shape, Tensor):  # known when the step runs
            return fill(shape, constant(self.value, dtype=wanted, shape=[]))
        if np.isscalar(self.value) and get_default_graph()._scopes.mapped_folder:
            # A constant would be as large as the variable; a fill is made some rows at a time.
            skip_op_ids(-2)
            dims = constant(as_dims(shape), dtypes.int64)
            return fill(dims, constant(self.value, dtype=wanted))
        return constant(self.value, dtype=wanted, shape=shape, verify_shape=verify)

    def get_config(self) -> dict[str, Any]:
        return {"value": self.value, "dtype": self.dtype.name}


class RandomUniform(Initializer):
    """Numbers drawn uniformly from [minval, maxval); ``maxval`` is 1 for floats if not given."""

    def __init__(
        self,
        minval: Any = 0,
        maxval: Any = None,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        self.minval = minval
        self.maxval = maxval
        self.seed = seed
        self.dtype = as_dtype(dtype)

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        wanted = self.dtype if dtype is None else dtype
        return random_uniform(shape, self.minval, self.maxval, wanted, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        return {
            "minval": self.minval,
            "maxval": self.maxval,
            "seed": self.seed,
            "dtype": self.dtype.name,
        }


class RandomNormal(Initializer):
    """Numbers drawn from a normal distribution."""

    def __init__(
        self,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        self.mean = mean
        self.stddev = stddev
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        wanted = self.dtype if dtype is None else dtype
        return random_normal(shape, self.mean, self.stddev, wanted, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        return {
            "mean": self.mean,
            "stddev": self.stddev,
            "seed": self.seed,
            "dtype": self.dtype.name,
        }


class TruncatedNormal(RandomNormal):
    """Numbers drawn from a normal distribution, again if they are beyond two deviations."""

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        wanted = self.dtype if dtype is None else dtype
        return truncated_normal(shape, self.mean, self.stddev, wanted, seed=self.seed)


class UniformUnitScaling(Initializer):
    """Uniform numbers whose scale keeps the variance of a linear layer's input.

    ``factor`` corrects for a nonlinearity: about 1.43 for relu, 1.15 for tanh.
    """

    def __init__(
        self, factor: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.factor = factor
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        whole = _whole_shape(shape, partition_info)
        limit = math.sqrt(3 / max(1.0, math.prod(whole[:-1]))) * self.factor
        wanted = self.dtype if dtype is None else dtype
        return random_uniform(shape, -limit, limit, wanted, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        return {"factor": self.factor, "seed": self.seed, "dtype": self.dtype.name}


class VarianceScaling(Initializer):
    """Numbers of variance ``scale / n``, n being what ``mode`` says of the shape.

    ``mode`` is "fan_in" (the inputs of a unit), "fan_out" (its outputs) or "fan_avg" (their
    average); ``distribution`` "truncated_normal" (or "normal"), "untruncated_normal" or "uniform".

    Example:
        >>> he = tf.variance_scaling_initializer(scale=2.0)
        >>> w = tf.get_variable("w", [256, 128], initializer=he)
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        if scale <= 0.0:
            raise ValueError(f"scale must be positive, not {scale}")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"mode must be fan_in, fan_out or fan_avg, not {mode!r}")
        distribution = distribution.lower()
        if distribution not in ("normal", "uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError(
                "distribution must be truncated_normal (or normal), untruncated_normal or uniform, "
                f"not {distribution!r}"
            )
        self.scale = scale
        self.mode = mode
        self.distribution = distribution
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        fan_in, fan_out = compute_fans(_whole_shape(shape, partition_info))
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2.0}[self.mode]
        scale = self.scale / max(1.0, fan)
        wanted = self.dtype if dtype is None else dtype
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * scale)
            return random_uniform(shape, -limit, limit, wanted, seed=self.seed)
        if self.distribution == "untruncated_normal":
            return random_normal(shape, 0.0, math.sqrt(scale), wanted, seed=self.seed)
        stddev = math.sqrt(scale) / _TRUNCATED_STDDEV
        return truncated_normal(shape, 0.0, stddev, wanted, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        return {
            "scale": self.scale,
            "mode": self.mode,
            "distribution": self.distribution,
            "seed": self.seed,
            "dtype": self.dtype.name,
        }


class GlorotUniform(VarianceScaling):
    """Glorot and Bengio (2010), uniform: of variance 2 / (inputs + outputs)."""

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed, "dtype": self.dtype.name}


class GlorotNormal(VarianceScaling):
    """Glorot and Bengio (2010), normal: of variance 2 / (inputs + outputs)."""

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed, "dtype": self.dtype.name}


class Orthogonal(Initializer):
    """A random orthogonal matrix times ``gain``; more dimensions are flattened but the last.

    If it is not square, its rows or its columns, whichever are fewer, are orthonormal.
    """

    def __init__(
        self, gain: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.gain = gain
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        if len(shape) < 2:
            raise ValueError(
                f"Only tensors of at least two dimensions can be orthogonal, not one of {shape}"
            )
        wanted = as_dtype(self.dtype if dtype is None else dtype)
        rows, columns = int(math.prod(shape[:-1])), int(shape[-1])
        size = (max(rows, columns), min(rows, columns))
        q, r = qr(random_normal(size, dtype=wanted, seed=self.seed))
        # With the signs of R's diagonal, Q is distributed uniformly (Mezzadri 2007).
        diagonal = reduce_sum(r * constant(np.eye(size[1]), wanted), axis=0)
        skip_op_ids(-3)  # DiagPart does the same alone
        q = q * sign(diagonal)
        if rows < columns:
            q = matrix_transpose(q)
        return self.gain * reshape(q, shape)

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, "seed": self.seed, "dtype": self.dtype.name}


class Identity(Initializer):
    """The identity matrix times ``gain``."""

    def __init__(self, gain: float = 1.0, dtype: Any = dtypes.float32) -> None:
        self.gain = gain
        self.dtype = _floating(dtype)

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        whole = _whole_shape(shape, partition_info)
        if len(whole) != 2:
            raise ValueError(f"Only matrices can be identity matrices, not a tensor of {whole}")
        rows, columns = whole
        matrix = constant(np.eye(rows, columns), self.dtype if dtype is None else dtype)
        if partition_info is not None:
            matrix = slice_tensor(matrix, partition_info.var_offset, shape)
        return self.gain * matrix

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, "dtype": self.dtype.name}


def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """LeCun et al. (1998), normal: of variance 1 / inputs."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """LeCun et al. (1998), uniform: of variance 1 / inputs."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


def he_normal(seed: int | None = None) -> VarianceScaling:
    """He et al. (2015), normal: of variance 2 / inputs."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> VarianceScaling:
    """He et al. (2015), uniform: of variance 2 / inputs."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


def compute_fans(shape: Sequence[int]) -> tuple[int, int]:
    """The number of inputs and of outputs of each unit of a layer with weights of this shape.

    Example:
        >>> compute_fans([3, 3, 16, 32])  # a convolution
        (144, 288)
    """
    if len(shape) < 1:
        return 1, 1
    if len(shape) == 1:
        return int(shape[0]), int(shape[0])
    field = math.prod(int(size) for size in shape[:-2])
    return field * int(shape[-2]), field * int(shape[-1])


def _whole_shape(shape: Any, partition_info: PartitionInfo | None) -> list[int]:
    whole = shape if partition_info is None else partition_info.full_shape
    return [int(size) for size in whole]


def _floating(dtype: Any) -> DType:
    found = as_dtype(dtype)
    if not found.is_floating:
        raise ValueError(f"This initializer makes floating point numbers, not {found.name}")
    return found
