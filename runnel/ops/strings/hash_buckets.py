"""Strings sorted into buckets by their hashes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.operation import Tensor
from runnel.graph.shape_inference import unchanged
from runnel.ops.strings.hashes import Words, fingerprint64, hashed, old_hash64, sip_hash
from runnel.ops.strings.texts import string_op

_COUNT = "num_buckets: int >= 1"

bucket_op = string_op("StringToHashBucket", "string_tensor: string", "output: int64", _COUNT)
fast_op = string_op("StringToHashBucketFast", "input: string", "output: int64", _COUNT)
strong_op = string_op(
    "StringToHashBucketStrong", "input: string", "output: int64", [_COUNT, "key: list(int)"]
)
for _op in (bucket_op, fast_op, strong_op):
    _op.shape(unchanged)


def _buckets(
    texts: Any, function: Callable[..., Words], count: int, key: tuple[int, int] | None = None
) -> np.ndarray:
    array = np.asarray(texts, object)
    found = hashed(array.reshape(-1).tolist(), function, key) % np.uint64(count)
    return found.astype(np.int64).reshape(array.shape)


@bucket_op.kernel
def _(xp, texts, *, num_buckets):
    return _buckets(texts, old_hash64, num_buckets)


@fast_op.kernel
def _(xp, texts, *, num_buckets):
    return _buckets(texts, fingerprint64, num_buckets)


@strong_op.kernel
def _(xp, texts, *, num_buckets, key):
    return _buckets(texts, sip_hash, num_buckets, (key[0], key[1]))


def string_to_hash_bucket(
    string_tensor: Any = None,
    num_buckets: int | None = None,
    name: str | None = None,
    input: Any = None,  # noqa: A002 (TensorFlow's name)
) -> Tensor:
    """The bucket of each string, by a hash that TensorFlow keeps for old models."""
    texts = input if string_tensor is None else string_tensor
    return bucket_op(texts, num_buckets=num_buckets, name=name)


def string_to_hash_bucket_fast(
    input: Any,  # noqa: A002 (TensorFlow's name)
    num_buckets: int,
    name: str | None = None,
) -> Tensor:
    """The bucket of each string, by FarmHash's fingerprint.

    Example:
        >>> tf.strings.to_hash_bucket_fast(["a", "b"], 10)
    """
    return fast_op(input, num_buckets=num_buckets, name=name)


def string_to_hash_bucket_strong(
    input: Any,  # noqa: A002 (TensorFlow's name)
    num_buckets: int,
    key: Any,
    name: str | None = None,
) -> Tensor:
    """The bucket of each string, by SipHash under ``key``, two numbers that nobody else knows."""
    numbers = list(key)
    if len(numbers) != 2:
        raise ValueError(f"key must be two numbers, not {key!r}")
    return strong_op(input, num_buckets=num_buckets, key=numbers, name=name)
