"""Drawing classes and coins, as the helpers do."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.comparison import less
from runnel.ops.sampling.random import multinomial, random_uniform


def categorical_sample(logits: Tensor, seed: int | None) -> Tensor:
    """One class for each vector along the last axis of ``logits``, as int32."""
    full = shape_of(logits)
    classes = logits.dims[-1] if logits.dims and logits.dims[-1] is not None else full[-1]
    drawn = multinomial(reshape(logits, [-1, classes]), 1, seed=seed, output_dtype=int32)
    ids = reshape(drawn, full[:-1])
    if logits.dims is not None:
        ids.set_shape(logits.dims[:-1])
    return ids


def bernoulli_sample(probability: Any, count: Any, seed: int | None) -> Tensor:
    """``count`` int32s, each 1 with the given probability."""
    uniform = random_uniform([count], seed=seed)
    chance = cast(convert_to_tensor(probability), uniform.dtype.base_dtype)
    return cast(less(uniform, chance), int32)
